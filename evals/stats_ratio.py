"""Costs: ratios of sums for what a change saves in all, log-ratios where a few giant bills would decide a mean."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import exp

import numpy as np

from evals.stats_bootstrap import SEED, Array, Clustered, column_intervals, grouped, summed
from evals.stats_significance import wilcoxon


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """How much one policy costs for each unit of the other's cost."""

    ratio: float
    low: float
    high: float
    n: int
    coverage: float
    method: str
    p: float | None = None
    """Two-sided p that the ratio is one; None where it was not tested."""
    dropped: int = 0
    """Pairs left out because one of them is not above zero."""


def ratio_of_sums(values: Sequence[float] | Array, reference: Sequence[float] | Array,
                  clusters: Sequence[Hashable] | None = None, seed: int = SEED, coverage: float = 0.95) -> Ratio | None:
    """The sum of values over the sum of the reference, clusters resampled jointly; None without a positive reference.

    This is the ratio of the whole bill: unlike a mean of ratios it is not decided by cheap sessions.
    """
    column = np.asarray(values, dtype=float)[:, None]
    found = ratio_columns(column, reference, clusters, seed, coverage)
    return found[0] if found else None


def ratio_columns(values: Array, reference: Sequence[float] | Array, clusters: Sequence[Hashable] | None = None,
                  seed: int = SEED, coverage: float = 0.95) -> list[Ratio]:
    """`ratio_of_sums` of every column (units × policies) from the same draws; empty without a positive reference."""
    theirs = np.asarray(reference, dtype=float)
    if not theirs.sum() > 0:
        return []
    sums, sizes = values, np.repeat(theirs[:, None], values.shape[1], axis=1)
    data = Clustered(sums, sizes) if clusters is None else Clustered(summed(sums, clusters), summed(sizes, clusters))
    return [Ratio(ratio=float(data.estimates[k]), low=found.low, high=found.high, n=len(theirs),
                  coverage=found.coverage, method=found.method)
            for k, found in enumerate(column_intervals(data, seed, coverage))]


def log_ratio(values: Sequence[float] | Array, reference: Sequence[float] | Array,
              clusters: Sequence[Hashable] | None = None, seed: int = SEED, coverage: float = 0.95) -> Ratio | None:
    """The geometric mean of paired ratios with Wilcoxon's p on their logarithms; None without positive pairs.

    Pairs where either is not above zero have no logarithm: they are dropped and counted.
    """
    ours, theirs = np.asarray(values, dtype=float), np.asarray(reference, dtype=float)
    usable = (ours > 0) & (theirs > 0)
    if not usable.any():
        return None
    groups = [c for c, u in zip(clusters, usable, strict=True) if u] if clusters is not None else None
    data = grouped(np.log(ours[usable] / theirs[usable]), groups)
    found = column_intervals(data, seed, coverage)[0]
    return Ratio(ratio=exp(float(data.estimates[0])), low=exp(found.low), high=exp(found.high), n=int(usable.sum()),
                 coverage=found.coverage, method=found.method, p=wilcoxon((data.sums / data.sizes)[:, 0]),
                 dropped=int((~usable).sum()))
