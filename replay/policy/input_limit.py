"""What of a cut part a summariser is given: harnesses cap the input of their summary calls."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace

from replay.policy.base import Capacity, SummaryRequest, check
from replay.policy.estimators import Characters
from replay.window import Span, spans_after


@dataclass(frozen=True, slots=True, kw_only=True)
class InputLimit:
    """The newest part of what is cut goes to the summariser, the rest is in no summary.

    Imitates LangChain's trimming: the input begins with a prompt, or with an earlier summary where all of it fits;
    a prompt, or a summary, whose last line alone fits counts. Where nothing is left no model is asked and `otherwise`
    stands for the summary.
    """

    tokens: int = 4_000
    from_prompt: bool = True
    """The input begins with the first prompt of what fits."""
    otherwise: str = ""
    estimator: Characters = field(default_factory=Characters, metadata={"part": "estimator"})

    def __post_init__(self) -> None:
        """Refuse a negative limit."""
        check(self, "tokens", self.tokens >= 0, "0 or more tokens")

    def words(self) -> str:
        """The limit in words."""
        start = ", beginning with a prompt" if self.from_prompt else ""
        return f"of what is cut the newest {self.tokens:,} tokens are read{start}"

    def limited(self, request: SummaryRequest, capacity: Capacity) -> SummaryRequest | None:
        """The request with what fits; None where nothing does. The window is no limit of its own."""
        log, room = request.log, self.tokens
        earlier = sum(log.inserted_size(p, self.estimator) for p in request.previous)
        first, left = self._first(request, room)
        if first is None and (earlier <= left or self._last_line_fits(request, left)):
            return request
        if not request.spans:
            return None
        first = request.spans[0].start if first is None else first
        if self.from_prompt:
            first = self._prompt(request, first, left)
        spans = tuple(s for s in spans_after(request.spans, first) if isinstance(s, Span))
        return replace(request, spans=spans, previous=()) if spans else None

    def _last_line_fits(self, request: SummaryRequest, room: int) -> bool:
        """Whether the end of the earlier summary fits, which then stands for it (the whole of it is given here)."""
        return bool(request.previous) and self._line_fits(request.previous[-1].message.text, room)

    def _first(self, request: SummaryRequest, room: int) -> tuple[int | None, int]:
        """The first log index that fits and the room that is left; None where all of the log part fits."""
        for span in reversed(request.spans):
            sums = request.log.sums(self.estimator)
            low = bisect_left(sums, sums[span.stop] - room, span.start, span.stop)
            room -= sums[span.stop] - sums[low]
            if low > span.start:
                return low, room
        return None, room

    def _prompt(self, request: SummaryRequest, first: int, room: int) -> int:
        """The first prompt from an index on; the one right before it where its last line fits."""
        log, stop = request.log, request.spans[-1].stop
        before = log.messages[first - 1] if first > request.spans[0].start else None
        if before is not None and before.role == "user" and self._line_fits(before.text, room):
            return first - 1
        found = log.find(first, stop, lambda m: m.role == "user")
        return stop if found is None else found

    def _line_fits(self, text: str, room: int) -> bool:
        """Whether a message with the last line of a text fits."""
        last = text.rsplit("\n", 1)[-1]
        return -(-(len(last) + len("user")) // self.estimator.divisor) + self.estimator.overhead <= room
