"""A trigger without a measure, where the person asked; and levels that leave room for a summary."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass

from replay.policy.base import Decision, Moment, check


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Fires where the person asked for a compaction; a stage that only a refused request forces names no prompt."""

    before_prompts: tuple[int, ...] = ()
    """Numbers of the person's prompts, from 1, in front of which a compaction was asked for."""

    def words(self) -> str:
        """The rule in words."""
        if not self.before_prompts:
            return "only when it is asked for"
        return f"where the person asked for it, before prompt {', '.join(map(str, self.before_prompts))}"

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Whether the next prompt is one of those."""
        fires = 1 + bisect_left(moment.log.prompts, moment.window.end) in self.before_prompts
        return Decision(stage=stage, fires=fires, reason="asked" if fires else "not_asked", estimated_tokens=measured)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareWithRoom:
    """Fires at a share of the window, earlier where that leaves less room than `room`; a window of less has the share.

    Imitates Qwen Code 0.24.
    """

    at: float = 0.85
    room: int = 33_000
    """Tokens."""

    def __post_init__(self) -> None:
        """Refuse a level outside of the window."""
        check(self, "at", 0 < self.at <= 1, "a fraction of the window, above 0 and at most 1")
        check(self, "room", self.room >= 0, "0 or more tokens")

    def words(self) -> str:
        """The rule in words."""
        return f"when the measure reaches {self.at:.0%} of the window or {self.room:,} tokens less than it"

    def level(self, window: int) -> int:
        """The level in tokens."""
        share = math.ceil(self.at * window)
        return min(share, window - self.room) if window > self.room else share

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Whether the level is reached."""
        level = self.level(moment.capacity.window)
        fires = measured is not None and measured >= level
        reason = "threshold_exceeded" if fires else "usage_unknown" if measured is None else "below_threshold"
        return Decision(stage=stage, fires=fires, reason=reason, estimated_tokens=measured, threshold=level)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    """Fires where no more than `room` is left of a large window, or a share of a smaller one.

    Imitates Crush.
    """

    room: int = 20_000
    large_window: int = 200_000
    """Tokens; windows above are large."""
    share: float = 0.2

    def __post_init__(self) -> None:
        """Refuse a share outside of the window."""
        check(self, "share", 0 <= self.share < 1, "a fraction of the window, below 1")
        check(self, "room", self.room >= 0, "0 or more tokens")

    def words(self) -> str:
        """The rule in words."""
        return (f"when no more than {self.room:,} tokens are left of a window above {self.large_window:,} tokens, or "
                f"{self.share:.0%} of a smaller one")

    def level(self, window: int) -> int:
        """The level in tokens."""
        return window - (self.room if window > self.large_window else int(window * self.share))

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Whether so little is left."""
        level = self.level(moment.capacity.window)
        fires = measured is not None and measured >= level
        reason = "threshold_exceeded" if fires else "usage_unknown" if measured is None else "below_threshold"
        return Decision(stage=stage, fires=fires, reason=reason, estimated_tokens=measured, threshold=level)


ASKED_TRIGGERS: Mapping[str, type] = {"asked": Asked, "share-with-room": ShareWithRoom,
                                     "remaining": Remaining}
"""Names for `use = …` in a trigger table."""
