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

FRAME = "## Archived History Summary\n"
HELD = "## Objectives & Status"
"""Where an extractive summary in the sections of `mycodeagent` begins."""
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
@pytest.mark.parametrize(("tokens", "kind"), [(629_144, None), (629_145, "micro"), (838_859, "micro"), (838_860, "full")])
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
    """A tail that begins with a prompt or a response is not moved."""
    log = log_of(sized(Script().user("go"), 1, 15).say("x" * 4_000).user("y" * 4_000))

    assert Cut(keep_from=4) == KeepTokens(tail_tokens=1_999, estimator=tail_estimator()).cut(moment(log))
    assert Cut(keep_from=3) == KeepTokens(tail_tokens=2_000, estimator=tail_estimator()).cut(moment(log))


def test_everything_that_fits_stays() -> None:
    """A window that fits the tail is left alone."""
    log = log_of(sized(Script().user("go"), 1, 15))

    assert Refusal("everything_fits") == KeepTokens(tail_tokens=16_000, estimator=tail_estimator()).cut(moment(log))


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


# Exact numbers of MyCodeAgent's decision.

def decided(script: Script, window: int, step: int) -> tuple[str, int | None, int | None]:
    """Reason, measured tokens and level of the decision before a step; unrecorded calls read next to nothing."""
    made = replay(script, "mycodeagent", window, (1,) * 9).views[step - 1].decision
    assert made is not None
    return made.reason, made.estimated_tokens, made.threshold


