"""What worked examples are made with: logs of stated sizes, moments, and the parts of a preset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from replay.blocks import Text, ToolCall, ToolResult
from replay.engine import Lane, Session
from replay.errors import ConfigError
from replay.log import Log
from replay.policy.base import Capacity, Cut, CutRule, Decision, Moment, Refusal, Told
from replay.policy.estimators import Characters
from replay.policy.load import policy
from replay.policy.policy import Stage
from replay.readers.common import ThreadBuilder
from replay.tokens.bytes_count import ByteCounter
from replay.transcript import Transcript, Usage
from replay.window import Span, Window

Kind = TypeVar("Kind")
CHARS = 4
"""Characters of a token of the sizes below."""


def stage(preset: str, number: int = 0) -> Stage:
    """A stage of a preset."""
    return policy(preset).stages[number]


def session(*moves: tuple[str, int] | tuple[str, int, int]) -> Transcript:
    """A session from moves (letter, tokens[, reported input]).

    `u` prompt, `n` nudge, `a` call, `t` result, `s` answer.
    """
    builder, call = ThreadBuilder(id="main"), 0
    for kind, tokens, *reported in moves:
        text = "x" * (CHARS * tokens)
        usage = Usage(input_uncached=reported[0], output=1) if reported else None
        if kind in "un":
            builder.add("user", [Text(text=text)], "human" if kind == "u" else "nudge")
        elif kind == "t":
            builder.add("tool", [ToolResult(call_id=f"c{call}", name="run", text=text)], "tool")
        else:
            call += kind == "a"
            calls = [ToolCall(id=f"c{call}", name="", arguments="")] if kind == "a" else []
            builder.respond([Text(text=text), *calls], usage)
    return Transcript(format="example", session_id="example", path="<example>", main=builder.build())


def log_of(*moves: Any) -> Log:
    """The log of a session of moves."""
    return Log(session(*moves).main, ByteCounter())


def moment(log: Log, window: int = 200_000, told: Told | None = None, **more: Any) -> Moment:
    """A moment at which the window holds the whole log."""
    return Moment(log=log, window=Window((Span(0, len(log)),), (), len(log)), capacity=Capacity(window=window),
                  told=told or Told(), **more)


def keep_from(rule: CutRule | None, at: Moment) -> int | str:
    """Where a cut falls, or why it does not."""
    found = rule.cut(at) if rule is not None else Refusal("no_cut")
    return found.keep_from if isinstance(found, Cut) else found.reason


def decision(of: Stage, at: Moment) -> Decision:
    """What a stage's trigger says of its measure."""
    return of.trigger.decide(of.name, of.measure.tokens(at), at)


def fires(preset: str, reported: int, window: int, number: int = 0) -> bool:
    """Whether a stage of a preset fires behind a call that was reported with so many input tokens and one of output."""
    at = moment(log_of(("u", 1), ("s", 1)), window, Told(input=reported, calls=1, run_input=reported, end=1))
    return decision(stage(preset, number), at).fires


def replay(transcript: Transcript, preset: str, window: int) -> Lane:
    """A preset's lane over a session; nothing is refused."""
    return Session(transcript, ByteCounter()).replay(policy(preset), Capacity(window=window), refusals={})


def of_kind(value: object, kind: type[Kind]) -> Kind:
    """The same part, known to be of a class. Raises ConfigError where a preset was built from other parts."""
    if not isinstance(value, kind):
        raise ConfigError("worked example", kind.__name__, f"the preset has {type(value).__name__} in its place")
    return value


def estimate(estimator: Characters, sizes: Sequence[int]) -> int:
    """An estimator's tokens of user messages with these numbers of characters."""
    builder = ThreadBuilder(id="main")
    for size in sizes:
        builder.add("user", [Text(text="x" * size)], "human")
    log = Log(builder.build(), ByteCounter())
    return estimator.tokens(log, Window((Span(0, len(log)),), (), len(log)))
