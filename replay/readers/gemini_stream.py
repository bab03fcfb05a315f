"""What `--output-format stream-json` prints: events of a run, without its contents' borders and without token counts
of single responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from replay.blocks import Block, Text, ToolResult
from replay.readers.common import ThreadBuilder, json_text, leftover, not_an_object, seconds
from replay.readers.gemini_log import GeminiLog
from replay.readers.odd_types import OddTypes
from replay.readers.source import Record, Source
from replay.transcript import Outcome, ReadNote, Transcript

_ENDS = frozenset({"tool_result", "message", "init", "result"})


def is_start(value: Mapping[str, Any]) -> bool:
    """Whether an object is the first event of a run."""
    return value.get("type") == "init" and isinstance(value.get("session_id"), str) and "model" in value


def is_event(value: Mapping[str, Any]) -> bool:
    """Whether an object is an event that only this output has."""
    if value.get("type") == "tool_use":
        return "tool_name" in value and "tool_id" in value
    return is_start(value) or (value.get("type") == "tool_result" and "tool_id" in value)


def read(source: Source) -> tuple[Transcript, ...]:
    """The runs of a file, one after another; each begins with an `init` event."""
    runs = [_Run()]
    for record in source.records:
        value = record.value
        if not isinstance(value, dict):
            runs[-1].notes.append(not_an_object(record.line, record.byte, value))
            continue
        if is_start(value) and runs[-1].start and runs[-1].start.get("session_id") != value["session_id"]:
            runs.append(_Run())
            runs[-1].foreign, runs[-2].foreign = runs[-2].foreign, []
        runs[-1].add(value, record)
    return tuple(run.transcript(source) for run in runs)


@dataclass
class _Run:
    log: GeminiLog = field(default_factory=lambda: GeminiLog(ThreadBuilder(id="")))
    start: dict[str, Any] = field(default_factory=dict)
    end: dict[str, Any] = field(default_factory=dict)
    notes: list[ReadNote] = field(default_factory=list)
    odd: OddTypes = field(default_factory=lambda: OddTypes("event type"))
    foreign: list[Record] = field(default_factory=list)
    """Records that no Gemini CLI wrote, since the last that it did."""
    strangers: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    count: int = 0
    said: list[Block] = field(default_factory=list)
    """Blocks of the response that is still coming."""
    first: Record | None = None
    """The record with which that response began."""

    def add(self, value: dict[str, Any], record: Record) -> None:
        kind = str(value.get("type"))
        if kind == "message" and "timestamp" not in value and "delta" not in value:
            self.foreign.append(record)
            return
        self._own_up()
        if kind in _ENDS and not (kind == "message" and value.get("role") == "assistant"):
            self._respond()
        if handler := _EVENTS.get(kind):
            handler(self, value, record)
        else:
            self.odd.add(kind, record.line, record.byte)

    def _own_up(self) -> None:
        """Foreign records before an event of this run belong to it."""
        self.strangers += len(self.foreign)
        for record in self.foreign:
            self.notes.append(ReadNote(code="foreign-line", line=record.line, byte=record.byte, text=(
                "a message without a timestamp, not written by Gemini CLI; kept out of the log")))
        self.foreign = []

    def init(self, value: dict[str, Any], record: Record) -> None:
        self.start = self.start or value
        self.log.model = str(value["model"]) if isinstance(value.get("model"), str) else self.log.model

    def message(self, value: dict[str, Any], record: Record) -> None:
        content = value.get("content")
        text = content if isinstance(content, str) else json_text(content or "")
        self.count += 1
        if value.get("role") == "assistant":
            self._say(Text(text=text), record)
        else:
            self.log.user(text, time=seconds(value.get("timestamp")), line=record.line)

    def _say(self, block: Block, record: Record) -> None:
        """One more piece of the response; pieces of text are joined."""
        self.first = self.first or record
        last = self.said[-1] if self.said else None
        if isinstance(last, Text) and isinstance(block, Text):
            self.said[-1] = Text(text=last.text + block.text)
        else:
            self.said.append(block)

    def tool_use(self, value: dict[str, Any], record: Record) -> None:
        told = {"id": value.get("tool_id"), "name": value.get("tool_name"), "args": value.get("parameters")}
        self._say(self.log.called(told), record)

    def _respond(self) -> None:
        if self.first is not None:
            self.log.respond(self.said, time=seconds(self.first.value.get("timestamp")), line=self.first.line)
        self.said, self.first = [], None

    def tool_result(self, value: dict[str, Any], record: Record) -> None:
        told = value.get("error")
        output = value.get("output")
        if output is None and isinstance(told, dict):
            output = told.get("message")
        call_id = self.log.answered({"id": value.get("tool_id")})
        result = ToolResult(call_id=call_id, text="" if output is None else json_text(output),
                            is_error=value.get("status") == "error")
        self.log.thread.add("tool", [result], "tool", time=seconds(value.get("timestamp")), line=record.line,
                            extra=leftover(value, "type", "timestamp", "tool_id", "output", "status"))

    def error(self, value: dict[str, Any], record: Record) -> None:
        self.errors.append(value)

    def result(self, value: dict[str, Any], record: Record) -> None:
        self.end = value

    def transcript(self, source: Source) -> Transcript:
        """The run as a session."""
        self._own_up()
        self._respond()
        native_id = self.start.get("session_id")
        name = native_id if isinstance(native_id, str) else Path(source.path).stem
        self.log.thread.id = name
        stats = self.end.get("stats")
        extra = {"stats": stats} if isinstance(stats, dict) else {}
        if self.errors:
            extra["errors"] = {str(n): error for n, error in enumerate(self.errors)}
        return Transcript(
            format="gemini-cli", session_id=name, path=source.path, main=self.log.thread.build(),
            notes=(*self.notes, *self.log.notes, *self.odd.notes()), model=self.log.model, outcome=self._outcome(),
            message_count=self.count + self.strangers, extra=MappingProxyType(extra))

    def _outcome(self) -> Outcome | None:
        status = self.end.get("status")
        if status is None:
            return None
        told = self.end.get("error")
        reason = told.get("message") if isinstance(told, dict) else None
        return Outcome(value="fail" if status == "error" else "unknown", source="result",
                       detail=str(reason or status))


_EVENTS = {"init": _Run.init, "message": _Run.message, "tool_use": _Run.tool_use, "tool_result": _Run.tool_result,
           "error": _Run.error, "result": _Run.result}
