"""Rules that every view obeys: calls and results pair, ids are unique, results follow their calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from replay.transcript import Message

Fault = Literal["orphan-result", "missing-result", "late-result", "repeated-call"]


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule: what, which call, and the position in the view."""

    fault: Fault
    call_id: str
    position: int


class PairingChecker:
    """Follows a growing view message by message, so that a longer view costs only what was added."""

    def __init__(self) -> None:
        """Start with an empty view."""
        self.violations: list[Violation] = []
        self._position = 0
        self._called: set[str] = set()
        self._open: dict[str, int] = {}
        self._prompted = False

    def feed(self, message: Message) -> None:
        """Take the next message of the view."""
        self.take(message, [c.id for c in message.calls], [r.call_id for r in message.results])

    def take(self, message: Message, calls: Sequence[str], answers: Sequence[str]) -> None:
        """The same with the ids of the message's calls and of the calls that it answers at hand."""
        if message.role == "assistant":
            if self._open:
                self._close()
            if not self._called.isdisjoint(calls):
                self.violations += [Violation("repeated-call", c, self._position) for c in calls if c in self._called]
            self._open = dict.fromkeys(calls, self._position)
            self._called.update(calls)
            self._prompted = False
        for call_id in answers:
            self._answer(call_id)
        self._prompted |= message.origin in ("human", "nudge")
        self._position += 1

    def current(self) -> list[Violation]:
        """Violations of the view so far; calls of the last response are open until a prompt follows."""
        if not self._prompted:
            return self.violations
        return self.violations + [Violation("missing-result", i, p) for i, p in self._open.items()]

    def _close(self) -> None:
        self.violations += [Violation("missing-result", i, p) for i, p in self._open.items()]

    def _answer(self, call_id: str) -> None:
        """Results without an id are user observations and pair with nothing."""
        if not call_id or self._open.pop(call_id, None) is not None:
            return
        fault: Fault = "late-result" if call_id in self._called else "orphan-result"
        self.violations.append(Violation(fault, call_id, self._position))


def pairing(messages: Sequence[Message]) -> list[Violation]:
    """Violations of a view: each call has exactly one result, before the model speaks again."""
    checker = PairingChecker()
    for message in messages:
        checker.feed(message)
    return checker.current()
