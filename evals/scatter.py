"""What a policy costs against what it keeps: the points of a chart, with intervals and the front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evals.board import shown

COSTS = ("repair_adjusted_cost", "input_cost_units", "mean_view_tokens", "trial_cost_usd", "trial_input_tokens")
"""Measurements across: the less the better."""
KEPT = ("evidence_retention", "edit_safety", "instruction_retention", "pass_at_1", "pass_hat_k")
"""Measurements upwards: the more the better. Only a run that measured losses, or a live one, has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A policy with its means and their 95 % intervals, which are equal to the mean where there are none."""

    policy: str
    x: float
    x_low: float
    x_high: float
    y: float
    y_low: float
    y_high: float
    words: tuple[str, str]
    """Both means in words."""
    front: bool
    """No other policy's means are at least as good on both and better on one."""
    pareto: bool
    """No other beats it on everything that is traded off, in 95 % of resampled sessions."""


def measured(rows: Sequence[Mapping[str, Any]], among: Sequence[str]) -> list[str]:
    """Those of the metrics that a leaderboard's rows have a value of."""
    known = {r["metric"] for r in rows if r["value"] is not None}
    return [m for m in among if m in known]


def points(rows: Sequence[Mapping[str, Any]], x: str, y: str) -> list[Point]:
    """The policies that have both measurements, cheapest first."""
    by = {(r["policy"], r["metric"]): r for r in rows if r["value"] is not None and r["metric"] in (x, y)}
    pairs = [(by[p, x], by[p, y]) for p in dict.fromkeys(p for p, _ in by) if (p, x) in by and (p, y) in by]
    found = [_point(a, b, [(c["value"], d["value"]) for c, d in pairs]) for a, b in pairs]
    return sorted(found, key=lambda point: (point.x, -point.y))


def _point(across: Mapping[str, Any], up: Mapping[str, Any], everyone: Sequence[tuple[float, float]]) -> Point:
    x, y = across["value"], up["value"]
    beaten = any(a <= x and b >= y and (a, b) != (x, y) for a, b in everyone)
    (x_low, x_high), (y_low, y_high) = _bounds(across), _bounds(up)
    return Point(policy=across["policy"], x=x, x_low=x_low, x_high=x_high, y=y, y_low=y_low, y_high=y_high,
                 words=(shown(across["metric"], x), shown(up["metric"], y)), front=not beaten, pareto=across["pareto"])


def _bounds(row: Mapping[str, Any]) -> tuple[float, float]:
    low, high = row["low"], row["high"]
    return (row["value"], row["value"]) if low is None or high is None else (low, high)
