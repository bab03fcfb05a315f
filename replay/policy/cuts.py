"""Cut rules: where the kept tail begins."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from replay.log import Log
from replay.policy.base import Cut, Moment, Refusal, check
from replay.policy.estimators import Characters
from replay.policy.tails import fitting
from replay.window import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepRounds:
    """Keeps the newest rounds and cuts at the start of the oldest kept one.

    Imitates MyCodeAgent f670268: a round starts at each user message, the program's nudges included; with
    no more rounds than are to be kept it refuses; what is summarised is the raw log from its beginning.
    """

    rounds: int = 10

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        check(self, "rounds", self.rounds >= 0, "0 or more")

    def cut(self, moment: Moment) -> Cut | Refusal:
        """The start of the oldest kept round, or `rounds_not_enough`."""
        starts = moment.log.rounds
        low, high = bisect_left(starts, moment.floor), bisect_left(starts, moment.window.end)
        if high - low <= self.rounds:
            return Refusal("rounds_not_enough")
        keep_from = starts[high - self.rounds] if self.rounds else moment.window.end
        return Cut(keep_from=keep_from, base="raw") if keep_from > moment.floor else Refusal("no_messages_to_compact")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepTokens:
    """Keeps the newest messages that fit a number of tokens, then moves back to a boundary.

    Imitates Decode: the walk from the end stops before the message that would exceed the budget, then the
    cut moves backward. `boundary` is `turn` (a prompt; before ADR 0018) or `response-or-prompt` (a response
    of the model or a request without tool results; ADR 0018). A cut at the very beginning means that
    everything stays; where not even the last message fits, nothing stays.
    """

    tail_tokens: int = 20_000
    share: float | None = None
    """Fraction of the window, rounded down, in the place of `tail_tokens`."""
    boundary: Literal["turn", "response-or-prompt"] = "response-or-prompt"
    estimator: Characters = field(default_factory=Characters, metadata={"part": "estimator"})

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        check(self, "tail_tokens", self.tail_tokens >= 0, "0 or more tokens")
        check(self, "share", self.share is None or 0 < self.share <= 1, "a fraction of the window, above 0, at most 1")

    def cut(self, moment: Moment) -> Cut | Refusal:
        """The boundary at or before the raw cut, or the reason why everything stays."""
        room = self.tail_tokens if self.share is None else int(moment.capacity.window * self.share)
        raw = fitting(moment, self.estimator, room)
        if raw is None:
            return Refusal("everything_fits")
        if raw >= moment.window.end:
            return Cut(keep_from=moment.window.end)
        index = self._snap(moment, raw)
        return Refusal("no_boundary") if index is None else Cut(keep_from=index)

    def _snap(self, moment: Moment, raw: int) -> int | None:
        first = next((i for i in moment.window.indices()), raw)
        for item in reversed(moment.window.items):
            if not isinstance(item, Span):
                continue
            for index in range(min(raw, item.stop - 1), item.start - 1, -1):
                if self._is_boundary(moment.log, index, moment.window.end):
                    return index if index > first or moment.window.summaries() else None
        return None

    def _is_boundary(self, log: Log, index: int, end: int) -> bool:
        if log.requests[index] != index:
            return False
        if log.messages[index].role == "assistant":
            return self.boundary == "response-or-prompt"
        members = range(index, end)
        request = [log.messages[i] for i in _while_same(log, index, members)]
        if any(m.results for m in request):
            return False
        return self.boundary == "response-or-prompt" or any(m.role == "user" for m in request)


def _while_same(log: Log, start: int, members: range) -> list[int]:
    found = []
    for i in members:
        if log.requests[i] != start:
            break
        found.append(i)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepMessages:
    """Keeps the newest messages; a cut that would part a result from its call moves back to the call."""

    messages: int = 20

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        check(self, "messages", self.messages >= 0, "0 or more")

    def cut(self, moment: Moment) -> Cut | Refusal:
        """The cut, or `everything_fits`."""
        spans = [item for item in moment.window.items if isinstance(item, Span)]
        index, left = moment.window.end, self.messages
        for span in reversed(spans):
            if left < span.stop - span.start:
                index = span.stop - left if left else index
                break
            index, left = span.start, left - (span.stop - span.start)
        else:
            return Refusal("everything_fits")
        index = moment.log.joints[index]
        return Cut(keep_from=index) if index > spans[0].start else Refusal("no_boundary")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepNothing:
    """Keeps no message: the summary alone remains."""

    def cut(self, moment: Moment) -> Cut | Refusal:
        """The end of the window."""
        return Cut(keep_from=moment.window.end) if moment.window.items else Refusal("no_messages_to_compact")


CUTS: Mapping[str, type] = {"rounds": KeepRounds, "tokens": KeepTokens, "messages": KeepMessages,
                            "nothing": KeepNothing}
"""Names for `use = …` in a cut table."""
