"""Rewindow's own format: one session as JSON lines that hold all of the transcript model (docs/canonical-format.md)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from replay.blocks import Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from replay.transcript import Message, ReadNote, RecordedCompaction, Step, Thread, Transcript

VERSION = 1
"""Version of the schema: readers of an older version cannot read what a newer one writes, the other way they can."""
ThreadKind = Literal["main", "subagent", "abandoned"]
Record = dict[str, Any]

_RECORDS: Mapping[type, str] = {
    Message: "message", Step: "step", RecordedCompaction: "compaction", ReadNote: "note",
}
_BLOCKS = (Text, Reasoning, ToolCall, ToolResult, Image, Opaque)
_DEFAULTS: dict[type, Mapping[str, Any]] = {}
_HEADER = ("format", "session_id", "parent_session", "harness_version", "model", "window", "cwd", "system_prompt",
           "outcome", "message_count", "extra")


def session_records(transcripts: Sequence[Transcript]) -> Iterator[Record]:
    """The records of several sessions of one file."""
    for number, transcript in enumerate(transcripts):
        for record in records(transcript):
            yield record | ({"session": number} if number else {})


def records(transcript: Transcript) -> Iterator[Record]:
    """A session's records: its header, the notes on how it was read, and its threads, the main one first."""
    yield {"type": "rewindow", "version": VERSION, **plain(transcript, _HEADER)}
    yield from (_record(note) for note in transcript.notes)
    kinds: list[tuple[ThreadKind, Thread]] = [("main", transcript.main)]
    kinds += [("subagent", thread) for thread in transcript.subagents]
    kinds += [("abandoned", thread) for thread in transcript.abandoned]
    for number, (kind, thread) in enumerate(kinds):
        mark = {"thread": number} if number else {}
        yield {"type": "thread", **mark, "kind": kind, "id": thread.id,
               **({"parent_call": thread.parent_call} if thread.parent_call is not None else {})}
        yield from ({**record, **mark} for record in _thread(thread))


def _thread(thread: Thread) -> Iterator[Record]:
    """Messages in order; before each what happened once the messages above it existed: compactions, then requests."""
    events: dict[int, list[Record]] = {}
    for compaction in thread.compactions:
        events.setdefault(compaction.position, []).append(_record(compaction))
    for step in thread.steps:
        events.setdefault(step.start, []).append(_record(step))
    for index, message in enumerate(thread.messages):
        yield from events.pop(index, ())
        yield _record(message)
    for rest in events.values():
        yield from rest


def _record(item: Message | Step | RecordedCompaction | ReadNote) -> Record:
    return {"type": _RECORDS[type(item)], **plain(item)}


def plain(item: Any, names: Sequence[str] = ()) -> Record:
    """The fields of a part of the model that are not at their defaults, as plain data; `names`: only those."""
    found: Record = {"kind": item.kind} if isinstance(item, _BLOCKS) else {}
    defaults = _defaults(type(item))
    for name in names or defaults:
        value = getattr(item, name)
        if value != defaults[name]:
            found[name] = _plain_value(value)
    return found


def _defaults(kind: Any) -> Mapping[str, Any]:
    """Field names of a part, in order, with their defaults."""
    if kind not in _DEFAULTS:
        _DEFAULTS[kind] = {f.name: f.default if f.default_factory is dataclasses.MISSING else f.default_factory()
                           for f in dataclasses.fields(kind)}
    return _DEFAULTS[kind]


def _plain_value(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain_value(inner) for inner in value]
    if dataclasses.is_dataclass(value):
        return plain(value)
    return dict(value) if isinstance(value, Mapping) else value
