"""Traces of model calls: OTLP with GenAI or OpenInference names, and the exports of Opik and Langfuse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from replay.readers.common import ThreadBuilder, not_an_object
from replay.readers.otel_exports import add_langfuse, add_opik, inner_values, is_langfuse, is_opik
from replay.readers.otel_lane import Lane
from replay.readers.otel_spans import Gathering, Span
from replay.readers.otel_tree import SpanTree
from replay.readers.otel_usage import includes_cache, usage_of
from replay.readers.source import Source
from replay.transcript import ReadNote, Thread, Transcript

_LOOK = 50


class Spans:
    """Reads traces: OTLP/JSON envelopes with the attributes of GenAI (1.2x to 1.41), OpenInference, OpenLLMetry or the
    Vercel AI SDK; Opik's traces and spans as lists, pages or lines; Langfuse traces with their observations.

    One session a conversation, else a trace. Every call's span repeats the whole prompt, so the log is what each
    prompt adds; a prompt that does not go on from the one before is a compaction whose window is mapped by content.
    The conversation with the most calls is the main thread; those of deeper agents are sub-agents; other calls
    beside it are under `abandoned`. `message_count` is the length of the log. Whether input counts include the cache
    is in `extra["input_includes_cached"]`, with how that is known.
    """

    name = "otel"

    def sniff(self, source: Source) -> int:
        """95 for OTLP envelopes, 90 for exports of Opik and Langfuse."""
        values = [source.document] if source.is_document else [r.value for r in source.records[:_LOOK]]
        inner = [v for value in values for v in _first(value)]
        if any("resourceSpans" in v or "resource_spans" in v for v in inner):
            return 95
        return 90 if any(is_opik(v) or is_langfuse(v) for v in inner) else 0

    def read(self, source: Source) -> tuple[Transcript, ...]:
        """The sessions of the source."""
        spans = _gather(source)
        sessions: dict[str, list[Span]] = {}
        threads = {s.trace: s.thread for s in spans.found if s.thread}
        for span in spans.found:
            sessions.setdefault(span.thread or threads.get(span.trace) or span.trace, []).append(span)
        odd = [replace(n, line=n.line or None, byte=None) for n in spans.odd.notes()]
        if spans.turns.cut:
            odd.append(ReadNote(code="cut-content", text=(
                f"{spans.turns.cut} prompts or answers were cut when they were recorded and cannot be read; their "
                "tokens count")))
        found = [_transcript(name or Path(source.path).stem, listed, spans, source)
                 for name, listed in sessions.items()]
        return (found[0].with_notes(*spans.notes, *odd), *found[1:]) if found else ()


def _first(value: Any) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for inner in inner_values(value):
        if isinstance(inner, dict):
            found.append(inner)
        if len(found) == _LOOK:
            break
    return found


def _gather(source: Source) -> Gathering:
    spans = Gathering()
    for record in source.records:
        line = None if source.is_document else record.line
        for value in inner_values(record.value):
            if not isinstance(value, dict):
                spans.notes.append(not_an_object(record.line, record.byte, value))
            elif "resourceSpans" in value or "resource_spans" in value:
                spans.otlp(value, line)
            elif is_langfuse(value):
                add_langfuse(spans, value, line)
            elif is_opik(value):
                add_opik(spans, value, line)
            else:
                spans.odd.add(", ".join(sorted(map(str, value))[:4]), record.line, record.byte)
    return spans


@dataclass
class _Session:
    """Folds the calls of one session."""

    name: str
    tree: SpanTree
    lanes: list[Lane] = field(default_factory=list)
    is_inclusive: bool = True

    def fold(self, calls: Sequence[Span]) -> None:
        """Take in the model calls in the order in which they began."""
        for span in calls:
            usage = usage_of(span.counts, self.is_inclusive)
            agent = self.tree.agent_of(span)
            if span.prompt is None:
                self._any_lane(agent, span).without_prompt(span, usage)
                continue
            lane = self._lane(agent, span)
            lane.system = span.system or lane.system
            lane.call(span, span.prompt, usage, span.line)

    def _of(self, agent: str) -> list[Lane]:
        return [lane for lane in self.lanes if lane.agent == agent]

    def _any_lane(self, agent: str, span: Span) -> Lane:
        lane = max(self._of(agent), key=lambda lane: len(lane.thread.steps), default=None)
        return lane if lane is not None else self._new(agent, span)

    def _lane(self, agent: str, span: Span) -> Lane:
        """The conversation that a call goes on with: one it extends, else one whose messages it holds."""
        prompt = span.prompt or ()
        lanes = self._of(agent)
        going_on = [lane for lane in lanes if lane.extends(prompt) or lane.repeats(prompt)]
        if going_on:
            return max(going_on, key=lambda lane: len(lane.window))
        akin = [lane for lane in lanes if self._is_akin(lane, span)]
        best = max(akin, key=lambda lane: lane.overlap(prompt), default=None)
        return best if best is not None else self._new(agent, span)

    @staticmethod
    def _is_akin(lane: Lane, span: Span) -> bool:
        """Whether a prompt can be the conversation's window after a compaction."""
        prompt = span.prompt or ()
        ours = _system(lane.system, [item.turn.words for item in lane.window if item.turn.role == "system"])
        theirs = _system(span.system, [turn.words for turn in prompt if turn.role == "system"])
        if ours[:200] != theirs[:200]:
            return False
        return bool(ours) or lane.overlap(prompt) > 0

    def _new(self, agent: str, span: Span) -> Lane:
        name = agent or self.name
        own = name if not self._of(agent) else f"{name}/{span.id or len(self.lanes)}"
        lane = Lane(ThreadBuilder(id=own, parent_call=self.tree.call_above(span) if agent else None), agent)
        self.lanes.append(lane)
        return lane


