"""Paired outcomes that are yes or no: exact tests, shares with their intervals, and what zero events allow to say."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import exp, lgamma, log, sqrt
from statistics import NormalDist

import numpy as np

from evals.stats_bootstrap import RESAMPLES, SEED, Array, Interval, interval


@dataclass(frozen=True, slots=True)
class McNemar:
    """An exact McNemar test: units that only one side solved, only the other solved, and the two-sided p."""

    b: int
    c: int
    p: float


def mcnemar(b: int, c: int) -> McNemar:
    """Exact test of b against c discordant pairs; p is 1 without any. Raises ValueError for negative counts."""
    if b < 0 or c < 0:
        raise ValueError(f"counts of pairs cannot be negative: {b}, {c}")
    return McNemar(b, c, min(1.0, 2 * _half_tail(min(b, c), b + c)))


def _half_tail(k: int, n: int) -> float:
    """P(Bin(n, ½) ≤ k), summed downwards from its largest term."""
    term = exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - n * log(2))
    total = 0.0
    while k >= 0 and term > total * 1e-17:
        total += term
        term *= k / (n - k + 1)
        k -= 1
    return min(1.0, total)


def mcnemar_of(values: Sequence[float] | Array, reference: Sequence[float] | Array) -> McNemar:
    """McNemar of paired 0/1 outcomes: b counts units that only the reference solved, c those that only values did."""
    ours, theirs = np.asarray(values, dtype=float), np.asarray(reference, dtype=float)
    return mcnemar(int(np.sum((theirs == 1) & (ours == 0))), int(np.sum((theirs == 0) & (ours == 1))))


def is_binary(*columns: Sequence[float] | Array) -> bool:
    """Whether every value is 0 or 1."""
    return all(bool(np.all(np.isin(np.asarray(c, dtype=float), (0.0, 1.0)))) for c in columns)


def label_permutation(passed: Sequence[int], trials: Sequence[int], reference_passed: Sequence[int],
                      reference_trials: Sequence[int], seed: int = SEED, resamples: int = RESAMPLES) -> float:
    """Two-sided p of the mean difference of pass rates when arm labels are permuted within each task.

    For several trials per task, where McNemar does not apply. One entry per task; each arm has at least one trial.
    """
    ours, theirs = np.asarray(trials), np.asarray(reference_trials)
    total = np.asarray(passed) + np.asarray(reference_passed)
    observed = abs(float(np.sum(np.asarray(passed) / ours - np.asarray(reference_passed) / theirs)))
    random, hits = np.random.default_rng(seed), 0
    for _ in range(resamples // 100):
        drawn = random.hypergeometric(total, ours + theirs - total, ours, (100, ours.size))
        spread = np.sum(drawn / ours - (total - drawn) / theirs, axis=1)
        hits += int(np.sum(np.abs(spread) >= observed - 1e-9))
    return (hits + 1) / (resamples // 100 * 100 + 1)


def zero_event_upper(n: int, coverage: float = 0.95) -> float:
    """Upper bound of a share of which n independent units showed no case; 1 for n = 0."""
    return 1 - (1 - coverage) ** (1 / n) if n else 1.0


def share_interval(values: Sequence[float] | Array, clusters: Sequence[Hashable] | None = None, seed: int = SEED,
                   coverage: float = 0.95) -> Interval:
    """Interval of the share of ones among 0/1 values: Wilson's, resampled where clusters hold several units.

    Where no unit or every unit is one, the bound of zero events over the clusters stands on the open side.
    """
    found = np.asarray(values, dtype=float)
    count = len(set(clusters)) if clusters is not None else found.size
    share = float(found.mean())
    if share in (0.0, 1.0):
        room = zero_event_upper(count, coverage)
        low, high = (0.0, room) if share == 0 else (1 - room, 1.0)
        return Interval(low, high, coverage, "zero-events")
    if count < found.size:
        return interval(found, clusters, seed, coverage)
    return _wilson(share, found.size, coverage)


def _wilson(share: float, n: int, coverage: float) -> Interval:
    z = NormalDist().inv_cdf((1 + coverage) / 2)
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Interval(middle - half, middle + half, coverage, "wilson")


def paired_share_interval(values: Sequence[float] | Array, reference: Sequence[float] | Array,
                          coverage: float = 0.95) -> Interval:
    """Interval of the difference of two shares of ones on the same units, by Newcombe's hybrid of Wilson intervals.

    Unlike resampling it keeps a width where all units differ alike. Raises ValueError without units.
    """
    ours, theirs = np.asarray(values, dtype=float), np.asarray(reference, dtype=float)
    if not ours.size:
        raise ValueError("no units: there is no share")
    one, two = (_wilson(float(column.mean()), column.size, coverage) for column in (ours, theirs))
    p, q, phi = float(ours.mean()), float(theirs.mean()), _correlation(ours, theirs)
    below = _hybrid(p - one.low, two.high - q, phi)
    above = _hybrid(one.high - p, q - two.low, phi)
    return Interval(max(-1.0, p - q - below), min(1.0, p - q + above), coverage, "newcombe")


def _correlation(ours: Array, theirs: Array) -> float:
    """Correlation of paired outcomes, drawn to zero where it is positive (a half of the units off the product)."""
    n = ours.size
    both, neither = float(np.sum(ours * theirs)), float(np.sum((1 - ours) * (1 - theirs)))
    product = both * neither - float(np.sum(ours * (1 - theirs))) * float(np.sum((1 - ours) * theirs))
    sizes = ours.sum() * (n - ours.sum()) * theirs.sum() * (n - theirs.sum())
    if sizes <= 0:
        return 0.0
    return float((max(product - n / 2, 0.0) if product > 0 else product) / sqrt(sizes))


def _hybrid(one: float, two: float, phi: float) -> float:
    return sqrt(max(0.0, one ** 2 - 2 * phi * one * two + two ** 2))
