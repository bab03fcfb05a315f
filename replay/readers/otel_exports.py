"""Traces and spans as Opik and Langfuse export them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from replay.readers.common import json_text, seconds
from replay.readers.otel_spans import Gathering, Kind, Span
from replay.readers.otel_usage import counts_of
from replay.readers.otel_values import decoded

_OPIK: Mapping[str, Kind] = {"llm": "llm", "tool": "tool", "general": "other", "guardrail": "other"}
_LANGFUSE: Mapping[str, Kind] = {
    "GENERATION": "llm", "TOOL": "tool", "AGENT": "agent", "SPAN": "other", "EVENT": "other", "CHAIN": "other",
    "RETRIEVER": "other", "EMBEDDING": "other", "EVALUATOR": "other", "GUARDRAIL": "other"}


def is_opik(value: Mapping[str, Any]) -> bool:
    """Whether an object is an Opik trace or span."""
    if "trace_id" in value and ("parent_span_id" in value or "type" in value) and "start_time" in value:
        return True
    return "start_time" in value and "id" in value and ("thread_id" in value or "feedback_scores" in value or (
        "input" in value and "output" in value)) and "spanId" not in value


def is_langfuse(value: Mapping[str, Any]) -> bool:
    """Whether an object is a Langfuse trace with its observations, or one observation."""
    if isinstance(value.get("observations"), list):
        return True
    return "traceId" in value and value.get("type") in _LANGFUSE and "startTime" in value


DEEPEST_LIST = 20
"""Lists in lists beyond this are no export of anything; following them would end in an overflow."""


def inner_values(value: Any, depth: int = 0) -> Iterator[Any]:
    """The traces and spans in lists, in pages, and in objects that hold lists of both."""
    pages = ("content", "data", "traces", "spans")
    if isinstance(value, list) and depth < DEEPEST_LIST:
        for item in value:
            yield from inner_values(item, depth + 1)
    elif isinstance(value, dict) and depth < 4 and "id" not in value and any(
            isinstance(value.get(key), list) for key in pages):
        for key in pages:
            if isinstance(value.get(key), list):
                yield from inner_values(value[key], depth + 1)
    else:
        yield value


def add_opik(spans: Gathering, native: Mapping[str, Any], line: int | None) -> None:
    """Take in an Opik trace or span."""
    spans.sources.add("opik")
    is_span = "trace_id" in native
    own = _text(native.get("id")) or ""
    trace = _text(native.get("trace_id")) if is_span else own
    kind: Kind = _OPIK.get(str(native.get("type")), "other") if is_span else "agent"
    if is_span and native.get("type") not in (None, *_OPIK):
        spans.odd.add(native.get("type"), line or 0, 0)
    usage = native.get("usage")
    metadata = native.get("metadata") if isinstance(native.get("metadata"), dict) else {}
    is_llm = kind == "llm"
    spans.add(Span(
        id=own if is_span else f"trace {own}", trace=trace or own, name=_text(native.get("name")) or "", kind=kind,
        parent=(_text(native.get("parent_span_id")) or f"trace {trace}") if is_span else None,
        order=len(spans.found), is_trace=not is_span,
        start=seconds(native.get("start_time")), end=seconds(native.get("end_time")),
        thread=_text(native.get("thread_id")), agent=None,
        prompt=spans.turns.of(native.get("input")) if is_llm or not is_span else None,
        answer=spans.turns.of(native.get("output"), "assistant") if is_llm or not is_span else None,
        counts=counts_of(usage) if isinstance(usage, dict) else None, model=_text(native.get("model")),
        error=_opik_error(native.get("error_info")), result=_told(native.get("output")) if kind == "tool" else None,
        call_id=_text((metadata or {}).get("tool_call_id")), line=line))


def _opik_error(told: Any) -> str | None:
    if not isinstance(told, dict):
        return None
    return str(told.get("message") or told.get("exception_type") or "error")


def add_langfuse(spans: Gathering, native: Mapping[str, Any], line: int | None) -> None:
    """Take in a Langfuse trace with its observations, or one observation."""
    spans.sources.add("langfuse")
    if not isinstance(native.get("observations"), list):
        _observation(spans, native, None, None, line)
        return
    inner = native.get("trace")
    trace: Mapping[str, Any] = inner if isinstance(inner, dict) else native
    own = _text(trace.get("id")) or ""
    thread = _text(trace.get("sessionId"))
    spans.add(Span(
        id=f"trace {own}", parent=None, trace=own, name=_text(trace.get("name")) or "", kind="agent",
        order=len(spans.found), is_trace=True, start=seconds(trace.get("timestamp")), thread=thread,
        prompt=spans.turns.of(trace.get("input")), answer=spans.turns.of(trace.get("output"), "assistant"), line=line))
    for observation in native["observations"]:
        if isinstance(observation, dict):
            _observation(spans, observation, own, thread, line)


def _observation(spans: Gathering, native: Mapping[str, Any], trace: str | None, thread: str | None,
                 line: int | None) -> None:
    name = str(native.get("type"))
    if name not in _LANGFUSE:
        spans.odd.add(name, line or 0, 0)
    kind = _LANGFUSE.get(name, "other")
    trace = _text(native.get("traceId")) or trace or ""
    usage = native.get("usageDetails") or native.get("usage")
    failed = native.get("level") == "ERROR"
    metadata = decoded(native.get("metadata"))
    spans.add(Span(
        id=_text(native.get("id")) or "", trace=trace, name=_text(native.get("name")) or "", kind=kind,
        parent=_text(native.get("parentObservationId")) or f"trace {trace}", order=len(spans.found),
        start=seconds(native.get("startTime")), end=seconds(native.get("endTime")),
        thread=thread or _text(native.get("sessionId")),
        agent=_text(native.get("name")) if kind == "agent" else None,
        prompt=spans.turns.of(native.get("input")) if kind == "llm" else None,
        answer=spans.turns.of(native.get("output"), "assistant") if kind == "llm" else None,
        counts=counts_of(usage) if isinstance(usage, dict) and kind == "llm" else None,
        model=_text(native.get("model")), error=str(native.get("statusMessage") or "error") if failed else None,
        result=_told(native.get("output")) if kind == "tool" else None,
        call_id=_text(metadata.get("tool_call_id")) if isinstance(metadata, dict) else None, line=line))


def _told(output: Any) -> str | None:
    """What a tool gave back; Opik wraps plain text in an object."""
    value = decoded(output)
    if isinstance(value, dict) and len(value) == 1 and isinstance(inner := next(iter(value.values())), str):
        return inner
    return None if value is None else json_text(value)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