def _system(apart: str | None, within: Sequence[str]) -> str:
    return apart or "\n".join(within)


def _transcript(name: str, spans: Sequence[Span], gathered: Gathering, source: Source) -> Transcript:
    tree = SpanTree(spans)
    calls = tree.calls()
    inclusive, why = includes_cache((s.counts for s in calls), default="langfuse" not in gathered.sources)
    session = _Session(name, tree, is_inclusive=inclusive is not False)
    session.fold(calls)
    results = tree.results()
    for lane in session.lanes:
        lane.finish(results)
    ours = [lane for lane in session.lanes if not lane.agent]
    main = max(ours, key=lambda lane: len(lane.thread.steps), default=Lane(ThreadBuilder(id=name)))
    main.thread.id = name
    thread = main.thread.build()
    extra: dict[str, Any] = {"spans": dict(tree.counts()), "input_includes_cached": inclusive,
                             "input_includes_cached_because": why}
    extra["source"] = ", ".join(sorted(gathered.sources))
    extra |= {key: gathered.resource[key] for key in ("service.name",) if key in gathered.resource}
    version = gathered.resource.get("service.version")
    return Transcript(
        format="otel", session_id=name, path=source.path, main=thread,
        subagents=tuple(lane.thread.build() for lane in session.lanes if lane.agent),
        abandoned=_abandoned(session, main), notes=tuple(_notes(tree, main)),
        harness_version=version if isinstance(version, str) else None,
        model=next((s.model for s in reversed(thread.steps) if s.model), None), system_prompt=main.system,
        message_count=len(thread.messages), extra=MappingProxyType(extra))


def _abandoned(session: _Session, main: Lane) -> tuple[Thread, ...]:
    beside = [lane.thread.build() for lane in session.lanes if not lane.agent and lane is not main]
    return (*beside, *(thread for lane in session.lanes for thread in lane.side))


def _notes(tree: SpanTree, main: Lane) -> list[ReadNote]:
    found = []
    if tree.nested:
        found.append(ReadNote(code="nested-calls", text=(
            f"{tree.nested} spans of model calls lie inside other spans of model calls; counted once")))
    if main.instructions_changed:
        found.append(ReadNote(code="instructions-changed", text=(
            f"system messages had another text than before {main.instructions_changed} times while the talk went on; "
            "the log keeps the first")))
    return found
