"""The annotate page without a browser, and what is kept of annotations."""

from __future__ import annotations

import csv
import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.launch import RUNS_VARIABLE
from evals.annotations import FILE, annotate, annotations_of, as_csv, as_jsonl, chosen, withdraw
from replay.errors import ConfigError, ReadError

APP = str(Path(__file__).resolve().parents[2] / "dashboard" / "app.py")
SAID = {"session": "plain", "policy": "full-history", "step": 3, "mark": "harmful"}


@pytest.fixture
def own_run(run: Path, tmp_path: Path) -> Path:
    """A copy of the small run that a test may write into."""
    return Path(shutil.copytree(run, tmp_path / "run"))


def html(app: AppTest) -> str:
    """The markup on a page."""
    assert not app.exception, [e.value for e in app.exception]
    return "\n".join(piece.proto.body for piece in app.get("html"))


def opened(run: Path, monkeypatch: pytest.MonkeyPatch, **query: str) -> AppTest:
    """The annotate page of a run."""
    monkeypatch.setenv(RUNS_VARIABLE, json.dumps([str(run)]))
    app = AppTest.from_file(APP, default_timeout=60).run()
    app.switch_page("views/annotate.py")
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


def test_what_is_said_on_the_page_is_kept_and_shown(own_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Session, policy and step come from the address; mark and note from the form; hostile text is shown as text."""
    app = opened(own_run, monkeypatch, session="plain", policy="full-history", step="3")
    assert "None yet" in html(app)
    app.radio(key="mark_given").set_value("harmful")
    app.text_area(key="note_given").set_value("<b>the file</b> was gone")
    app.button[0].click().run()
    (kept,) = annotations_of(own_run)

    assert ("plain", "full-history", 3, "harmful") == (kept.session, kept.policy, kept.step, kept.mark)
    assert "&lt;b&gt;the file&lt;/b&gt; was gone" in html(app)
    assert "1 annotations of this run" in html(app)


def test_filters_stand_in_the_address(own_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what has the mark and holds the words is shown."""
    annotate(own_run, **SAID, note="about edits")
    annotate(own_run, **SAID | {"mark": "good"}, note="about reads")
    page = html(opened(own_run, monkeypatch, mark="good", words="READS"))

    assert "about reads" in page
    assert "about edits" not in page


def test_exports_hold_everything(own_run: Path) -> None:
    """JSON lines and CSV have each annotation; a note that looks like a formula is kept from a spreadsheet."""
    annotate(own_run, **SAID, note="=1+1", loss="a lost line")
    known = annotations_of(own_run)

    assert ["a lost line"] == [json.loads(line)["loss"] for line in as_jsonl(known).splitlines()]
    assert "'=1+1" == next(iter(csv.DictReader(as_csv(known).splitlines())))["note"]


def test_taking_back(own_run: Path) -> None:
    """What was taken back is gone; taking back what is not there is told."""
    made = annotate(own_run, **SAID)
    withdraw(own_run, made.id)

    assert [] == annotations_of(own_run)
    with pytest.raises(ConfigError, match="no annotation"):
        withdraw(own_run, made.id)


@pytest.mark.parametrize(("wrong", "words"), [({"mark": "bad"}, "expected one of good, harmful, wrong metric"),
                                              ({"step": 0}, "numbered from 1"), ({"note": "x" * 4001}, "at most 4,000")])
def test_what_is_no_annotation(wrong: dict[str, Any], words: str, own_run: Path) -> None:
    """It is told what would be right, and nothing is kept."""
    with pytest.raises(ConfigError, match=words):
        annotate(own_run, **SAID | wrong)

    assert [] == annotations_of(own_run)


def test_many_people_at_once(own_run: Path) -> None:
    """No annotation is lost when several are written at a time."""
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: annotate(own_run, **SAID | {"step": n}), range(1, 41)))

    assert list(range(1, 41)) == sorted(a.step for a in annotations_of(own_run))


def test_a_damaged_line_is_named(own_run: Path) -> None:
    """The error says which line; the others can still be mended by hand."""
    annotate(own_run, **SAID)
    with (own_run / FILE).open("a", encoding="utf-8") as file:
        file.write('{"id": 1\n')

    with pytest.raises(ReadError, match=r"annotations\.jsonl:2.*is no annotation"):
        annotations_of(own_run)


def test_words_find_whole_annotations(own_run: Path) -> None:
    """Words are looked for in note, loss, session and policy, whatever their case."""
    for note in ("Threshold too low", "fine"):
        annotate(own_run, **SAID, note=note)

    assert ["Threshold too low"] == [a.note for a in chosen(annotations_of(own_run), (), "threshold")]
    assert 2 == len(chosen(annotations_of(own_run), ("harmful",), "FULL-history"))
