"""Token counts of Codex: the running total tells which numbers are new, the last request's numbers what they were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from replay.readers.common import whole
from replay.transcript import Usage

Numbers = tuple[int, int, int, int, int, int]
"""Input (cached included), cached, cache write, output (reasoning included), reasoning, total."""
_KEYS = ("input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens",
         "reasoning_output_tokens", "total_tokens")
_ZEROS = (0,) * len(_KEYS)


def numbers(native: Any) -> Numbers | None:
    """The six counts of a native usage object; None where it is none."""
    if not isinstance(native, Mapping):
        return None
    found = tuple(map(native.get, _KEYS, _ZEROS))
    a, b, c, d, e, f = found if all(type(n) is int for n in found) else map(whole, found)
    return a, b, c, d, e, f


def usage(counts: Numbers) -> Usage:
    """The counts in parts that do not overlap."""
    sent, cached, written, output, reasoning, _ = counts
    return Usage(input_uncached=max(0, sent - cached - written), cache_read=min(cached, sent),
                 cache_write_5m=written, output=output, reasoning=min(reasoning, output))


def grown(total: Numbers, before: Numbers | None) -> Numbers:
    """What was added to a running total; the total itself where it restarted."""
    if before is None or any(new < old for new, old in zip(total, before, strict=True)):
        return total
    a, b, c, d, e, f = (new - old for new, old in zip(total, before, strict=True))
    return a, b, c, d, e, f


@dataclass
class TokenCounts:
    """Follows the token counts of a rollout, in which the same numbers are written again and again."""

    total: Numbers | None = None
    """The running total that was seen last."""
    last: Numbers | None = None
    """The numbers of the request that was seen last."""
    recorded: Numbers | None = None
    """The numbers of the latest usage record, which a token count repeats after it."""
    context: int | None = None
    """Tokens of the latest request and its answer, as the harness wrote them."""
    context_before: int | None = None
    """The same for the request before it."""
    window: int | None = None
    _native: Any = None
    _responses: set[str] = field(default_factory=set)

    def observe(self, info: Any) -> Usage | None:
        """The usage that a token count tells of first; None for repeated, empty or missing numbers."""
        if not isinstance(info, Mapping) or info == self._native:
            return None
        self._native = info
        self.window = whole(info.get("model_context_window")) or self.window
        return self.count(numbers(info.get("last_token_usage")), numbers(info.get("total_token_usage")))

    def count(self, last: Numbers | None, total: Numbers | None) -> Usage | None:
        """The same from the two sets of numbers, either of which may be missing."""
        is_new = total != self.total if total else last != self.last
        counted = last if last and (last[0] or last[3]) else grown(total, self.total) if total else None
        self.total, self.last = total or self.total, last or self.last
        return self._counted(counted) if is_new and counted != self.recorded else None

    def record(self, native: Any, response: Any) -> Usage | None:
        """The usage of a record that names its response; token counts with the same numbers add nothing."""
        counted = numbers(native)
        if isinstance(response, str):
            if response in self._responses:
                return None
            self._responses.add(response)
        self.recorded = counted
        return self._counted(counted)

    def _counted(self, counted: Numbers | None) -> Usage | None:
        if counted is None or not (counted[0] or counted[3]):
            return None
        self.context_before, self.context = self.context, counted[5] or counted[0] + counted[3]
        return usage(counted)
