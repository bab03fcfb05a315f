"""Rules with a protected end and a minimum gain for tool results, and the rule for reasoning."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from replay.policy.base import Moment, Refusal, check
from replay.policy.estimators import Characters
from replay.policy.renderings import NoReasoning
from replay.policy.tool_results import Placeholder
from replay.transcript import Message
from replay.window import Mark, Rendering, Span

_NO_REASONING = NoReasoning()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtectNewestTokens:
    """Changes the tool results before the newest ones of so many tokens, if that saves enough.

    The walk from the end adds up eligible results; `crossing` says whether the result that goes over the line is
    protected too. Results of the newest `turns` turns, and the newest message (`spares_newest`), are left alone and
    not counted. `minimum_gain` is compared with the size of what would be changed now.
    Imitates OpenCode's pruning (40,000 protected, more than 20,000 to gain, two turns) and Gemini's masking.
    """

    tokens: int = 40_000
    minimum_gain: int = 20_000
    comparison: Literal[">", ">="] = ">"
    crossing: Literal["protected", "cleared"] = "cleared"
    turns: int = 0
    spares_newest: bool = False
    rendering: Rendering = field(default_factory=Placeholder, metadata={"part": "rendering"})
    estimator: Characters = field(default_factory=Characters, metadata={"part": "estimator"})

    def __post_init__(self) -> None:
        """Refuse negative numbers."""
        check(self, "tokens", self.tokens >= 0, "0 or more tokens")
        check(self, "turns", self.turns >= 0, "0 or more")

    def words(self) -> str:
        """The rule in words."""
        return (f"tool results before the newest {self.tokens:,} tokens of them are changed, "
                f"if that is {self.comparison} {self.minimum_gain:,} tokens")

    def marks(self, moment: Moment) -> tuple[Mark, ...] | Refusal:
        """A mark up to the line, or why nothing is changed."""
        done = moment.window.rendered_to(self.rendering)
        stop, counts = self._line(moment, done), moment.log.changed(self.rendering)
        ranges = [(max(i.start, done), min(i.stop, stop)) for i in moment.window.items if isinstance(i, Span)]
        fresh = [(low, high) for low, high in ranges if low < high and counts[high] > counts[low]]
        sums = moment.log.sums(self._eligible())
        gain = sum(sums[high] - sums[low] for low, high in fresh)
        enough = gain > self.minimum_gain if self.comparison == ">" else gain >= self.minimum_gain
        if not fresh or not enough:
            return Refusal("gain_too_small" if fresh else "nothing_to_elide")
        return (Mark(self.rendering, 0, stop),)

    def _eligible(self) -> Eligible:
        return _eligible_by(self)

    def _line(self, moment: Moment, done: int) -> int:
        """Log index below which results are changed."""
        sums, spared, room = moment.log.sums(self._eligible()), self._spared_from(moment), self.tokens
        for item in reversed(moment.window.items):
            if not isinstance(item, Span):
                continue
            low, high = max(item.start, done), min(item.stop, spared)
            if low >= high:
                continue
            if sums[high] - sums[low] > room:
                index = bisect_left(sums, sums[high] - room, low, high) - 1
                return index + 1 if self.crossing == "cleared" else index
            room -= sums[high] - sums[low]
        return done

    def _spared_from(self, moment: Moment) -> int:
        starts, end = moment.log.rounds, moment.window.end
        if self.turns:
            position = bisect_left(starts, end) - self.turns
            end = starts[position] if position >= 0 else 0
        return end - 1 if self.spares_newest and end == moment.window.end else end


@dataclass(frozen=True, slots=True)
class Eligible:
    """Weighs what a rendering would change by an estimator, and everything else nothing."""

    estimator: Characters
    rendering: Rendering

    def weights(self, messages: Sequence[Message]) -> list[int]:
        """The estimator's weight of each message that would be changed."""
        sizes = self.estimator.weights(messages)
        return [size if self.rendering.render(m) is not m else 0 for m, size in zip(messages, sizes, strict=True)]


@lru_cache(maxsize=256)
def _eligible_by(rule: ProtectNewestTokens) -> Eligible:
    """The same ruler for the same parts: what a log computes from it is found by identity."""
    return Eligible(rule.estimator, rule.rendering)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepReasoning:
    """Shows the reasoning of the newest turns alone.

    Imitates Anthropic's clearing of thinking: a turn begins with a prompt; by default one is kept.
    """

    turns: int = 1

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        check(self, "turns", self.turns >= 0, "0 or more")

    def words(self) -> str:
        """The rule in words."""
        return f"reasoning stays in the newest {self.turns} turns alone"

    def marks(self, moment: Moment) -> tuple[Mark, ...] | Refusal:
        """A mark up to the oldest turn whose reasoning stays."""
        starts = moment.log.rounds
        position = bisect_left(starts, moment.window.end) - self.turns
        stop = moment.window.end if not self.turns else starts[position] if position >= 0 else 0
        counts, done = moment.log.changed(_NO_REASONING), moment.window.rendered_to(_NO_REASONING)
        if stop <= done or counts[stop] == counts[done]:
            return Refusal("nothing_to_elide")
        return (Mark(_NO_REASONING, 0, stop),)


TOOL_RULES: Mapping[str, type] = {"protect-newest-tokens": ProtectNewestTokens, "keep-reasoning": KeepReasoning}
"""Names for `use = …` in a tool_results table."""