def test_pending_prompt_is_counted_twice() -> None:
    """A prompt of 300 characters that the history holds already is 200 tokens, through the whole run."""
    script = Script().user("x" * 300).call("Read", "{}").result("y" * 90)
    script.call("Read", "{}")
    listed = len('[{"id": "call-1", "name": "Read", "arguments": {}}]')

    assert ("messages_not_enough", 200, 102_400) == decided(script, 128_000, 1)
    assert ("below_threshold", (600 + listed + 90 + len("Read")) // 3, 102_400) == decided(script, 128_000, 2)


def test_previous_call_is_measured_with_its_output_and_the_prompt() -> None:
    """The report is input and output of the last call plus a third of the prompt's characters."""
    script = Script().user("x" * 31).call("Read", usage=Usage(input_uncached=5_000, cache_read=95_000, output=2_390))
    script.result("y").say("done")

    assert ("threshold_exceeded", 102_400, 102_400) == decided(script, 128_000, 2)


def test_a_token_below_the_level_does_nothing() -> None:
    """The comparison below the level is strict."""
    script = Script().user("x" * 31).call("Read", usage=Usage(input_uncached=100_000, output=2_389)).result("y").say("z")

    assert ("below_threshold", 102_399, 102_400) == decided(script, 128_000, 2)


def test_summary_is_measured_without_its_heading() -> None:
    """The heading of 28 characters is put in front only when the request is made."""
    log = log_of(Script().user("").say(""))
    measure = stage("mycodeagent").measure
    held = Inserted(message=stage("mycodeagent").replacement.message("s" * 30), kind="summary")

    assert 28 == len(FRAME)
    assert FRAME + "s" * 30 == held.message.text
    assert 10 == measure.tokens(moment(log, held, Span(1, 2)))


def test_summary_stands_first_as_a_system_message() -> None:
    """Behind the log's own system messages the summary comes first, then the kept rounds."""
    script = Script().system("You are.")
    for count in range(3):
        script.user(f"{count}" + "x" * 300).say("y")
    lane = replay(script, "mycodeagent:cut.rounds=1", 250)
    items = lane.views[-1].window.items

    assert [Span(0, 1), Span(5, 6)] == [i for i in items if isinstance(i, Span)]
    assert [False, True, False] == [isinstance(i, Inserted) for i in items]
    assert "system" == lane.views[-1].window.summaries()[0].message.role
    assert FRAME + HELD == lane.views[-1].window.summaries()[0].message.text[:len(FRAME + HELD)]


def test_no_second_check_at_the_same_length() -> None:
    """A request that is made again with nothing new finds its checkpoint current."""
    script = rounds(11, 40_000).user("more")
    script.thread.fail("timeout")
    script.thread.fail("timeout")
    script.say("ok")
    lane = replay(script, "mycodeagent", 128_000, sizes=(1,) * 30)
    reasons = [v.decision.reason for v in lane.views[11:] if v.decision]

    assert ["threshold_exceeded", "checkpoint_current", "checkpoint_current"] == reasons
    assert 1 == sum(e.kind == "full" for v in lane.views[11:] for e in v.events)


def test_no_compaction_with_as_many_rounds_as_stay() -> None:
    """Ten rounds above the level are skipped once with the reason, not at every step again."""
    lane = replay(rounds(10, 40_000).say("more"), "mycodeagent", 128_000, sizes=(1,) * 30)

    assert [(7, "skipped", "rounds_not_enough")] == kinds(lane.events)


# Reactive compaction.

def refused_once() -> tuple[Script, tuple[int, ...]]:
    """A run whose first round is large, and whose second round's result exceeds 1,000 tokens in all."""
    script = Script().user("a").say("b").user("c").call("Read").result("d").say("e")
    return script, (300, 300, 10, 10, 500, 10)


def test_refused_request_is_sent_three_times_and_then_compacted() -> None:
    """Three identical attempts, one reactive compaction, and the retry is accepted."""
    script, sizes = refused_once()
    lane = replay(script, "mycodeagent:cut.rounds=1", 1_000, sizes)

    assert [(3, "refused", "prompt_too_long"), (3, "full", "reactive_prompt_too_long"),
            (3, "retried", "accepted")] == kinds(lane.events)
    assert (3, 1_120, 1_000) == (lane.events[0].attempts, lane.events[0].tokens_before, lane.events[0].threshold)
    assert None is lane.ended
    assert all(e.reactive for e in lane.events)


def test_one_reactive_compaction_in_a_run() -> None:
    """A second refusal in the same run is final, though the rule could still cut."""
    script, sizes = refused_once()
    script.thread.messages.pop()
    script.thread.steps.pop()
    script.call("Read").result("f").call("Read").result("g").say("h")
    lane = replay(script, "mycodeagent:cut.rounds=1", 1_000, (*sizes[:5], 10, 10, 10, 900, 10))

    assert [(5, "refused", "prompt_too_long"), (5, "end", "retry_exhausted")] == kinds(lane.events)[3:]
    assert 5 == lane.ended


def second_run(nudge: bool) -> Lane:
    """A refusal cured in the first run, then a message that may start another, and a second refusal."""
    script, sizes = refused_once()
    script.user("f", nudge=nudge).call("Read").result("g").say("h")
    return replay(script, "mycodeagent:cut.rounds=1", 1_000, (*sizes, 10, 10, 500, 10))


def test_new_prompt_starts_a_new_run() -> None:
    """A person's next prompt allows another reactive compaction."""
    assert [(5, "refused", "prompt_too_long"), (5, "full", "reactive_prompt_too_long"),
            (5, "retried", "accepted")] == kinds(second_run(nudge=False).events)[3:]


def test_nudge_belongs_to_the_run() -> None:
    """The completion gate's message starts a round but no run: the one attempt stays used."""
    lane = second_run(nudge=True)

    assert [(5, "refused", "prompt_too_long"), (5, "end", "retry_exhausted")] == kinds(lane.events)[3:]


def test_nudge_leaves_the_pending_prompt() -> None:
    """Through a run the person's prompt is counted besides the history, not the nudge that followed."""
    script = Script().user("x" * 300).say("y" * 30).user("z" * 60, nudge=True).say("done")

    assert ("below_threshold", (300 + 30 + 60 + 300) // 3, 102_400) == decided(script, 128_000, 2)


def test_reactive_compaction_obeys_the_rounds() -> None:
    """What the planned rule cannot cut the reactive one cannot either: the run ends."""
    script, sizes = refused_once()
    lane = replay(script, "mycodeagent:cut.rounds=2", 1_000, sizes)

    assert [(3, "refused", "prompt_too_long"), (3, "skipped", "rounds_not_enough"),
            (3, "end", "nothing_compacted")] == kinds(lane.events)
    assert [True, True, True] == [e.reactive for e in lane.events]
    assert "refused" == lane.views[2].status


def test_planned_and_reactive_compactions_are_told_apart() -> None:
    """The first compaction of this session was due by its level, the second answered a refusal."""
    script = Script().user("a").say("b").user("c").say("d").user("e").call("Read").result("f").say("g")
    lane = replay(script, "mycodeagent:cut.rounds=1", 1_000, (400, 420, 10, 10, 10, 10, 900, 10))

    assert [(2, False), (4, True)] == [(e.step, e.reactive) for e in lane.events if e.kind == "full"]


def test_decode_has_no_reactive_path() -> None:
    """A request that does not fit ends the run at its first refusal."""
    script, sizes = refused_once()
    lane = replay(script, "decode-adr18", 1_000, sizes)

    assert [(3, "refused", "prompt_too_long"), (3, "end", "no_reactive_rule")] == kinds(lane.events)
    assert [1] == [e.attempts for e in lane.events if e.kind == "refused"]
