"""The pages without a browser: what they show, what the address says, and what goes wrong in one line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.launch import RUNS_VARIABLE
from replay.engine import Session

APP = str(Path(__file__).resolve().parents[2] / "dashboard" / "app.py")
HOSTILE, PLAIN, SILENT = "hostile **bold** <b>", "plain", "silent"
DECODE = "decode-adr18:trigger.at=0.4,tail_tokens=200"
Open = Callable[..., AppTest]
Store = Callable[..., dict[str, Any]]


@pytest.fixture
def opened(run: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Opens a page with query parameters on the small run, or on other folders."""
    def start(page: str = "", folders: list[Path] | None = None, **query: str) -> AppTest:
        monkeypatch.setenv(RUNS_VARIABLE, json.dumps([str(f) for f in folders or [run]]))
        app = AppTest.from_file(APP, default_timeout=60).run()
        if page:
            app.switch_page(f"views/{page}.py")
        for key, value in query.items():
            app.query_params[key] = value
        return _settled(app.run() if page or query else app)
    return start


def _settled(app: AppTest) -> AppTest:
    """The page once nothing is worked out beside it any more."""
    for _ in range(200):
        if not any('class="rw-waiting"' in piece.proto.body for piece in app.get("html")):
            break
        app.run()
    return app


def _html(app: AppTest) -> str:
    assert not app.exception, [e.value for e in app.exception]
    return "\n".join(piece.proto.body for piece in app.get("html"))


def test_compare_shows_every_policy_with_intervals_and_levels(opened: Open) -> None:
    """The leaderboard names each policy, its interval, its rank and the level of every number."""
    page = _html(opened())

    assert all(f"{name}</span>" in page for name in ("full-history", DECODE, "mycodeagent:rounds=1"))
    assert "mean view, tokens" in page
    assert " to " in page
    assert "rank 1" in page
    assert 'title="exact: follows from the recording' in page


def test_compare_says_what_it_recommends_and_warns_of(opened: Open) -> None:
    """The recommendation's reason and each warning stand on the page."""
    page = _html(opened())

    assert "No single policy is recommended" in page
    assert "sessions have no model call: their measurements are missing, not zero" in page
    assert "1,500 tokens</b> window" in page


def test_session_draws_the_longest_session_first(opened: Open) -> None:
    """Without a choice the session with the most steps is drawn, under the recorded lane and the first policies."""
    app = opened("session")

    assert HOSTILE == app.selectbox(key="choose_session").value
    assert ["recorded", "full-history"] == app.multiselect(key="choose_p").value[:2]
    assert 1 + 4 + 2 == len(app.get("vega_lite_chart"))
    assert "run ends at step" in _html(app)


def test_session_keeps_a_choice_in_the_address(opened: Open) -> None:
    """What a visitor chooses stands in the query parameters, so that the address reproduces it."""
    app = opened("session")
    app.selectbox(key="choose_session").set_value(PLAIN).run()
    app.multiselect(key="choose_p").set_value(["recorded", DECODE]).run()

    assert PLAIN == app.query_params["session"]
    assert ["recorded", DECODE] == app.query_params["p"]


def test_an_address_reproduces_a_screen(opened: Open) -> None:
    """Session, step and both policies come from the query parameters."""
    app = opened("step", session=PLAIN, step="7", a=DECODE, b="full-history")

    assert [PLAIN, DECODE, "full-history"] == [app.selectbox(key=f"choose_{k}").value for k in ("session", "a", "b")]
    assert 7 == app.number_input(key="choose_step").value


@pytest.mark.parametrize(("step", "shown"), [("0", 1), ("9999", 12), ("-3", 7), ("seven", 7), ("", 7)])
def test_a_wrong_step_in_the_address_does_no_harm(opened: Open, step: str, shown: int) -> None:
    """A step beyond the session is its nearest one; what is no number is the default, the first difference."""
    app = opened("step", session=PLAIN, step=step, a=DECODE, b="full-history")

    assert shown == app.number_input(key="choose_step").value
    assert not app.exception


def test_unknown_names_in_the_address_fall_back(opened: Open) -> None:
    """A session or policy that the run does not hold is replaced by the default."""
    app = opened("step", session="nobody", a="nothing", run="nowhere")

    assert HOSTILE == app.selectbox(key="choose_session").value
    assert not app.exception


def test_buttons_walk_through_steps_and_changes(opened: Open) -> None:
    """Next and previous step and change write the step into the address."""
    app = opened("step", session=PLAIN, step="7", a=DECODE, b="full-history")
    app.button(key="jump_Next step").click().run()
    assert "8" == app.query_params["step"]
    app.button(key="jump_Previous change").click().run()
    assert "7" == app.query_params["step"]
    app.button(key="jump_Next change").click().run()
    assert "11" == app.query_params["step"]
    assert app.button(key="jump_Next change").disabled


def test_step_shows_both_views_with_labels(opened: Open) -> None:
    """Differences carry a sign and a word beside their colour; equal messages are folded."""
    page = _html(opened("step", session=PLAIN, step="8", a=DECODE, b="full-history"))

    assert "− missing" in page
    assert "+ added" in page
    assert "only the right view has it" in page
    assert "not in this view" in page
    assert "Summary of the earlier conversation" in page


