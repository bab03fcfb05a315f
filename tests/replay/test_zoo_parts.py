"""Parts that keep a head, prompts or a protected end; exchanges around a summary; forms of results and calls."""

from __future__ import annotations

from typing import Any

import pytest

from replay.blocks import Reasoning, Text, ToolCall, ToolResult
from replay.engine import Session
from replay.log import Log
from replay.policy.base import Capacity, Cut, Moment, Refusal
from replay.policy.cuts_kept import KeepHeadAndTail, KeepPrompts, KeepSpoken, RemoveShare
from replay.policy.estimators import Characters
from replay.policy.example_tools import log_of, moment
from replay.policy.exchanges import SummaryExchange
from replay.policy.load import policy, policy_from
from replay.policy.renderings import HeadAndTail, NoReasoning, ShortArguments
from replay.policy.tool_rules import KeepReasoning, ProtectNewestTokens
from replay.policy.triggers import Threshold
from replay.policy.triggers_more import EitherThreshold, EventCount, Rested
from replay.readers.common import ThreadBuilder
from replay.testing import FixedCounter, Script, summary_message
from replay.transcript import Message
from replay.window import Inserted, Span, Window

ROUNDS = [("u", 1), *[m for _ in range(10) for m in (("a", 1), ("t", 1))]]
"""A prompt and ten calls with a result each: log places 0 to 20."""


def cut(rule: Any, at: Moment) -> tuple[int, int] | str:
    """Number of kept items before the cut and where it falls, or why it does not."""
    found = rule.cut(at)
    return found.reason if isinstance(found, Refusal) else (len(found.kept), found.keep_from)


@pytest.mark.parametrize(("rule", "expected"), [
    (KeepHeadAndTail(head=1, tail=4), (1, 17)), (KeepHeadAndTail(head=2, tail=5), (3, 17)),
    (KeepHeadAndTail(head=0, tail=0), (0, 21)), (KeepHeadAndTail(head=2, tail=19), "everything_fits"),
    (KeepHeadAndTail(head=18, tail=2), "no_boundary"), (KeepHeadAndTail(head=19, tail=1), (19, 21)),
    (RemoveShare(head=1, share=0.5), (1, 11)), (RemoveShare(head=2, share=0.5), (3, 9)),
    (RemoveShare(head=20, share=0.5), "too_few_messages"),
    (KeepSpoken(messages=2), (0, 17)), (KeepSpoken(messages=0), (0, 21)), (KeepSpoken(messages=11), "everything_fits")])
def test_cut_falls_where_the_harness_cuts(rule: Any, expected: tuple[int, int] | str) -> None:
    """Borders never part a call from its result."""
    assert expected == cut(rule, moment(log_of(*ROUNDS)))


def test_prompts_that_were_cut_once_are_kept_cut() -> None:
    """A second compaction finds the shortened prompt of the first one and the newer prompt."""
    log = log_of(("u", 40), ("s", 1), ("u", 10), ("s", 1))
    rule = KeepPrompts(tokens=30, mark="~")
    first = rule.cut(Moment(log=log, window=Window((Span(0, 2),), (), 2), capacity=Capacity(window=1_000)))
    assert isinstance(first, Cut)
    held = Window((*first.kept, Inserted(message=summary_message("S"), kind="summary"), Span(2, 4)), (), 4)
    second = rule.cut(Moment(log=log, window=held, capacity=Capacity(window=1_000)))
    assert isinstance(second, Cut)
    shortened, newest = second.kept

    assert isinstance(shortened, Inserted)
    assert (Span(0, 1),) == shortened.covers
    assert 4 * 20 + 1 == len(shortened.message.text)
    assert Span(2, 3) == newest


def kinds(window: Window, log: Log) -> list[str]:
    """Role and text of inserted messages, places of the others."""
    return [f"{i.message.role}: {i.message.text}" if isinstance(i, Inserted) else f"{i.start}-{i.stop - 1}"
            for i in window.items]


