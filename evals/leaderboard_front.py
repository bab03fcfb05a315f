"""The Pareto front: policies that no other beats on everything that matters, in nearly every draw of the sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np

from evals.stats_bootstrap import Array, grouped, joint_draws
from evals.stats_rank import pareto_front

Table = Mapping[str, Mapping[str, Mapping[str, float | None]]]
"""Policy to session to metric to value."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One thing that policies are traded off on."""

    metric: str
    title: str
    smaller_is_better: bool = True


QUALITY_AXES = (Axis("repair_adjusted_cost", "repair-adjusted cost"), Axis("edit_safety", "edit safety", False),
                Axis("instruction_retention", "instruction retention", False))
"""What a policy costs after paying for what it forgot, and what it keeps."""
SIZE_AXES = (Axis("run_ended", "refused sessions"), Axis("mean_view_tokens", "mean view"),
             Axis("view_churn", "view churn"))
"""What remains to compare on where losses were not measured."""


def axes(data: Table) -> tuple[Axis, ...]:
    """The axes that these measurements allow: quality, else sizes; empty where one of them was measured nowhere."""
    return next((a for a in (QUALITY_AXES, SIZE_AXES) if measured(data, a)), ())


def measured(data: Table, chosen: Sequence[Axis]) -> int:
    """Sessions behind the axis that the fewest sessions could be measured on under every policy."""
    return min(len(shared(data, [a.metric])) for a in chosen)


def front(data: Table, clusters: Mapping[str, str] | None = None, among: Sequence[str] | None = None) -> set[str]:
    """Policies that no other dominates in at least 95 % of joint draws of the sessions; empty where none was measured.

    A single session, or a single repository, leaves every policy on the front.
    """
    kept = {p: data[p] for p in (data if among is None else among)}
    chosen = axes(kept)
    draws = _draws(kept, chosen, clusters) if chosen else {}
    return pareto_front(draws) if draws else set(kept) if chosen else set()


def _draws(data: Table, chosen: Sequence[Axis], clusters: Mapping[str, str] | None) -> dict[str, Array]:
    """Joint draws of each policy's means, draws × axes, the smaller the better; empty for a single cluster."""
    known = {a: set(shared(data, [a.metric])) for a in chosen}
    sessions = sorted(set().union(*known.values()))
    groups = [clusters.get(s, s) for s in sessions] if clusters is not None else None
    parts = [grouped(np.column_stack([_column(values, sessions, a, known[a]) for a in chosen]), groups)
             for values in data.values()]
    if parts[0].clusters < 2:
        return {}
    return dict(zip(data, joint_draws(parts), strict=True))


def _column(values: Mapping[str, Mapping[str, float | None]], sessions: Sequence[str], axis: Axis,
            known: set[str]) -> Array:
    """An axis, the smaller the better; NaN in sessions that a policy could not be measured on: not each has an edit."""
    sign = 1 if axis.smaller_is_better else -1
    return np.array([sign * number(values[s][axis.metric]) if s in known else np.nan for s in sessions])


def shared(data: Table, metrics: Sequence[str]) -> list[str]:
    """Sessions with a value of every metric under every policy, sorted: their order in the input must not matter."""
    first = next(iter(data.values()), {})
    return sorted(s for s in first if all(_known(p.get(s, {}).get(m)) for p in data.values() for m in metrics))


def _known(value: float | None) -> bool:
    return value is not None and not isnan(value)


def number(value: float | None) -> float:
    """The value as a number; NaN where it is missing."""
    return float(value) if value is not None else float("nan")
