"""The sweep page without a browser: verdict, charts, region, and the empty state."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.launch import RUNS_VARIABLE

APP = str(Path(__file__).resolve().parents[2] / "dashboard" / "app.py")


@pytest.fixture(scope="module")
def swept(sessions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of two parameters over one plain session."""
    from replay.cli import main

    out = tmp_path_factory.mktemp("swept") / "grid"
    with pytest.raises(SystemExit) as stopped:
        main(["sweep", str(sessions / "plain.jsonl"), "-p", "decode-adr18", "--set", "trigger.at=0.4,0.6",
              "--set", "tail_tokens=100,200,400", "--window", "1500", "--jobs", "1", "--no-cache", "--out", str(out)])
    assert not stopped.value.code
    return out


def page(monkeypatch: pytest.MonkeyPatch, folder: Path, **query: str) -> AppTest:
    """The sweep page on a run, once nothing is worked out beside it any more."""
    monkeypatch.setenv(RUNS_VARIABLE, json.dumps([str(folder)]))
    app = AppTest.from_file(APP, default_timeout=60).run()
    app.switch_page("views/sweep.py")
    for key, value in query.items():
        app.query_params[key] = value
    app.run()
    while 'class="rw-waiting"' in html(app):
        app.run()
    return app


def html(app: AppTest) -> str:
    """Everything that our own pieces put on the page."""
    assert not app.exception, [e.value for e in app.exception]
    return "\n".join(piece.proto.body for piece in app.get("html"))


def test_a_sweep_shows_its_surface(swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heat map, lines and sensitivity are drawn; each setting stands with its mean, and why none was chosen."""
    app = page(monkeypatch, swept)

    assert 3 == len(app.get("vega_lite_chart"))
    assert "All sessions come from one repository" in html(app)
    assert "decode-adr18:trigger.at=0.6,tail_tokens=400" in html(app)
    assert "cannot be told" in html(app)


def test_the_axes_are_in_the_address(swept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link says which parameters stand on the axes; the second is never the first."""
    app = page(monkeypatch, swept, sx="tail_tokens")
    assert ["trigger.at"] == app.selectbox(key="choose_sy").options

    app.selectbox(key="choose_sx").set_value("trigger.at").run()
    assert "trigger.at" == app.query_params["sx"]
    assert "tail_tokens" == app.selectbox(key="choose_sy").value


def test_a_run_that_is_no_sweep_says_how_to_make_one(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The empty state names the command."""
    assert "rewindow sweep PATH" in html(page(monkeypatch, run))
