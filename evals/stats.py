"""Paired comparison of two policies on the same units: difference, interval, test, and what could have been found.

The unit is the session (or the task), never the step. The parts: `stats_bootstrap` (intervals), `stats_significance`
and `stats_binary` (tests), `stats_power` (what a study can find), `stats_ratio` (costs), `stats_margins`
(non-inferiority), `stats_rank` (order), `stats_strata`, `stats_comparable`, `stats_plan`. The same input gives the same
output.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, sqrt

import numpy as np

from evals.stats_binary import is_binary, mcnemar_of, zero_event_upper
from evals.stats_bootstrap import SEED, Array, Clustered, Interval, column_intervals, grouped
from evals.stats_power import mde_binary, mde_continuous
from evals.stats_significance import settled, wilcoxon

Values = Mapping[str, float | None]
"""Unit to value; None or NaN where it could not be measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Values of two policies on the units that both could be measured on, ordered by unit."""

    units: tuple[str, ...]
    values: Array
    reference: Array
    dropped_by_values: int
    """Units that only the reference has a value for."""
    dropped_by_reference: int
    """Units that only the other has a value for."""


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
    coverage: float = 0.95
    """Coverage of the interval: below six clusters less than 95 %, 0 for a single one."""
    method: str = "percentile"
    test: str = "wilcoxon"
    clusters: int = 0


def matched(values: Values, reference: Values) -> Matched:
    """The intersection of the units of two policies, and how many either of them drops."""
    ours, theirs = _known(values), _known(reference)
    both = sorted(ours.keys() & theirs.keys())
    return Matched(units=tuple(both), values=np.array([ours[u] for u in both]),
                   reference=np.array([theirs[u] for u in both]),
                   dropped_by_values=len(theirs) - len(both), dropped_by_reference=len(ours) - len(both))


def _known(values: Values) -> dict[str, float]:
    return {u: float(v) for u, v in values.items() if v is not None and not isnan(v)}


def paired(values: Sequence[float] | Array, reference: Sequence[float] | Array, seed: int = SEED,
           clusters: Sequence[Hashable] | None = None) -> Paired | None:
    """Mean paired difference with a 95 % interval, exact test and minimum detectable effect; None without pairs.

    Outcomes of 0 and 1 are tested by McNemar, everything else and everything clustered by Wilcoxon on cluster means.
    """
    ours = np.asarray(values, dtype=float)
    return paired_columns(ours[:, None], reference, seed, clusters)[0] if ours.size else None


def paired_columns(values: Array, reference: Sequence[float] | Array, seed: int = SEED,
                   clusters: Sequence[Hashable] | None = None) -> list[Paired]:
    """`paired` of every column (units × policies) against one reference, all from the same draws."""
    theirs = np.asarray(reference, dtype=float)
    columns = [settled(column - theirs) for column in values.T]
    data = grouped(np.column_stack(columns), clusters)
    return [_paired(data, k, found, _test(values[:, k], theirs, data, k))
            for k, found in enumerate(column_intervals(data, seed))]


def paired_p(values: Sequence[float] | Array, reference: Sequence[float] | Array,
             clusters: Sequence[Hashable] | None = None) -> float:
    """The p of `paired` alone, without resampling; 1 without pairs."""
    ours, theirs = np.asarray(values, dtype=float), np.asarray(reference, dtype=float)
    return _test(ours, theirs, grouped(settled(ours - theirs), clusters), 0)[1] if ours.size else 1.0


def _test(ours: Array, theirs: Array, data: Clustered, k: int) -> tuple[str, float]:
    if data.clusters == ours.size and is_binary(ours, theirs):
        return "mcnemar", mcnemar_of(ours, theirs).p
    return "wilcoxon", wilcoxon(data.sums[:, k] / data.sizes[:, k])


def _paired(data: Clustered, k: int, found: Interval, tested: tuple[str, float]) -> Paired:
    test, p = tested
    return Paired(difference=float(data.estimates[k]), low=found.low, high=found.high, p=p, test=test,
                  n=int(data.sizes[:, k].sum()), mde=_mde(data, k, test == "mcnemar"), coverage=found.coverage,
                  method=found.method, clusters=data.clusters)


def _mde(data: Clustered, k: int, binary: bool) -> float | None:
    """Minimum detectable effect; None where one cluster shows no spread."""
    if data.clusters < 2:
        return None
    return mde_of_outcomes(data.sums[:, k]) if binary else mde_continuous(standard_error(data, k), 1)


def mde_of_outcomes(differences: Array) -> float:
    """Minimum detectable effect of paired 0/1 outcomes.

    Where no pair differs, the share that might still have differed unseen stands in.
    """
    discordance = float(np.mean(differences != 0))
    return mde_binary(discordance or zero_event_upper(differences.size), differences.size)


def standard_error(data: Clustered, column: int = 0) -> float:
    """Standard error of a column's ratio of sums over at least two clusters."""
    sums, sizes = data.sums[:, column], data.sizes[:, column]
    apart = sums - data.estimates[column] * sizes
    count = int(np.sum(sizes > 0))
    return sqrt(float(np.sum(apart ** 2)) * count / (count - 1)) / float(sizes.sum())


def paired_by_unit(values: Values, reference: Values, seed: int = SEED,
                   clusters: Mapping[str, Hashable] | None = None) -> tuple[Paired | None, Matched]:
    """`paired` on the intersection of named units; the order in which they come makes no difference."""
    both = matched(values, reference)
    groups = [clusters.get(u, u) for u in both.units] if clusters is not None else None
    return paired(both.values, both.reference, seed, groups), both
