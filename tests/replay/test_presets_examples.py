"""Worked examples of what tells `mycodeagent`, `decode` and `decode-adr18` apart, with exact numbers."""

from __future__ import annotations

from typing import Any

import pytest

from replay.engine import Lane, Session
from replay.events import Event
from replay.log import Log
from replay.policy.base import Capacity, Cut, Decision, Moment, Refusal, Told
from replay.policy.cuts import KeepRounds, KeepTokens
from replay.policy.estimators import Characters
from replay.policy.load import policy
from replay.policy.measures import Larger, Reported
from replay.policy.policy import Stage
from replay.policy.tool_results import ElideBeforeTail
from replay.testing import FixedCounter, Script, summary_message
from replay.transcript import Usage
from replay.view import shown_messages
from replay.window import Inserted, Item, Span, Window

PLACEHOLDER = "[tool output elided by microcompaction]"


def stage(name: str, number: int = 0) -> Stage:
    """A stage of a preset."""
    return policy(name).stages[number]


def log_of(script: Script) -> Log:
    """The log of a script, one token a character."""
    return Log(script.build().main, FixedCounter(()))


def moment(log: Log, *items: Item, end: int | None = None, window: int = 128_000, **more: Any) -> Moment:
    """A moment at which the window holds these items; without any it holds the whole log."""
    stop = len(log) if end is None else end
    held = Window(items or (Span(0, stop),), (), stop)
    return Moment(log=log, window=held, capacity=Capacity(window=window), **more)


def tail_estimator() -> Characters:
    """How Decode sizes a tail."""
    cut = stage("decode-adr18").cut
    assert isinstance(cut, KeepTokens)
    return cut.estimator


def replay(script: Script, name: str, window: int, sizes: tuple[int, ...] = ()) -> Lane:
    """A preset's lane over a script in a window of this many tokens."""
    return Session(script.build(), FixedCounter(sizes)).replay(policy(name), Capacity(window=window))


def read(tokens: int) -> Usage:
    """Usage of a call that read this many tokens."""
    return Usage(input_uncached=tokens, output=1)


def kinds(events: tuple[Event, ...]) -> list[tuple[int, str, str]]:
    """Step, kind and reason of each event."""
    return [(e.step, e.kind, e.reason) for e in events]


# Example 1: one floor over all characters, or one for each message.

def test_one_floor_over_the_total_or_one_for_each_message() -> None:
    """Three messages of 5 characters are 5 tokens at three a token in all, and 3 at four a token each."""
    log = log_of(Script().user("12345").say("12345").user("12345"))
    measure = stage("mycodeagent").measure
    assert isinstance(measure, Larger)

    assert 5 == measure.estimate.estimator.tokens(log, Window((Span(0, 3),), (), 3))
    assert 3 == tail_estimator().tokens(log, Window((Span(0, 3),), (), 3))


def test_rounding_each_message_loses_more_than_rounding_once() -> None:
    """Three messages of 7 characters are 3 tokens at four a token each, where one division would give 5."""
    log = log_of(Script().user("1234567").say("1234567").user("1234567"))

    assert 3 == tail_estimator().tokens(log, Window((Span(0, 3),), (), 3))
    assert 5 == Characters(rounding="floor-total").tokens(log, Window((Span(0, 3),), (), 3))
    assert 6 == Characters(rounding="ceil-each").tokens(log, Window((Span(0, 3),), (), 3))


def test_seed_after_a_compaction_uses_the_ruler_of_the_tail() -> None:
    """Decode since ADR 0018 seeds its gauge with the same estimate that it cuts with."""
    measure = stage("decode-adr18").measure
    assert isinstance(measure, Reported)

    assert tail_estimator() == measure.estimator


# Example 2: the level is rounded down and reached with `>=`.

@pytest.mark.parametrize("name", ["decode", "decode-adr18"])
@pytest.mark.parametrize(("tokens", "kind"), [(629_144, None), (629_145, "micro"), (838_859, "micro"),
                                              (838_860, "full")])
def test_levels_of_the_default_window(name: str, tokens: int, kind: str | None) -> None:
    """In 1,048,576 tokens the full tier acts from 838,860 read tokens on, the micro tier from 629,145 on."""
    script = Script().user("a").call("Read").result("long enough to be blanked, and then some more")
    script.say("done", read(9)).user("b").say("an answer", read(tokens)).user("c").say("d")
    lane = replay(script, f"{name}:tail_tokens=0", 1_048_576)

    assert ([kind] if kind else []) == [e.kind for e in lane.events]


