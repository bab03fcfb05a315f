"""All paired statistics of a results table: every arm against the baseline, with ranks and the cost–outcome front."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np

from evals.outcomes_math import cost_per_solved
from evals.results_table import ResultsTable
from evals.stats import mde_of_outcomes, standard_error
from evals.stats_binary import is_binary, label_permutation, mcnemar_of
from evals.stats_bootstrap import (
    SEED,
    Array,
    Clustered,
    Interval,
    column_intervals,
    grouped,
    joint_draws,
    method_for,
    summed,
)
from evals.stats_margins import MARGINS
from evals.stats_power import mde_continuous
from evals.stats_rank import Rank, pareto_front, rank_draws
from evals.stats_significance import bootstrap_p, holm, sign_flip_p, wilcoxon
from replay.errors import ConfigError, UnknownName

MOST_UNITS = 10_000_000
PASS_MARGIN = MARGINS["pass@1"].size
_COST_NAMES = ("cost_difference", "cost_low", "cost_high", "cost_n", "cost_mde", "cost_ratio", "cost_ratio_low",
               "cost_ratio_high", "cost_typical_ratio", "cost_p")


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A table made ready: units × arms, missing units as failures, all resampled together."""

    table: ResultsTable
    base: int
    """The baseline's column."""
    outcomes: Array
    clusters: Sequence[Hashable] | None
    gains: Clustered
    """Outcome minus the baseline's."""
    bills: Clustered | None
    """Cost minus the baseline's, on units where both are known."""
    shares: Clustered | None
    """Cost over the baseline's, on the same units."""
    draws: Sequence[Array]
    method: str
    margin: float
    """How much lower a rate still counts as no worse."""

    @property
    def units(self) -> int:
        """The denominator of every rate."""
        return int(self.outcomes.shape[0])


def study(table: ResultsTable, baseline: str, units: int | None = None, margin: float = PASS_MARGIN,
          corrected: bool = False, seed: int = SEED) -> Study:
    """Resample a table against a baseline. `units` sets the denominator; `corrected` asks for BCa intervals.

    Intervals are percentile intervals otherwise, as published tables have them, and sign-flip ones below 12 clusters.
    Raises ConfigError (UnknownName for the baseline) for what does not fit the table.
    """
    if baseline not in table.arms:
        raise UnknownName("arm", baseline, table.arms, "--baseline")
    extra = _extra(table, units)
    outcomes = np.vstack([np.nan_to_num(table.outcome.T), np.zeros((extra, len(table.arms)))])
    base = table.arms.index(baseline)
    groups = [*table.clusters, *(("no row", i) for i in range(extra))] if table.clusters is not None else None
    gains = grouped(outcomes - outcomes[:, [base]], groups)
    bills, shares = _costs(table, base, extra, groups)
    chosen = method_for(gains.clusters)
    return Study(table=table, base=base, outcomes=outcomes, clusters=groups, gains=gains, bills=bills, shares=shares,
                 draws=joint_draws([p for p in (gains, bills, shares) if p is not None], seed),
                 method=chosen if chosen == "sign-flip" or corrected else "percentile", margin=margin)


def _extra(table: ResultsTable, units: int | None) -> int:
    """Units that no arm has a row for."""
    known = len(table.units)
    if units is None:
        return 0
    if not known <= units <= MOST_UNITS:
        raise ConfigError("--units", "", f"must lie between the {known:,} units of the table and {MOST_UNITS:,}")
    return units - known


def _costs(table: ResultsTable, base: int, extra: int,
           groups: Sequence[Hashable] | None) -> tuple[Clustered | None, Clustered | None]:
    if table.cost is None:
        return None, None
    cost = np.vstack([table.cost.T, np.full((extra, len(table.arms)), np.nan)])
    apart = cost - cost[:, [base]]
    known = ~np.isnan(apart)
    ours, theirs = np.where(known, cost, 0.0), np.where(known, cost[:, [base]], 0.0)
    if groups is not None:
        ours, theirs = summed(ours, groups), summed(theirs, groups)
    return grouped(apart, groups), Clustered(ours, theirs)


def report(made: Study) -> dict[str, Any]:
    """The statistics of every arm, the baseline first, as plain data; NaN and unbounded values are None."""
    table = made.table
    order = [made.base, *(k for k in range(len(table.arms)) if k != made.base)]
    arms = {k: _arm(made, k) | _outcome(made, k) | _cost(made, k) for k in order}
    for k, p in zip(order[1:], holm([_exact(arms[k]) for k in order[1:]]), strict=True):
        arms[k]["p_adjusted"] = p
    arms[made.base]["p_adjusted"] = 1.0
    places, front = _places(made), _front(made)
    rows = [arms[k] | _place(places, k) | {"pareto": None if front is None else k in front} for k in order]
    return {"baseline": table.arms[made.base], "units": made.units, "clusters": made.gains.clusters,
            "interval": made.method, "margin": made.margin, "shares": table.shares, "arms": [_plain(r) for r in rows],
            "notes": list(table.notes)}


def _arm(made: Study, k: int) -> dict[str, Any]:
    """What an arm did by itself."""
    table = made.table
    present = int(np.sum(table.trials[k] > 0))
    cost = None if table.cost is None else table.cost[k]
    solved = float(made.outcomes[:, k].sum())
    known = cost[~np.isnan(cost)] if cost is not None else np.empty(0)
    return {"arm": table.arms[k], "n": present, "missing": made.units - present, "trials": int(table.trials[k].sum()),
            "solved": solved, "rate": solved / made.units, "mean_cost": float(known.mean()) if known.size else None,
            "cost_per_solved": cost_per_solved(known.tolist(), solved) if known.size else None}


