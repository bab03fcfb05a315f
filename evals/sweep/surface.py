"""A stored sweep as a surface: the settings on two axes, the best one, and which others cannot be told from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evals.board import FULL_COVERAGE, shown, signed
from evals.leaderboard import TITLED
from evals.stats import Paired, paired_columns
from evals.store import load_table
from evals.sweep.choice import Objective

BEST, WITHIN, WORSE, BETTER, UNKNOWN = ("the best", "not told from the best", "worse than the best",
                                        "better than the best on all sessions", "cannot be told")
"""Where a setting stands to the best one: by a paired 95 % interval over repositories, uncorrected."""
COLUMNS = ("mean", "interval", "difference to the best, paired", "stands", "sessions that end")
"""Headings of a point's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One setting with its mean objective over the shared sessions; what could not be measured is None."""

    policy: str
    values: Mapping[str, Any]
    value: float | None
    low: float | None
    high: float | None
    ended: int
    """Sessions whose run ends in a refused request."""
    stands: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """A sweep ready to be shown."""

    base: str
    objective: str
    title: str
    better: str
    sessions: int
    parameters: Mapping[str, tuple[Any, ...]]
    """Their values, numbers in order; the parameter with the widest effect first."""
    points: tuple[Point, ...]
    best: Point | None
    """The chosen setting; where none was chosen the one with the best mean; None where nothing was measured."""
    chosen: bool
    why: str
    coverage: float
    """Of every interval: below six repositories less than 95 %, 0 where there is none."""
    effects: tuple[Mapping[str, Any], ...]
    """For each parameter what it does alone, from the best setting: as the run's summary holds it."""

    def slice(self, across: str, up: str | None) -> list[Point]:
        """The settings that differ from the best one in these parameters alone."""
        if self.best is None:
            return []
        fixed = {n: v for n, v in self.best.values.items() if n not in (across, up)}
        return [p for p in self.points if all(p.values[n] == v for n, v in fixed.items())]

    def region(self) -> list[Point]:
        """The best setting and those that are not told from it, best mean first."""
        found = [p for p in self.points if p.stands in (BEST, WITHIN, BETTER) and p.value is not None]
        sign = 1 if self.better == "low" else -1
        return sorted(found, key=lambda p: (p.stands != BEST, sign * (p.value or 0.0)))


def surface(run: Path, summary: Mapping[str, Any]) -> Surface | None:
    """The sweep of a stored run; None where the run is none."""
    found = summary.get("sweep")
    if not found:
        return None
    anchor = _anchor(found)
    gaps = _gaps(run, summary, found, anchor) if anchor else {}
    coverage = min((g.coverage for g in gaps.values()), default=0.0)
    points = tuple(_point(p, found, anchor, gaps.get(p["policy"])) for p in found["points"])
    order = [s["parameter"] for s in found["sensitivity"]]
    values = {p["name"]: _ordered(p["values"]) for p in found["parameters"]}
    titles = {h.metric: h.title for h in TITLED}
    return Surface(base=found["policy"], objective=found["objective"], better=found["better"], sessions=found["n"],
                   title=titles.get(found["objective"], found["objective"]), points=points,
                   parameters={n: values[n] for n in order}, best=next((p for p in points if p.policy == anchor), None),
                   chosen=found["best"]["policy"] is not None, why=_why(found), coverage=coverage,
                   effects=tuple(found["sensitivity"]))


def _anchor(found: Mapping[str, Any]) -> str | None:
    chosen: str | None = found["best"]["policy"]
    means: dict[str, float] = {p["policy"]: p["value"] for p in found["points"] if p["value"] is not None}
    return chosen or (Objective(found["objective"], found["better"]).best(means) if means else None)


def _why(found: Mapping[str, Any]) -> str:
    best, metric = found["best"], found["objective"]
    why = f"{best['why'][:1].upper()}{best['why'][1:]}."
    if best["difference"] is None:
        return why
    span = "" if best["low"] is None else f" ({signed(metric, best['low'])} to {signed(metric, best['high'])})"
    return (f"{why} Chosen on {best['chosen_on']:,} sessions; on the {best['confirmed_on']:,} others the "
            f"difference to the unchanged policy is {signed(metric, best['difference'])}{span}.")


def _ordered(values: Sequence[Any]) -> tuple[Any, ...]:
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
    return tuple(sorted(values)) if numbers else tuple(values)


def _gaps(run: Path, summary: Mapping[str, Any], found: Mapping[str, Any], anchor: str) -> dict[str, Paired]:
    """The paired difference of every setting to the best one, on the sessions that all could be measured on."""
    names = [p["policy"] for p in found["points"]]
    table = _table(run, found["objective"], names)
    if table.empty or anchor not in table:
        return {}
    homes = {s["session"]: s.get("repository") or f"session {s['session']}" for s in summary["sessions"]}
    columns = [n for n in names if n in table]
    pairs = paired_columns(np.column_stack([table[n] for n in columns]), table[anchor].to_numpy(),
                           clusters=[homes.get(s, s) for s in table.index])
    return dict(zip(columns, pairs, strict=True))


def _table(run: Path, metric: str, policies: Sequence[str]) -> Any:
    """Sessions × policies of the objective, without sessions that some policy lacks."""
    column = "ended" if metric == "run_ended" else metric
    rows = load_table(run, "trials", ("session", "policy", "ok", column), policy=policies)
    if column == "ended":
        rows = rows[rows["ok"]].assign(ended=rows["ended"].notna().astype(float))
    table = rows.pivot(index="session", columns="policy", values=column).sort_index()
    return table.dropna()


def _point(point: Mapping[str, Any], found: Mapping[str, Any], anchor: str | None, gap: Paired | None) -> Point:
    metric = found["objective"]
    stands = BEST if point["policy"] == anchor else _stands(gap, found["better"])
    span = ("–" if point["low"] is None else
            f"{shown(metric, point['low'])} to {shown(metric, point['high'])}")
    words = (shown(metric, point["value"]), span, _gap_words(metric, gap) if stands != BEST else "–", stands,
             f"{point['ended']:,}")
    return Point(policy=point["policy"], values=point["values"], value=point["value"], low=point["low"],
                 high=point["high"], ended=point["ended"], stands=stands, words=words)


def _stands(gap: Paired | None, better: str) -> str:
    if gap is None:
        return UNKNOWN
    if gap.difference == gap.low == gap.high == 0:
        return WITHIN
    if gap.coverage < FULL_COVERAGE:
        return UNKNOWN
    if gap.low <= 0 <= gap.high:
        return WITHIN
    return WORSE if (gap.low > 0) == (better == "low") else BETTER


def _gap_words(metric: str, gap: Paired | None) -> str:
    if gap is None:
        return "–"
    span = f" ({signed(metric, gap.low)} to {signed(metric, gap.high)})" if gap.coverage >= FULL_COVERAGE else ""
    return f"{signed(metric, gap.difference)}{span}"
