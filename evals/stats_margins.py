"""Non-inferiority and equivalence against margins that are fixed before looking. "Not significant" is never "equal"."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evals.stats_bootstrap import SEED, Array, Interval, interval
from evals.stats_ratio import ratio_of_sums

Kind = Literal["non-inferior", "inferior", "undecided"]


@dataclass(frozen=True, slots=True)
class Margin:
    """How much worse still counts as no worse: a difference, or for `ratio` a factor on the reference's sum."""

    size: float
    better: Literal["low", "high"]
    scale: Literal["difference", "ratio"] = "difference"

    @property
    def limit(self) -> float:
        """The last difference or ratio that is still inside."""
        return -self.size if self.scale == "difference" and self.better == "high" else self.size


MARGINS: Mapping[str, Margin] = {
    "needed-evidence retention": Margin(0.01, "high"),
    "edit-safety rate": Margin(0.02, "high"),
    "pass@1": Margin(0.03, "high"),
    "cost": Margin(1.03, "low", "ratio"),
}
"""Margins of a comparison unless it declares its own."""

GATE_MARGINS: Mapping[str, Margin] = {
    "needed-evidence retention": Margin(0.01, "high"),
    "edit-safety rate": Margin(0.01, "high"),
    "permanent instruction losses": Margin(0.0, "low"),
    "repair-adjusted cost": Margin(1.02, "low", "ratio"),
    "peak view tokens": Margin(1.02, "low", "ratio"),
    "re-reads per 100 steps": Margin(1.05, "low", "ratio"),
}
"""Margins of the regression gate's toleranced tier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The answer to "is it no worse?"."""

    kind: Kind
    estimate: float
    bound: float
    """The one-sided 95 % bound on the worse side."""
    limit: float
    n: int
    coverage: float
    """Coverage of the two-sided interval whose end the bound is: 0.9, or less where very few clusters are all."""


def noninferior(values: Sequence[float] | Array, reference: Sequence[float] | Array, margin: Margin,
                clusters: Sequence[Hashable] | None = None, seed: int = SEED) -> Verdict:
    """Non-inferior when the one-sided 95 % bound is inside the margin, inferior when even the other bound is outside.

    Raises ValueError without pairs, or for a ratio to a reference that sums to zero.
    """
    estimate, found = _estimate(values, reference, margin, clusters, seed)
    limit = margin.limit
    worse, other = (found.low, found.high) if margin.better == "high" else (found.high, found.low)
    proven = _proven(found, margin)
    kind: Kind = "undecided"
    if proven and _inside(worse, limit, margin.better):
        kind = "non-inferior"
    elif proven and not _inside(other, limit, margin.better):
        kind = "inferior"
    return Verdict(kind=kind, estimate=estimate, bound=worse, limit=limit, n=len(values), coverage=found.coverage)


def _proven(found: Interval, margin: Margin) -> bool:
    """Whether there are clusters enough for a bound of 95 %, or nothing has changed at all."""
    unchanged = 0.0 if margin.scale == "difference" else 1.0
    return found.coverage >= 0.9 - 1e-9 or found.low == found.high == unchanged


def _inside(value: float, limit: float, better: str) -> bool:
    slack = 1e-12 * max(1.0, abs(limit))
    return value >= limit - slack if better == "high" else value <= limit + slack


def _estimate(values: Sequence[float] | Array, reference: Sequence[float] | Array, margin: Margin,
              clusters: Sequence[Hashable] | None, seed: int) -> tuple[float, Interval]:
    """The estimate on the margin's scale and its two-sided 90 % interval: each end bounds one side at 95 %."""
    if margin.scale == "difference":
        d = np.asarray(values, dtype=float) - np.asarray(reference, dtype=float)
        return float(d.mean()) if d.size else float("nan"), interval(d, clusters, seed, 0.9)
    found = ratio_of_sums(values, reference, clusters, seed, 0.9)
    if found is None:
        raise ValueError("the reference sums to zero: there is no ratio to it")
    return found.ratio, Interval(found.low, found.high, found.coverage, found.method)


def equivalent(values: Sequence[float] | Array, reference: Sequence[float] | Array, margin: Margin,
               clusters: Sequence[Hashable] | None = None, seed: int = SEED) -> bool:
    """Two one-sided tests: whether both bounds are inside the margin. Raises ValueError as `noninferior` does."""
    _, found = _estimate(values, reference, margin, clusters, seed)
    low, high = (1 / margin.size, margin.size) if margin.scale == "ratio" else (-margin.size, margin.size)
    return _proven(found, margin) and _inside(found.low, low, "high") and _inside(found.high, high, "low")
