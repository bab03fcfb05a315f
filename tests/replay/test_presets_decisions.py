"""What `mycodeagent` decides before each step, and what follows a refused request, with exact numbers."""

from __future__ import annotations

from typing import Any

from replay.engine import Lane, Session
from replay.events import Event
from replay.log import Log
from replay.policy.base import Capacity, Moment
from replay.policy.load import policy
from replay.policy.policy import Stage
from replay.testing import FixedCounter, Script
from replay.transcript import Usage
from replay.window import Inserted, Item, Span, Window

FRAME = "## Archived History Summary\n"
HELD = "## Objectives & Status"
"""Where an extractive summary in the sections of `mycodeagent` begins."""


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


def replay(script: Script, name: str, window: int, sizes: tuple[int, ...] = ()) -> Lane:
    """A preset's lane over a script in a window of this many tokens."""
    return Session(script.build(), FixedCounter(sizes)).replay(policy(name), Capacity(window=window))


def kinds(events: tuple[Event, ...]) -> list[tuple[int, str, str]]:
    """Step, kind and reason of each event."""
    return [(e.step, e.kind, e.reason) for e in events]


def rounds(number: int, chars: int = 3_000) -> Script:
    """Rounds of one prompt and one answer each."""
    script = Script()
    for count in range(number):
        script.user(f"prompt {count} " + "x" * chars).say(f"answer {count}")
    return script


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
    script = Script().user("x" * 31).call("Read", usage=Usage(input_uncached=100_000, output=2_389))
    script.result("y").say("z")

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