def test_reading_nothing_never_fires() -> None:
    """A run whose usage is unknown reads zero tokens, and zero fires no tier."""
    lane = replay(Script().user("").say("").user("").say(""), "decode-adr18:tail_tokens=0", 10)

    assert () == lane.events


# Example 5: what all calls of a run read together, or what the last one read.

@pytest.mark.parametrize(("name", "fired", "measured"), [("decode", ["full"], [46_000]), ("decode-adr18", [], [])])
def test_calls_of_10_11_12_and_13_thousand_tokens(name: str, fired: list[str], measured: list[int]) -> None:
    """Four calls sum to 46,000, which reaches 40,000 before ADR 0018 only; the last one read 13,000."""
    script = Script().user("go")
    for tokens in (10_000, 11_000, 12_000):
        script.call("Read", usage=read(tokens)).result("text")
    script.say("an answer", read(13_000)).user("next").say("ok")
    events = replay(script, f"{name}:tail_tokens=0", 50_000, (2_500,) * 9).events

    assert fired == [e.kind for e in events]
    assert measured == [e.estimated_tokens for e in events]
    assert all(40_000 == e.threshold for e in events)


def test_sum_starts_again_with_every_prompt() -> None:
    """Before ADR 0018 a second run of 13,000 tokens is measured as 13,000, not as 26,000."""
    script = Script().user("one").say("an answer", read(13_000)).user("two").say("another answer", read(13_000))
    lane = replay(script.user("three").say("c"), "decode:tail_tokens=0", 20_000)

    assert ["micro: nothing_to_elide"] == [f"{e.stage}: {e.reason}" for e in lane.events]
    assert [13_000] == [e.estimated_tokens for e in lane.events]


# Example 4: a report that describes an older window.

def test_report_of_an_older_window_is_replaced_by_the_estimate() -> None:
    """After a change Decode since ADR 0018 measures characters; before it the old report stands."""
    log = log_of(Script().user("x" * 400).say("y" * 80))
    told = Told(input=170_000, calls=3, run_input=170_000, stale=True)

    assert 120 == stage("decode-adr18").measure.tokens(moment(log, told=told))
    assert 170_000 == stage("decode").measure.tokens(moment(log, told=told))
    assert 170_000 == stage("mycodeagent").measure.tokens(moment(log, told=told))


# Example 6: the summary is a message and no round.

def verdict(log: Log, *items: Item) -> Decision:
    """What the trigger of `mycodeagent` says at a measured 102,400 tokens."""
    return stage("mycodeagent").trigger.decide("full", 102_400, moment(log, *items))


def a_summary(text: str = "s") -> Inserted:
    """A summary at the head of a window."""
    return Inserted(message=summary_message(text, "system"), kind="summary", covers=(Span(0, 1),))


def test_summary_counts_as_a_message() -> None:
    """A summary and a prompt are two messages, which is too few; a summary and two are enough."""
    log = log_of(Script().user("one").say("two").user("three"))

    assert "messages_not_enough" == verdict(log, a_summary(), Span(2, 3)).reason
    assert "threshold_exceeded" == verdict(log, a_summary(), Span(1, 3)).reason


def test_system_messages_of_the_log_do_not_count() -> None:
    """The imitated history holds no system prompt: beside one, two messages are still too few."""
    log = log_of(Script().system("You are.").user("one").say("two"))
    measure = stage("mycodeagent").measure

    assert "messages_not_enough" == verdict(log, Span(0, 3)).reason
    assert 2 == measure.tokens(moment(log))


def test_summary_is_no_round() -> None:
    """With a summary before ten kept rounds the log has eleven: the cut falls at the same place again."""
    script = Script()
    for number in range(11):
        script.user(f"prompt {number}").say("done")
    log = log_of(script)

    assert Cut(keep_from=2, base="raw") == KeepRounds().cut(moment(log, a_summary(), Span(2, 22)))
    assert Refusal("rounds_not_enough") == KeepRounds().cut(moment(log, Span(0, 20), end=20))


# Example 7: the program's nudges are rounds.

def test_nudges_are_rounds() -> None:
    """One prompt and eleven nudges are twelve rounds: ten stay, and the real prompt is summarised."""
    script = Script().user("the real prompt").say("done")
    for _ in range(11):
        script.user("please verify", nudge=True).say("verified")
    log = log_of(script)

    assert Cut(keep_from=4, base="raw") == KeepRounds().cut(moment(log))


# Example 8: one long turn.

