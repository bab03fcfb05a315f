"""What a sweep found: a value for every setting, what each parameter does alone, and the best setting."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evals.leaderboard import HEADLINES, LOSSES
from evals.leaderboard_front import Table, number, shared
from evals.stats_bootstrap import column_intervals, grouped
from evals.sweep.choice import Objective, choose
from evals.sweep.grid import Setting
from evals.trial import SessionRow
from replay.errors import UnknownName


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What is swept: the policy, the settings by the name of the policy that each makes, and the objective."""

    base: str
    settings: Mapping[str, Setting]
    objective: Objective


def objective(metric: str | None, losses: bool) -> Objective:
    """The objective of a name; by default the bill, with repairs where losses are measured. Raises UnknownName."""
    name = metric or ("repair_adjusted_cost" if losses else "input_cost_units")
    ranked = {h.metric: h.better for h in HEADLINES if h.better != "none" and (losses or h.metric not in LOSSES)}
    if name not in ranked:
        raise UnknownName("metric", name, ranked, "--objective")
    return Objective(name, ranked[name])


def effects(sweep: Sweep, data: Table, rows: Sequence[SessionRow]) -> dict[str, Any]:
    """The sweep's part of a summary. All settings are valued on the sessions on which every one could be measured."""
    repositories = {r.session: r.cwd or f"session {r.session}" for r in rows}
    sessions = shared(data, [sweep.objective.metric])
    values = _values(data, sessions, sweep.objective.metric, [repositories[s] for s in sessions])
    points: list[dict[str, Any]] = [{"policy": p, "values": dict(s), **values[p], "ended": _ended(data, p)}
                                    for p, s in sweep.settings.items()]
    best = choose(data, list(sweep.settings), sweep.base, sweep.objective, repositories)
    anchor = best["policy"] or sweep.objective.best({p["policy"]: p["value"] for p in points if p["value"] is not None}
                                                    or dict.fromkeys(sweep.settings, 0.0))
    return {"policy": sweep.base, "objective": sweep.objective.metric, "better": sweep.objective.better,
            "n": len(sessions), "unchanged": values[sweep.base], "points": points,
            "parameters": [{"name": n, "values": _distinct(points, n)} for n in points[0]["values"]],
            "sensitivity": _sensitivity(points, anchor),
            "best": {**best, "values": dict(sweep.settings[best["policy"]]) if best["policy"] else None}}


def _values(data: Table, sessions: Sequence[str], metric: str,
            clusters: Sequence[Hashable]) -> dict[str, dict[str, float | None]]:
    if not sessions:
        return {p: {"value": None, "low": None, "high": None} for p in data}
    table = np.column_stack([[number(data[p][s][metric]) for s in sessions] for p in data])
    spans = column_intervals(grouped(table, clusters))
    return {p: {"value": float(table[:, k].mean()), "low": spans[k].low if spans[k].coverage else None,
                "high": spans[k].high if spans[k].coverage else None} for k, p in enumerate(data)}


def _ended(data: Table, policy: str) -> int:
    return sum(bool(v.get("run_ended")) for v in data[policy].values())


def _distinct(points: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    return list({repr(p["values"][name]): p["values"][name] for p in points}.values())


def _sensitivity(points: Sequence[Mapping[str, Any]], anchor: str) -> list[dict[str, Any]]:
    """For each parameter the settings that differ from the anchor in it alone, widest effect first."""
    fixed = next(p["values"] for p in points if p["policy"] == anchor)
    found = []
    for name in fixed:
        line = [p for p in points if all(p["values"][n] == fixed[n] for n in fixed if n != name)]
        known = [p["value"] for p in line if p["value"] is not None]
        found.append({"parameter": name, "others": {n: v for n, v in fixed.items() if n != name},
                      "rows": [{"value": p["values"][name], "policy": p["policy"], "mean": p["value"], "low": p["low"],
                                "high": p["high"]} for p in line],
                      "range": max(known) - min(known) if known else None})
    return sorted(found, key=lambda s: -(s["range"] or 0.0))
