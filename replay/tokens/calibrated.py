"""From counted to billed tokens: a per-session fit of recorded usage, and the best figure for any view."""

from __future__ import annotations

import statistics
from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby
from typing import Literal, NamedTuple

How = Literal["recorded", "anchored", "calibrated", "counted"]
MINIMUM_STEPS = 3
"""Fewer usable steps than this fit nothing: factor 1, overhead unknown."""
_FALL, _STEADY = 0.98, 0.99
"""A bill below this share of the one before, for a count that kept this share, is no matter of counting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """Billed input tokens ≈ overhead + factor × counted tokens, by least squares over a session's steps.

    The factor is the session's. The overhead is that of the step's segment: a new one begins where the
    harness compacted (it puts in what no file holds, such as restored attachments), and where the bill falls
    though the counted view did not shrink (it took out what no file tells of).
    """

    factor: float = 1.0
    overhead: float | None = None
    """Tokens of what no transcript holds (system prompt, tool schemas), in the first segment; None: unknown."""
    error: float | None = None
    """Median absolute error as a fraction, fitted on the odd steps and judged on the even ones."""
    steps: int = 0
    """Steps with usage that the fit used."""
    starts: tuple[int, ...] = ()
    """Step at which each segment begins."""
    overheads: tuple[float, ...] = ()
    """Overhead of each segment; below zero where less was sent than the file holds."""

    def tokens(self, counted: float, step: int = 0) -> float:
        """Billed tokens expected for a counted size at a step (default: in the first segment)."""
        place = max(0, bisect_right(self.starts, step) - 1)
        overhead = self.overheads[place] if self.overheads else self.overhead or 0.0
        return max(0.0, overhead + self.factor * counted)


class Figure(NamedTuple):
    """A token figure for one view and how it was obtained."""

    tokens: int
    how: How


def fit(counted: Sequence[int], billed: Sequence[int], steps: Sequence[int] = (),
        breaks: Collection[int] = ()) -> Calibration:
    """Fit billed input tokens of a session's steps to counted ones (both of the same length).

    `steps` are their numbers (default: from 1), `breaks` the numbers at which the harness compacted. With fewer
    than three steps, or no spread in the counts, the factor is 1 and the overhead unknown. A line that would
    start below zero is drawn through the origin: overheads are sizes.
    """
    numbers = steps or range(1, len(counted) + 1)
    segments = _segments(counted, billed, numbers, breaks)
    points = [_Point(s, x, y) for s, x, y in zip(segments, counted, billed, strict=True)]
    factor, overheads = _least_squares(points)
    if factor is None:
        return Calibration(steps=len(points))
    starts = tuple(numbers[next(group)[0]] for _, group in groupby(enumerate(points), key=lambda p: p[1].segment))
    return Calibration(factor=factor, overhead=max(0.0, overheads[0]), error=_held_out_error(points), steps=len(points),
                       starts=starts, overheads=tuple(overheads.values()))


@dataclass(frozen=True, slots=True)
class _Point:
    """A step's segment, counted and billed tokens."""

    segment: int
    counted: int
    billed: int


def _segments(counted: Sequence[int], billed: Sequence[int], steps: Sequence[int],
              breaks: Collection[int]) -> list[int]:
    """The number of each step's segment, from 0."""
    begins = [0]
    for i in range(1, len(counted)):
        compacted = any(steps[i - 1] < b <= steps[i] for b in breaks)
        fell = billed[i] < _FALL * billed[i - 1] and counted[i] >= _STEADY * counted[i - 1]
        begins.append(int(compacted or fell))
    return list(accumulate(begins[:len(counted)]))


def _least_squares(points: Sequence[_Point]) -> tuple[float | None, dict[int, float]]:
    """One slope for all segments and an intercept for each; no slope where the counts do not vary."""
    means = {segment: (statistics.fmean(p.counted for p in members), statistics.fmean(p.billed for p in members))
             for segment, members in _by_segment(points).items()}
    spread = sum((p.counted - means[p.segment][0]) ** 2 for p in points)
    if len(points) < MINIMUM_STEPS or not spread:
        return None, {}
    together = sum((p.counted - means[p.segment][0]) * (p.billed - means[p.segment][1]) for p in points)
    slope = together / spread
    overheads = {segment: y - slope * x for segment, (x, y) in means.items()}
    if slope <= 0 or (len(means) == 1 and min(overheads.values()) < 0):
        return _through_origin(points)
    return slope, overheads


def _by_segment(points: Sequence[_Point]) -> dict[int, list[_Point]]:
    found: dict[int, list[_Point]] = {}
    for point in points:
        found.setdefault(point.segment, []).append(point)
    return found


def _through_origin(points: Sequence[_Point]) -> tuple[float | None, dict[int, float]]:
    squares = sum(p.counted ** 2 for p in points)
    slope = sum(p.counted * p.billed for p in points) / squares
    return (slope, dict.fromkeys(sorted({p.segment for p in points}), 0.0)) if slope > 0 else (None, {})


def _held_out_error(points: Sequence[_Point]) -> float | None:
    factor, overheads = _least_squares(points[0::2])
    if factor is None or len(points) < 2 * MINIMUM_STEPS:
        return None
    errors = [abs(overheads[p.segment] + factor * p.counted - p.billed) / p.billed
              for p in points[1::2] if p.segment in overheads]
    return statistics.median(errors) if errors else None


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
            return Figure(round(self.calibration.tokens(counted, step)), "calibrated")
        return Figure(counted, "counted")
