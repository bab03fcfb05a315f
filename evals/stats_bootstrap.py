"""Intervals by resampling: a paired cluster bootstrap, and an exact interval by sign flips for few clusters.

Every statistic here is a ratio of sums over clusters: a mean is the sum of its values over the number of its units, a
ratio of costs the sum of one policy's bills over the sum of the other's. Draws depend on the number of clusters and the
seed alone, so columns that are measured on the same clusters are resampled jointly.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import Any

import numpy as np

RESAMPLES = 10_000
SEED = 0
SMALL_SAMPLE = 12
"""Below this many clusters the interval comes from sign flips instead of a bootstrap."""
BCA_FROM = 30
"""From this many clusters on percentile intervals are corrected for bias and skew."""
DIRECT_UP_TO = 10_000
"""Above this many clusters sums are drawn from their normal limit, which is exact enough there."""
_CACHED_UP_TO = 2_000
_READY_UP_TO = 64
_CELLS_AT_ONCE = 2_000_000

Array = np.ndarray[Any, np.dtype[np.float64]]
Counts = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class Clustered:
    """Columns of sums over clusters, and what each sum is divided by; both clusters × columns."""

    sums: Array
    sizes: Array

    @property
    def clusters(self) -> int:
        """How many clusters there are."""
        return int(self.sums.shape[0])

    @property
    def estimates(self) -> Array:
        """The ratio of sums of each column; NaN where nothing is there to divide by."""
        return _divided(self.sums.sum(axis=0), self.sizes.sum(axis=0))


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval, the coverage that its method reaches (0 where one cluster is all there is) and the method."""

    low: float
    high: float
    coverage: float
    method: str


def grouped(values: Sequence[float] | Array, clusters: Sequence[Hashable] | None = None) -> Clustered:
    """Sum values (units, or units × columns; NaN is left out) within clusters; by default each unit is its own."""
    table = np.asarray(values, dtype=float)
    table = table[:, None] if table.ndim == 1 else table
    known = ~np.isnan(table)
    filled = np.where(known, table, 0.0)
    if clusters is None:
        return Clustered(filled, known.astype(float))
    return Clustered(summed(filled, clusters), summed(known.astype(float), clusters))


def summed(table: Array, clusters: Sequence[Hashable]) -> Array:
    """Sums of the rows of each cluster, clusters in the order of their first row."""
    places: dict[Hashable, int] = {}
    codes = [places.setdefault(c, len(places)) for c in clusters]
    total = np.zeros((len(places), table.shape[1]))
    np.add.at(total, codes, table)
    return total


def drawn_sums(columns: Array, seed: int = SEED, resamples: int = RESAMPLES) -> Array:
    """Sums of each column over resampled clusters: draws × columns."""
    count = columns.shape[0]
    if count > DIRECT_UP_TO:
        return _normal_sums(columns, seed, resamples)
    return np.concatenate([np.asarray(block, dtype=float) @ columns for block in _weights(count, seed, resamples)])


def mean_draws(data: Clustered, seed: int = SEED, resamples: int = RESAMPLES) -> Array:
    """Bootstrap draws of the ratio of sums of each column: draws × columns."""
    return joint_draws([data], seed, resamples)[0]


def joint_draws(parts: Sequence[Clustered], seed: int = SEED, resamples: int = RESAMPLES) -> list[Array]:
    """`mean_draws` of several tables over the same clusters, all from the same draws."""
    drawn = drawn_sums(np.hstack([column for p in parts for column in (p.sums, p.sizes)]), seed, resamples)
    edges = np.cumsum([0, *(p.sums.shape[1] for p in parts for _ in range(2))])
    blocks = [drawn[:, a:b] for a, b in pairwise(edges)]
    return [_divided(sums, sizes) for sums, sizes in zip(blocks[::2], blocks[1::2], strict=True)]


def _weights(count: int, seed: int, resamples: int) -> Iterable[Counts]:
    """How often each draw takes each cluster, in blocks of draws that fit into memory."""
    if count <= _READY_UP_TO:
        return _ready_blocks(count, seed, resamples)
    return _kept_blocks(count, seed, resamples) if count <= _CACHED_UP_TO else _blocks(count, seed, resamples)


@lru_cache(maxsize=16)
def _ready_blocks(count: int, seed: int, resamples: int) -> tuple[Array, ...]:
    """The same for few clusters, in the type that they are multiplied in: strata of small cohorts come back often."""
    return tuple(block.astype(float) for block in _blocks(count, seed, resamples))


@lru_cache(maxsize=4)
def _kept_blocks(count: int, seed: int, resamples: int) -> tuple[Counts, ...]:
    """The metrics of a run are measured on the same sessions: their draws are made once."""
    # A cluster is drawn once on average; more than 65,535 times is beyond any chance.
    return tuple(block.astype(np.uint16) for block in _blocks(count, seed, resamples))


