"""Condensations of OpenHands: events forgotten, a summary put in their place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from replay.blocks import Text, ToolCall
from replay.readers.common import ThreadBuilder, leftover
from replay.transcript import Message, ReadNote, RecordedCompaction

_FIELDS = ("forgotten_event_ids", "forgotten_events_start_id", "forgotten_events_end_id", "summary", "summary_offset")


@dataclass
class Condensations:
    """The events that the harness's own views count, and what was forgotten of them."""

    entries: list[list[Any]] = field(default_factory=list)
    """[event id, log index or None] in the order of the stream."""
    forgotten: set[Any] = field(default_factory=set)
    system: list[Any] | None = None
    first_prompt: str | None = None
    """Id of the event that began the session: the harness puts it back when it was forgotten."""
    summary: str | None = None
    offset: int = 0

    def note(self, event_id: Any, is_system: bool = False) -> list[Any]:
        """A new event of the stream; its log index is set once it is in the log."""
        entry = [event_id, None]
        self.entries.append(entry)
        if is_system and self.system is None:
            self.system = entry
        return entry

    def condense(self, arguments: Mapping[str, Any], thread: ThreadBuilder, line: int | None) -> ReadNote | None:
        """Record the window that a condensation leaves. The note says of a summary that has no place of its own."""
        self.forgotten.update(_forgotten(arguments))
        summary, offset = arguments.get("summary"), arguments.get("summary_offset")
        placed = isinstance(offset, int)
        if isinstance(summary, str):
            self.summary, self.offset = summary, max(offset, 0) if isinstance(offset, int) else 0
        own = summary if isinstance(summary, str) else None
        thread.compactions.append(RecordedCompaction(
            position=len(thread.messages), kind="full", window=self._window(thread.messages), summary=own,
            summary_readable=bool(own), line=line, extra=leftover(arguments, "summary", *_FIELDS[:3])))
        if own is None or placed:
            return None
        said = "a condensation's summary_offset is no number; its summary was put first"
        return ReadNote(code="misplaced-summary", text=said, line=line)

    def _window(self, messages: Sequence[Message]) -> tuple[int | Message, ...]:
        kept = [e for e in self.entries if e[0] is None or e[0] not in self.forgotten]
        split = len(kept) if self.summary is None else min(self.offset, len(kept))
        head, tail = _indices(kept[:split]), _indices(kept[split:])
        head = self._with_start(head, tail)
        tail = [i for i in tail if i not in head]
        told = [] if self.summary is None else [
            Message(index=-1, role="user", blocks=(Text(text=self.summary),), origin="summary")]
        return tuple(_paired([*head, *told, *tail], messages))

    def _with_start(self, head: list[int], tail: list[int]) -> list[int]:
        """The harness never sends a window without the system prompt and the first prompt: they come first."""
        first = next((e[1] for e in self.entries if e[1] is not None and str(e[0]) == self.first_prompt), None)
        system = self.system[1] if self.system else None
        start = [i for i in (system, first) if i is not None and (i not in head and i not in tail)]
        return sorted([*start, *head]) if start else head


def _forgotten(arguments: Mapping[str, Any]) -> list[Any]:
    listed = arguments.get("forgotten_event_ids")
    if isinstance(listed, list):
        return [i for i in listed if isinstance(i, (int, str))]
    start, end = arguments.get("forgotten_events_start_id"), arguments.get("forgotten_events_end_id")
    return list(range(start, end + 1)) if isinstance(start, int) and isinstance(end, int) else []


def _indices(entries: Sequence[Sequence[Any]]) -> list[int]:
    return sorted({e[1] for e in entries if e[1] is not None})


def _paired(parts: Sequence[int | Message], messages: Sequence[Message]) -> list[int | Message]:
    """The window without results of forgotten calls, and without calls whose results were forgotten."""
    kept = [messages[p] for p in parts if isinstance(p, int)]
    made = {c.id for m in kept for c in m.calls}
    answered = {r.call_id for m in kept for r in m.results}
    lost = {r.call_id for m in messages for r in m.results} - answered
    paired: list[int | Message] = []
    for part in parts:
        shown = _matched(messages[part], made, lost) if isinstance(part, int) else part
        if shown is not None:
            paired.append(part if isinstance(part, int) and shown is messages[part] else shown)
    return paired


def _matched(message: Message, made: set[str], lost: set[str]) -> Message | None:
    """The message as the harness would still send it: the same object where nothing is missing."""
    if message.results:
        return message if all(not r.call_id or r.call_id in made for r in message.results) else None
    if not any(call.id in lost for call in message.calls):
        return message
    left = tuple(b for b in message.blocks if not (isinstance(b, ToolCall) and b.id in lost))
    return replace(message, index=-1, blocks=left) if any(isinstance(b, ToolCall) for b in left) else None
