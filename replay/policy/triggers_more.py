"""Triggers of more than one level: either of several, events, rest times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from replay.policy.base import Decision, Moment, check
from replay.policy.cuts_kept import EVENTS
from replay.policy.triggers import Threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class EitherThreshold:
    """Fires when any of two levels is reached.

    Imitates Kimi CLI: a share of the window, or a reserve below it, whichever is lower.
    """

    first: Threshold = field(default_factory=lambda: Threshold(at=0.85))
    second: Threshold = field(default_factory=lambda: Threshold(reserve=50_000))

    def words(self) -> str:
        """The rule in words."""
        verb = "exceeds" if self.first.comparison == ">" else "reaches"
        return f"when the measure {verb} {_level(self.first)} or {_level(self.second)}"

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """The decision of the level that fires; of the lower one where none does."""
        made = [t.decide(stage, measured, moment) for t in (self.first, self.second)]
        return next((d for d in made if d.fires), min(made, key=lambda d: d.threshold or math.inf))


@dataclass(frozen=True, slots=True, kw_only=True)
class EventCount:
    """Fires when the window holds more than `more_than` events; what an event is says the cut `head-and-tail`."""

    more_than: int = 240

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        check(self, "more_than", self.more_than >= 0, "0 or more")

    def words(self) -> str:
        """The rule in words."""
        return f"when the window holds more than {self.more_than} events"

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Whether there are more events than that; a summary is one."""
        count = moment.log.size(moment.window, EVENTS)
        reason = "events_exceeded" if count > self.more_than else "below_threshold"
        return Decision(stage=stage, fires=count > self.more_than, reason=reason, estimated_tokens=measured)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rested:
    """Fires when the model had not been asked for so many minutes, by the times that the session records."""

    minutes: float = 60.0

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        check(self, "minutes", self.minutes >= 0, "0 or more minutes")

    def words(self) -> str:
        """The rule in words."""
        return f"when the last response is {self.minutes:g} minutes old"

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Whether the last response is so long ago; never where times are unknown."""
        rested = _rested_seconds(moment)
        fires = rested is not None and rested >= self.minutes * 60
        reason = "rested" if fires else "time_unknown" if rested is None else "not_rested"
        return Decision(stage=stage, fires=fires, reason=reason, estimated_tokens=measured)


def _level(threshold: Threshold) -> str:
    whole = "the window" if threshold.at is None else f"{threshold.at:.0%} of the window"
    level = f"{threshold.tokens:,} tokens" if threshold.tokens is not None else whole
    level += " without the output reserve" if threshold.base == "usable" else ""
    return f"{level} less {threshold.reserve:,}" if threshold.reserve else level


def _rested_seconds(moment: Moment) -> float | None:
    """Seconds between the last response and the newest message behind it that has a time."""
    latest = None
    for index in range(moment.window.end - 1, moment.floor - 1, -1):
        message = moment.log.messages[index]
        if message.role == "assistant":
            return None if latest is None or message.time is None else latest - message.time
        latest = message.time if latest is None else latest
    return None


MORE_TRIGGERS: Mapping[str, type] = {"either": EitherThreshold, "event-count": EventCount, "rested": Rested}
"""Names for `use = …` in a trigger table."""
