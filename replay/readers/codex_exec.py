"""Streams that `codex exec --json` prints: items without requests, and one usage a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from replay.blocks import Block, Reasoning, Text, ToolCall, ToolResult
from replay.readers.codex_records import type_of
from replay.readers.codex_usage import TokenCounts, numbers
from replay.readers.common import ThreadBuilder, json_text, leftover, not_an_object
from replay.readers.odd_types import OddTypes
from replay.readers.source import Record, Source
from replay.transcript import NOTHING, Outcome, ReadNote, Step, Transcript

_TYPES = frozenset({"thread.started", "turn.started", "turn.completed", "turn.failed", "item.started",
                    "item.updated", "item.completed", "error"})
_TOOLS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "command_execution": ("shell", "aggregated_output", ("command",)),
    "file_change": ("apply_patch", "status", ("changes",)),
    "mcp_tool_call": ("mcp", "result", ("server", "tool", "arguments")),
    "web_search": ("web_search", "", ("query", "action")),
    "collab_tool_call": ("collab", "status", ("tool", "prompt", "receiver_thread_ids")),
    "todo_list": ("update_plan", "", ("items",)),
}
"""For each item type of a tool: the tool's name, the field of its result, the fields of its arguments."""


def is_stream(objects: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the objects are events of an exec stream."""
    return any(o.get("type") in ("thread.started", "turn.started", "turn.completed", "turn.failed")
               or (o.get("type") == "item.completed" and isinstance(o.get("item"), dict)) for o in objects)


def transcript(source: Source) -> Transcript:
    """The session of a stream. Its prompt is not in it, and its usage is known by the turn only."""
    stream = _Stream(ThreadBuilder(id=Path(source.path).stem))
    for record in source.records:
        if isinstance(record.value, dict):
            stream.take(record, record.value)
        else:
            stream.notes.append(not_an_object(record.line, record.byte, record.value))
    stream.close()
    extra = {"unknown_records": tuple(stream.unknown)} if stream.unknown else NOTHING
    return Transcript(
        format="codex", session_id=stream.thread.id, path=source.path, main=stream.thread.build(),
        notes=(*stream.notes, *stream.odd.notes()), outcome=stream.outcome, message_count=stream.messages, extra=extra)


@dataclass
class _Stream:
    """Builds the thread of a stream event by event."""

    thread: ThreadBuilder
    tokens: TokenCounts = field(default_factory=TokenCounts)
    blocks: list[Block] = field(default_factory=list)
    line: int | None = None
    messages: int = 0
    turn_start: int = 0
    """Number of steps when the turn began."""
    outcome: Outcome | None = None
    notes: list[ReadNote] = field(default_factory=list)
    odd: OddTypes = field(default_factory=OddTypes)
    unknown: list[dict[str, Any]] = field(default_factory=list)

    def take(self, record: Record, event: dict[str, Any]) -> None:
        """Take in one event."""
        kind = type_of(event)
        if kind == "item.completed" and isinstance(event.get("item"), dict):
            self._item(record, event["item"])
        elif kind == "thread.started" and isinstance(event.get("thread_id"), str):
            self.thread.id = event["thread_id"]
        elif kind == "turn.completed":
            self._turn_completed(record, event.get("usage"))
        elif kind in ("turn.failed", "error"):
            self._failed(event)
        elif kind not in _TYPES:
            self.odd.add(event.get("type"), record.line, record.byte)
            self.unknown.append(event)

    def _item(self, record: Record, item: dict[str, Any]) -> None:
        kind, text = type_of(item), item.get("text")
        if kind in _TOOLS:
            self._tool(record.line, item)
        elif kind in ("agent_message", "assistant_message") and isinstance(text, str):
            self._say(Text(text=text), record.line)
            self.messages += 1
        elif kind == "reasoning" and isinstance(text, str):
            self._say(Reasoning(text=text), record.line)
        elif kind != "error":
            self.odd.add(f"item.completed/{kind}", record.line, record.byte)
            self.unknown.append(item)

    def _say(self, block: Block, line: int) -> None:
        self.blocks.append(block)
        self.line = self.line or line

    def _tool(self, line: int, item: dict[str, Any]) -> None:
        name, output, arguments = _TOOLS[str(item["type"])]
        call_id = str(item.get("id") or f"item:{line}")
        used = {key: item[key] for key in arguments if key in item}
        self._say(ToolCall(id=call_id, name=_tool_name(item, name), arguments=json_text(used)), line)
        self.close()
        if not output:
            return
        value = item.get(output)
        failed = item.get("exit_code") not in (None, 0) or item.get("status") == "failed" or bool(item.get("error"))
        text = json_text(item["error"] if value is None and item.get("error") else "" if value is None else value)
        self.thread.add("tool", [ToolResult(call_id=call_id, text=text, name=_tool_name(item, name), is_error=failed)],
                        "tool", line=line, extra=leftover(item, "id", "type", output, *arguments))

    def close(self) -> None:
        """End the open response."""
        if self.blocks:
            self.thread.respond(self.blocks, line=self.line)
            self.blocks, self.line = [], None

    def _turn_completed(self, record: Record, native: Any) -> None:
        """The usage is a running total of the thread; what a turn added goes to the turn's last response."""
        self.close()
        usage = self.tokens.count(None, numbers(native))
        steps = self.thread.steps
        if usage is not None and len(steps) == self.turn_start:
            steps.append(Step(number=len(steps) + 1, start=len(self.thread.messages), response=None, usage=usage))
        elif usage is not None:
            steps[-1] = replace(steps[-1], usage=usage)
            if len(steps) - self.turn_start > 1:
                self.notes.append(ReadNote(code="usage-per-turn", line=record.line, byte=record.byte, text=(
                    f"one usage for {len(steps) - self.turn_start} responses; it was given to the last")))
        self.turn_start = len(steps)
        last = next((m.text for m in reversed(self.thread.messages) if m.role == "assistant" and m.text), None)
        self.outcome = Outcome(value="unknown", source="turn.completed", detail=last)

    def _failed(self, event: dict[str, Any]) -> None:
        self.close()
        error = event.get("error")
        reason = error.get("message") if isinstance(error, dict) else event.get("message")
        if event.get("type") == "turn.failed":
            self.thread.fail(str(reason or "turn failed"))
            self.turn_start = len(self.thread.steps)
        self.outcome = Outcome(value="fail", source=str(event.get("type")), detail=str(reason or ""))


def _tool_name(item: Mapping[str, Any], name: str) -> str:
    server, tool = item.get("server"), item.get("tool")
    if isinstance(server, str) and isinstance(tool, str):
        return f"{server}__{tool}"
    return name
