"""What the model saw after each recorded compaction of two real sessions, read off their files by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from replay.engine import Session, View
from replay.invariants import pairing
from replay.readers import read
from replay.tokens import TokenCounter, tokenizer
from replay.view import Shown, lineage, shown_messages

CLAUDE = "claude-code/three-compactions.jsonl"
PI = "pi/v1-two-compactions.jsonl"
PI_FRAME = "The conversation history before this point was compacted"


@pytest.fixture(scope="module")
def sessions(transcripts: Path) -> dict[str, Session]:
    """Both sessions, counted."""
    counter = TokenCounter(tokenizer())
    return {name: Session(read(transcripts / name)[0], counter) for name in (CLAUDE, PI)}


def compacted(session: Session) -> list[View]:
    """The first view after each recorded compaction."""
    return [view for view in session.recorded.views if view.events]


def messages(session: Session, view: View) -> list[Shown]:
    """The messages of a view."""
    return list(shown_messages(session.log, view.window))


def test_claude_code_sees_its_summary_alone(sessions: dict[str, Session]) -> None:
    """Three automatic compactions at steps 51, 128 and 221: the view is one summary, in a user message."""
    session = sessions[CLAUDE]
    views = compacted(session)
    seen = [messages(session, view) for view in views]

    assert [51, 128, 221] == [view.step for view in views]
    assert [["user"]] * 3 == [[s.message.role for s in view] for view in seen]
    assert [231, 518, 872] == [view[0].message.line for view in seen]
    assert [11_316, 10_256, 14_987] == [len(view[0].message.text) for view in seen]
    assert all(view[0].message.text.startswith("This session is being continued") for view in seen)
    assert ["compact_checkpoint"] * 3 == [view.mode for view in views]


def test_claude_code_summaries_speak_for_everything_before(sessions: dict[str, Session]) -> None:
    """Nothing is dropped: at each compaction all that was visible went into the summary, and all before it."""
    session = sessions[CLAUDE]
    events = [view.events[0] for view in compacted(session)]

    assert [116, 276 - 116, 472 - 276] == [len(e.summarised) for e in events]
    assert [0, 0, 0] == [len(e.dropped) for e in events]
    assert [156_699, 155_241, 155_413] == [e.estimated_tokens for e in events]
    assert list(range(472)) == lineage(compacted(session)[2], session.log)["summarised"]


def test_claude_code_grows_between_its_compactions(sessions: dict[str, Session]) -> None:
    """Behind a summary the view is the summary and everything since, until the next one."""
    session = sessions[CLAUDE]
    before = [session.recorded.views[view.step - 2] for view in compacted(session)]

    assert [154_445, 155_023, 154_666] == [view.figure.tokens for view in before]
    assert [66_549, 60_458, 59_943] == [view.figure.tokens for view in compacted(session)]
    assert [None, 116] == [s.index for s in messages(session, before[1])[:2]]
    assert [None, 276] == [s.index for s in messages(session, before[2])[:2]]


def test_pi_sees_its_summary_and_the_kept_tail(sessions: dict[str, Session]) -> None:
    """Two compactions at steps 174 and 304: summary, then the log from the named entry (file lines 294 and 552) on."""
    session = sessions[PI]
    views = compacted(session)
    seen = [messages(session, view) for view in views]

    assert [174, 304] == [view.step for view in views]
    assert [("user", "summary")] * 2 == [(view[0].message.role, view[0].form) for view in seen]
    assert all(view[0].message.text.startswith(PI_FRAME) for view in seen)
    assert [294, 552] == [view[1].message.line for view in seen]
    assert [list(range(285, 352)), list(range(533, 611))] == [[s.index for s in view[1:]] for view in seen]
    assert [361, 630] == [view[-1].message.line for view in seen]


def test_pi_counts_what_it_summarised(sessions: dict[str, Session]) -> None:
    """The messages before the kept tail left the view; the harness's own counter stands in the event."""
    events = [view.events[0] for view in compacted(sessions[PI])]

    assert [tuple(range(285)), tuple(range(285, 533))] == [e.summarised for e in events]
    assert [175_004, 185_014] == [e.estimated_tokens for e in events]
    assert [False, False] == [e.futile for e in events]


@pytest.mark.parametrize(("name", "views", "compactions"), [(CLAUDE, 225, 3), (PI, 484, 2)])
def test_every_step_has_a_view(sessions: dict[str, Session], name: str, views: int, compactions: int) -> None:
    """The recorded lane has a view for each model call, and an event for each compaction."""
    lane = sessions[name].recorded

    assert views == len(lane.views)
    assert compactions == len(lane.events)
    assert None is lane.ended


@pytest.mark.parametrize("name", [CLAUDE, PI])
def test_calls_and_results_stay_paired(sessions: dict[str, Session], name: str) -> None:
    """No recorded compaction parts a call from its result beyond what the file itself has."""
    session = sessions[name]
    own = {(v.fault, v.call_id) for v in pairing(session.log.messages)}

    for view in compacted(session):
        assert set() == {(v.fault, v.call_id) for v in pairing([s.message for s in messages(session, view)])} - own


@pytest.mark.parametrize("name", [CLAUDE, PI])
def test_counts_follow_the_bill(sessions: dict[str, Session], name: str) -> None:
    """With the fitted factor the median error of a counted view is at most 3 %, and the factor is a plausible one."""
    calibration = sessions[name].calibration

    assert calibration.error is not None
    assert calibration.error <= 0.03
    assert 1.0 < calibration.factor < 1.5
