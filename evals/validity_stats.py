"""Statistics of the validity experiments: rank AUC, its pooling over bins, Mantel–Haenszel odds ratios, risk ratios."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from evals.rank_correlation import mid_ranks


class Counts(NamedTuple):
    """A two-by-two table: of what was lost `hit` and `missed`, of what was kept the same."""

    lost_hit: int
    lost_missed: int
    kept_hit: int
    kept_missed: int

    @property
    def total(self) -> int:
        """All four."""
        return sum(self)


class Ratio(NamedTuple):
    """A ratio with its 95 % interval; None: not defined, or without bound."""

    value: float | None
    low: float | None
    high: float | None


def auc(scores: Sequence[float], hits: Sequence[bool]) -> float | None:
    """Chance that a hit scores above a miss, ties counting half; None where one of the two is missing."""
    positive = sum(hits)
    negative = len(hits) - positive
    if not positive or not negative:
        return None
    ranks = sum(rank for rank, hit in zip(mid_ranks(scores), hits, strict=True) if hit)
    return (ranks - positive * (positive + 1) / 2) / (positive * negative)


def auc_error(value: float, positive: int, negative: int) -> float:
    """Standard error of an AUC after Hanley and McNeil."""
    first, second = value / (2 - value), 2 * value**2 / (1 + value)
    variance = (value * (1 - value) + (positive - 1) * (first - value**2) + (negative - 1) * (second - value**2))
    return math.sqrt(max(0.0, variance) / (positive * negative))


class Pooled(NamedTuple):
    """An AUC pooled over bins by inverse variance."""

    value: float | None
    bins: int
    skipped: int
    """Bins that hold no hit or no miss."""


def pooled_auc(bins: Iterable[tuple[Sequence[float], Sequence[bool]]]) -> Pooled:
    """Pool the AUCs of bins of scores and hits. A bin weighs what chance alone would let it tell (AUC one half)."""
    top = weight = 0.0
    used = skipped = 0
    for scores, hits in bins:
        value = auc(scores, hits)
        if value is None:
            skipped += 1
            continue
        # At its own estimate a perfect bin would have no variance and weigh infinitely much.
        own = auc_error(0.5, sum(hits), len(hits) - sum(hits)) ** -2
        top, weight, used = top + own * value, weight + own, used + 1
    return Pooled(top / weight if weight else None, used, skipped)


def mantel_haenszel(tables: Iterable[Counts]) -> float | None:
    """Odds ratio of a hit for lost against kept, over strata; None where no stratum can tell."""
    top = bottom = 0.0
    for table in tables:
        if table.total:
            top += table.lost_hit * table.kept_missed / table.total
            bottom += table.lost_missed * table.kept_hit / table.total
    return top / bottom if bottom else None


def risk_ratio(table: Counts) -> Ratio:
    """Risk of a hit for lost against kept, with an exact interval.

    The interval is exact for rare hits: given their sum, the hits among the lost are binomial (Clopper–Pearson).
    """
    from scipy.stats import beta

    hits, lost = table.lost_hit + table.kept_hit, table.lost_hit + table.lost_missed
    kept = table.kept_hit + table.kept_missed
    if not hits or not lost or not kept:
        return Ratio(None, None, None)
    own, other = table.lost_hit, table.kept_hit
    low = float(beta.ppf(0.025, own, other + 1)) if own else 0.0
    high = float(beta.ppf(0.975, own + 1, other)) if other else 1.0
    value = None if not other else own / lost / (other / kept)
    scale = kept / lost
    return Ratio(value, low / (1 - low) * scale, None if high >= 1.0 else high / (1 - high) * scale)