@pytest.mark.parametrize(("rule", "expected"), [
    (SummaryExchange(answer="ok", copies_prompt=True), ["0-0", "user: S", "assistant: ok", "19-20", "user: xxxx"]),
    (SummaryExchange(role="assistant", opening="what?", continuation="go on"),
     ["0-0", "user: what?", "assistant: S", "19-20", "user: go on"]),
    (SummaryExchange(answer="ok", answer_in_loop="busy", continuation="go on", only_in_loop=True),
     ["0-0", "user: S", "assistant: busy", "19-20", "user: go on"])])
def test_exchange_stands_around_summary_and_tail(rule: SummaryExchange, expected: list[str]) -> None:
    """Opening, summary, answer, tail, copy of the prompt and continuation stand in that order."""
    at = moment(log_of(*ROUNDS))
    summary = Inserted(message=rule.message("S"), kind="summary")
    items = rule.place(summary, (Span(0, 1),), (Span(19, 21),), at)

    assert expected == kinds(Window(items, (), 21), at.log)


def test_no_continuation_where_a_turn_has_ended() -> None:
    """The request to go on is for a run that was interrupted."""
    at = moment(log_of(("u", 1), ("s", 1)))

    assert () == SummaryExchange(continuation="go on", only_in_loop=True).place(None, (), (), at)


@pytest.mark.parametrize(("tokens", "fires", "level"), [(849, False, 850), (850, True, 850), (900, True, 850)])
def test_either_level_fires(tokens: int, fires: bool, level: int) -> None:
    """The lower of two levels decides."""
    rule = EitherThreshold(first=Threshold(at=0.85), second=Threshold(reserve=100))
    decision = rule.decide("full", tokens, moment(log_of(("u", 1)), 1_000))

    assert (fires, level) == (decision.fires, decision.threshold)


def test_events_are_calls_results_and_messages() -> None:
    """A response with three calls and their results is six events, a system message none, a summary one."""
    script = Script().system("rules").user("go").call("read", count=3)
    log = Log(script.result("a", 0).result("b", 1).result("c", 2).build().main, FixedCounter(()))
    summary = Inserted(message=summary_message("S"), kind="summary")
    at = Moment(log=log, window=Window((summary, Span(0, 6)), (), 6), capacity=Capacity(window=1_000))

    assert [True, False] == [EventCount(more_than=n).decide("x", None, at).fires for n in (7, 8)]


@pytest.mark.parametrize(("times", "reason"), [((0.0, 3_600.0), "rested"), ((0.0, 3_599.0), "not_rested"),
                                               ((None, 9.0), "time_unknown"), ((0.0, None), "time_unknown")])
def test_rest_is_measured_by_recorded_times(times: tuple[float | None, float | None], reason: str) -> None:
    """An hour between a response and the next prompt is a rest; without times nothing is known."""
    builder = ThreadBuilder(id="main")
    builder.respond([Text(text="done")], time=times[0])
    builder.add("user", [Text(text="next")], "human", time=times[1])
    at = moment(Log(builder.build(), FixedCounter(())))

    assert reason == Rested(minutes=60).decide("micro", None, at).reason


def outputs(*tokens: int) -> Moment:
    """Calls with results of these sizes, the oldest first, after a prompt."""
    return moment(log_of(("u", 1), *[m for size in tokens for m in (("a", 0), ("t", size))]))


RESULTS = Characters(counts=("result",))


@pytest.mark.parametrize(("rule", "stop"), [
    (ProtectNewestTokens(tokens=40_000, minimum_gain=20_000, estimator=RESULTS), 5),
    (ProtectNewestTokens(tokens=50_000, minimum_gain=30_000, comparison=">=", estimator=RESULTS), "gain_too_small"),
    (ProtectNewestTokens(tokens=40_000, minimum_gain=25_000, estimator=RESULTS), "gain_too_small"),
    (ProtectNewestTokens(tokens=40_000, minimum_gain=25_000, comparison=">=", estimator=RESULTS), 5),
    (ProtectNewestTokens(tokens=40_000, minimum_gain=0, crossing="protected", estimator=RESULTS), 4),
    (ProtectNewestTokens(tokens=0, minimum_gain=0, spares_newest=True, estimator=RESULTS), 5),
    (ProtectNewestTokens(tokens=0, minimum_gain=0, turns=1, estimator=RESULTS), "nothing_to_elide")])
