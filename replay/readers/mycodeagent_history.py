"""The history of a MyCodeAgent session: its messages as log messages, its checkpoints as compactions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from replay.blocks import Block, Reasoning, Text, ToolCall, ToolResult
from replay.readers.call_ids import CallIds
from replay.readers.common import ThreadBuilder, json_text, leftover
from replay.transcript import Message, Opaque, Outcome, RecordedCompaction, Usage

HEADING = "## Archived History Summary"
"""The line that stands above a summary in the system message that carries it."""
MASKED = "***"
"""What the trace writer puts in place of call ids and other sensitive values."""
_GATE = "completion_gate"
_OUTCOMES: Mapping[str, Any] = {
    "completed": "pass", "completed_unverified": "partial", "completion_gate_blocked": "fail", "max_steps": "fail",
    "token_budget": "fail", "model_error": "fail", "empty_response_failed": "fail",
    "tool_error_unrecoverable": "fail", "user_abort": "unknown", "interrupted": "unknown",
}


@dataclass
class History:
    """Builds the log of one session and keeps what the pairing of calls and the checkpoints need."""

    thread: ThreadBuilder
    ids: CallIds = field(default_factory=CallIds)
    recorded: list[int] = field(default_factory=list)
    """Log indices of the messages that the file itself holds."""
    open_calls: dict[str, ToolCall] = field(default_factory=dict)
    """Calls of the latest assistant message that have no result yet, by log id."""

    def add(self, role: str, content: Any, metadata: Mapping[str, Any], run: str, failed: bool = False,
            usage: Usage | None = None, **more: Any) -> bool:
        """Append a recorded message; False for a role that the history never holds."""
        extra = dict(metadata)
        for key in _MODELLED.get(role, ()):
            extra.pop(key, None)
        more["extra"] = MappingProxyType({**more.pop("extra", {}), **extra})
        position = len(self.thread.messages)
        if role == "assistant":
            self._assistant(content, metadata, run, usage, more)
        elif role == "tool":
            self._tool(content, metadata, run, failed, more)
        elif role == "user":
            self._user(content, metadata, more)
        elif role == "summary":
            self.thread.add("system", (_summary_text(content),), "summary", detail="summary", **more)
        else:
            return False
        self.recorded.append(position)
        return True

    def recovered(self, call: ToolCall, text: str, **more: Any) -> None:
        """Append the observation that a resume puts in for a call that was interrupted."""
        block = ToolResult(call_id=call.id, text=text, name=call.name, is_error=is_failure(text))
        self.thread.add("tool", (block,), "tool", detail="recovered", extra=MappingProxyType({"recovered": True}),
                        **more)
        self.open_calls.pop(call.id, None)

    def checkpoint(self, payload: Mapping[str, Any], line: int | None, **more: Any) -> None:
        """Record a compaction: the summary, then the log from the retained message on."""
        position = len(self.thread.messages)
        summary = payload.get("summary")
        head = Message(index=-1, role="system", blocks=(_head(summary, payload),), origin="summary", line=line)
        self.thread.compactions.append(RecordedCompaction(
            position=position, kind="full", window=(head, *range(self._retained(payload, position), position)),
            summary=summary if isinstance(summary, str) else None, summary_readable=bool(summary), line=line,
            extra=leftover(payload, "summary"), **more))

    def _assistant(self, content: Any, metadata: Mapping[str, Any], run: str, usage: Usage | None,
                   more: dict[str, Any]) -> None:
        calls = [self._call(native, run) for native in native_calls(metadata)]
        blocks: list[Block] = []
        if reasoning := metadata.get("reasoning_content"):
            blocks.append(Reasoning(text=plain(reasoning)))
        self.thread.respond((*blocks, *texts(content), *calls), usage, **more)
        self.open_calls = {call.id: call for call in calls if call.id}

    def _call(self, native: Mapping[str, Any], run: str) -> ToolCall:
        arguments, name = native.get("arguments") or {}, plain(native.get("name")) or "unknown_tool"
        return ToolCall(id=self.ids.call(plain(native.get("id")), run), name=name, arguments=json_text(arguments),
                        is_object=not isinstance(arguments, str))

    def _tool(self, content: Any, metadata: Mapping[str, Any], run: str, failed: bool, more: dict[str, Any]) -> None:
        text, native = plain(content), plain(metadata.get("tool_call_id"))
        call_id = next(iter(self.open_calls), "") if native == MASKED else self.ids.result(native, run)
        self.open_calls.pop(call_id, None)
        name = metadata.get("tool_name")
        block = ToolResult(call_id=call_id, text=text, name=name if isinstance(name, str) else None,
                           is_error=failed or is_failure(text))
        self.thread.add("tool", (block,), "tool", **more)

    def _user(self, content: Any, metadata: Mapping[str, Any], more: dict[str, Any]) -> None:
        if metadata.get("source") == _GATE:
            self.thread.add("user", texts(content), "nudge", detail=_GATE, **more)
        else:
            self.thread.add("user", texts(content), "human", **more)

    def _retained(self, payload: Mapping[str, Any], position: int) -> int:
        """The log index of the first kept message.

        The harness counts its own history. That is the log itself, or (with messages of an earlier file,
        or after a lost line) the log with something before it, or only the messages that the file holds.
        """
        start, source = _index(payload.get("retain_start_idx")), _index(payload.get("source_message_count"))
        if source >= position:
            return min(max(start - (source - position), 0), position)
        return self.recorded[start] if start < len(self.recorded) else position


_MODELLED: Mapping[str, tuple[str, ...]] = {
    "assistant": ("tool_calls", "reasoning_content"), "tool": ("tool_call_id", "tool_name"),
}


def native_calls(metadata: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The calls of an assistant message; the older form holds one call in the metadata itself."""
    calls = metadata.get("tool_calls")
    if isinstance(calls, list) and calls:
        return [call for call in calls if isinstance(call, dict)]
    if metadata.get("action_type") == "tool_call" and metadata.get("tool_name") and metadata.get("tool_call_id"):
        return [{"id": metadata["tool_call_id"], "name": metadata["tool_name"],
                 "arguments": metadata.get("tool_args")}]
    return []


def plain(value: Any) -> str:
    """Text as it stands; empty for nothing; JSON for anything else."""
    return value if isinstance(value, str) else "" if value is None else json_text(value)


def texts(content: Any) -> tuple[Text, ...]:
    """The text block of a message's content; none where it is empty."""
    text = plain(content)
    return (Text(text=text),) if text else ()


def is_failure(envelope: str) -> bool:
    """Whether a tool observation says at its head that the tool failed."""
    return "".join(envelope[:40].split()).startswith('{"status":"error"')


def outcome(reason: Any, run: str, line: int | None) -> Outcome:
    """The outcome that a terminal event stands for."""
    where = f"terminal event of run {run}" if run else "terminal event"
    return Outcome(value=_OUTCOMES.get(plain(reason), "unknown"), source=f"{where}, line {line}" if line else where,
                   detail=plain(reason) or None)


def mapping(value: Any) -> Mapping[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def _summary_text(content: Any) -> Text:
    return Text(text=f"{HEADING}\n{plain(content)}")


def _head(summary: Any, payload: Mapping[str, Any]) -> Text | Opaque:
    if summary is None and payload.get("summary_len"):
        return Opaque(label="summary", size_bytes=_index(payload["summary_len"]))
    return _summary_text(summary)


def _index(value: Any) -> int:
    return max(int(value), 0) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0
