"""Triggers: when a stage fires."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from replay.policy.base import Decision, Moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """Fires when what was measured reaches a level.

    The level is `at` × window rounded down, or `tokens`, less `reserve` tokens; `comparison` says whether
    the level itself fires. With fewer than `minimum_messages` in the window it never does.
    """

    at: float | None = None
    """Fraction of the window, in (0, 1]."""
    tokens: int | None = None
    """Absolute level; wins over `at`."""
    reserve: int = 0
    """Tokens taken off the level."""
    comparison: Literal[">=", ">"] = ">="
    minimum_messages: int = 0

    def level(self, moment: Moment) -> int:
        """The level in tokens."""
        if self.tokens is not None:
            return self.tokens - self.reserve
        return math.floor(moment.capacity.window * (1.0 if self.at is None else self.at)) - self.reserve

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Whether the level is reached, with both numbers."""
        level = self.level(moment)
        reason, fires = self._verdict(measured, level, moment)
        return Decision(stage=stage, fires=fires, reason=reason, estimated_tokens=measured, threshold=level)

    def _verdict(self, measured: int | None, level: int, moment: Moment) -> tuple[str, bool]:
        if measured is None:
            return "usage_unknown", False
        if self.minimum_messages and moment.window.message_count() < self.minimum_messages:
            return "messages_not_enough", False
        reached = measured >= level if self.comparison == ">=" else measured > level
        return ("threshold_exceeded", True) if reached else ("below_threshold", False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Always:
    """Fires every time its scope comes up."""

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Always yes."""
        return Decision(stage=stage, fires=True, reason="always", estimated_tokens=measured)


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
