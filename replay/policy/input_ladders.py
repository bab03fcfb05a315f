"""What harnesses do where a summary call would not fit the window: give up, drop the oldest, thin out, cut texts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from replay.policy.base import Capacity, Refusal, SummaryRequest, check
from replay.policy.input_limit import InputLimit
from replay.policy.renderings import HeadAndTail
from replay.window import Span

TOO_LARGE = Refusal("summary_input_too_large")


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeOrNone:
    """A summary is not asked for where its input does not fit. Imitates OpenCode's core path."""

    reserve: int = 0
    """Tokens of the window that the summary and its instructions take."""
    otherwise: str = ""

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        check(self, "reserve", self.reserve >= 0, "0 or more tokens")

    def words(self) -> str:
        """The limit in words."""
        return "where the summary call does not fit the window nothing is done"

    def limited(self, request: SummaryRequest, capacity: Capacity) -> SummaryRequest | Refusal:
        """The request, or why none is made."""
        return request if request.tokens <= capacity.usable - self.reserve else TOO_LARGE


@dataclass(frozen=True, slots=True, kw_only=True)
class DropOldest:
    """Sends a summary call that does not fit again without its oldest rounds, a response and its results being one.

    Imitates Codex (one item at a time, as often as it takes) and Claude Code (`share = 0.2`, `attempts = 3`); an
    earlier summary is the oldest of all.
    """

    share: float = 0.0
    """Share of the rounds that each try leaves out, at least one."""
    attempts: int = 0
    """Tries after the first; 0: as often as it takes."""
    reserve: int = 0
    """Tokens of the window that the summary and its instructions take."""
    otherwise: str = ""

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be meant."""
        check(self, "share", 0 <= self.share <= 1, "a fraction from 0 to 1")
        check(self, "attempts", self.attempts >= 0, "0 or more")
        check(self, "reserve", self.reserve >= 0, "0 or more tokens")

    def words(self) -> str:
        """The limit in words."""
        often = f", at most {self.attempts} times" if self.attempts else ""
        return f"where the summary call does not fit the window its oldest rounds are left out{often}"

    def limited(self, request: SummaryRequest, capacity: Capacity) -> SummaryRequest | Refusal:
        """The request without its oldest rounds, or why none is made."""
        room = capacity.usable - self.reserve
        if request.tokens <= room:
            return request
        rounds = list(_rounds(request))
        sizes = [replace(request, spans=(r,), previous=()).tokens for r in rounds]
        gone = self._gone(sizes, room)
        return TOO_LARGE if gone is None else replace(request, previous=(), spans=_from(request.spans, rounds[gone]))

    def _gone(self, sizes: list[int], room: int) -> int | None:
        """How many rounds are left out; None where no try leaves something that fits."""
        size, gone, tries = sum(sizes), 0, 0
        while gone < len(sizes) and (not self.attempts or tries < self.attempts):
            drops = max(1, int((len(sizes) - gone) * self.share))
            size, gone, tries = size - sum(sizes[gone:gone + drops]), gone + drops, tries + 1
            if size <= room and gone < len(sizes):
                return gone
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinResults:
    """Sends a summary call that does not fit again with fewer tool results, taken from the middle outward.

    Imitates Goose: none, a tenth, a fifth, half and all of the results are left out, one after the other.
    """

    percents: tuple[int, ...] = (0, 10, 20, 50, 100)
    reserve: int = 0
    """Tokens of the window that the summary and its instructions take."""
    otherwise: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no percentage."""
        check(self, "percents", all(0 <= p <= 100 for p in self.percents), "numbers from 0 to 100")
        check(self, "reserve", self.reserve >= 0, "0 or more tokens")

    def words(self) -> str:
        """The limit in words."""
        steps = ", ".join(f"{p} %" for p in self.percents)
        return f"where the summary call does not fit the window tool results are left out from the middle ({steps})"

    def limited(self, request: SummaryRequest, capacity: Capacity) -> SummaryRequest | Refusal:
        """The request with as many results as fit by these steps, or why none is made."""
        messages = request.log.messages
        results = [i for s in request.spans for i in range(s.start, s.stop) if messages[i].results]
        order = _middle_out(results)
        for percent in self.percents:
            count = max(1, len(results) * percent // 100) if percent and results else 0
            thinned = replace(request, spans=_without(request.spans, sorted(order[:count])))
            if thinned.tokens <= capacity.usable - self.reserve:
                return thinned
        return TOO_LARGE


@dataclass(frozen=True, slots=True, kw_only=True)
class ShorterResults:
    """Sends a summary call that does not fit again with ever shorter tool results.

    Imitates the hard reset of OpenHands' SDK: five attempts, each with four fifths of the length before.
    """

    chars: int = 10_000
    """Longest result at the first attempt."""
    factor: float = 0.8
    attempts: int = 5
    reserve: int = 0
    """Tokens of the window that the summary and its instructions take."""
    otherwise: str = ""

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be meant."""
        check(self, "chars", self.chars >= 0, "0 or more characters")
        check(self, "factor", 0 < self.factor < 1, "a fraction above 0 and below 1")
        check(self, "attempts", self.attempts > 0, "1 or more")
        check(self, "reserve", self.reserve >= 0, "0 or more tokens")

    def words(self) -> str:
        """The limit in words."""
        return (f"results are read up to {self.chars:,} characters, where the summary call does not fit up to "
                f"{self.factor:.0%} of that, {self.attempts} times")

    def limited(self, request: SummaryRequest, capacity: Capacity) -> SummaryRequest | Refusal:
        """The request with results short enough, or why none is made."""
        for attempt in range(self.attempts):
            form = HeadAndTail(chars=int(self.chars * self.factor ** attempt), tail_share=0.0, mark="")
            shorter = replace(request, form=form)
            if shorter.tokens <= capacity.usable - self.reserve:
                return shorter
        return TOO_LARGE


def _rounds(request: SummaryRequest) -> Iterator[Span]:
    """The input in pieces that part no call from its result, oldest first."""
    joints = request.log.joints
    for span in request.spans:
        start = span.start
        for index in range(span.start + 1, span.stop):
            if joints[index] == index:
                yield Span(start, index)
                start = index
        yield Span(start, span.stop)


def _from(spans: tuple[Span, ...], first: Span) -> tuple[Span, ...]:
    """The ranges from a round on."""
    return tuple(Span(max(s.start, first.start), s.stop) for s in spans[_place(spans, first):])


def _place(spans: tuple[Span, ...], first: Span) -> int:
    return next(i for i, s in enumerate(spans) if s.start <= first.start < s.stop)


def _middle_out(indices: list[int]) -> list[int]:
    """The middle one, then its neighbours in turn."""
    middle = len(indices) // 2
    return [indices[p] for p in sorted(range(len(indices)), key=lambda p: (abs(p - middle), p))]


def _without(spans: tuple[Span, ...], indices: list[int]) -> tuple[Span, ...]:
    """The ranges without these log indices (sorted)."""
    found: list[Span] = []
    for span in spans:
        start = span.start
        for index in indices[bisect_left(indices, span.start):bisect_left(indices, span.stop)]:
            found.append(Span(start, index))
            start = index + 1
        found.append(Span(start, span.stop))
    return tuple(s for s in found if s.stop > s.start)


INPUT_LIMITS: Mapping[str, type] = {"newest": InputLimit, "whole-or-none": WholeOrNone, "drop-oldest": DropOldest,
                                    "thin-results": ThinResults, "shorter-results": ShorterResults}
"""Names for `use = …` in an input_limit table."""