def _blocks(count: int, seed: int, resamples: int) -> Iterator[Counts]:
    random = np.random.default_rng(seed)
    for start in range(0, resamples, rows := max(1, _CELLS_AT_ONCE // count)):
        taken = min(rows, resamples - start)
        cells = random.integers(0, count, (taken, count)) + np.arange(taken)[:, None] * count
        yield np.bincount(cells.ravel(), minlength=taken * count).reshape(taken, count)


def _normal_sums(columns: Array, seed: int, resamples: int) -> Array:
    """Sums from the joint normal distribution that resampled sums of very many clusters follow."""
    width = columns.shape[1]
    centred = columns - columns.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    root = vectors * np.sqrt(np.clip(values, 0.0, None))
    noise = np.random.default_rng(seed).standard_normal((resamples, width))
    total: Array = columns.sum(axis=0) + noise @ root.T
    return total


def interval(values: Sequence[float] | Array, clusters: Sequence[Hashable] | None = None, seed: int = SEED,
             coverage: float = 0.95, method: str | None = None) -> Interval:
    """Interval of a mean; `method` is chosen by the number of clusters when it is None. Raises ValueError if empty."""
    data = grouped(values, clusters)
    if not data.sizes.sum():
        raise ValueError("an interval needs at least one value")
    return column_intervals(data, seed, coverage, method)[0]


def column_intervals(data: Clustered, seed: int = SEED, coverage: float = 0.95, method: str | None = None,
                     draws: Array | None = None) -> list[Interval]:
    """Intervals of every column from joint draws: sign flips below 12 clusters, percentile, BCa from 30 on."""
    chosen = method or method_for(data.clusters)
    width = data.sums.shape[1]
    if chosen == "sign-flip":
        return [flip_interval(data.sums[:, k], data.sizes[:, k], coverage) for k in range(width)]
    drawn = mean_draws(data, seed) if draws is None else draws
    left = _jackknife(data) if chosen == "bca" else None
    estimates = data.estimates
    found: dict[tuple[bytes, bytes], Interval] = {}
    keys = [(data.sums[:, k].tobytes(), data.sizes[:, k].tobytes()) for k in range(width)]
    # Policies that never acted have the same column: it is resampled once.
    for k, key in enumerate(keys):
        if key not in found:
            found[key] = from_draws(drawn[:, k], float(estimates[k]), coverage, None if left is None else left[:, k])
    return [found[key] for key in keys]


def method_for(clusters: int) -> str:
    """The interval's method for so many clusters: `sign-flip`, `percentile` or `bca`."""
    if clusters < SMALL_SAMPLE:
        return "sign-flip"
    return "bca" if clusters >= BCA_FROM else "percentile"


def from_draws(draws: Array, estimate: float, coverage: float = 0.95, left_out: Array | None = None) -> Interval:
    """Percentile interval of draws; with the estimates that leave one cluster out, bias-corrected and accelerated.

    Draws that are NaN (nothing was drawn to divide by) are left aside.
    """
    known = draws[~np.isnan(draws)]
    method = "percentile" if left_out is None else "bca"
    if not known.size:
        return Interval(estimate, estimate, 0.0, method)
    tails = ((1 - coverage) / 2, (1 + coverage) / 2)
    shares = tails if left_out is None else _corrected(known, estimate, left_out, tails)
    low, high = np.quantile(known, shares)
    return Interval(float(low), float(high), coverage, method)


def _corrected(draws: Array, estimate: float, left_out: Array, tails: tuple[float, float]) -> tuple[float, float]:
    """The BCa quantiles; the plain ones where draws or leave-one-out estimates do not vary."""
    normal = NormalDist()
    near = 1e-12 * float(np.max(np.abs(draws)))
    below = (np.sum(draws < estimate - near) + 0.5 * np.sum(np.abs(draws - estimate) <= near)) / draws.size
    apart = left_out.mean() - left_out
    spread = float(np.sum(apart ** 2))
    if not (0.0 < below < 1.0 and spread > near ** 2):
        return tails
    bias, acceleration = normal.inv_cdf(float(below)), float(np.sum(apart ** 3)) / (6 * spread ** 1.5)
    reached = [bias + normal.inv_cdf(t) for t in tails]
    if max(acceleration * r for r in reached) >= 1.0:
        return tails
    low, high = (normal.cdf(bias + r / (1 - acceleration * r)) for r in reached)
    return low, high


def _jackknife(data: Clustered) -> Array:
    """Each column's estimate without one cluster: clusters × columns."""
    return _divided(data.sums.sum(axis=0) - data.sums, data.sizes.sum(axis=0) - data.sizes)


def flip_interval(sums: Array, sizes: Array, coverage: float = 0.95) -> Interval:
    """All values that an exact sign-flip test of clusters does not reject.

    Flipping the clusters of a subset beats the test's statistic exactly when the subset's own estimate lies on the
    other side of the value, so the ends are order statistics of the estimates of all subsets. Below six clusters no
    exact 95 % interval is bounded: the ends are then the extreme clusters, and `coverage` says what that covers.
    """
    used = sizes > 0
    count = int(used.sum())
    if count == 0:
        return Interval(float("nan"), float("nan"), 0.0, "sign-flip")
    subsets = (np.arange(1, 2 ** count)[:, None] >> np.arange(count) & 1).astype(float)
    estimates = np.sort((subsets @ sums[used]) / (subsets @ sizes[used]))
    place = max(1, int(2 ** count * (1 - coverage) / 2 + 1e-9))
    return Interval(float(estimates[place - 1]), float(estimates[-place]), 1 - 2 * place / 2 ** count, "sign-flip")


def _divided(sums: Array, sizes: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sizes > 0, sums / sizes, np.nan)
