"""Usage as a provider would bill it: counted tokens, a fixed overhead, and a prompt cache that behaves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evals.samples.recording import Call, Entry
from evals.samples.scenario import Scenario
from replay.tokens import tokenizer
from replay.transcript import Usage

LIFETIME_SECONDS = {"5m": 300.0, "1h": 3600.0, "implicit": 300.0}
STEP_TOKENS = 128
"""An implicit cache keeps whole steps only, and nothing below eight of them."""


def count(*texts: str) -> int:
    """Tokens of some texts, each counted on its own, as `replay.tokens` counts the parts of a message."""
    known = tokenizer()
    return sum(known.count(text) for text in texts)


def call_tokens(calls: Iterable[Call]) -> int:
    """Tokens of tool calls: name and arguments."""
    return sum(count(call.name, call.text) for call in calls)


@dataclass
class Meter:
    """Bills the requests of one thread in order."""

    scenario: Scenario
    _cached: int = 0
    """Tokens of the prefix that the cache holds."""
    _last: float = 0.0

    def size(self, view: Iterable[Entry]) -> int:
        """Billed tokens of a window with the overhead."""
        return self.scenario.overhead + round(self.scenario.factor * sum(entry.tokens for entry in view))

    def bill(self, view: Iterable[Entry], output: int, time: float, reasoning: int = 0) -> Usage:
        """The usage of a request sent at a time; `output` and `reasoning` are counted tokens."""
        total = self.size(view)
        warm = self._cached and time - self._last <= LIFETIME_SECONDS.get(self.scenario.cache, 0.0)
        read = self._cached if warm else 0
        self._last = time
        said, thought = round(self.scenario.factor * output), round(self.scenario.factor * reasoning)
        if self.scenario.cache == "implicit":
            return self._implicit(total, read, said, thought)
        if self.scenario.cache == "none":
            return Usage(input_uncached=total, output=said, reasoning=thought)
        return self._written(total, read, said, thought)

    def rewrite(self, prefix: int) -> None:
        """The window changed behind its first `prefix` billed tokens: nothing after them can be read."""
        self._cached = min(self._cached, prefix)

    def _implicit(self, total: int, read: int, output: int, reasoning: int) -> Usage:
        kept = read // STEP_TOKENS * STEP_TOKENS
        self._cached = total
        return Usage(cache_read=kept if kept >= 8 * STEP_TOKENS else 0, output=output, reasoning=reasoning,
                     input_uncached=total - (kept if kept >= 8 * STEP_TOKENS else 0))

    def _written(self, total: int, read: int, output: int, reasoning: int) -> Usage:
        """Everything is written but a handful of tokens behind the last breakpoint."""
        uncached = 3 + total % 6
        written = total - read - uncached
        self._cached = read + written
        hour = self.scenario.cache == "1h"
        return Usage(input_uncached=uncached, cache_read=read, cache_write_5m=0 if hour else written,
                     cache_write_1h=written if hour else 0, output=output, reasoning=reasoning)
