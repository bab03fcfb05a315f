"""Triggers: when a stage fires."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from replay.policy.base import Decision, Moment, check
from replay.window import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Fires when what was measured reaches a level.

    The level is `at` × window rounded down, or `tokens`, less `reserve` tokens; `comparison` says whether
    the level itself fires. With fewer than `minimum_messages` in the window, system messages not counted, it
    never does.
    """

    at: float | None = None
    """Fraction of the window, in (0, 1]."""
    tokens: int | None = None
    """Absolute level; wins over `at`."""
    reserve: int = 0
    """Tokens taken off the level."""
    comparison: Literal[">=", ">"] = ">="
    minimum_messages: int = 0
    base: Literal["window", "usable"] = "window"
    """`usable`: the window less the output reserve stands for the window."""

    def __post_init__(self) -> None:
        """Refuse a level outside of the window."""
        check(self, "at", self.at is None or 0 < self.at <= 1, "a fraction of the window, above 0 and at most 1")
        check(self, "tokens", self.tokens is None or self.tokens > 0, "a positive number of tokens")
        check(self, "reserve", self.reserve >= 0, "a number of tokens, 0 or more")

    def level(self, moment: Moment) -> int:
        """The level in tokens."""
        if self.tokens is not None:
            return self.tokens - self.reserve
        whole = moment.capacity.window if self.base == "window" else moment.capacity.usable
        return math.floor(whole * (1.0 if self.at is None else self.at)) - self.reserve

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Whether the level is reached, with both numbers."""
        level = self.level(moment)
        reason, fires = self._verdict(measured, level, moment)
        return Decision(stage, fires, reason, measured, level)

    def _verdict(self, measured: int | None, level: int, moment: Moment) -> tuple[str, bool]:
        if measured is None:
            return "usage_unknown", False
        if self.minimum_messages and _messages(moment) < self.minimum_messages:
            return "messages_not_enough", False
        reached = measured >= level if self.comparison == ">=" else measured > level
        return ("threshold_exceeded", True) if reached else ("below_threshold", False)


def _messages(moment: Moment) -> int:
    """Messages of the window that are not system messages; a summary is one."""
    pinned = moment.log.pinned
    spans = (item for item in moment.window.items if isinstance(item, Span))
    system = sum(bisect_left(pinned, span.stop) - bisect_left(pinned, span.start) for span in spans)
    return moment.window.message_count() - system


@dataclass(frozen=True, slots=True, kw_only=True)
class Always:
    """Fires every time its scope comes up."""

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Always yes."""
        return Decision(stage, True, "always", measured)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCount:
    """Fires when the window holds more than `more_than` messages."""

    more_than: int

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Whether there are more messages than that."""
        fires = moment.window.message_count() > self.more_than
        reason = "messages_exceeded" if fires else "below_threshold"
        return Decision(stage=stage, fires=fires, reason=reason, estimated_tokens=measured)


TRIGGERS: Mapping[str, type] = {"threshold": Threshold, "always": Always, "message-count": MessageCount}
"""Names for `use = …` in a trigger table."""
