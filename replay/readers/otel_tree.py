"""The spans of a session as a tree: which are model calls, whose, and what the tools gave back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from replay.readers.otel_spans import Span


class SpanTree:
    """Spans by id, with their parents."""

    def __init__(self, spans: Sequence[Span]) -> None:
        """Index the spans of one session."""
        self.spans = spans
        self.nested = 0
        """Spans of calls inside spans of calls."""
        self._by_id = {(s.trace, s.id): s for s in spans if s.id}
        self._depth: int | None = None

    def above(self, span: Span) -> Iterator[Span]:
        """The spans around a span, the nearest first."""
        seen = {span.id}
        parent = span.parent
        while parent is not None and parent not in seen:
            seen.add(parent)
            found = self._by_id.get((span.trace, parent))
            if found is None:
                return
            yield found
            parent = found.parent

    def calls(self) -> list[Span]:
        """The model calls in the order in which they began; of a call inside another one only the outer.

        A trace without any span of its own stands for a call, if it says what went in and what came out.
        """
        found = [s for s in self.spans if s.kind == "llm"]
        around = {id(s): call for s in found if (call := self._call_around(s)) is not None}
        self.nested = len(around)
        inner = {id(around[id(s)]): s for s in found if id(s) in around}
        listed = [_filled(s, inner.get(id(s))) for s in found if id(s) not in around]
        inside = {s.trace for s in self.spans if not s.is_trace}
        listed += [s for s in self.spans if s.is_trace and s.trace not in inside and (s.prompt or s.answer)]
        self._depth = min((self._agents(s) for s in listed), default=0)
        return sorted(listed, key=lambda s: (s.start if s.start is not None else 0.0, s.order))

    def _call_around(self, span: Span) -> Span | None:
        """The outermost call that a call lies in; none where they lie in each other."""
        calls = [a for a in self.above(span) if a.kind == "llm"]
        if not calls or any(a is span for call in calls for a in self.above(call)):
            return None
        return calls[-1]

    def _agents(self, span: Span) -> int:
        return sum(a.kind == "agent" for a in self.above(span))

    def agent_of(self, span: Span) -> str:
        """The span of the agent that made a call; empty for the outermost, the session's own."""
        around = [a for a in self.above(span) if a.kind == "agent"]
        if len(around) <= (self._depth or 0):
            return ""
        return around[0].id

    def call_above(self, span: Span) -> str | None:
        """The tool call inside which a call was made."""
        return next((a.call_id for a in self.above(span) if a.kind == "tool" and a.call_id), None)

    def results(self) -> dict[str, str]:
        """What the tools gave back, by the calls that their spans name."""
        return {s.call_id: s.result for s in self.spans if s.kind == "tool" and s.call_id and s.result is not None}

    def counts(self) -> Mapping[str, int]:
        """How many spans there are of each kind."""
        return Counter(s.kind for s in self.spans if not s.is_trace)


def _filled(span: Span, inner: Span | None) -> Span:
    """A call with what only the call inside it tells."""
    if inner is None:
        return span
    return replace(span, counts=span.counts or inner.counts, prompt=span.prompt or inner.prompt,
                   answer=span.answer or inner.answer, model=span.model or inner.model)
