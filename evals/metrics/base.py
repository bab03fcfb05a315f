"""What a metric is given and what it answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol

from evals.costing import LaneCost, Pricing
from replay.engine import Lane, Session
from replay.policy.base import Capacity

Level = Literal["L0", "L1", "L2", "L3"]
"""L0 exact from recording and code; L1 under a stated model; L2 teacher-forced; L3 on-policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One named number of a trial, with its level; a missing one says why."""

    name: str
    value: float | None
    level: Level = "L0"
    reason: str | None = None
    """Why the value is missing; None where there is one."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One policy's lane of one session, as metrics see it."""

    session: Session
    lane: Lane
    capacity: Capacity
    pricing: Pricing = field(default_factory=Pricing)

    @cached_property
    def cost(self) -> LaneCost:
        """The lane's bill under the run's cache and price models."""
        return LaneCost(self.session, self.lane, self.pricing)


class Metric(Protocol):
    """Turns a trial into measurements. It opens no file and knows no policy by name."""

    @property
    def name(self) -> str:
        """The metric's name."""

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """The measurements; a value of None carries a reason."""


def missing(name: str, reason: str, level: Level = "L0") -> Measurement:
    """A measurement that could not be made."""
    return Measurement(name=name, value=None, level=level, reason=reason)


def quantile(values: list[int], q: float) -> float:
    """Linear-interpolation quantile of a non-empty list; q in [0, 1]."""
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
