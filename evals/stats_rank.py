"""Order with its uncertainty: bootstrap ranks, the policies that may still be the best, and the Pareto front."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evals.stats import paired_p
from evals.stats_bootstrap import SEED, Array, grouped, mean_draws
from evals.stats_significance import holm

_SURE = 0.95
_ENOUGH_FOR_TAILS = 6
"""Below this many clusters a rank interval spans every rank that resampling gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rank:
    """Where a policy stands among the others, over bootstrap draws of the sessions."""

    low: int
    high: int
    """Bounds of a 95 % interval, 1 the best."""
    p_best: float
    """Share of draws in which it is first; shared among those that tie."""


def ranks(values: Mapping[str, Sequence[float] | Array], smaller_is_better: bool, seed: int = SEED,
          clusters: Sequence[Hashable] | None = None) -> dict[str, Rank]:
    """Ranks of policies measured on the same sessions; policies that tie share the better rank.

    Empty below two clusters: one cluster says nothing about the next.
    """
    table = np.column_stack([np.asarray(v, dtype=float) for v in values.values()]) if values else np.empty((0, 0))
    data = grouped(table, clusters) if table.size else None
    if data is None or data.clusters < 2:
        return {}
    draws = mean_draws(data, seed) * (1.0 if smaller_is_better else -1.0)
    return dict(zip(values, rank_draws(draws, data.clusters), strict=True))


def rank_draws(scores: Array, clusters: int) -> list[Rank]:
    """Ranks of columns from joint draws of their scores (draws × policies), the smallest score first."""
    near = 1e-12 * float(np.max(np.abs(scores), initial=0.0))
    placed = np.stack([1 + (scores < scores[:, [k]] - near).sum(axis=1) for k in range(scores.shape[1])])
    first = placed == 1
    share = (first / first.sum(axis=0)).mean(axis=1)
    tails = (0.025, 0.975) if clusters >= _ENOUGH_FOR_TAILS else (0.0, 1.0)
    low, high = np.quantile(placed, tails, axis=1, method="inverted_cdf")
    return [Rank(low=int(a), high=int(b), p_best=float(p)) for a, b, p in zip(low, high, share, strict=True)]


def not_worse_than_best(values: Mapping[str, Sequence[float] | Array], smaller_is_better: bool,
                        clusters: Sequence[Hashable] | None = None, alpha: float = 0.05) -> set[str]:
    """The best on average and all whose paired difference to it is not significant after Holm."""
    means = {name: float(np.mean(v)) for name, v in values.items() if len(v)}
    if not means:
        return set()
    best = (min if smaller_is_better else max)(means, key=lambda n: means[n])
    others = [n for n in means if n != best]
    adjusted = holm([paired_p(values[n], values[best], clusters) for n in others])
    return {best} | {n for n, p in zip(others, adjusted, strict=True) if p > alpha}


def pareto_front(draws: Mapping[str, Array]) -> set[str]:
    """Policies that no other dominates; each holds joint draws × axes, the smaller the better on each axis.

    One dominates another when it is no worse on every axis and better on one in at least 95 % of the draws.
    """
    return {p for p, a in draws.items() if not any(dominates(b, a) for q, b in draws.items() if q != p)}


def dominates(ours: Array, theirs: Array) -> bool:
    """Whether ours dominates theirs in at least 95 % of the draws."""
    near = 1e-12 * np.maximum(np.abs(ours), np.abs(theirs))
    no_worse = np.all(ours <= theirs + near, axis=1)
    better = np.any(ours < theirs - near, axis=1)
    return float(np.mean(no_worse & better)) >= _SURE


@dataclass(frozen=True, slots=True)
class Weights:
    """Where a policy wins among all weightings of the axes."""

    share: float
    """Share of the weightings on the grid that it wins; ties count for each."""
    ranges: tuple[tuple[float, float], ...]
    """Smallest and largest weight of each axis among those that it wins; empty where it wins none."""


def winning_weights(points: Mapping[str, Sequence[float]], steps: int = 20) -> dict[str, Weights]:
    """For each policy the weights of the axes under which it has the lowest weighted sum.

    Axes are smaller-is-better and scaled to the range that the policies span; an axis that does not vary decides
    nothing.
    """
    table = np.array(list(points.values()), dtype=float)
    span = np.ptp(table, axis=0)
    scaled = (table - table.min(axis=0)) / np.where(span > 0, span, 1.0)
    grid = np.array(list(_simplex(table.shape[1], steps)), dtype=float) / steps
    scores = grid @ scaled.T
    wins = scores <= scores.min(axis=1, keepdims=True) + 1e-12
    return {name: _weights(grid[wins[:, k]], grid) for k, name in enumerate(points)}


def _weights(won: Array, grid: Array) -> Weights:
    if not len(won):
        return Weights(0.0, ())
    ends = zip(won.min(axis=0), won.max(axis=0), strict=True)
    return Weights(len(won) / len(grid), tuple((float(a), float(b)) for a, b in ends))


def _simplex(axes: int, total: int) -> list[tuple[int, ...]]:
    """All ways to share `total` among so many axes."""
    if axes == 1:
        return [(total,)]
    return [(first, *rest) for first in range(total + 1) for rest in _simplex(axes - 1, total - first)]
