"""From counted to billed tokens: a per-session fit of recorded usage, and the best figure for any view."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

How = Literal["recorded", "anchored", "calibrated", "counted"]
MINIMUM_STEPS = 3
"""Fewer usable steps than this fit nothing: factor 1, overhead unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Billed input tokens ≈ overhead + factor × counted tokens, by least squares over a session's steps."""

    factor: float = 1.0
    overhead: float | None = None
    """Tokens of what no transcript holds (system prompt, tool schemas); None: unknown."""
    error: float | None = None
    """Median absolute error as a fraction, fitted on the odd steps and judged on the even ones."""
    steps: int = 0
    """Steps with usage that the fit used."""

    def tokens(self, counted: float) -> float:
        """Billed tokens expected for a counted size."""
        return (self.overhead or 0.0) + self.factor * counted


@dataclass(frozen=True, slots=True)
class Figure:
    """A token figure for one view and how it was obtained."""

    tokens: int
    how: How


def fit(counted: Sequence[int], billed: Sequence[int]) -> Calibration:
    """Fit billed input tokens of a session's steps to counted ones (both of the same length).

    With fewer than three steps, or no spread in the counts, the factor is 1 and the overhead unknown.
    A fit with a negative overhead is repeated through the origin: overheads are sizes.
    """
    factor, overhead = _least_squares(counted, billed)
    if factor is None:
        return Calibration(steps=len(counted))
    return Calibration(factor=factor, overhead=overhead, error=_held_out_error(counted, billed), steps=len(counted))


def _least_squares(x: Sequence[float], y: Sequence[float]) -> tuple[float | None, float | None]:
    if len(x) < MINIMUM_STEPS or max(x) == min(x):
        return None, None
    mean_x, mean_y = statistics.fmean(x), statistics.fmean(y)
    spread = sum((a - mean_x) ** 2 for a in x)
    slope = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / spread
    intercept = mean_y - slope * mean_x
    if intercept >= 0 and slope > 0:
        return slope, intercept
    squares = sum(a * a for a in x)
    through_origin = sum(a * b for a, b in zip(x, y, strict=True)) / squares if squares else 1.0
    return (through_origin, 0.0) if through_origin > 0 else (None, None)


def _held_out_error(counted: Sequence[int], billed: Sequence[int]) -> float | None:
    factor, overhead = _least_squares(counted[0::2], billed[0::2])
    if factor is None or len(counted) < 2 * MINIMUM_STEPS:
        return None
    errors = [abs((overhead or 0.0) + factor * c - b) / b for c, b in zip(counted[1::2], billed[1::2], strict=True)]
    return statistics.median(errors)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """Gives the best token figure for a view of a step.

    Where the step's usage was recorded the figure is anchored: recorded usage + factor × the difference
    between this view's count and the recorded view's. Otherwise it is calibrated, or a plain count.
    """

    calibration: Calibration = field(default_factory=Calibration)
    recorded: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Step number to (billed input tokens, counted tokens of the recorded view)."""

    def figure(self, step: int, counted: int) -> Figure:
        """The figure for a view of `counted` tokens at a step."""
        anchor = self.recorded.get(step)
        if anchor is not None:
            billed, base = anchor
            if counted == base:
                return Figure(billed, "recorded")
            return Figure(max(0, round(billed + self.calibration.factor * (counted - base))), "anchored")
        if self.calibration.overhead is not None:
            return Figure(round(self.calibration.tokens(counted)), "calibrated")
        return Figure(counted, "counted")
