"""Reinjection: what a harness puts into every view besides the history."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from replay.blocks import Text
from replay.log import Log
from replay.policy.base import Moment, check
from replay.transcript import Message

_CUT_MARK = "\n[truncated]"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionMemory:
    """Goal, completed and failed work as one system message in front of the history.

    Imitates MyCodeAgent f670268: derived from the log at every step and cut to a number of characters. It
    changes with nearly every step, so no cached prefix survives behind it. The imitated harness lists ids of
    events and checkpoints, which other transcripts do not have: numbers of the same length stand in for them.
    """

    enabled: bool = False
    chars: int = 4_000

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        check(self, "chars", self.chars >= 0, "0 or more characters")

    def words(self) -> str:
        """What is put into every view, in words."""
        on = "" if self.enabled else " (switched off)"
        what = "a session memory of goal, decisions, failures and completed work"
        return f"{what}, at most {self.chars:,} characters{on}"

    def messages(self, moment: Moment) -> tuple[Message, ...]:
        """The memory message; none while it is switched off or nothing has happened."""
        if not self.enabled or moment.window.end <= moment.floor:
            return ()
        text = _cut("\n".join(_within(_lines(moment), self.chars)), self.chars)
        return (Message(index=-1, role="system", blocks=(Text(text=text),), origin="injected",
                        detail="session memory"),)


def _lines(moment: Moment) -> Iterator[str]:
    """The memory line by line."""
    facts, log = _facts(moment.log), moment.log
    yield "## Session Memory"
    yield f"Source: transcript events evt-{moment.floor:032d}..evt-{moment.window.end - 1:032d}"
    goals = log.prompts[bisect_left(log.prompts, moment.floor):bisect_left(log.prompts, moment.window.end)]
    if goals:
        yield f"Current Goal: {log.messages[goals[-1]].text.strip()}"
    yield from _group("Verification", facts.verification.between(moment.floor, moment.window.end))
    yield from _group("Key Decisions", _checkpoints(moment.compactions))
    yield from _group("Failed Attempts", facts.failed.between(moment.floor, moment.window.end))
    yield from _group("Completed Work", facts.completed.between(moment.floor, moment.window.end))


def _group(title: str, lines: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if not number:
            yield f"{title}:"
        yield f"- {line}"


def _checkpoints(compactions: int) -> Iterator[str]:
    for number in range(1, compactions + 1):
        yield f"Recorded checkpoint compact_{number:032d}"
        yield f"Created compact checkpoint compact_{number:032d}"


def _within(lines: Iterator[str], chars: int) -> Iterator[str]:
    """Lines until there are more characters than asked for: the rest would be cut off anyway."""
    for line in lines:
        yield line
        chars -= len(line) + 1
        if chars < 0:
            return


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[: max(0, chars - len(_CUT_MARK))].rstrip() + _CUT_MARK


@dataclass(slots=True)
class _Dated:
    """Lines with the log index from which they are known."""

    indices: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def add(self, index: int, text: str) -> None:
        self.indices.append(index)
        self.texts.append(text)

    def between(self, start: int, stop: int) -> Iterator[str]:
        return (self.texts[i] for i in range(bisect_left(self.indices, start), bisect_left(self.indices, stop)))


@dataclass(slots=True)
class _Facts:
    """What the memory says of a whole log."""

    verification: _Dated = field(default_factory=_Dated)
    failed: _Dated = field(default_factory=_Dated)
    completed: _Dated = field(default_factory=_Dated)


_KNOWN: WeakKeyDictionary[Log, _Facts] = WeakKeyDictionary()


def _facts(log: Log) -> _Facts:
    """The facts of a log, gathered once."""
    if log not in _KNOWN:
        found = _KNOWN[log] = _Facts()
        answer: Message | None = None
        for message in log.messages:
            _results(message, found)
            answer = _ended(message, answer, found)
    return _KNOWN[log]


def _results(message: Message, facts: _Facts) -> None:
    for result in message.results:
        name = f"tool {result.name or 'unknown'} ({result.call_id})."
        if result.is_error:
            facts.failed.add(message.index, f"Failed {name}")
        else:
            facts.completed.add(message.index, f"Completed {name}")


def _ended(message: Message, answer: Message | None, facts: _Facts) -> Message | None:
    """The answer that may have ended a run: the next prompt says whether it did."""
    if message.role == "assistant":
        return None if message.calls else message
    if answer is not None and message.origin == "nudge":
        facts.verification.add(message.index, "Completion gate blocked finalization pending verification.")
        return None
    if answer is not None and message.origin == "human":
        facts.verification.add(message.index, "Run ended with terminal reason completed.")
        if text := answer.text.strip():
            facts.completed.add(message.index, f"Assistant produced final response: {text}")
        return None
    return answer


REINJECTIONS: Mapping[str, type] = {"session-memory": SessionMemory}
"""Names for `use = …` in a reinjection table."""
