"""The leaderboard's effects by stratum of sessions: length, harness, recorded compactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evals.leaderboard import measured
from evals.leaderboard_front import Table
from evals.stats_strata import Standardised, standardised, terciles
from evals.trial import SessionRow

_MOST_COUNTED = 2


def strata_of(rows: Sequence[SessionRow]) -> dict[str, dict[str, str]]:
    """Ways to divide the sessions, each session to its stratum; ways with a single stratum are left out."""
    lengths = terciles({r.session: float(r.steps) for r in rows})
    ways = {"length in steps": lengths, "harness": {r.session: r.format for r in rows},
            "recorded compactions": {r.session: _counted(r.recorded_compactions) for r in rows}}
    return {name: way for name, way in ways.items() if len(set(way.values())) > 1}


def _counted(compactions: int) -> str:
    return str(compactions) if compactions < _MOST_COUNTED else f"{_MOST_COUNTED} or more"


def stratified(data: Table, rows: Sequence[SessionRow], baseline: str) -> list[dict[str, Any]]:
    """For every policy, headline metric and way to divide: the pooled effect beside the standardised ones."""
    found, ways = [], strata_of(rows)
    for headline in (h for h in measured(data) if h.family == "headline"):
        theirs = _column(data[baseline], headline.metric)
        for policy in (p for p in data if p != baseline):
            ours = _column(data[policy], headline.metric)
            found += [_row(policy, baseline, headline.metric, name, standardised(ours, theirs, way))
                      for name, way in ways.items()]
    return found


def _column(rows: Mapping[str, Mapping[str, float | None]], metric: str) -> dict[str, float | None]:
    return {s: v.get(metric) for s, v in rows.items()}


def _row(policy: str, baseline: str, metric: str, by: str, found: Standardised) -> dict[str, Any]:
    return {"policy": policy, "baseline": baseline, "metric": metric, "by": by, "pooled": found.pooled,
            "session_weighted": found.session_weighted, "equal_weighted": found.equal_weighted, "low": found.low,
            "high": found.high, "reversed": found.reversed,
            "strata": [{"name": s.name, "sessions": s.units, "n": s.n, "effect": s.effect} for s in found.strata]}