def _outcome(made: Study, k: int) -> dict[str, Any]:
    """The paired difference of outcomes to the baseline."""
    apart, draws = made.gains.sums[:, k], made.draws[0][:, k]
    found = _interval(made, made.gains, 0, k)
    flips = made.method == "sign-flip"
    ours, theirs = made.outcomes[:, k], made.outcomes[:, made.base]
    return {"difference": float(made.gains.estimates[k]), **_ends(found, ""), "coverage": found.coverage,
            "p": sign_flip_p(apart) if flips else 1.0 if k == made.base else bootstrap_p(draws),
            "mde": _mde(made, k), "gained": int(np.sum(ours > theirs)), "lost": int(np.sum(ours < theirs)),
            "mcnemar_p": mcnemar_of(ours, theirs).p if _single(made, k) else None,
            "permutation_p": _permuted(made, k), "non_inferior": _non_inferior(made, k)}


def _single(made: Study, k: int) -> bool:
    """Whether both arms have one trial of 0 or 1 on independent units, which is what McNemar's test needs."""
    trials = made.table.trials[[k, made.base]]
    return bool(made.gains.clusters == made.units and trials.max() <= 1 and is_binary(made.outcomes[:, [k, made.base]]))


def _permuted(made: Study, k: int) -> float | None:
    """Permutation of arm labels within units with several trials; None where McNemar applies or clusters forbid it."""
    table = made.table
    both = table.passed[[k, made.base]]
    if _single(made, k) or made.gains.clusters != made.units or np.any(both != np.rint(both)) or np.any(both < 0) \
            or np.any(both > table.trials[[k, made.base]]):
        return None
    trials = np.maximum(table.trials[[k, made.base]], 1).astype(int)
    passed = both.astype(int)
    return label_permutation(passed[0], trials[0], passed[1], trials[1])


def _non_inferior(made: Study, k: int) -> bool | None:
    """Whether the one-sided 95 % bound lies within the margin; None where there are too few clusters to say."""
    found = _interval(made, made.gains, 0, k, 0.9)
    if found.coverage < 0.9 - 1e-9:
        return None
    return found.low >= -made.margin - 1e-12


def _mde(made: Study, k: int) -> float | None:
    if made.gains.clusters < 2:
        return None
    if k == made.base:
        return 0.0
    if _single(made, k):
        return mde_of_outcomes(made.gains.sums[:, k])
    return mde_continuous(standard_error(made.gains, k), 1)


def _cost(made: Study, k: int) -> dict[str, Any]:
    """The paired difference and the ratio of costs on the units where both are known."""
    if made.bills is None or made.shares is None or not made.bills.sizes[:, k].sum():
        return dict.fromkeys(_COST_NAMES)
    used = made.bills.sizes[:, k] > 0
    found, share = _interval(made, made.bills, 1, k), _interval(made, made.shares, 2, k)
    spread = standard_error(made.bills, k) if used.sum() > 1 else None
    return {"cost_difference": float(made.bills.estimates[k]), **_ends(found, "cost_"),
            "cost_n": int(made.bills.sizes[:, k].sum()),
            "cost_mde": None if spread is None else mde_continuous(spread, 1),
            "cost_ratio": float(made.shares.estimates[k]), **_ends(share, "cost_ratio_"),
            **_typical(made.shares.sums[used, k], made.shares.sizes[used, k])}


def _typical(ours: Array, theirs: Array) -> dict[str, float | None]:
    """The geometric mean of paired cost ratios and its test: the tails of bills would drown a test of differences."""
    positive = (ours > 0) & (theirs > 0)
    if not positive.any():
        return {"cost_typical_ratio": None, "cost_p": wilcoxon(ours - theirs)}
    logs = np.log(ours[positive] / theirs[positive])
    return {"cost_typical_ratio": float(np.exp(logs.mean())), "cost_p": wilcoxon(logs)}


def _interval(made: Study, data: Clustered, part: int, k: int, coverage: float = 0.95) -> Interval:
    one = Clustered(data.sums[:, [k]], data.sizes[:, [k]])
    return column_intervals(one, coverage=coverage, method=made.method, draws=made.draws[part][:, [k]])[0]


def _ends(found: Interval, prefix: str) -> dict[str, float | None]:
    """The ends of an interval; None where a single cluster allows none."""
    bounded = found.coverage > 0
    return {f"{prefix}low": found.low if bounded else None, f"{prefix}high": found.high if bounded else None}


def _exact(arm: Mapping[str, Any]) -> float:
    """The exact test's p where there is one."""
    return float(next(p for p in (arm["mcnemar_p"], arm["permutation_p"], arm["p"]) if p is not None))


def _places(made: Study) -> list[Rank]:
    """Ranks by outcome, the highest rate first; empty for a single cluster."""
    return rank_draws(-made.draws[0], made.gains.clusters) if made.gains.clusters > 1 else []


def _place(places: Sequence[Rank], k: int) -> dict[str, Any]:
    found = places[k] if places else None
    return {"rank_low": found.low if found else None, "rank_high": found.high if found else None,
            "p_best": found.p_best if found else None}


def _front(made: Study) -> set[int] | None:
    """Arms that no other beats on both outcome and cost; None where an arm's cost is unknown."""
    if made.bills is None or made.gains.clusters < 2 or not np.all(made.bills.sizes.sum(axis=0) > 0):
        return None
    draws = {str(k): np.column_stack([-made.draws[0][:, k], made.draws[1][:, k]]) for k in range(len(made.table.arms))}
    return {int(k) for k in pareto_front(draws)}


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {k: None if isinstance(v, float) and (isnan(v) or abs(v) == float("inf")) else v for k, v in row.items()}
