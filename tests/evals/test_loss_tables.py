"""What the reports say about losses: what each policy kept, and the worst that it lost, with its place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evals.loss_tables import worst_rows
from replay.cli import main
from replay.testing import Script
from replay.writers.rewindow import session_records

KEY = "sk-" + "ant-api03-" + "Zk3" * 12


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session that uses an old result after twelve newer ones have pushed it out of a masked view."""
    script = Script().user("go").call("Read", '{"file_path":"/repo/conf.py"}').result(f"limit_of_parcels = '{KEY}'")
    for number in range(12):
        script.call("Bash", json.dumps({"command": f"echo {number}"})).result(f"{number}")
    edit = {"file_path": "/repo/conf.py", "old_string": f"limit_of_parcels = '{KEY}'", "new_string": "limit_of_parcels = 3"}
    script.call("Edit", json.dumps(edit)).result("ok").say("done")
    path = tmp_path / "s.jsonl"
    path.write_text("\n".join(map(json.dumps, session_records((script.build(),)))) + "\n")
    return path


def compared(session: Path, *more: str) -> None:
    """Run the comparison."""
    run("compare", str(session), "-p", "full-history", "-p", "observation-masking:keep=3", "--losses", *more)


def run(*arguments: str) -> None:
    """A command that ends well."""
    with pytest.raises(SystemExit, match=r"^0$"):
        main([*arguments])


def test_the_worst_loss_is_named_with_its_place(session: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The old text of the edit at step 14 is what the masked view had lost; the tool and the fate stand beside it."""
    compared(session, "--json")
    found = worst_rows(json.loads(capsys.readouterr().out))

    assert [("observation-masking:keep=3", "14", "line", "Edit")] == [(r[0], r[2], r[4], r[5]) for r in found
                                                                      if r[4] == "line"]
    assert not any(r[0] == "full-history" for r in found)


def test_every_report_shows_what_was_kept_and_lost(session: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                   capsys: pytest.CaptureFixture[str]) -> None:
    """Terminal, HTML and Markdown have the shares that each policy kept, and the worst losses; no key in any of them."""
    monkeypatch.setenv("COLUMNS", "300")
    compared(session, "--out", str(tmp_path / "run"), "--html", str(tmp_path / "r.html"))
    run("report", str(tmp_path / "run"), "--markdown", str(tmp_path / "r.md"))
    said = capsys.readouterr().out
    texts = [said, (tmp_path / "r.html").read_text(), (tmp_path / "r.md").read_text()]

    assert all("Worst losses" in text for text in texts)
    assert "limit_of_parcels" in texts[1] and "limit\\_of\\_parcels" in texts[2]
    assert "needed evidence" in said and "edits that could" in said
    assert not any(KEY in text for text in texts)
