"""Paired statistics: the session is the unit, intervals come with every difference, ranks with every order.

Functions take arrays of paired values and a seed; the same input gives the same output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

RESAMPLES = 10_000
SEED = 20_261
SMALL_SAMPLE = 12
"""Below this many units the interval comes from sign flips instead of a bootstrap."""
EXACT_UP_TO = 25

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """A paired difference with its uncertainty."""

    difference: float
    low: float
    high: float
    p: float
    n: int
    mde: float | None
    """Smallest true difference that a study of this size would find four times out of five."""


def paired(values: Sequence[float], reference: Sequence[float], seed: int = SEED) -> Paired | None:
    """Mean paired difference with a 95 % interval, Wilcoxon p and minimum detectable effect; None without pairs."""
    d = np.asarray(values, dtype=float) - np.asarray(reference, dtype=float)
    if d.size == 0:
        return None
    low, high = interval(d, seed)
    spread = float(d.std(ddof=1)) if d.size > 1 else None
    return Paired(difference=float(d.mean()), low=low, high=high, p=wilcoxon(d), n=int(d.size),
                  mde=2.8 * spread / float(np.sqrt(d.size)) if spread is not None else None)


def interval(values: Sequence[float] | Array, seed: int = SEED, level: float = 0.95) -> tuple[float, float]:
    """Interval of a mean: percentile bootstrap, or sign-flip permutation below 12 values."""
    d = np.asarray(values, dtype=float)
    if d.size == 1 or float(np.ptp(d)) == 0.0:
        return float(d.mean()), float(d.mean())
    tail = (1 - level) / 2
    means = _flipped_means(d, seed) if d.size < SMALL_SAMPLE else resampled_means(d, seed)
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)


def resampled_means(d: Array, seed: int = SEED, resamples: int = RESAMPLES) -> Array:
    """Bootstrap means of a vector; the draws depend only on its length and the seed."""
    draws = np.random.default_rng(seed).integers(0, d.size, (resamples, d.size))
    means: Array = d[draws].mean(axis=1)
    return means


def _flipped_means(d: Array, seed: int) -> Array:
    """Means under random signs around the centre: the spread that chance gives so few values."""
    centre = float(d.mean())
    if d.size <= 13:
        codes = np.arange(2 ** d.size)[:, None] >> np.arange(d.size) & 1
        signs = codes * 2.0 - 1.0
    else:
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], (RESAMPLES, d.size))
    means: Array = centre + (signs * (d - centre)).mean(axis=1)
    return means


def wilcoxon(d: Sequence[float] | Array) -> float:
    """Two-sided Wilcoxon signed-rank p, zeros by Pratt; 1 where all differences are zero.

    Exact up to 25 differences without zeros or ties, else the normal approximation.
    """
    values = np.asarray(d, dtype=float)
    if not np.any(values):
        return 1.0
    from scipy import stats

    clean = len(np.unique(np.abs(values))) == values.size and bool(np.all(values))
    method = "exact" if clean and values.size <= EXACT_UP_TO else "approx"
    result = stats.wilcoxon(values, zero_method="pratt", method=method)
    return min(1.0, float(result.pvalue))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm-adjusted p values in the order given, never above 1."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, running = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        running = max(running, (len(p_values) - rank) * p_values[i])
        adjusted[i] = min(1.0, running)
    return adjusted


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """Where a policy stands among the others, over bootstrap draws of the sessions."""

    low: int
    high: int
    """Bounds of a 95 % interval, 1 the best."""
    p_best: float


def ranks(values: Mapping[str, Sequence[float]], smaller_is_better: bool, seed: int = SEED) -> dict[str, Rank]:
    """Rank intervals of policies measured on the same sessions; policies that tie share the better rank."""
    names = list(values)
    table = np.array([values[n] for n in names], dtype=float)
    if table.size == 0:
        return {}
    draws = np.random.default_rng(seed).integers(0, table.shape[1], (RESAMPLES, table.shape[1]))
    means = np.stack([row[draws].mean(axis=1) for row in table])
    scores = means if smaller_is_better else -means
    placed = 1 + (scores[None, :, :] < scores[:, None, :] - 1e-12).sum(axis=1)
    best = placed == 1
    share = best / best.sum(axis=0)
    bounds = np.quantile(placed, [0.025, 0.975], axis=1)
    return {n: Rank(low=int(bounds[0, i]), high=int(bounds[1, i]), p_best=float(share[i].mean()))
            for i, n in enumerate(names)}