def long_turn() -> Script:
    """A prompt and sixty tool rounds of about 2,000 tokens, a final answer, and a second prompt."""
    script = Script().user("go")
    for number in range(1, 61):
        script.call("Read", usage=read(2_000 * number - 1_000)).result("x" * 8_000)
    return script.say("done", read(121_000)).user("next").say("ok")


def test_long_turn_cannot_be_cut_by_rounds() -> None:
    """MyCodeAgent's rule refuses a single round, however long."""
    lane = replay(long_turn(), "mycodeagent", 128_000)

    assert [(40, "skipped", "rounds_not_enough")] == kinds(lane.events)
    assert {"full_history"} == {v.mode for v in lane.views}


def test_long_turn_is_not_cut_at_a_prompt() -> None:
    """Before ADR 0018 the only prompt is the first message, so neither tier does anything."""
    lane = replay(long_turn(), "decode", 128_000)

    assert [(62, "skipped", "no_boundary")] == kinds(lane.events)
    assert ["full"] == [e.stage for e in lane.events]


def test_long_turn_is_cut_at_a_response() -> None:
    """Since ADR 0018 the newest 20,000 tokens stay: nine results with their calls, and the answer."""
    lane = replay(long_turn(), "decode-adr18", 128_000)
    kept = [item for item in lane.views[-1].window.items if isinstance(item, Span)]

    assert [(62, "full", "threshold_exceeded")] == kinds(lane.events)
    assert [Span(103, 123)] == kept
    assert "user" == lane.views[-1].window.summaries()[0].message.role


# Example 9: the cut moves back to a boundary.

def sized(script: Script, *thousands: float) -> Script:
    """A call and a result for each pair of sizes in thousands of tokens."""
    for call, result in zip(thousands[::2], thousands[1::2], strict=True):
        script.call("Read", "", text="c" * int(4_000 * call)).result("r" * int(4_000 * result))
    return script


@pytest.mark.parametrize("budget", [20_000, 6_500, 6_000])
def test_cut_moves_back_to_the_response(budget: int) -> None:
    """A response of 1,000 and its result of 6,000 tokens stay together, whether or not both fit."""
    log = log_of(sized(Script().user("go"), 1, 15, 1, 6))
    cut = KeepTokens(tail_tokens=budget, estimator=tail_estimator())

    assert Cut(keep_from=3) == cut.cut(moment(log))


def test_cut_moves_back_to_a_prompt_only_before_adr_18() -> None:
    """The same turn has no prompt but its first message: nothing is cut."""
    log = log_of(sized(Script().user("go"), 1, 15, 1, 6))
    cut = KeepTokens(tail_tokens=20_000, boundary="turn", estimator=tail_estimator())

    assert Refusal("no_boundary") == cut.cut(moment(log))


def test_cut_is_exact_at_a_boundary() -> None:
    """A tail that begins with a prompt or a response is not moved, and a window that fits is left alone."""
    log = log_of(sized(Script().user("go"), 1, 15).say("x" * 4_000).user("y" * 4_000))

    assert Cut(keep_from=4) == KeepTokens(tail_tokens=1_999, estimator=tail_estimator()).cut(moment(log))
    assert Cut(keep_from=3) == KeepTokens(tail_tokens=2_000, estimator=tail_estimator()).cut(moment(log))
    assert Refusal("everything_fits") == KeepTokens(tail_tokens=18_000, estimator=tail_estimator()).cut(moment(log))


def test_results_of_parallel_calls_stay_with_their_response() -> None:
    """What stands between two responses is one request: a cut inside it moves to the response with the calls."""
    script = Script().user("go").call("Read", count=3)
    for position in range(3):
        script.result("r" * 4_000, call=position)
    log = log_of(script)

    assert Cut(keep_from=1) == KeepTokens(tail_tokens=3_000, estimator=tail_estimator()).cut(moment(log))
    assert Cut(keep_from=5) == KeepTokens(tail_tokens=2_999, estimator=tail_estimator()).cut(moment(log))


# Edge cases of the tail and of the placeholder.

def test_last_message_too_large_leaves_the_summary_alone() -> None:
    """A last message of 25,000 tokens does not fit 20,000: the tail is empty."""
    script = Script().user("go").say("x" * 100_000, read(120_000)).user("next").say("ok")
    lane = replay(script, "decode-adr18", 128_000)
    items = lane.views[1].window.items

    assert ["full"] == [e.kind for e in lane.events]
    assert [True, False] == [isinstance(item, Inserted) for item in items]
    assert Span(2, 3) == items[1]


