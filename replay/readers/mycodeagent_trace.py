"""MyCodeAgent traces: the diagnostic events of a session.

Newer traces write every message (`message_written`), so the log is read from those and the model outputs only
lend their usage. Older ones and the archived demos do not: there the log is derived from the user's input, the model's
outputs, the tool events and the feedback of the completion gate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from replay.readers.common import ThreadBuilder, not_an_object, seconds, whole
from replay.readers.mycodeagent_history import HEADING, History, mapping, outcome, plain
from replay.readers.mycodeagent_tools import ToolBatch
from replay.readers.odd_types import OddTypes
from replay.readers.openai_chat_usage import usage_of
from replay.readers.source import Record, Source
from replay.transcript import Message, Outcome, ReadNote, RecordedCompaction, Text, Thread, Transcript

FORMAT = "mycodeagent"
_WRITTEN = frozenset({"message_written", "transcript_message"})
_QUIET = frozenset({
    "prompt_assembly", "tool_schema", "context_compaction_skipped", "model_view_build", "context_build", "run_start",
    "run_end", "state_transition", "completion_candidate", "completion_requirements", "verification_evidence",
    "finish", "permission_decision", "tool_orchestration_plan", "tool_batch_start", "tool_batch_end",
    "tool_result_budget_start", "tool_result_budget_item", "tool_result_budget_end", "model_recovery_attempted",
    "model_recovery_failed", "empty_response_retry", "error", "long_term_memory_snapshot_injected",
})
"""Events that say how the harness works, not what the model saw or said."""


def read_traces(source: Source) -> tuple[Transcript, ...]:
    """Every session of a trace file, in the order of first sight."""
    notes: list[ReadNote] = []
    sessions: dict[str, list[Record]] = {}
    rows = _rows(source, notes)
    name = next(filter(None, (plain(row.value.get("session_id")) for row in rows)), Path(source.path).stem)
    for record in rows:
        name = plain(record.value.get("session_id")) or name
        sessions.setdefault(name, []).append(record)
    read = [TraceReader(name).read(records, source.path) for name, records in sessions.items()]
    return (read[0].with_notes(*notes), *read[1:]) if read else ()


def _rows(source: Source, notes: list[ReadNote]) -> list[Record]:
    found: list[Record] = []
    for record in source.records:
        for value in record.value if isinstance(record.value, list) else [record.value]:
            if isinstance(value, dict):
                found.append(record._replace(value=value))
            else:
                notes.append(not_an_object(record.line, record.byte, value))
    return found


def summary_of(message: Mapping[str, Any]) -> str | None:
    """The summary that a system message of a view carries; None for any other message."""
    content = plain(message.get("content"))
    is_summary = message.get("role") == "system" and content.startswith(HEADING)
    return content[len(HEADING):].lstrip("\n") if is_summary else None


@dataclass
class TraceReader:
    """Reads the trace events of one session."""

    name: str
    place: bool = True
    """Whether the records' line numbers mean something."""
    notes: list[ReadNote] = field(default_factory=list)
    odd: OddTypes = field(default_factory=lambda: OddTypes("trace event"))
    extra: dict[str, Any] = field(default_factory=dict)
    children: dict[str, Thread] = field(default_factory=dict)
    outcome: Outcome | None = None
    system_prompt: str | None = None
    run: str = ""
    written: bool = False
    """The trace holds the messages themselves."""
    counted: int = 0
    output: Mapping[str, Any] | None = None
    """A model output whose message is still to come."""
    estimate: int | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        self.history = History(ThreadBuilder(id=self.name))
        self.tools = ToolBatch(self.history)

    def read(self, records: list[Record], path: str) -> Transcript:
        """The session as a transcript."""
        names = {plain(record.value.get("event")) for record in records}
        self.written = bool(names & _WRITTEN)
        self.tools.from_lifecycle = not names & {"tool_call", "message_written"}
        for record in records:
            self._event(record)
        self._settle()
        return Transcript(
            format=FORMAT, session_id=self.name, path=path, main=self.history.thread.build(),
            subagents=tuple(self.children.values()), notes=tuple(self.notes + self.odd.notes()), model=self.model,
            system_prompt=self.system_prompt, outcome=self.outcome, message_count=self.counted,
            extra=MappingProxyType(self.extra))

    def _event(self, record: Record) -> None:
        event, payload, line = record.value, record.value.get("payload"), record.line if self.place else None
        kind = plain(event.get("event"))
        handler = _HANDLERS.get(kind)
        if handler is None:
            if kind not in _QUIET and not kind.startswith("history_compression"):
                self.odd.add(kind or "(none)", record.line, record.byte)
        elif not isinstance(payload, dict):
            self.notes.append(ReadNote(code="bad-payload", text=f"a {kind} event without a payload object; kept out",
                                       line=record.line, byte=record.byte))
        else:
            handler(self, payload, {"time": seconds(event.get("ts")), "line": line,
                                    "extra": {"step": event.get("step")}})

    def _settle(self) -> None:
        """Close what waits: tool calls without a message, and a model output that left no message."""
        self.tools.flush(self.run)
        if self.output is not None:
            usage = usage_of(self.output.get("usage"), self.output.get("raw_response"))
            self.history.thread.fail(_why(self.output), usage)
            self.output = None

    def _system(self, payload: Mapping[str, Any], more: dict[str, Any]) -> None:
        rows = payload.get("messages")
        parts = [plain(mapping(m).get("content")) for m in rows] if isinstance(rows, list) else []
        self.system_prompt = "\n\n".join(parts) or self.system_prompt

    def _run(self, payload: Mapping[str, Any], more: dict[str, Any]) -> None:
        self._settle()
        self.run = f"run-{payload.get('run_id')}"

    def _input(self, payload: Mapping[str, Any], more: dict[str, Any]) -> None:
        if not self.written:
            self._settle()
            self._add("user", payload.get("processed") or payload.get("text"), {}, more)
            self.counted += 1

    def _add(self, role: str, content: Any, metadata: Mapping[str, Any], more: dict[str, Any], **extra: Any) -> bool:
        return self.history.add(role, content, metadata, self.run, **more, **extra)

    def _message(self, payload: Mapping[str, Any], more: dict[str, Any]) -> None:
        role, metadata = plain(payload.get("role")), mapping(payload.get("metadata"))
        if role == "assistant":
            metadata, extra = self._with_output(metadata)
            known = self._add(role, payload.get("content"), metadata, more, **extra)
        else:
            self._settle()
            known = self._add(role, payload.get("content"), metadata, more)
        if known:
            self.counted += 1
        else:
            self.odd.add(f"message of role {role}", more["line"] or 1, 0)

    def _with_output(self, metadata: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """What the model output of this message adds to it: usage, model, reasoning."""
        output, self.output = self.output, None
        if output is None:
            return metadata, {}
        raw = mapping(output.get("raw_response"))
        self.model = plain(raw.get("model")) or self.model
        if not metadata.get("reasoning_content") and (thought := _reasoning(raw)):
            metadata = {**metadata, "reasoning_content": thought}
        return metadata, {"usage": usage_of(output.get("usage"), raw), "model": plain(raw.get("model")) or None,
                          "request_id": plain(raw.get("id")) or None}

    def _output(self, payload: Mapping[str, Any], more: dict[str, Any]) -> None:
        self._settle()
        self.output = payload
        if not self.written:
            metadata, extra = self._with_output({"tool_calls": payload.get("tool_calls")})
            self._add("assistant", payload.get("raw"), metadata, more, **extra)
            self.counted += 1

    def _gate(self, payload: Mapping[str, Any], more: dict[str, Any]) -> None:
        feedback = payload.get("blocking_feedback")
        if not self.written and payload.get("verdict") == "fail" and feedback:
            self._settle()
            self._add("user", feedback, {"source": "completion_gate"}, more)

    def _tool(self, payload: Mapping[str, Any], more: dict[str, Any]) -> None:
        if not self.written:
            self.tools.call(payload.get("tool"), payload.get("args"), plain(payload.get("tool_call_id")), more)

    def _result(self, payload: Mapping[str, Any], more: dict[str, Any]) -> None:
        if not self.written:
            self.tools.result(payload.get("tool"), payload.get("result"), more)

    def _lifecycle(self, payload: Mapping[str, Any], more: dict[str, Any]) -> None:
        self.tools.lifecycle({**payload, **mapping(payload.get("payload"))}, more)

    def _error(self, payload: Mapping[str, Any], more: dict[str, Any]) -> None:
        if payload.get("stage") == "model_invoke":
            self._settle()
            self.history.thread.fail(plain(payload.get("kind")) or "model error", time=more["time"])

    def _decision(self, payload: Mapping[str, Any], more: dict[str, Any]) -> None:
        tokens = payload.get("estimated_tokens")
        self.estimate = whole(tokens) or None if payload.get("should_compact") else None

    def _compacted(self, payload: Mapping[str, Any], more: dict[str, Any]) -> None:
        self._settle()
        body = {**payload, "source_message_count": payload.get("messages_before")}
        self.history.checkpoint(body, more["line"], trigger="auto", counter_before=self.estimate)
        self.estimate = None

    def _checkpoint(self, payload: Mapping[str, Any], more: dict[str, Any]) -> None:
        """The checkpoint event brings the text of the compaction that was announced just before it."""
        body = {**mapping(payload.get("payload")), "checkpoint_id": payload.get("checkpoint_id")}
        if "summary" not in body:
            return
        made, before = self.history.thread.compactions, None
        if made and made[-1].extra.get("checkpoint_id") == body["checkpoint_id"]:
            before = made.pop().counter_before
        self.history.checkpoint(body, more["line"], trigger="auto", counter_before=before)

    def _final_context(self, payload: Mapping[str, Any], more: dict[str, Any]) -> None:
        made, rows = self.history.thread.compactions, payload.get("messages")
        summaries = [summary_of(mapping(m)) for m in rows] if isinstance(rows, list) else []
        text = next(filter(None, summaries), None)
        if made and text and not made[-1].summary_readable:
            made[-1] = _with_summary(made[-1], text)

    def _terminal(self, payload: Mapping[str, Any], more: dict[str, Any]) -> None:
        self._settle()
        self.extra.setdefault("terminals", {})[self.run] = payload.get("reason")
        self.outcome = outcome(payload.get("reason"), self.run, more["line"])

    def _child(self, payload: Mapping[str, Any], more: dict[str, Any]) -> None:
        name = plain(payload.get("child_session_id"))
        self.children[name] = Thread(id=name)
        self.extra.setdefault("subagents", {})[name] = dict(payload)

    def _summary(self, payload: Mapping[str, Any], more: dict[str, Any]) -> None:
        self.extra["session_summary"] = dict(payload)


_Handler = Callable[[TraceReader, dict[str, Any], dict[str, Any]], None]
_HANDLERS: Mapping[str, _Handler] = {
    "system_messages": TraceReader._system, "run_start": TraceReader._run, "user_input": TraceReader._input,
    "message_written": TraceReader._message, "transcript_message": TraceReader._message,
    "model_output": TraceReader._output, "completion_gate_verdict": TraceReader._gate,
    "tool_call": TraceReader._tool, "tool_result": TraceReader._result, "tool_lifecycle": TraceReader._lifecycle,
    "transcript_tool_lifecycle": TraceReader._lifecycle, "model_error_classified": TraceReader._error,
    "context_compaction_decision": TraceReader._decision, "context_compaction_completed": TraceReader._compacted,
    "checkpoint": TraceReader._checkpoint, "history_compression_final_context": TraceReader._final_context,
    "terminal": TraceReader._terminal, "subagent_requested": TraceReader._child, "subagent_started": TraceReader._child,
    "subagent_completed": TraceReader._child, "subagent_failed": TraceReader._child,
    "session_summary": TraceReader._summary,
}


def _with_summary(made: RecordedCompaction, text: str) -> RecordedCompaction:
    head = Message(index=-1, role="system", blocks=(Text(text=f"{HEADING}\n{text}"),), origin="summary", line=made.line)
    return replace(made, window=(head, *made.window[1:]), summary=text, summary_readable=True)


def _why(output: Mapping[str, Any]) -> str:
    reason = mapping(output.get("meta")).get("finish_reason")
    return f"the response left no message (finish reason {reason})" if reason else "the response left no message"


def _reasoning(raw: Mapping[str, Any]) -> str:
    choices = raw.get("choices")
    first = mapping(choices[0]) if isinstance(choices, list) and choices else {}
    message = mapping(first.get("message"))
    return plain(message.get("reasoning_content") or message.get("reasoning"))