def test_newest_outputs_are_protected(rule: ProtectNewestTokens, stop: int | str) -> None:
    """Of outputs of 30,000, 15,000 and 10,000, the newest first, the line and the gain decide."""
    found = rule.marks(outputs(10_000, 15_000, 30_000))

    assert stop == (found.reason if isinstance(found, Refusal) else found[0].stop)


def test_reasoning_of_older_turns_is_not_shown() -> None:
    """One turn keeps its reasoning."""
    builder = ThreadBuilder(id="main")
    for _ in range(2):
        builder.add("user", [Text(text="go")], "human")
        builder.respond([Reasoning(text="hm"), Text(text="done")])
    at = moment(Log(builder.build(), FixedCounter(())))

    assert [2] == [m.stop for m in KeepReasoning(turns=1).marks(at)]  # type: ignore[union-attr]
    assert Refusal("nothing_to_elide") == KeepReasoning(turns=2).marks(at)


def message(*blocks: Any, role: Any = "tool") -> Message:
    """A message of a log."""
    return Message(index=0, role=role, blocks=blocks, origin="tool" if role == "tool" else "model")


def test_long_results_are_shown_as_beginning_and_end() -> None:
    """The mark says how many characters are missing; a result within the limit is the same object."""
    rule = HeadAndTail(chars=4, tail_share=0.5, mark="<{removed}>")
    short = message(ToolResult(call_id="c", text="abcd"))

    assert "ab<3>fg" == rule.render(message(ToolResult(call_id="c", text="abcdefg"))).text
    assert short is rule.render(short)
    assert "a\n<8>" == HeadAndTail(chars=4, tail_share=0, mark="<{removed}>", whole_lines=True).render(
        message(ToolResult(call_id="c", text="a\nbcdefghi"[:10]))).text


def test_long_arguments_are_shortened_and_ids_stay() -> None:
    """Only texts that are too long change, and only of the named tools."""
    call = ToolCall(id="c", name="write", arguments='{"path":"f","content":"' + "x" * 50 + '"}')
    shown = ShortArguments(chars=30, kept=2, mark="…").render(message(call, role="assistant")).calls[0]
    other = message(call, role="assistant")

    assert ("c", {"path": "f", "content": "xx…"}) == (shown.id, shown.mapping)
    assert other is ShortArguments(chars=30, tools=("edit",)).render(other)


def test_response_without_reasoning_is_the_same_object() -> None:
    """Nothing to take away changes nothing."""
    plain = message(Text(text="hi"), role="assistant")

    assert plain is NoReasoning().render(plain)


def test_results_enter_the_window_cut() -> None:
    """`ingest` is in force from the first view on, also after the person cleared the window."""
    made = policy_from({"name": "capped", "ingest": {"use": "head-and-tail", "chars": 4, "mark": "…"}})
    script = Script().user("go").call("read").result("abcdefgh").say("done").compacted(kind="clear")
    script.user("more").call("read").result("ijklmnop").say("done")
    lane = Session(script.build(), FixedCounter((1,) * 9)).replay(made, Capacity(window=1_000))
    log = Log(script.build().main, FixedCounter(()))

    assert {True} == {bool(view.window.marks) for view in lane.views}
    assert "ab…gh" == log.rendered(lane.views[0].window.marks[0].rendering)[2].text


def test_dropping_without_a_summary_lists_what_went() -> None:
    """A stage that only drops has no summary, and every message that left is in the event."""
    made = policy_from({"name": "newest", "stages": [{
        "name": "drop", "trigger": {"use": "message-count", "more_than": 3}, "summarise": False,
        "cut": {"use": "messages", "messages": 2}}]})
    script = Script()
    for _ in range(3):
        script.user("go").say("done")
    lane = Session(script.build(), FixedCounter((1,) * 6)).replay(made, Capacity(window=1_000))

    assert [(0, 1, 2)] == [e.dropped for e in lane.events]
    assert () == lane.views[-1].window.summaries()
    assert [3, 4] == list(lane.views[-1].window.indices())


@pytest.mark.parametrize("name", ["goose", "kimi-cli", "openhands-sdk", "roo", "cline-legacy"])
def test_presets_are_built_of_these_parts(name: str) -> None:
    """Each preset loads and its last stage cuts."""
    assert policy(name).stages[-1].cut is not None
