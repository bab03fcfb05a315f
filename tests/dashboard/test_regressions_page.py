"""The regressions page without a browser: a second run, what changed, and the way to the first differing step."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.launch import RUNS_VARIABLE

APP = str(Path(__file__).resolve().parents[2] / "dashboard" / "app.py")
DECODE = "decode-adr18:trigger.at=0.4,tail_tokens=200"
Show = Callable[..., AppTest]


@pytest.fixture
def shown(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Show:
    """The page on a copy of the small run, once nothing is worked out beside it any more."""
    first = tmp_path / "first"
    shutil.copytree(run, first)

    def start(**query: str) -> AppTest:
        monkeypatch.setenv(RUNS_VARIABLE, json.dumps([str(first)]))
        app = AppTest.from_file(APP, default_timeout=60).run()
        app.switch_page("views/regressions.py")
        for key, value in query.items():
            app.query_params[key] = value
        app.run()
        while 'class="rw-waiting"' in html(app):
            app.run()
        return app
    return start


def html(app: AppTest) -> str:
    """Everything that our own pieces put on the page."""
    assert not app.exception, [e.value for e in app.exception]
    return "\n".join(piece.proto.body for piece in app.get("html"))


def test_alone_a_run_says_how_to_make_another(shown: Show) -> None:
    """The empty state names the command."""
    assert "Nothing to compare with" in html(shown())
    assert "rewindow compare PATH" in html(shown())


def test_the_same_run_shows_no_change(shown: Show, run: Path) -> None:
    """A folder in the address is the second run; nothing changed in it."""
    assert "All 3 sessions are the same at every step" in html(shown(folder=str(run)))


def test_runs_beside_the_first_are_offered(shown: Show, run: Path, tmp_path: Path) -> None:
    """A run in the same folder can be chosen without being named on the command line."""
    shutil.copytree(run, tmp_path / "second")

    assert [str(tmp_path / "second")] == shown().selectbox(key="choose_with").options


def test_differing_sessions_lead_to_their_step(shown: Show, run: Path) -> None:
    """Another policy of the second run: the sessions that differ, and a button that opens the step."""
    app = shown(folder=str(run), ours="full-history", theirs=DECODE, metric="mean_view_tokens")
    assert "2 of 3 sessions differ" in html(app)
    assert "what the model sees" in html(app)
    offered: Any = app.button_group(key="open_first")
    assert ["plain · step 7"] == [o for o in offered.options if "plain" in str(o)]


def test_unlike_runs_are_refused_in_one_sentence(shown: Show, sessions: Path, tmp_path: Path,
                                                 stored: Callable[..., Any]) -> None:
    """Fewer sessions: the page says what is different and shows no number."""
    stored([sessions / "plain.jsonl"], tmp_path / "elsewhere" / "fewer")
    page = html(shown(folder=str(tmp_path / "elsewhere" / "fewer")))

    assert "different cohorts" in page
    assert "What changed" not in page


def test_a_folder_that_is_no_run_is_one_line(shown: Show, tmp_path: Path) -> None:
    """A wrong folder gives a message, not a trace."""
    assert "no such folder" in html(shown(folder=str(tmp_path / "nowhere")))
