"""Lanes by hand: what recorded compactions leave in the view, and what the figures of a lane are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from replay.engine import Session, View, divergence
from replay.errors import UnknownName
from replay.invariants import pairing
from replay.policy.base import Capacity
from replay.policy.load import policy, policy_from
from replay.policy.policy import Policy
from replay.testing import FixedCounter, Script, summary_message
from replay.transcript import Message, RecordedCompaction, Transcript, Usage
from replay.view import lineage, shown_messages
from replay.window import Mark, Span, Window

PRESETS = ("full-history", "mycodeagent", "decode", "decode-adr18", "recorded")
COUNTER = FixedCounter(())
"""One token a character of text and results."""


def session_of(transcript: Transcript) -> Session:
    """The session counted by characters."""
    return Session(transcript, COUNTER)


def rendered(session: Session, view: View) -> list[Message]:
    """The messages of a view."""
    return [s.message for s in shown_messages(session.log, view.window)]


def texts(session: Session, view: View) -> list[str]:
    """The text of each message of a view."""
    return [m.text for m in rendered(session, view)]


# The recorded lane.

def test_window_of_a_recorded_compaction_is_what_later_steps_see() -> None:
    """After a full compaction the view is its window tuple in order, then everything that came later."""
    script = Script().user("a").say("b").user("c").say("d")
    script.compacted(summary_message("S"), 2, 3, summary="S").user("e").say("f")
    session = session_of(script.build())
    views = session.recorded.views

    assert [["a"], ["a", "b", "c"], ["S", "c", "d", "e"]] == [texts(session, v) for v in views]
    assert ["full_history", "full_history", "compact_checkpoint"] == [v.mode for v in views]
    assert (None, "recorded-3") == (views[1].checkpoint, views[2].checkpoint)


def test_messages_of_a_window_may_stand_in_any_order() -> None:
    """Kept prompts first and the summary last, as one harness has it; a reminder it added is no summary."""
    reminder = Message(index=-1, role="user", blocks=(), origin="injected", detail="files")
    script = Script().user("a").say("b").user("c").say("d").compacted(0, 2, summary_message("S"), reminder)
    session = session_of(script.user("e").say("f").build())
    view = session.recorded.views[-1]

    assert ["a", "c", "S", "", "e"] == texts(session, view)
    assert {"kept": [0, 2, 4], "elided": [], "summarised": [1, 3], "dropped": [], "injected": [2, 3]} == lineage(
        view, session.log)


def test_second_recorded_summary_speaks_for_the_first_one_too() -> None:
    """What the first summary covered is summarised by the second, not dropped."""
    script = Script().user("a").say("b").compacted(summary_message("S1"), summary="S1").user("c").say("d")
    script.compacted(summary_message("S2"), summary="S2").user("e").say("f")
    session = session_of(script.build())

    assert ["S2", "e"] == texts(session, session.recorded.views[-1])
    assert [0, 1, 2, 3] == lineage(session.recorded.views[-1], session.log)["summarised"]


def recorded_micro(script: Script, *elided: int, placeholder: str = "[gone]") -> Script:
    """A recorded blanking of results at this place."""
    script.thread.compactions.append(RecordedCompaction(position=len(script.thread.messages), kind="micro",
                                                        elided=elided, placeholder=placeholder))
    return script


def test_recorded_blanking_keeps_messages_and_hides_results() -> None:
    """Blanked results show the harness's placeholder from there on; every message stays."""
    script = Script().user("a").call("Read").result("long").call("Read").result("longer")
    session = session_of(recorded_micro(script, 2).say("done").build())
    view = session.recorded.views[-1]

    assert ["a", "", "[gone]", "", "longer"] == texts(session, view)
    assert "elided_results" == view.mode
    assert [2] == lineage(view, session.log)["elided"]
    assert [("micro", (2,), -2, None)] == [(e.kind, e.elided, e.gain, e.summariser) for e in view.events]


def test_recorded_blankings_add_up() -> None:
    """A second blanking that names a result again changes it once, and its size is counted once."""
    script = Script().user("a").call("Read").result("x" * 50).call("Read").result("y" * 60)
    recorded_micro(script, 2).say("b").user("c").call("Read").result("z" * 70)
    session = session_of(recorded_micro(script, 2, 4).say("d").build())
    view = session.recorded.views[-1]

    assert ["a", "", "[gone]", "", "[gone]", "b", "c", "", "z" * 70] == texts(session, view)
    assert sum(map(len, texts(session, view))) == view.counted
    assert view.counted == sum(session.log.by_class(view.window).values())


def test_blanking_over_another_blanking_shows_the_newer_placeholder() -> None:
    """Where two blankings meet the later one is what the model sees, in text, size and fingerprint."""
    script = Script().user("a").call("Read").result("x" * 50)
    recorded_micro(script, 2, placeholder="[first]").call("Read").result("y")
    session = session_of(recorded_micro(script, 2, placeholder="[second one]").say("b").build())
    view = session.recorded.views[-1]

    assert ["a", "", "[second one]", "", "y"] == texts(session, view)
    assert 1 + 12 + 1 == view.counted


def test_clear_empties_the_window() -> None:
    """After the person wiped the conversation the view begins with what follows."""
    script = Script().user("a").say("b").compacted(kind="clear").user("c").say("d")
    session = session_of(script.build())

    assert ["c"] == texts(session, session.recorded.views[-1])
    assert [("clear", "recorded_clear", (0, 1), "recorded")] == [
        (e.kind, e.reason, e.dropped, e.stage) for e in session.recorded.events]


