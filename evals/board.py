"""A run's summary as the rows and sentences that pages show: every number already in words, with its level."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from evals.commands.leaderboard import cell
from evals.leaderboard import TITLED

LEVELS: Mapping[str, str] = {
    "L0": "exact: follows from the recording and the policy's code alone",
    "L1": "modelled: exact but for a stated model of prices, caches or repairs",
    "L2": "teacher-forced: a model judged on views of the recorded history, one step at a time",
    "L3": "on-policy: an agent really ran under the policy",
}
"""Identification levels and what each may claim."""

LANES: Mapping[str, str] = {
    "recorded": "what the harness itself sent",
    "re-projected": "our preset of the recorded harness: where it differs from the record, that is our error",
    "alternative": "another policy: exact up to its first view that differs from the record, conditional behind it",
}
"""Kinds of lanes and what each is."""

SIGNS_EXPLAINED = ("★: more likely than not first alone. ≈: not shown to be worse than the best. Pareto: no other "
                   "policy is better on everything that is traded off.")
"""What the signs of the leaderboard mean."""
FULL_COVERAGE = 0.945
"""From here on an interval is called one of 95 %."""

_DERIVED = {"run_ended": "L0", "compactions": "L0"}
"""Headline metrics that are counted from events, which carry no level of their own."""
_COUNT_OF_SESSIONS = {"run_ended"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One headline value of one policy, in words."""

    metric: str
    value: str
    interval: str | None
    """95 % interval; None where it has no width or nothing was measured."""
    rank: str | None
    """Interval of the rank; None for what is not ranked."""
    leads: bool
    """More likely than not it alone is first."""
    not_worse: bool
    """It is not shown to be worse than the best."""
    level: str
    sessions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardRow:
    """One policy of the leaderboard."""

    policy: str
    pareto: bool
    cells: tuple[Cell, ...]


def board(summary: Mapping[str, Any]) -> list[BoardRow]:
    """The leaderboard, policies in the order of the run, cells in the order of `TITLED`."""
    found = {(r["policy"], r["metric"]): r for r in summary["leaderboard"]}
    known = levels(summary)
    names = [p["name"] for p in summary["policies"]]
    return [BoardRow(policy=name, pareto=any(found[k]["pareto"] for k in found if k[0] == name),
                     cells=tuple(_cell(found[name, h.metric], known) for h in TITLED if (name, h.metric) in found))
            for name in names]


def _cell(row: Mapping[str, Any], known: Mapping[str, str]) -> Cell:
    metric = row["metric"]
    ranked = row["rank_low"] is not None
    return Cell(metric=metric, value=shown(metric, row["value"]), level=known.get(metric, "L0"), sessions=row["n"],
                interval=_interval(row, shown) if row["low"] != row["high"] else None,
                rank=_rank(row["rank_low"], row["rank_high"]) if ranked else None,
                leads=ranked and row["p_best"] > 0.5, not_worse=bool(row.get("not_worse")))


def _interval(row: Mapping[str, Any], words: Callable[[str, float | None], str]) -> str | None:
    """The interval in words, with its coverage where so few sessions allow no 95 %; None where there is none."""
    covered = row.get("coverage") if row.get("coverage") is not None else 0.95
    if row["low"] is None or row["high"] is None or not covered:
        return None
    span = f"{words(row['metric'], row['low'])} to {words(row['metric'], row['high'])}"
    return span if covered >= FULL_COVERAGE else f"{span} ({covered:.0%})"


def _rank(low: int, high: int) -> str:
    return f"rank {low}" if low == high else f"rank {low}–{high}"


def shown(metric: str, value: float | None) -> str:
    """A headline value in words; shares of sessions in per cent."""
    if value is not None and metric in _COUNT_OF_SESSIONS:
        return f"{value:.0%}"
    return cell(metric, value)


def signed(metric: str, value: float | None) -> str:
    """A difference in words, with its sign."""
    text = shown(metric, value)
    return f"+{text}" if value is not None and value > 0 else text


def levels(summary: Mapping[str, Any]) -> dict[str, str]:
    """The level of every metric of a run; worked out from its trials where the run is from before it was stored."""
    return dict(_DERIVED) | (summary.get("levels") or metric_levels(summary["trials"]))


def metric_levels(trials: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The level of every metric: the weakest that any trial gives it."""
    found: dict[str, str] = {}
    for trial in trials:
        for metric, level in trial["level"].items():
            found[metric] = max(level, found.get(metric, level))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRow:
    """One paired difference to the baseline, as numbers for a chart and in words for a table."""

    policy: str
    metric: str
    difference: float
    low: float
    high: float
    words: tuple[str, ...]
    """Difference, interval, adjusted p, pairs, smallest effect that this study would find."""


PAIR_COLUMNS = ("difference", "95 % interval", "p (Holm)", "pairs", "smallest effect found 4 in 5 times")
"""Headings of a pair's words."""


def pair_rows(summary: Mapping[str, Any], metric: str) -> list[PairRow]:
    """The paired differences of one metric, policies in the order of the run."""
    return [PairRow(policy=r["policy"], metric=metric, difference=r["difference"], low=r["low"], high=r["high"],
                    words=(signed(metric, r["difference"]), _interval(r, signed) or "–", f"{r['p_adjusted']:.3f}",
                           f"{r['n']:,}", shown(metric, r["mde"])))
            for r in summary["pairs"] if r["metric"] == metric]


def facts(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a run compared, as pairs of a name and a value."""
    found = [("sessions", f"{len(summary['sessions']):,}"), ("policies", f"{len(summary['policies']):,}"),
             ("baseline", str(summary["baseline"])), ("window", f"{summary['window']:,} tokens")]
    if summary["output_reserve"]:
        found.append(("kept free for the answer", f"{summary['output_reserve']:,} tokens"))
    models = (("prices", summary.get("prices")), ("cache model", summary.get("cache_model")))
    return [*found, ("tokenizer", str(summary["tokenizer"])), ("summariser", str(summary["summariser"])),
            *((name, str(value)) for name, value in models if value)]


def advice(summary: Mapping[str, Any]) -> tuple[str | None, str, str]:
    """The recommended policy or None, a title, and why, with what would change it."""
    found = summary["recommendation"]
    title = f"Recommended: {found['policy']}" if found["policy"] else "No single policy is recommended"
    change = found.get("would_change")
    why = f"{found['why'].rstrip('. ')}."
    return found["policy"], title, f"{why} What would change this: {change}." if change else why


def explained(live: bool = False) -> str:
    """How to read the leaderboard; `live`: of agents that really ran."""
    if live:
        return ("Means per task over its judged trials; under each its 95 % interval and the interval of its rank, "
                "resampled over tasks. Trials that failed through nobody's fault are counted apart.")
    return ("Means per session; under each its 95 % interval and the interval of its rank. Only sessions that every "
            "policy could be measured on count. Behind a session's first view that differs from the record, numbers "
            "are conditional on the agent acting as recorded.")
