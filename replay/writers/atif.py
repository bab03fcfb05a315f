"""A session as an ATIF trajectory, version 1.7."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from replay.blocks import Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from replay.transcript import Message, RecordedCompaction, Step, Thread, Transcript, Usage
from replay.view import plain_text

SCHEMA = "ATIF-v1.7"


def trajectory(transcript: Transcript) -> dict[str, Any]:
    """One document. Sub-agents are embedded; abandoned branches only count in `final_metrics`."""
    agents = {thread.id: thread for thread in transcript.subagents}
    names: dict[str, list[str]] = {}
    for thread in agents.values():
        if thread.parent_call is not None:
            names.setdefault(thread.parent_call, []).append(thread.id)
    document = {"schema_version": SCHEMA, "session_id": transcript.session_id, "agent": _agent(transcript),
                "steps": _steps(transcript.main, names, transcript.system_prompt)}
    if agents:
        document["subagent_trajectories"] = [
            {"schema_version": SCHEMA, "trajectory_id": name, "agent": _agent(transcript), "steps": _steps(thread, {})}
            for name, thread in agents.items()]
    return document | {"final_metrics": _totals(transcript), "extra": {"converted_by": f"rewindow {_version()}"}}


def trajectory_losses(transcript: Transcript) -> list[str]:
    """What a session holds that a trajectory cannot say."""
    main = transcript.main
    kept = sum(any(isinstance(part, int) for part in c.window) for c in main.compactions)
    return [f"{count} {what}" for count, what in (
        (len(transcript.abandoned), "abandoned branches"), (kept, "compactions' lists of kept messages"),
        (sum(c.kind != "full" for c in main.compactions), "blankings of old results and emptied windows"),
        (sum(s.response is None for s in main.steps), "failed requests")) if count]


def _agent(transcript: Transcript) -> dict[str, Any]:
    known = {"name": transcript.format, "version": transcript.harness_version or "unknown",
             "model_name": transcript.model}
    return {key: value for key, value in known.items() if value is not None}


def _version() -> str:
    try:
        return version("rewindow")
    except PackageNotFoundError:
        return "0"


def _totals(transcript: Transcript) -> dict[str, Any]:
    total = transcript.usage
    bill = total + total.side if total.side else total
    return {"total_prompt_tokens": bill.input_total, "total_completion_tokens": bill.output,
            "total_cached_tokens": bill.cache_read}


@dataclass
class _Writing:
    """The steps written so far."""

    steps: list[dict[str, Any]] = field(default_factory=list)
    callers: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The agent step that made each call."""

    def add(self, source: str, text: str, time: float | None, **more: Any) -> dict[str, Any]:
        """Append a step."""
        stamp = {} if time is None else {"timestamp": _stamp(time)}
        step = {"step_id": len(self.steps) + 1, **stamp, "source": source, "message": text, **more}
        self.steps.append(step)
        return step


def _stamp(time: float) -> str:
    try:
        return datetime.fromtimestamp(time, UTC).isoformat().replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC).isoformat().replace("+00:00", "Z")


def _steps(thread: Thread, agents: Mapping[str, Sequence[str]], prompt: str | None = None) -> list[dict[str, Any]]:
    writing = _Writing()
    if prompt:
        writing.add("system", prompt, None)
    calls = {step.response: step for step in thread.steps if step.response is not None}
    pending = [c for c in thread.compactions if c.kind == "full"]
    for message in thread.messages:
        while pending and pending[0].position <= message.index:
            _compaction(writing, pending.pop(0))
        _message(writing, message, calls.get(message.index), agents)
    for compaction in pending:
        _compaction(writing, compaction)
    return writing.steps


def _message(writing: _Writing, message: Message, call: Step | None, agents: Mapping[str, Sequence[str]]) -> None:
    if message.role == "assistant":
        _answer(writing, message, call)
        return
    for result in message.results:
        _result(writing, message, result, agents)
    text = "\n".join(plain_text_of(message))
    if text or not message.results:
        mark = {} if message.origin == "human" else {"extra": {"origin": message.origin, "detail": message.detail}}
        writing.add("system" if message.role in ("system", "developer") else "user", text, message.time, **mark)


def plain_text_of(message: Message) -> list[str]:
    """The text of each block that is no call, no result and no reasoning."""
    return [plain_text(Message(index=-1, role=message.role, origin=message.origin, blocks=(block,)))
            for block in message.blocks if isinstance(block, (Text, Image, Opaque))]


def _answer(writing: _Writing, message: Message, call: Step | None) -> None:
    more: dict[str, Any] = {}
    if call is not None and call.model:
        more["model_name"] = call.model
    if reasoning := "\n".join(b.text for b in message.blocks if isinstance(b, Reasoning) and b.text):
        more["reasoning_content"] = reasoning
    if message.calls:
        more["tool_calls"] = [_call(c) for c in message.calls]
    if call is None:
        more["llm_call_count"] = 0
    elif call.usage is not None:
        more["metrics"] = _metrics(call.usage)
    step = writing.add("agent", "\n".join(plain_text_of(message)), message.time, **more)
    writing.callers.update((c.id, step) for c in message.calls)


def _call(call: ToolCall) -> dict[str, Any]:
    return {"tool_call_id": call.id, "function_name": call.name,
            "arguments": call.mapping if call.is_object else call.arguments}


def _metrics(usage: Usage) -> dict[str, Any]:
    """The counts of a request; passes billed beside it are added, as the format has no place of their own for them."""
    bill = usage + usage.side if usage.side else usage
    written = bill.cache_write_5m + bill.cache_write_1h
    extra: dict[str, Any] = {"cache_creation_input_tokens": written} if written else {}
    if bill.cache_write_1h:
        extra["cache_creation"] = {"ephemeral_1h_input_tokens": bill.cache_write_1h}
    if bill.reasoning:
        extra["reasoning_tokens"] = bill.reasoning
    counts = {"prompt_tokens": bill.input_total, "completion_tokens": bill.output, "cached_tokens": bill.cache_read}
    return counts | ({"extra": extra} if extra else {})


def _result(writing: _Writing, message: Message, result: ToolResult, agents: Mapping[str, Sequence[str]]) -> None:
    """A result stands in the observation of the step that made its call, or in a step of the system's."""
    text = "\n".join([result.text, *plain_text_of(Message(index=-1, role="tool", origin="tool", blocks=result.images))])
    entry: dict[str, Any] = {"content": text}
    step = writing.callers.get(result.call_id)
    if step is None:
        step = writing.add("system", "", message.time)
    else:
        entry = {"source_call_id": result.call_id, **entry}
    if result.is_error:
        entry["extra"] = {"is_error": True}
    if started := agents.get(result.call_id):
        entry["subagent_trajectory_ref"] = [{"trajectory_id": name} for name in started]
    step.setdefault("observation", {"results": []})["results"].append(entry)


def _compaction(writing: _Writing, compaction: RecordedCompaction) -> None:
    """A step that marks the boundary, then the summary as the harness sent it."""
    mark = {"trigger": compaction.trigger, "tokens_before": compaction.counter_before,
            "tokens_after": compaction.counter_after}
    writing.add("system", "", None, extra={"compaction": {k: v for k, v in mark.items() if v is not None}})
    summaries = [part for part in compaction.window if isinstance(part, Message) and part.origin == "summary"]
    if summaries:
        texts = [text for part in summaries for text in plain_text_of(part)]
        writing.add("user", "\n".join(texts), summaries[0].time, extra={"origin": "summary"})
