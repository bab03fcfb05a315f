"""The import page without a browser: what files are, and a comparison that equals the command line's."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import uploads
from dashboard.launch import RUNS_VARIABLE
from evals.child_run import start
from replay.cli import main

APP = str(Path(__file__).resolve().parents[2] / "dashboard" / "app.py")
TABLES = ("steps.parquet", "events.parquet", "trials.parquet")


@pytest.fixture
def place(sessions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small sessions with a damaged and a foreign file, in a working folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(RUNS_VARIABLE, json.dumps([]))
    folder = tmp_path / "sessions"
    folder.mkdir()
    for path in sessions.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "cut.jsonl").write_text('{"role": "user", "content": "Hello"}\n{"role": "assistant", "con', encoding="utf-8")
    (folder / "notes.json").write_text('{"title": "shopping"}', encoding="utf-8")
    return folder


def opened(**query: str) -> AppTest:
    """The import page."""
    app = AppTest.from_file(APP, default_timeout=90).run()
    app.switch_page("views/imports.py")
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


def html(app: AppTest) -> str:
    """The markup on a page."""
    assert not app.exception, [e.value for e in app.exception]
    return "\n".join(piece.proto.body for piece in app.get("html"))


def test_without_a_choice_it_says_what_to_do(place: Path) -> None:
    """The empty page names folders that people have."""
    assert "~/.codex/sessions" in html(opened())


def test_a_folder_is_reported_with_notes(place: Path) -> None:
    """Formats, counts and damage of each file; hostile names are text; what is no session is said."""
    page = html(opened(place=str(place)))

    assert "4 sessions in 5 files" in page
    assert "hostile **bold** &lt;b&gt;.jsonl" in page
    assert "cut.jsonl: could not be read and was left out" in page
    assert "notes.json: no session" in page


def test_a_folder_that_is_not_there(place: Path) -> None:
    """It is one line, not a stack trace."""
    assert "no such file or folder" in html(opened(place="/no/such/place"))


def test_the_run_is_that_of_the_command_line(place: Path, tmp_path: Path) -> None:
    """The page starts a comparison, shows that it goes on, and its tables are the command line's to the byte."""
    app = opened(place=str(place))
    app.multiselect(key="job_policies").set_value(["full-history", "decode-adr18"])
    app.number_input(key="job_window").set_value(2_000)
    app.button[0].click().run()
    deadline = time.monotonic() + 120
    while "The run is stored" not in html(app):
        assert time.monotonic() < deadline
        time.sleep(0.5)
        app.run()
    with pytest.raises(SystemExit):
        main(["compare", str(place), "-p", "full-history", "-p", "decode-adr18", "--window", "2000", "--no-cache", "--out",
              str(tmp_path / "cli")])

    made = tmp_path / "runs" / "from-dashboard"
    assert [(made / t).read_bytes() for t in TABLES] == [(tmp_path / "cli" / t).read_bytes() for t in TABLES]


@pytest.mark.parametrize(("name", "words"), [("../out", "No such name"), ("", "No such name")])
def test_a_run_s_name_leads_nowhere_else(name: str, words: str, place: Path) -> None:
    """Names with a path in them are refused."""
    app = opened(place=str(place))
    app.text_input(key="job_name").set_value(name)
    app.button[0].click().run()

    assert words in html(app)


def test_cancelling_keeps_what_is_done(place: Path, tmp_path: Path) -> None:
    """A cancelled comparison says how it goes on, and leaves no run behind."""
    job = start([str(place)], ["full-history"], 2_000, tmp_path / "runs" / "a", 5)
    job.cancel()
    job.process.wait(timeout=60)

    assert "stopped" == job.state
    assert not (tmp_path / "runs" / "a").exists()


def test_a_comparison_that_fails_says_why(place: Path, tmp_path: Path) -> None:
    """Its last words are the command line's one clear line."""
    job = start([str(tmp_path / "nothing")], ["full-history"], 2_000, tmp_path / "runs" / "a", 1)
    job.process.wait(timeout=60)

    assert "failed" == job.state
    assert "no such file or folder" in job.words


@pytest.mark.parametrize(("name", "kept"), [
    ("../../etc/passwd", "passwd"), ("C:\\Users\\me\\s.jsonl", "s.jsonl"), (".hidden.json", "hidden.json"),
    ("a b<c>.jsonl", "a_b_c_.jsonl"), ("..", "file"), ("x" * 300 + ".jsonl", "x" * 114 + ".jsonl")])
def test_dropped_files_get_harmless_names(name: str, kept: str) -> None:
    """Whatever a file is called, it lands in one private folder under a name that is only a name."""
    folder = uploads.keep([SimpleNamespace(name=name, getvalue=lambda: b"x")])

    assert [f"001-{kept}"] == [p.name for p in folder.iterdir()]
    assert 0o700 == folder.stat().st_mode & 0o777
