"""A compactor as somebody might write it, and four ways in which a refactoring breaks it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from replay.policy.base import Moment
from replay.policy.load import policy_from
from replay.policy.policy import Policy
from replay.policy.replacements import SummaryMessage
from replay.window import Inserted, Item, Span

LEVEL = 24_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFirst(SummaryMessage):
    """The first user message stays in front of the summary."""

    def place(self, summary: Inserted | None, kept: tuple[Item, ...], tail: tuple[Item, ...],
              moment: Moment) -> tuple[Item, ...]:
        """Task, summary, tail."""
        first = next((n for n, m in enumerate(moment.log.messages) if m.role == "user"), 0)
        task = () if any(isinstance(i, Span) and i.start <= first for i in tail) else (Span(first, first + 1),)
        return (*kept, *task, *(() if summary is None else (summary,)), *tail)


@dataclass(frozen=True, slots=True, kw_only=True)
class OffByOneTail(TaskFirst):
    """The tail begins one message too late: where that was a call, its result is left alone."""

    def place(self, summary: Inserted | None, kept: tuple[Item, ...], tail: tuple[Item, ...],
              moment: Moment) -> tuple[Item, ...]:
        """Task, summary, and a tail without its first message."""
        first, *rest = tail
        assert isinstance(first, Span)
        return TaskFirst.place(self, summary, kept, (Span(first.start + 1, first.stop), *rest), moment)


def _made(level: int = LEVEL) -> Policy:
    return policy_from({"name": "mine", "stages": [{
        "name": "full", "measure": {"use": "estimate"}, "trigger": {"use": "threshold", "tokens": level},
        "cut": {"use": "tokens", "tail_tokens": 6_000}}]})


def _with(made: Policy, replacement: SummaryMessage) -> Policy:
    return replace(made, stages=(replace(made.stages[0], replacement=replacement),))


good = _with(_made(), TaskFirst())
drops_the_task = _with(_made(), SummaryMessage())
splits_a_pair = _with(_made(), OffByOneTail())
off_by_one = _with(_made(LEVEL - 1), TaskFirst())
forgets = replace(good, stages=(replace(good.stages[0], merge_previous=False),))


def failing() -> Policy:
    """A policy that cannot be replayed: its replacement asks for a message that is in no log."""
    return _with(_made(), Failing())


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing(SummaryMessage):
    """Raises when a summary is placed."""

    def place(self, summary: Inserted | None, kept: tuple[Item, ...], tail: tuple[Item, ...],
              moment: Moment) -> tuple[Item, ...]:
        """A message beyond the log."""
        raise IndexError(f"message {len(moment.log.messages)} is in no log")