def test_step_shows_all_messages_on_demand(opened: Open) -> None:
    """The switch puts every message of both views on the page, a screen of rows at a time."""
    app = opened("step", session=HOSTILE, step="16", a="full-history", b="recorded")
    assert "messages are the same in both views" in _html(app)
    app.radio(key="choose_show").set_value("All messages").run()

    page = _html(app)
    assert "#0 system" in page
    assert "#19 assistant" not in page or "#20 " not in page
    app.button(key="jump_Later rows").click().run()
    assert "#20 " in _html(app)
    assert "21" == app.query_params["at"]


def test_step_shows_the_numbers_of_events(opened: Open) -> None:
    """A compaction is shown with its reason, estimate, threshold and gain."""
    page = _html(opened("step", session=PLAIN, step="7", a=DECODE, b="recorded"))

    assert "compaction (threshold exceeded), estimate" in page
    assert "threshold 600" in page
    assert "counted tokens" in page
    assert "L0, conditional on the agent acting as recorded: views differ from step 7 on" in page


def test_raw_json_is_shown_on_demand(opened: Open) -> None:
    """A switch gives the exact view in a provider's shape, and the address says so."""
    app = opened("step", session=PLAIN, step="1", a="full-history", b="recorded")
    assert not app.code
    app.radio(key="choose_raw").set_value("Raw JSON of the left view").run()

    shaped = json.loads(app.code[0].value)
    assert ["system", "user"] == [m["role"] for m in shaped]
    assert "Raw JSON of the left view" == app.query_params["raw"]


def test_nothing_from_a_transcript_is_markup(opened: Open) -> None:
    """Hostile text stands escaped in our own pieces and reaches no element that renders Markdown."""
    app = opened("step", session=HOSTILE, step="8", a="full-history", b=DECODE, show="All messages")
    app.radio(key="choose_raw").set_value("Raw JSON of the right view").run()
    page = _html(app)

    assert "&lt;script&gt;window.pwned=1&lt;/script&gt; **bold**" in page
    assert "<script" not in page
    assert "<img" not in page
    assert r"\x1b[31mred\x1b[0m \u202egnirts" in page
    rendered = [str(e.value) for kind in ("markdown", "header", "subheader", "caption", "title") for e in app.get(kind)]
    assert not [text for text in rendered if "pwned" in text]
    assert not [b.label for b in (*app.button, *app.radio, *app.selectbox) if "pwned" in b.label]


def test_a_session_without_a_model_call_says_so(opened: Open) -> None:
    """Every page of a session has an empty state for it."""
    for page in ("session", "step", "compactions"):
        assert "No model call" in _html(opened(page, session=SILENT))


def test_without_a_run_the_page_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no run is found the command that makes one is named."""
    monkeypatch.delenv(RUNS_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)

    assert "rewindow demo" in _html(AppTest.from_file(APP, default_timeout=60).run())


def test_runs_below_the_working_folder_are_found(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without named runs those under ./runs are offered; other folders there are passed over."""
    monkeypatch.delenv(RUNS_VARIABLE, raising=False)
    shutil.copytree(run, tmp_path / "runs" / "copied")
    (tmp_path / "runs" / "half").mkdir()
    monkeypatch.chdir(tmp_path)

    app = AppTest.from_file(APP, default_timeout=60).run()
    assert ["copied"] == app.selectbox(key="choose_run").options


def test_a_run_that_vanished_is_one_line(opened: Open, tmp_path: Path) -> None:
    """A named folder that is no run any more gives a message, not a trace."""
    assert "no such folder" in _html(opened(folders=[tmp_path / "gone"]))


def test_a_vanished_session_file_is_one_line(sessions: Path, tmp_path: Path, opened: Open, stored: Store) -> None:
    """The compare page still works from stored numbers; the step page says that the file is gone."""
    kept = tmp_path / "kept.jsonl"
    shutil.copy(sessions / "plain.jsonl", kept)
    stored([kept], tmp_path / "run")
    kept.unlink()

    assert "mean view, tokens" in _html(opened(folders=[tmp_path / "run"]))
    assert "file is gone" in _html(opened("step", folders=[tmp_path / "run"]))


def test_a_changed_session_file_is_noticed(sessions: Path, tmp_path: Path, opened: Open, stored: Store) -> None:
    """A view that is not the one the run measured is marked as such."""
    changed = tmp_path / "changed.jsonl"
    text = (sessions / "plain.jsonl").read_text(encoding="utf-8")
    changed.write_text(text, encoding="utf-8")
    stored([changed], tmp_path / "run")
    changed.write_text(text.replace("coding agent", "painting agent"), encoding="utf-8")

    assert "Not the view that the run measured" in _html(opened("step", folders=[tmp_path / "run"]))
    assert "Not the view that the run measured" not in _html(opened("step"))


def test_a_failed_trial_is_shown_with_its_reason(sessions: Path, tmp_path: Path, opened: Open, stored: Store,
                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that failed on a session is missing from the chart, and both pages say why."""
    whole = Session.replay

    def broken(self: Session, policy: Any, *rest: Any) -> Any:
        if policy.name == DECODE:
            raise ValueError("no such cut")
        return whole(self, policy, *rest)

    monkeypatch.setattr(Session, "replay", broken)
    stored([sessions / "plain.jsonl"], tmp_path / "run")
    for page in (opened("session", folders=[tmp_path / "run"]), opened("step", folders=[tmp_path / "run"], a=DECODE)):
        assert f"{DECODE} failed on this session" in _html(page)
        assert "ValueError: no such cut" in _html(page)