def test_placeholder_may_be_longer_than_what_it_replaces() -> None:
    """A result of 10 characters becomes 39: Decode blanks it all the same, at a loss."""
    script = Script().user("go").call("Read").result("0123456789").say("done", read(70)).user("next").say("ok")
    lane = replay(script, "decode-adr18:tail_tokens=0", 100)

    assert 39 == len(PLACEHOLDER)
    assert [("micro", (2,), -29, True)] == [(e.kind, e.elided, e.gain, e.futile) for e in lane.events]


def test_blanking_twice_changes_nothing() -> None:
    """The second check finds every older result blanked already and says so."""
    script = Script().user("go").call("Read").result("x" * 100).say("done", read(700)).user("next")
    script.say("ok", read(761)).user("more").say("ok")
    lane = replay(script, "decode-adr18:tail_tokens=0", 1_000)

    assert [(3, "micro", "threshold_exceeded"), (4, "skipped", "nothing_to_elide")] == kinds(lane.events)


def test_micro_tier_spares_the_tail() -> None:
    """Results within the newest 20,000 tokens keep their text; calls are never touched."""
    log = log_of(sized(Script().user("go"), 1, 15, 1, 15, 1, 6))
    rule = stage("decode-adr18", 1).tool_results
    assert isinstance(rule, ElideBeforeTail)
    marks = rule.marks(moment(log))
    assert not isinstance(marks, Refusal)
    window = Window((Span(0, len(log)),), (), len(log)).with_mark(marks[0])

    assert [2, 4] == [s.index for s in shown_messages(log, window) if s.form == "elided"]
    assert {PLACEHOLDER} == {s.message.text for s in shown_messages(log, window) if s.form == "elided"}


# Decode's order of tiers.

def test_full_tier_comes_first_and_alone() -> None:
    """Where the full tier is due but finds no cut, the micro tier is not tried instead."""
    script = Script().user("go").call("Read").result("x" * 100).say("done", read(90)).user("next").say("ok")
    lane = replay(script, "decode", 100, (1,) * 9)

    assert [("full", "everything_fits")] == [(e.stage, e.reason) for e in lane.events]


def test_summary_is_made_from_the_whole_view() -> None:
    """Decode's summary speaks for the kept tail too; only what left the view is counted as summarised."""
    lane = replay(long_turn(), "decode-adr18", 128_000)
    event = lane.events[0]
    assert event.added is not None

    assert (Span(0, 122),) == event.added.covers
    assert tuple(range(103)) == event.summarised
    assert () == event.dropped


# Example 11: what a second compaction reads.

def rounds(number: int, chars: int = 3_000) -> Script:
    """Rounds of one prompt and one answer each."""
    script = Script()
    for count in range(number):
        script.user(f"prompt {count} " + "x" * chars).say(f"answer {count}")
    return script


def test_second_compaction_reads_the_raw_log_again() -> None:
    """MyCodeAgent summarises round 1, then 1 and 2, then 1 to 3: from message 0, without the earlier summary."""
    lane = replay(rounds(16), "mycodeagent", 13_000, (1,) * 40)
    covers = [e.added.covers for e in lane.events if e.added]

    assert [(Span(0, 2 * n),) for n in range(1, 7)] == covers
    assert [1] * 6 == [len(v.window.summaries()) for v in lane.views if v.checkpoint]


def test_second_compaction_merges_the_earlier_summary() -> None:
    """Decode's view holds the earlier summary, so the new one speaks for all that the old one spoke for."""
    script = Script().user("first goal").say("an answer", read(9_000)).user("b").say("another answer", read(9_000))
    lane = replay(script.user("d").say("e"), "decode-adr18:tail_tokens=0", 10_000, (1,) * 9)
    second = [e for e in lane.events if e.kind == "full"][1]
    assert second.added is not None

    assert (Span(0, 4),) == second.added.covers
    assert (2, 3) == second.summarised
    assert "first goal" in second.added.message.text


# Example 16 and the loop without gain.

def test_loop_without_gain() -> None:
    """Ten kept rounds above the level: a compaction at every step with the same cut, and none after the first gains."""
    script = rounds(10, 33_000)
    script.user("last " + "x" * 33_000)
    for _ in range(5):
        script.call("Read").result("tiny")
    lane = replay(script, "mycodeagent", 128_000, sizes=(1,) * 60)
    full = [e for e in lane.events if e.kind == "full"]

    assert list(range(11, 16)) == [e.step for e in full]
    assert [False, True, True, True, True] == [not e.summarised for e in full]
    assert all(e.futile for e in full[1:])
    assert [1] * 5 == [len(v.events) for v in lane.views[10:]]
    assert {2} == {i.start for v in lane.views[10:] for i in v.window.items if isinstance(i, Span)}
