"""Spans of all sources in one form, and those of OTLP: GenAI, OpenInference, and what came before them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from replay.readers.common import json_text, seconds
from replay.readers.odd_types import OddTypes
from replay.readers.otel_messages import Turn, Turns, instructions
from replay.readers.otel_usage import Counts, counts_of
from replay.readers.otel_values import attributes_of, decoded, spelt_out
from replay.transcript import ReadNote

Kind = Literal["llm", "tool", "agent", "other"]
_OPERATIONS: Mapping[str, Kind] = {
    "chat": "llm", "text_completion": "llm", "completion": "llm", "generate_content": "llm", "responses": "llm",
    "execute_tool": "tool", "invoke_agent": "agent", "create_agent": "other", "invoke_workflow": "agent",
    "embeddings": "other", "llm": "llm", "tool": "tool", "agent": "agent", "workflow": "agent", "chain": "other",
    "task": "other", "embedding": "other", "generation": "llm",
    "ai.generatetext.dogenerate": "llm", "ai.streamtext.dostream": "llm", "ai.generateobject.dogenerate": "llm",
    "ai.streamobject.dostream": "llm", "ai.toolcall": "tool", "ai.generatetext": "agent", "ai.streamtext": "agent"}
_KINDS = ("gen_ai.operation.name", "openinference.span.kind", "traceloop.span.kind", "llm.request.type",
          "ai.operationId", "operation.name")
_THREADS = ("gen_ai.conversation.id", "session.id", "thread.id", "conversation.id", "langfuse.session.id",
            "ai.telemetry.metadata.sessionId", "traceloop.association.properties.session_id")
_MESSAGE_EVENTS: Mapping[str, str] = {
    "gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool"}


@dataclass(frozen=True, kw_only=True)
class Span:
    """One span."""

    id: str
    parent: str | None
    trace: str
    name: str
    kind: Kind
    order: int
    """Its place in the file."""
    is_trace: bool = False
    """It stands for its trace as a whole."""
    start: float | None = None
    end: float | None = None
    thread: str | None = None
    """The conversation that it belongs to, where the file says so."""
    agent: str | None = None
    prompt: tuple[Turn, ...] | None = None
    """What was sent; None where that was not recorded."""
    answer: tuple[Turn, ...] | None = None
    system: str | None = None
    """Instructions that are kept apart from the prompt."""
    counts: Counts | None = None
    model: str | None = None
    request_id: str | None = None
    error: str | None = None
    call_id: str | None = None
    """Of a tool's span: the call that it ran."""
    result: str | None = None
    line: int | None = None