@pytest.mark.parametrize("name", ["full-history", "mycodeagent", "decode-adr18"])
def test_clear_empties_the_window_of_every_policy(name: str) -> None:
    """What a person wiped no policy brings back, and the summary of a later compaction does not hold it."""
    script = Script().user("secret").say("b").user("wiped too").compacted(kind="clear").user("c").say("d")
    session = session_of(script.build())
    lane = session.replay(policy(name), Capacity(window=1_000))

    assert ["c"] == texts(session, lane.views[-1])
    assert ["cleared_by_person"] == [e.reason for e in lane.events if e.kind == "clear"]
    assert None is divergence(lane, session.recorded)


def test_two_clears_before_one_step() -> None:
    """Of two wipes without a call between them the later one counts."""
    script = Script().user("a").say("b").user("c").compacted(kind="clear").user("d").compacted(kind="clear").user("e")
    session = session_of(script.say("f").build())
    lane = session.replay(policy("full-history"), Capacity(window=1_000))

    assert ["e"] == texts(session, lane.views[-1]) == texts(session, session.recorded.views[-1])


def two_hundred() -> Script:
    """A history of 200 messages, a round each two."""
    script = Script()
    for number in range(100):
        script.user(f"prompt {number}").say(f"answer {number}")
    return script


def test_checkpoint_projects_and_clearing_it_gives_everything_back() -> None:
    """200 messages with a checkpoint at 120 are 81 in the view; without the checkpoint they are 200 again."""
    script = two_hundred().compacted(summary_message("S", "system"), *range(120, 200), summary="S")
    script.thread.fail("asked again")
    whole = script.build()
    without = replace(whole, main=replace(whole.main, compactions=()))

    assert 81 == session_of(whole).recorded.views[-1].print.messages
    assert 200 == session_of(without).recorded.views[-1].print.messages
    assert 200 == session_of(whole).replay(policy("full-history"), Capacity(window=10**6)).views[-1].print.messages


def test_checkpoint_of_a_policy_projects_alike() -> None:
    """Forty kept rounds of a hundred leave a summary and 80 messages; the log keeps its 200."""
    script = two_hundred()
    script.thread.fail("asked")
    session = session_of(script.build())
    lane = session.replay(policy("mycodeagent:cut.rounds=40,trigger.tokens=900"), Capacity(window=10**6))

    assert 81 == lane.views[-1].print.messages
    assert 200 == len(session.log)


# Lanes.

def test_kinds_of_lanes() -> None:
    """The harness's own preset is the re-projected lane, any other an alternative."""
    session = session_of(Script(format="decode").user("a").say("b").build())
    lanes = [session.replay(policy(name), Capacity(window=10)) for name in ("recorded", "decode", "mycodeagent")]

    assert ["recorded", "re-projected", "alternative"] == [lane.kind for lane in lanes]


def test_session_without_steps_has_empty_lanes() -> None:
    """A log without a model call has no view, under no policy."""
    session = session_of(Script().user("a").build())

    assert [()] * 5 == [session.replay(policy(name), Capacity(window=10)).views for name in PRESETS]


def test_recorded_figures_are_the_bill() -> None:
    """Where a view equals the recorded one its figure is the recorded usage, else it is anchored to it."""
    script = Script().user("a" * 50).call("Read", usage=Usage(input_uncached=150)).result("b" * 90)
    script.say("c", Usage(input_uncached=240)).user("d").say("e", Usage(input_uncached=242))
    session = session_of(script.build())
    lane = session.replay(masked(0), Capacity(window=10**6))

    assert [(150, "recorded"), (240 - 90 + 20, "anchored")] == [
        (v.figure.tokens, v.figure.how) for v in lane.views[:2]]


def masked(keep: int) -> Policy:
    """Every result but the newest few becomes a placeholder of 20 characters."""
    rule = {"use": "keep-newest", "keep": keep}
    return policy_from({"name": "mask", "stages": [{"name": "mask", "tool_results": rule}]})


def test_unknown_summariser_is_named() -> None:
    """A summariser that does not exist is refused with the ones that do."""
    session = session_of(Script().user("a").say("b").build())

    with pytest.raises(UnknownName, match="did you mean empty"):
        session.replay(policy("decode"), Capacity(window=10), "emty")


# A prompt between a call and its result.

def test_no_cut_parts_a_call_from_a_late_result() -> None:
    """Where a prompt came in before the result, a cut at the prompt moves back to the call."""
    script = Script().user("a" * 40).say("b").call("Read").user("typed meanwhile").result("late").say("c")
    script.user("d" * 40).say("e")
    session = session_of(script.build())
    lane = session.replay(policy("mycodeagent:cut.rounds=2,trigger.tokens=10,trigger.minimum_messages=0"),
                          Capacity(window=10**6))

    assert [Span(2, 7)] == [i for i in lane.views[-1].window.items if isinstance(i, Span)]
    assert [] == pairing(rendered(session, lane.views[-1]))


# Windows.

def test_marks_of_one_rendering_become_one() -> None:
    """A mark that touches an equal one widens it; one that stands apart stays apart."""
    rendering = masked(1).stages[0].tool_results.placeholder  # type: ignore[union-attr]
    window = Window((Span(0, 9),), (), 9).with_mark(Mark(rendering, 0, 3))

    assert [(0, 5)] == [(m.start, m.stop) for m in window.with_mark(Mark(rendering, 2, 5)).marks]
    assert [(0, 3), (5, 7)] == [(m.start, m.stop) for m in window.with_mark(Mark(rendering, 5, 7)).marks]


def test_items_are_joined_and_empty_ones_dropped() -> None:
    """Ranges that follow on each other are one range; empty ones are none."""
    window = Window((), (), 9).with_items((Span(0, 2), Span(2, 2), Span(2, 5), Span(7, 9)))

    assert (Span(0, 5), Span(7, 9)) == window.items
    assert window is window.extended(4)
    assert (Span(0, 5), Span(7, 11)) == window.extended(11).items
