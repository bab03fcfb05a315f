"""Two views beside each other: what is paired, what is labelled, what is counted."""

from __future__ import annotations

from evals.browse import OpenSession
from evals.side_by_side import aligned, ranges
from replay.engine import Session
from replay.log import Log
from replay.policy.base import Capacity
from replay.policy.load import RECORDED, policy
from replay.policy.tool_results import Placeholder
from replay.testing import FixedCounter, Script, summary_message
from replay.window import Inserted, Mark, Span, Window


def _log() -> Log:
    script = Script().system("be good")
    for n in range(4):
        script = script.user(f"task {n}").call("read").result(f"text {n} " * 20).say(f"done {n}")
    return Log(script.build().main, FixedCounter([1] * 17))


def _labels(ours: Window, theirs: Window) -> list[tuple[int | None, str | None]]:
    rows = aligned(_log(), ours, theirs).rows
    return [((r.ours or r.theirs).index if r.ours or r.theirs else None, r.label) for r in rows]


def test_equal_views_have_no_label() -> None:
    """Every message stands beside itself."""
    whole = Window((Span(0, 17),), (), 17)
    sides = aligned(_log(), whole, whole)

    assert 17 == sides.same == len(sides.rows)
    assert {} == dict(sides.counts)


def test_what_a_summary_replaced_is_missing_and_the_summary_added() -> None:
    """Labels are seen from the first view; rows follow both views' order."""
    summary = Inserted(message=summary_message("in short"), kind="summary", covers=(Span(1, 9),))
    compacted, whole = Window((Span(0, 1), summary, Span(9, 17)), (), 17), Window((Span(0, 17),), (), 17)
    sides = aligned(_log(), compacted, whole)

    assert {"missing": 8, "added": 1} == dict(sides.counts)
    assert {"missing": tuple(range(1, 9))} == dict(sides.indices)
    assert [(0, None), (None, "added"), (1, "missing")] == _labels(compacted, whole)[:3]
    assert [(0, None), (1, "added")] == _labels(whole, compacted)[:2]


def test_blanked_results_are_changed() -> None:
    """An elided result stands beside the verbatim one."""
    whole = Window((Span(0, 17),), (), 17)
    blanked = whole.with_mark(Mark(Placeholder(text="[gone]"), 0, 9))

    assert [(3, "changed"), (7, "changed")] == [pair for pair in _labels(blanked, whole) if pair[1]]


def test_the_same_message_elsewhere_is_moved() -> None:
    """A message that stands in another order is labelled in both places and counted once."""
    ours, theirs = Window((Span(5, 17), Span(1, 5)), (), 17), Window((Span(1, 17),), (), 17)
    sides = aligned(_log(), ours, theirs)

    assert {"moved": 4} == dict(sides.counts)
    assert 8 == sum(r.label == "moved" for r in sides.rows)
    assert 12 == sides.same


def test_inserted_messages_are_paired_in_turn() -> None:
    """Two summaries with other words are changed, not missing and added."""
    first = Inserted(message=summary_message("one"), kind="summary")
    second = Inserted(message=summary_message("two"), kind="summary")
    sides = aligned(_log(), Window((first, Span(9, 17)), (), 17), Window((second, Span(9, 17)), (), 17))

    assert {"changed": 1} == dict(sides.counts)
    assert 8 == sides.same


def test_ranges_are_said_shortly() -> None:
    """Runs of numbers become spans."""
    assert "0–2, 5, 1,000–1,001" == ranges([0, 1, 2, 5, 1000, 1001])
    assert "" == ranges([])


def test_tokens_are_those_of_the_form_shown() -> None:
    """A message's size in a view is that of its text there: verbatim, blanked, or inserted."""
    summary = Inserted(message=summary_message("in short"), kind="summary", tokens=77)
    window = Window((summary, Span(0, 5)), (Mark(Placeholder(text="[gone]"), 0, 5),), 5)
    transcript = Script().system("be good").user("task").call("read").result("text").say("done").build()
    session = Session(transcript, FixedCounter([5, 6, 7, 8, 9], {"[gone]": 2}))
    opened = OpenSession(session, {"recorded": RECORDED, "full-history": policy("full-history")},
                         Capacity(window=100), "extractive")
    rows = aligned(session.log, window, Window((Span(0, 5),), (), 5)).rows

    sizes = [opened.tokens(window, r.ours) for r in rows if r.ours]
    assert [77, 5, 6, 7, 2, 9] == sizes
