"""What is in the window of a Gemini session, and where the contents of a rewritten history come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from replay.blocks import Text, ToolResult
from replay.readers.gemini_parts import SNAPSHOT
from replay.transcript import Message


@dataclass(frozen=True, slots=True)
class Placed:
    """One message of a window."""

    index: int | None
    """Its log index; None for what is not in the log."""
    message: Message | None = None
    """What stands there instead of the log's message; None where it stands verbatim."""

    @property
    def part(self) -> int | Message:
        """The same as a recorded compaction lists it."""
        return self.index if self.message is None and self.index is not None else self.message or 0

    @property
    def identity(self) -> int | str:
        """The same in two windows that hold the same message, whatever its text."""
        if self.index is not None:
            return self.index
        return f"{self.message.role} {self.message.text}" if self.message else ""


class Turn(NamedTuple):
    """One message of a rewritten history."""

    id: str | None
    message: Message
    """In no log, with the call ids of the log."""


@dataclass
class LogWindow:
    """The window so far, and the log's messages by what a rewritten history knows them by."""

    log: list[Message]
    items: list[Placed] = field(default_factory=list)
    repeats: int = 0
    """Results that the last rewritten history held a second time."""
    _by_id: dict[str, int] = field(default_factory=dict)
    _by_call: dict[str, int] = field(default_factory=dict)
    _by_result: dict[str, int] = field(default_factory=dict)
    _by_text: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def add(self, message: Message) -> None:
        """Take in a message that was appended to the log."""
        self.items.append(Placed(message.index))
        if message.id:
            self._by_id.setdefault(message.id, message.index)
        for call in message.calls:
            self._by_call[call.id] = message.index
        for result in message.results:
            self._by_result[result.call_id] = message.index
        if not message.results:
            self._by_text.setdefault((message.role, _words(message)), []).append(message.index)

    def place_of(self, name: str) -> int | None:
        """Log index of the message that a record or a rewritten history calls by this id."""
        return self._by_id.get(name)

    def has_result(self, call_id: str) -> bool:
        """Whether a call was answered."""
        return call_id in self._by_result

    def has_call(self, call_id: str) -> bool:
        """Whether a call was made."""
        return call_id in self._by_call

    def placed(self, history: Iterable[Turn]) -> list[Placed]:
        """The window that a rewritten history makes: the log's messages where it holds them, else its own."""
        self.repeats = 0
        used: set[int] = set()
        found: list[Placed] = []
        inserted = {item.identity: item for item in self.items if item.index is None}
        for turn in history:
            for item in self._place(turn, used):
                found.append(inserted.get(item.identity, item))
        return found

    def _place(self, turn: Turn, used: set[int]) -> Iterator[Placed]:
        if turn.message.results:
            yield from self._place_results(turn.message, used)
            return
        index = self._find(turn, used)
        if index is None:
            yield Placed(None, turn.message)
            return
        used.add(index)
        if turn.id:
            self._by_id.setdefault(turn.id, index)
        is_same = turn.message.role == "assistant" or _words(self.log[index]) == _words(turn.message)
        yield Placed(index, None if is_same else turn.message)

    def _find(self, turn: Turn, used: set[int]) -> int | None:
        index = self._by_id.get(turn.id) if turn.id else None
        for call in turn.message.calls:
            index = self._by_call.get(call.id) if index is None else index
        if index is None and not turn.message.calls:
            same = self._by_text.get((turn.message.role, _words(turn.message)), ())
            index = next((i for i in reversed(same) if i not in used), None)
        return index if index not in used else None

    def _place_results(self, message: Message, used: set[int]) -> Iterator[Placed]:
        """Results by the calls that they answer; a second copy of a result is passed over."""
        index = next((self._by_result[r.call_id] for r in message.results if r.call_id in self._by_result), None)
        if index is None:
            yield Placed(None, message)
        elif index in used:
            self.repeats += len(message.results)
        else:
            used.add(index)
            before, after = self.log[index].results, message.results
            is_same = [r.text for r in before] == [r.text for r in after]
            yield Placed(index, None if is_same else _with_texts(self.log[index], after))


def _words(message: Message) -> str:
    return "\n".join(b.text for b in message.blocks if isinstance(b, Text)).strip()


def _with_texts(old: Message, results: Sequence[ToolResult]) -> Message:
    """A log message of results with the texts that a rewritten history gives them."""
    texts = {result.call_id: result.text for result in results}
    blocks = tuple(replace(b, text=texts.get(b.call_id, b.text)) if isinstance(b, ToolResult) else b
                   for b in old.blocks)
    return replace(old, index=-1, blocks=blocks)


def masked(before: Sequence[Placed], after: Sequence[Placed], log: Sequence[Message]) -> dict[str, list[int]] | None:
    """Log indices of results that were blanked, by what stands there now; None where more than that changed."""
    found: dict[str, list[int]] = {}
    for old, new in zip(before, after, strict=True):
        if new.message is None or new.index is None or new.message == old.message:
            continue
        results = new.message.results
        if not results and new.message.role == "user":
            continue
        if len(results) != 1 or len(log[new.index].results) != 1:
            return None
        found.setdefault(results[0].text, []).append(new.index)
    return found


def summary_at(items: Sequence[Placed], before: Sequence[Placed], is_marked: bool) -> int | None:
    """Where the summary of a compression stands among messages that are new in the window.

    Without the mark of a snapshot (`is_marked` false) it is the first new text in the user's name.
    """
    known = {item.identity for item in before}
    for position, item in enumerate(items):
        message = item.message
        if item.index is None and message is not None and message.role == "user" and item.identity not in known and (
                SNAPSHOT in message.text or (not is_marked and not message.results)):
            return position
    return None
