"""From trials to the tables that compare: leaderboard, paired differences, recommendation, warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from evals import stats
from evals.trial import SessionRow, TrialRow


@dataclass(frozen=True, slots=True)
class Headline:
    """A metric of the leaderboard: its name, how it reads, and which way is better."""

    metric: str
    title: str
    better: str
    """`low`, `high` or `none` (a descriptor that is not ranked)."""


HEADLINES = (
    Headline("run_ended", "sessions that end in a refused request", "low"),
    Headline("pairing_violations", "broken call/result pairs", "low"),
    Headline("mean_view_tokens", "mean view, tokens", "low"),
    Headline("peak_view_tokens", "peak view, tokens", "low"),
    Headline("input_tokens", "input, tokens a session", "low"),
    Headline("overflow_steps", "steps over the window", "low"),
    Headline("compactions", "full compactions", "none"),
    Headline("micro_compactions", "micro-compactions", "none"),
    Headline("compactions_futile", "futile compactions", "low"),
    Headline("view_churn", "view churn", "low"),
    Headline("identified_share", "identified share", "none"),
)
"""What the leaderboard shows. Ranks exist only where one direction is better."""


def values(row: TrialRow) -> dict[str, float | None]:
    """A trial's measurements by name, with the sums that the leaderboard needs."""
    found: dict[str, float | None] = {m.name: m.value for m in row.measurements}
    planned, reactive = found.get("compactions_planned"), found.get("compactions_reactive")
    found["compactions"] = None if planned is None or reactive is None else planned + reactive
    found["run_ended"] = float(row.ended is not None) if row.ok else None
    return found


Table = Mapping[str, Mapping[str, Mapping[str, float | None]]]
"""Policy to session to metric to value."""


def table(rows: Sequence[SessionRow], policies: Sequence[str]) -> dict[str, dict[str, dict[str, float | None]]]:
    """All values of the named policies, sessions in the order of the rows."""
    made: dict[str, dict[str, dict[str, float | None]]] = {p: {} for p in policies}
    for row in rows:
        for trial in row.trials:
            if trial.policy in made:
                made[trial.policy][row.session] = values(trial)
    return made


def leaderboard(data: Table) -> list[dict[str, Any]]:
    """One row for each policy and headline metric, on the sessions that every policy could be measured on."""
    rows = []
    for headline in HEADLINES:
        shared = _shared(data, headline.metric)
        columns = {p: [_number(data[p][s][headline.metric]) for s in shared] for p in data}
        placed = stats.ranks(columns, headline.better == "low") if headline.better != "none" and shared else {}
        rows += [_row(p, headline, columns[p], placed.get(p)) for p in data]
    usable = _pareto(rows)
    return [row | {"pareto": row["policy"] in usable} for row in rows]


def _row(policy: str, headline: Headline, column: Sequence[float], rank: stats.Rank | None) -> dict[str, Any]:
    low, high = stats.interval(column) if column else (None, None)
    return {"policy": policy, "metric": headline.metric, "value": fmean(column) if column else None, "low": low,
            "high": high, "n": len(column), "rank_low": rank.low if rank else None,
            "rank_high": rank.high if rank else None, "p_best": rank.p_best if rank else None}


def _shared(data: Table, metric: str) -> list[str]:
    """Sessions with a value of the metric under every policy, in order."""
    first = next(iter(data.values()), {})
    return [s for s in first if all(p.get(s, {}).get(metric) is not None for p in data.values())]


def _number(value: float | None) -> float:
    return float(value) if value is not None else float("nan")


def _pareto(rows: Sequence[dict[str, Any]]) -> set[str]:
    """Policies that no other beats on mean view, churn and ended runs together."""
    axes = ("run_ended", "mean_view_tokens", "view_churn")
    points: dict[str, tuple[float, ...]] = {}
    for policy in {r["policy"] for r in rows}:
        found = {r["metric"]: r["value"] for r in rows if r["policy"] == policy}
        if all(found.get(a) is not None for a in axes):
            points[policy] = tuple(found[a] for a in axes)
    return {p for p, a in points.items() if not any(_beats(b, a) for q, b in points.items() if q != p)}


def _beats(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return all(x <= y for x, y in zip(a, b, strict=True)) and a != b


def pairs(data: Table, baseline: str) -> list[dict[str, Any]]:
    """Paired differences of every policy to the baseline, Holm-adjusted across policies within a metric."""
    rows: list[dict[str, Any]] = []
    for headline in HEADLINES:
        family = []
        for policy in (p for p in data if p != baseline):
            shared = _shared({policy: data[policy], baseline: data[baseline]}, headline.metric)
            result = stats.paired([_number(data[policy][s][headline.metric]) for s in shared],
                                  [_number(data[baseline][s][headline.metric]) for s in shared])
            if result is not None:
                family.append(_pair(policy, baseline, headline.metric, result))
        for row, adjusted in zip(family, stats.holm([r["p"] for r in family]), strict=True):
            rows.append(row | {"p_adjusted": adjusted})
    return rows


def _pair(policy: str, baseline: str, metric: str, result: stats.Paired) -> dict[str, Any]:
    return {"policy": policy, "baseline": baseline, "metric": metric, "difference": result.difference,
            "low": result.low, "high": result.high, "p": result.p, "n": result.n, "mde": result.mde}


def recommend(data: Table, sessions: int) -> dict[str, str | None]:
    """The one policy that these measurements single out, or why they cannot."""
    faults = {p: _faults(rows) for p, rows in data.items()}
    usable = [p for p, fault in faults.items() if not fault]
    refused = "; ".join(f"{p}: {fault}" for p, fault in faults.items() if fault)
    if not sessions or not data:
        return {"policy": None, "why": "no session could be measured"}
    if not usable:
        return {"policy": None, "why": f"no policy gets through every session at this window. {refused}"}
    if len(usable) == 1 and len(data) > 1:
        return {"policy": usable[0], "why": f"the only policy that gets through all {sessions} sessions. {refused}"}
    why = (f"{', '.join(usable)} get through all {sessions} sessions; sizes alone do not say which of them loses "
           "less of what the agent needed")
    return {"policy": None, "why": f"{why}. {refused}" if refused else why}


def _faults(rows: Mapping[str, Mapping[str, float | None]]) -> str:
    ended = sum(bool(v.get("run_ended")) for v in rows.values())
    broken = sum(bool(v.get("pairing_violations")) for v in rows.values())
    found = [f"{ended} of {len(rows)} sessions end in a refused request"] if ended else []
    found += [f"broken pairs in {broken} sessions"] if broken else []
    return ", ".join(found)
