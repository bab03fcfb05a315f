"""Gemini CLI's recordings as events in order: messages, rewritten histories, rewinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from replay.readers.common import not_an_object
from replay.readers.odd_types import OddTypes
from replay.readers.source import Source
from replay.transcript import ReadNote

TYPES = frozenset({"user", "gemini", "info", "error", "warning"})


@dataclass
class Event:
    """Something that happened to the history."""

    kind: Literal["message", "history", "rewind"]
    value: Any
    """The message in its last version; the list of a rewritten history; the id that was rewound to."""
    line: int | None = None
    byte: int | None = None

    @property
    def id(self) -> str | None:
        """The message's id."""
        name = self.value.get("id") if isinstance(self.value, dict) else None
        return name if isinstance(name, str) else None


@dataclass
class Recording:
    """One recorded session: its metadata and what happened, in order."""

    meta: dict[str, Any] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    notes: list[ReadNote] = field(default_factory=list)
    odd: OddTypes = field(default_factory=lambda: OddTypes("record type"))
    live: dict[str, Event] = field(default_factory=dict)
    """The messages that a later record with the same id would replace."""

    def add(self, value: dict[str, Any], line: int | None, byte: int | None) -> None:
        """Take in one record."""
        if isinstance(value.get("$rewindTo"), str):
            self._rewind(value["$rewindTo"], line, byte)
        elif isinstance(value.get("$set"), dict):
            self._update(value["$set"], line, byte)
        elif is_metadata(value):
            self._update({k: v for k, v in value.items() if k != "messages"}, line, byte)
            for message in _list(value.get("messages")):
                self._message(message, line, byte)
        elif "type" in value or "content" in value:
            self._message(value, line, byte)
        else:
            self.odd.add(", ".join(sorted(value)[:4]), line or 0, byte or 0)

    def _update(self, update: Mapping[str, Any], line: int | None, byte: int | None) -> None:
        if isinstance(update.get("messages"), list):
            self.events.append(Event("history", update["messages"], line, byte))
        self.meta.update((key, value) for key, value in update.items() if key != "messages")

    def _rewind(self, name: str, line: int | None, byte: int | None) -> None:
        self.events.append(Event("rewind", name, line, byte))
        names = list(self.live)
        for gone in names[names.index(name) if name in self.live else 0:]:
            del self.live[gone]

    def _message(self, value: Any, line: int | None, byte: int | None) -> None:
        if not isinstance(value, dict):
            self.notes.append(not_an_object(line or 1, byte or 0, value))
            return
        kind, name = str(value.get("type")), value.get("id")
        if kind not in TYPES:
            self.odd.add(kind, line or 0, byte or 0)
            return
        before = self.live.get(name) if isinstance(name, str) else None
        if before is None:
            event = Event("message", value, line, byte)
            self.events.append(event)
            if isinstance(name, str):
                self.live[name] = event
        elif before.value == value:
            self.notes.append(ReadNote(code="duplicate", text=f"message {name} is written again; read once", line=line,
                                       byte=byte))
        else:
            before.value = value


def is_metadata(value: Mapping[str, Any]) -> bool:
    """Whether an object is the head of a recording, or a whole one."""
    return isinstance(value.get("sessionId"), str) and "projectHash" in value


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def recordings(source: Source) -> list[Recording]:
    """The recordings of a document or of lines; a head that names another session begins another one."""
    found = [Recording()]
    for record in source.records:
        value = record.value
        line = None if source.is_document else record.line
        if not isinstance(value, dict):
            found[-1].notes.append(not_an_object(record.line, record.byte, value))
            continue
        if is_metadata(value) and found[-1].meta.get("sessionId", value["sessionId"]) != value["sessionId"]:
            found.append(Recording())
        found[-1].add(value, line, None if source.is_document else record.byte)
    return found


def answered(recording: Recording) -> set[str]:
    """Native ids of the calls whose results are messages of their own."""
    return {name for message in _said(recording) for name in _answers(message)}


def _said(recording: Recording) -> Iterator[dict[str, Any]]:
    for event in recording.events:
        if event.kind == "message":
            yield event.value


def _answers(message: Mapping[str, Any]) -> Iterator[str]:
    content = message.get("content")
    for part in content if message.get("type") == "user" and isinstance(content, list) else ():
        told = part.get("functionResponse") if isinstance(part, dict) else None
        if isinstance(told, dict) and isinstance(told.get("id"), str):
            yield told["id"]
