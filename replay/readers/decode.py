"""Reader for Decode's session logs."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from replay.readers.call_ids import CallIds
from replay.readers.common import ThreadBuilder, leftover, not_an_object
from replay.readers.decode_parts import Group, parts_of, request_groups, response_blocks, time_of, usage_of
from replay.readers.odd_types import OddTypes
from replay.readers.source import Record, Source
from replay.transcript import Message, ReadNote, RecordedCompaction, Transcript

_FRAME = "Summary of the earlier conversation"


class Decode:
    """Reads Decode (decodingai-magazine/building-a-coding-agent-from-scratch-course), log version 1.

    Lines: a header, batches of pydantic-ai messages (1.x and 2.x spelling), `compaction` (summary + tail) and `clear`.
    A native request becomes one message for all its tool results and one for its prompts; `message_count` counts
    native messages of the batches. What micro-compaction blanked is not in these files.
    """

    name = "decode"

    def sniff(self, source: Source) -> int:
        """How surely the source is of this format, from 0 to 100."""
        rows = source.objects()
        if any(row.get("type") == "session" and "session_id" in row and "created_at" in row for row in rows):
            return 95
        return 80 if any(_is_batch(row) for row in rows) else 0

    def read(self, source: Source) -> tuple[Transcript, ...]:
        """The session of the source."""
        return (_Session().read(source),)


def _is_batch(row: dict[str, Any]) -> bool:
    if row.get("type") == "compaction":
        return isinstance(row.get("summary"), list) and isinstance(row.get("tail"), list)
    rows = row.get("messages")
    return row.get("type") == "messages" and isinstance(rows, list) and any(
        isinstance(m, dict) and m.get("kind") in ("request", "response") and "parts" in m for m in rows)


class _Held(NamedTuple):
    """A native message of the history that the next request would send, and what stands for it."""

    native: dict[str, Any]
    parts: tuple[int | Message, ...]


@dataclass
class _Session:
    """Reads the lines of one session."""

    thread: ThreadBuilder = field(default_factory=lambda: ThreadBuilder(id=""))
    ids: CallIds = field(default_factory=CallIds)
    odd: OddTypes = field(default_factory=lambda: OddTypes("line or part type"))
    notes: list[ReadNote] = field(default_factory=list)
    history: list[_Held] = field(default_factory=list)
    instructions: list[str] = field(default_factory=list)
    header: dict[str, Any] = field(default_factory=dict)
    model: str | None = None
    count: int = 0
    batch: Any = None
    """The latest batch, to tell when it is written again."""

    def read(self, source: Source) -> Transcript:
        """The session as a transcript."""
        for record in source.records:
            self._line(record)
        name = str(self.header.get("session_id") or Path(source.path).stem)
        self.thread.id = name
        extra: dict[str, Any] = {**leftover(self.header, "type", "session_id", "cwd")}
        if len(self.instructions) > 1:
            extra["instructions"] = tuple(self.instructions)
        return Transcript(
            format="decode", session_id=name, path=source.path, main=self.thread.build(),
            notes=tuple(self.notes + self.odd.notes()), model=self.model, message_count=self.count,
            cwd=self.header.get("cwd") if isinstance(self.header.get("cwd"), str) else None,
            system_prompt=self.instructions[-1] if self.instructions else None, extra=MappingProxyType(extra))

    def _line(self, record: Record) -> None:
        value = record.value
        if not isinstance(value, dict):
            self.notes.append(not_an_object(record.line, record.byte, value))
            return
        kind = value.get("type")
        if kind == "messages":
            self._batch(value.get("messages"), record)
        elif kind == "compaction":
            self._compaction(value, record)
        elif kind == "clear":
            self.history = []
            self.thread.compactions.append(RecordedCompaction(position=len(self.thread.messages), kind="clear",
                                                              trigger="manual", line=record.line))
        elif kind == "session":
            self._header(value, record)
        else:
            self.odd.add(kind, record.line, record.byte)

    def _header(self, value: dict[str, Any], record: Record) -> None:
        if self.header and value.get("session_id") != self.header.get("session_id"):
            self._note("second-header", f"a second header, of session {value.get('session_id')}; the first one names "
                       "the file", record)
        self.header = self.header or value

    def _batch(self, rows: Any, record: Record) -> None:
        if not isinstance(rows, list):
            self._note("bad-batch", "a messages line without a list of messages; kept out", record)
        elif rows and rows == self.batch and any(isinstance(m, dict) and m.get("timestamp") for m in rows):
            self._note("duplicate", "the batch of messages before is written again; read once", record)
        else:
            self.batch = rows
            for native in rows:
                self._native(native, record)

    def _native(self, native: Any, record: Record) -> None:
        start = len(self.thread.messages)
        kind = native.get("kind") if isinstance(native, dict) else None
        if kind == "request":
            self._request(native, record)
        elif kind == "response":
            self._response(native, record)
        else:
            self._note("bad-message", "a message that is neither a request nor a response; kept out", record)
            return
        self.count += 1
        self.history.append(_Held(native, tuple(range(start, len(self.thread.messages)))))

    def _request(self, native: dict[str, Any], record: Record) -> None:
        extra = leftover(native, "kind", "parts", "timestamp")
        text, when = native.get("instructions"), time_of(native)
        if isinstance(text, str) and text and text not in self.instructions[-1:]:
            self.instructions.append(text)
        for group in request_groups(native, self.ids, self.odd, record.line, record.byte):
            self.thread.add(group.role, group.blocks, group.origin, time=when, line=record.line, detail=group.detail,
                            extra=extra)

    def _response(self, native: dict[str, Any], record: Record) -> None:
        model, request_id = native.get("model_name"), native.get("provider_response_id")
        self.model = model if isinstance(model, str) else self.model
        self.thread.respond(
            response_blocks(native, self.ids, self.odd, record.line, record.byte), usage_of(native.get("usage")),
            model=model if isinstance(model, str) else None, time=time_of(native), line=record.line,
            request_id=request_id if isinstance(request_id, str) else None,
            id=request_id if isinstance(request_id, str) else None,
            extra=leftover(native, "kind", "parts", "usage", "model_name", "timestamp", "provider_response_id"))

    def _compaction(self, value: dict[str, Any], record: Record) -> None:
        summary, tail = value.get("summary"), value.get("tail")
        if not isinstance(summary, list) or not isinstance(tail, list):
            self._note("bad-compaction", "a compaction line without summary and tail; the program skips it too", record)
            return
        heads = [_Held(m, self._inserted(m, record, summary=True)) for m in summary if isinstance(m, dict)]
        self.history = heads + self._tail([m for m in tail if isinstance(m, dict)], record)
        text = "\n".join(m.text for head in heads for m in head.parts if isinstance(m, Message))
        self.thread.compactions.append(RecordedCompaction(
            position=len(self.thread.messages), kind="full",
            window=tuple(part for held in self.history for part in held.parts), summary=_unframed(text) or None,
            summary_readable=bool(text), line=record.line, extra=leftover(value, "type", "summary", "tail")))

    def _tail(self, tail: list[dict[str, Any]], record: Record) -> list[_Held]:
        """The kept messages: those of the history that they repeat, found from the end backwards."""
        found: list[_Held] = []
        end, strange = len(self.history), 0
        for native in reversed(tail):
            at = next((i for i in range(end - 1, -1, -1) if _same(self.history[i].native, native)), None)
            if at is None:
                strange += 1
                found.append(_Held(native, self._inserted(native, record, summary=False)))
            else:
                end = at
                found.append(self.history[at])
        if strange:
            self._note("tail-not-in-log", f"{strange} kept messages differ from what the file holds; taken as they "
                       "stand in the tail", record)
        return found[::-1]

    def _inserted(self, native: dict[str, Any], record: Record, summary: bool) -> tuple[Message, ...]:
        """The messages of a native message that stands in a compaction line only."""
        if native.get("kind") == "response":
            blocks = response_blocks(native, CallIds(), self.odd, record.line, record.byte)
            groups = [Group("assistant", "model", blocks)]
        else:
            groups = request_groups(native, self.ids, self.odd, record.line, record.byte)
        return tuple(Message(index=-1, role=g.role, blocks=tuple(g.blocks), origin="summary" if summary else g.origin,
                             time=time_of(native), line=record.line, detail=g.detail) for g in groups)

    def _note(self, code: str, text: str, record: Record) -> None:
        self.notes.append(ReadNote(code=code, text=text, line=record.line, byte=record.byte))


def _same(held: dict[str, Any], native: dict[str, Any]) -> bool:
    return held == native or (held.get("kind") == native.get("kind") and _content(held) == _content(native))


def _content(native: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(p.get("part_kind"), p.get("tool_call_id"), p.get("content"), p.get("args")) for p in parts_of(native)]


def _unframed(text: str) -> str:
    """The summary without the sentence that the program puts above it."""
    head, _, rest = text.partition("\n\n")
    return rest if rest and head.startswith(_FRAME) else text
