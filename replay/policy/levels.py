"""Levels that are clamped or leave a buffer, and a measure that asks the session's own token counter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from replay.policy.base import Capacity, Decision, Moment, check
from replay.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """Tokens of the window by the session's counter, without what stands in front of the history.

    `of = "received"`: of what the client sends, before the provider's own edits; a server that edits a request for
    itself measures that.
    """

    of: Literal["window", "received"] = "window"

    def words(self) -> str:
        """The measure in words."""
        return "the counted tokens of the history" + (" before any edit" if self.of == "received" else "")

    def tokens(self, moment: Moment) -> int:
        """Counted tokens."""
        window = moment.window
        return moment.log.size(window if self.of == "window" else Window(window.items, (), window.end))


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """Fires a buffer below what the window holds besides the answer, of which no more than `most_output` counts.

    Imitates Claude Code: 13,000 tokens below the window less the output, at most 20,000 of it; `share` lowers the
    level to a fraction of that room.
    """

    tokens: int = 13_000
    most_output: int = 20_000
    share: float | None = None

    def __post_init__(self) -> None:
        """Refuse negative numbers."""
        check(self, "tokens", self.tokens >= 0, "0 or more tokens")
        check(self, "most_output", self.most_output >= 0, "0 or more tokens")
        check(self, "share", self.share is None or 0 < self.share <= 1, "a fraction, above 0 and at most 1")

    def words(self) -> str:
        """The rule in words."""
        share = f", or {self.share:.0%} of that room where it is less" if self.share is not None else ""
        return (f"when the measure reaches {self.tokens:,} tokens less than the window without the answer "
                f"(at most {self.most_output:,}){share}")

    def level(self, capacity: Capacity) -> int:
        """The level in tokens."""
        room = capacity.window - min(capacity.output_reserve, self.most_output)
        level = room - self.tokens
        return level if self.share is None else min(level, int(room * self.share))

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Whether the level is reached."""
        level = self.level(moment.capacity)
        fires = measured is not None and measured >= level
        reason = "threshold_exceeded" if fires else "usage_unknown" if measured is None else "below_threshold"
        return Decision(stage=stage, fires=fires, reason=reason, estimated_tokens=measured, threshold=level)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClampedShare:
    """Fires above a share of the window that is no less than `least` and no more than `most` tokens.

    Imitates Aider: a sixteenth of the window between 1,024 and 8,192.
    """

    divisor: int = 16
    least: int = 1_024
    most: int = 8_192

    def __post_init__(self) -> None:
        """Refuse bounds that exclude each other."""
        check(self, "divisor", self.divisor > 0, "a positive number")
        check(self, "most", 0 <= self.least <= self.most, "at least the lower bound")

    def words(self) -> str:
        """The rule in words."""
        return (f"when the measure exceeds the window divided by {self.divisor}, at least {self.least:,} and at most "
                f"{self.most:,} tokens")

    def level(self, window: int) -> int:
        """The level in tokens."""
        return min(max(window // self.divisor, self.least), self.most)

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Whether the level is exceeded."""
        level = self.level(moment.capacity.window)
        fires = measured is not None and measured > level
        reason = "threshold_exceeded" if fires else "usage_unknown" if measured is None else "below_threshold"
        return Decision(stage=stage, fires=fires, reason=reason, estimated_tokens=measured, threshold=level)


@dataclass(frozen=True, slots=True, kw_only=True)
class ByWindow:
    """Fires at a level that a table gives for some windows, and a rule for all others.

    Imitates Cline's older extension: elsewhere the larger of the window less `reserve` and the share `at` of it.
    """

    levels: tuple[tuple[int, ...], ...] = ((64_000, 37_000), (128_000, 98_000), (200_000, 160_000))
    """Pairs of a window and its level, in tokens."""
    reserve: int = 40_000
    at: float = 0.8
    times: int = 1
    """The level is multiplied by this."""
    comparison: Literal[">=", ">"] = ">="

    def __post_init__(self) -> None:
        """Refuse what is no level."""
        check(self, "levels", all(len(pair) == 2 for pair in self.levels), "pairs of a window and its level")
        check(self, "reserve", self.reserve >= 0, "0 or more tokens")
        check(self, "at", 0 < self.at <= 1, "a fraction, above 0 and at most 1")
        check(self, "times", self.times > 0, "a positive number")

    def words(self) -> str:
        """The rule in words."""
        table = ", ".join(f"{level:,} of {window:,}" for window, level in self.levels)
        times = f"{self.times} times " if self.times > 1 else ""
        verb = "reaches" if self.comparison == ">=" else "exceeds"
        return (f"when the measure {verb} {times}{table} tokens, of other windows the larger of {self.at:.0%} and all "
                f"but {self.reserve:,}")

    def level(self, window: int) -> int:
        """The level in tokens."""
        known = {pair[0]: pair[1] for pair in self.levels}
        return self.times * known.get(window, max(window - self.reserve, int(window * self.at)))

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Whether the level is reached."""
        level = self.level(moment.capacity.window)
        reached = measured is not None and (measured >= level if self.comparison == ">=" else measured > level)
        reason = "threshold_exceeded" if reached else "usage_unknown" if measured is None else "below_threshold"
        return Decision(stage=stage, fires=reached, reason=reason, estimated_tokens=measured, threshold=level)


LEVEL_MEASURES: Mapping[str, type] = {"counted": Counted}
LEVEL_TRIGGERS: Mapping[str, type] = {"buffer": Buffer, "clamped-share": ClampedShare, "by-window": ByWindow}
"""Names for `use = …` in the tables of these kinds."""
