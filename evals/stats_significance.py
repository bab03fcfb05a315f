"""Tests of paired differences, and their correction when many are made."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np

from evals.stats_bootstrap import RESAMPLES, SEED, Array

EXACT_UP_TO = 25
"""Differences up to which the signed-rank test enumerates every choice of signs."""
_FLIPS_UP_TO = 16
_DIGITS = 10


@dataclass(frozen=True, slots=True)
class SignedRank:
    """A Wilcoxon signed-rank test: the smaller rank sum, the two-sided p, and how many differences it saw."""

    statistic: float
    p: float
    n: int
    exact: bool


def signed_rank(differences: Sequence[float] | Array) -> SignedRank:
    """Two-sided Wilcoxon signed-rank test, zeros ranked and then set aside (Pratt); p is 1 where all are zero.

    Exact up to 25 differences, ties and zeros included, else by the normal approximation.
    """
    d = settled(np.asarray(differences, dtype=float))
    ranks = _ranks(np.abs(d))
    above, moved = float(ranks[d > 0].sum()), ranks[d != 0]
    statistic = min(above, float(moved.sum()) - above)
    exact = d.size <= EXACT_UP_TO
    p = _exact_p(moved, statistic) if exact else _normal_p(moved, above)
    return SignedRank(statistic, p, int(d.size), exact)


def wilcoxon(differences: Sequence[float] | Array) -> float:
    """The p of `signed_rank`."""
    return signed_rank(differences).p


def settled(d: Array) -> Array:
    """Differences without the rounding noise of the subtraction, so that ties are ties."""
    scale = float(np.max(np.abs(d), initial=0.0))
    made: Array = np.round(d / scale, _DIGITS) * scale if scale > 0 and np.isfinite(scale) else d
    return made


def _ranks(values: Array) -> Array:
    """Ranks from 1, ties sharing their mean."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    shared: Array = np.cumsum(counts) - (counts - 1) / 2
    return shared[place]


def _exact_p(ranks: Array, statistic: float) -> float:
    """Two-sided p over all signs; ranks are multiples of one half."""
    doubled = np.rint(ranks * 2).astype(int)
    chance = np.zeros(int(doubled.sum()) + 1)
    chance[0] = 1.0
    for rank in doubled:
        moved = np.zeros_like(chance)
        moved[rank:] = chance[:-rank]
        chance = (chance + moved) / 2
    return min(1.0, 2 * float(chance[:round(statistic * 2) + 1].sum()))


def _normal_p(ranks: Array, above: float) -> float:
    spread = sqrt(float(np.sum(ranks ** 2))) / 2
    return erfc(abs(above - float(ranks.sum()) / 2) / spread / sqrt(2)) if spread else 1.0


def sign_flip_p(sums: Sequence[float] | Array, seed: int = SEED) -> float:
    """Two-sided p of the total under random signs of clusters: exact up to 16 clusters, else from 10,000 draws."""
    d = np.asarray(sums, dtype=float)
    d = d[d != 0]
    if not d.size:
        return 1.0
    bar = abs(float(d.sum())) - 1e-9 * float(np.abs(d).sum())
    if d.size <= _FLIPS_UP_TO:
        signs = (np.arange(2 ** d.size)[:, None] >> np.arange(d.size) & 1) * 2.0 - 1.0
        return float(np.mean(np.abs(signs @ d) >= bar))
    random = np.random.default_rng(seed)
    hits = sum(int(np.sum(np.abs(random.choice([-1.0, 1.0], (100, d.size)) @ d) >= bar))
               for _ in range(RESAMPLES // 100))
    return (hits + 1) / (RESAMPLES + 1)


def bootstrap_p(draws: Array) -> float:
    """Two-sided p that a difference is zero, from its bootstrap draws; never 0 and never above 1."""
    near = 1e-12 * float(np.max(np.abs(draws), initial=0.0))
    smaller = min(int(np.sum(draws <= near)), int(np.sum(draws >= -near)))
    return min(1.0, 2 * (smaller + 1) / (draws.size + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm-adjusted p values in the order given, never above 1."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, running = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        running = max(running, (len(p_values) - rank) * p_values[i])
        adjusted[i] = min(1.0, running)
    return adjusted


def holm_by_family(p_values: Sequence[float], families: Sequence[Hashable]) -> list[float]:
    """Holm within each family of tests; families are declared before anything is measured."""
    adjusted = [0.0] * len(p_values)
    for family in dict.fromkeys(families):
        places = [i for i, f in enumerate(families) if f == family]
        for i, p in zip(places, holm([p_values[i] for i in places]), strict=True):
            adjusted[i] = p
    return adjusted