@dataclass
class Gathering:
    """Gathers the spans of a source."""

    found: list[Span] = field(default_factory=list)
    notes: list[ReadNote] = field(default_factory=list)
    turns: Turns = field(default_factory=Turns)
    odd: OddTypes = field(default_factory=lambda: OddTypes("span kind"))
    resource: dict[str, Any] = field(default_factory=dict)
    sources: set[str] = field(default_factory=set)
    """Which of `otlp`, `opik` and `langfuse` the spans came from."""
    seen: set[tuple[str, str]] = field(default_factory=set)

    def add(self, span: Span) -> None:
        """Take in a span; one that was read before is noted."""
        if span.id and (span.trace, span.id) in self.seen:
            self.notes.append(ReadNote(code="duplicate", text=f"span {span.id} is written again; read once",
                                       line=span.line))
            return
        self.seen.add((span.trace, span.id))
        self.found.append(span)

    def otlp(self, document: Mapping[str, Any], line: int | None) -> None:
        """Take in the spans of an OTLP envelope."""
        self.sources.add("otlp")
        for resource, native in _otlp(document):
            for name, value in resource.items():
                self.resource.setdefault(name, value)
            if isinstance(native, dict):
                self.add(self._span(native, resource, line))
            else:
                self.notes.append(ReadNote(code="not-an-object", text="a span that is no object; kept out", line=line))

    def _span(self, native: Mapping[str, Any], resource: Mapping[str, Any], line: int | None) -> Span:
        told = attributes_of(native.get("attributes"))
        events = list(_events(native))
        kind = kind_of(told)
        prompt, answer, system = self._content(told, events, kind)
        return Span(
            id=_text(native.get("spanId")) or "", parent=_text(native.get("parentSpanId")),
            trace=_text(native.get("traceId")) or "", name=_text(native.get("name")) or "", kind=kind,
            order=len(self.found), start=seconds(native.get("startTimeUnixNano")),
            end=seconds(native.get("endTimeUnixNano")),
            thread=_named(told, *_THREADS) or _named(resource, "gen_ai.conversation.id", "session.id"),
            agent=_named(told, "gen_ai.agent.name", "agent.name"), prompt=prompt, answer=answer, system=system,
            counts=counts_of(told) if kind == "llm" else None,
            model=_named(told, "gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "ai.model.id"),
            request_id=_named(told, "gen_ai.response.id", "ai.response.id"), error=_failure(native, told, events),
            call_id=_named(told, "gen_ai.tool.call.id", "tool_call.id", "ai.toolCall.id"),
            result=_result(told), line=line)

    def _content(self, told: Mapping[str, Any], events: list[tuple[str, dict[str, Any]]], kind: Kind,
                 ) -> tuple[tuple[Turn, ...] | None, tuple[Turn, ...] | None, str | None]:
        """Prompt, answer and instructions: from attributes, else from events."""
        told = {**told, **{k: v for name, inner in events if name.endswith("operation.details")
                           for k, v in inner.items()}}
        prompt = self.turns.of(told.get("gen_ai.input.messages")) or self._spelt_out(told, _SPELT_IN)
        answer = self.turns.of(told.get("gen_ai.output.messages"), "assistant") or self._spelt_out(told, _SPELT_OUT)
        prompt = prompt or self.turns.of(told.get("ai.prompt.messages") or told.get("ai.prompt"))
        answer = answer or self._vercel(told)
        if prompt is None and answer is None:
            prompt, answer = self._from_events(events)
        if prompt is None and answer is None and kind == "llm":
            prompt = self.turns.of(told.get("input.value"))
            answer = self.turns.of(told.get("output.value"), "assistant")
        system = instructions(self.turns.of(told.get("gen_ai.system_instructions"), "system"))
        return prompt, answer, system

    def _spelt_out(self, told: Mapping[str, Any], prefixes: tuple[str, ...]) -> tuple[Turn, ...] | None:
        for prefix in prefixes:
            if rows := spelt_out(told, prefix):
                return self.turns.of([_unwrapped(row) for row in rows])
        return None

    def _vercel(self, told: Mapping[str, Any]) -> tuple[Turn, ...] | None:
        calls = decoded(told.get("ai.response.toolCalls"))
        text = told.get("ai.response.text")
        if not calls and not text:
            return None
        parts = [{"type": "text", "text": text}] if isinstance(text, str) and text else []
        rows = calls if isinstance(calls, list) else []
        return self.turns.of({"role": "assistant", "content": [
            *parts, *({**row, "type": "tool-call"} for row in rows if isinstance(row, dict))]})

    def _from_events(self, events: list[tuple[str, dict[str, Any]]],
                     ) -> tuple[tuple[Turn, ...] | None, tuple[Turn, ...] | None]:
        sent: list[Any] = []
        got: list[Any] = []
        for name, inner in events:
            if name in _MESSAGE_EVENTS:
                sent.append({"role": _MESSAGE_EVENTS[name], **_event_body(inner)})
            elif name == "gen_ai.choice":
                body = _event_body(inner)
                message = decoded(body.get("message", body))
                got.append({"role": "assistant", **message} if isinstance(message, dict) else message)
            elif name == "gen_ai.content.prompt":
                sent.append(decoded(inner.get("gen_ai.prompt")))
            elif name == "gen_ai.content.completion":
                got.append(decoded(inner.get("gen_ai.completion")))
        flat = [row for value in sent for row in (value if isinstance(value, list) else [value])]
        return self.turns.of(flat), self.turns.of(got, "assistant")


_SPELT_IN = ("llm.input_messages", "gen_ai.prompt")
_SPELT_OUT = ("llm.output_messages", "gen_ai.completion")


def _otlp(document: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], Any]]:
    """The spans of an envelope, each with its resource's attributes; old names of the scopes too."""
    for group in _rows(document, "resourceSpans", "resource_spans"):
        resource = group.get("resource")
        told = attributes_of(resource.get("attributes")) if isinstance(resource, dict) else {}
        for scope in _rows(group, "scopeSpans", "scope_spans", "instrumentationLibrarySpans"):
            spans = scope.get("spans")
            for native in spans if isinstance(spans, list) else ():
                yield told, native


def _rows(holder: Mapping[str, Any], *names: str) -> list[dict[str, Any]]:
    rows = next((v for name in names if isinstance(v := holder.get(name), list)), [])
    return [row for row in rows if isinstance(row, dict)]


def _events(native: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for event in _rows(native, "events"):
        yield str(event.get("name")), attributes_of(event.get("attributes"))


def _event_body(inner: Mapping[str, Any]) -> dict[str, Any]:
    """What an event says: its body, or its attributes; lists in them may be JSON in a string."""
    body = decoded(inner.get("gen_ai.event.content") or inner.get("event_body") or inner.get("body"))
    told = body if isinstance(body, dict) else inner
    found = {name.removeprefix("gen_ai."): decoded(value) for name, value in told.items()}
    if "id" in found and "tool_call_id" not in found:
        found["tool_call_id"] = found["id"]
    return found


def _unwrapped(row: Any) -> Any:
    """OpenInference puts each message into an object of its own."""
    return row.get("message", row) if isinstance(row, dict) else row


def kind_of(told: Mapping[str, Any]) -> Kind:
    """What a span stands for."""
    for name in _KINDS:
        value = told.get(name)
        kind = _OPERATIONS.get(value.lower().split(" ")[0]) if isinstance(value, str) else None
        if kind is not None:
            return kind
    if any(name.startswith(("gen_ai.usage.", "gen_ai.request.model", "gen_ai.input.messages")) for name in told):
        return "llm"
    return "tool" if "gen_ai.tool.name" in told else "other"


def _named(told: Mapping[str, Any], *names: str) -> str | None:
    return next((v for name in names if isinstance(v := told.get(name), str) and v), None)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _failure(native: Mapping[str, Any], told: Mapping[str, Any],
             events: list[tuple[str, dict[str, Any]]]) -> str | None:
    status = native.get("status")
    code = status.get("code") if isinstance(status, dict) else None
    thrown = next((inner for name, inner in events if name == "exception"), {})
    if code not in (2, "2", "STATUS_CODE_ERROR", "ERROR") and "error.type" not in told:
        return None
    message = status.get("message") if isinstance(status, dict) else None
    return str(message or thrown.get("exception.message") or told.get("error.type") or "error")


def _result(told: Mapping[str, Any]) -> str | None:
    for name in ("gen_ai.tool.call.result", "ai.toolCall.result", "output.value", "traceloop.entity.output"):
        if told.get(name) is not None:
            return json_text(told[name])
    return None
