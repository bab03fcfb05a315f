"""Effects by stratum of sessions as the tables of every report: pooled beside standardised, and each stratum's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evals.commands.leaderboard import cell
from evals.leaderboard import HEADLINES

STRATA_COLUMNS = ("policy", "measurement", "by", "pooled", "weighted by sessions", "95 %", "weighted equally",
                  "in each stratum", "sign")
STRATA_TITLE = "Differences by kind of session"
STRATA_SAID = ("Short and long sessions, or sessions of two harnesses, may be mixed differently in what was measured. "
               "Where the effect with fixed weights has the other sign than the pooled one, believe neither.")
_TITLES = {h.metric: h.title for h in HEADLINES}


def strata_rows(summary: Mapping[str, Any], only_reversed: bool = False) -> list[tuple[str, ...]]:
    """Every effect that is not zero in all strata; `only_reversed`: those whose sign hangs on the weights."""
    return [_row(r) for r in summary.get("strata", ()) if (r["reversed"] if only_reversed else _moves(r))]


def strata_line(summary: Mapping[str, Any]) -> str | None:
    """How far pooled effects can be trusted, in a sentence; None where the sessions are all of one kind."""
    found = [r for r in summary.get("strata", ()) if _moves(r)]
    if not found:
        return None
    turned = sum(r["reversed"] for r in found)
    ways = ", ".join(dict.fromkeys(r["by"] for r in found))
    said = f"By {ways}: {len(found) - turned:,} of {len(found):,} effects keep their sign when the strata are weighted"
    return f"{said} as they are in all sessions, or equally."


def _moves(row: Mapping[str, Any]) -> bool:
    return bool(row["pooled"]) or any(s["effect"] for s in row["strata"])


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    metric = row["metric"]
    bounds = "–" if row["low"] is None else f"{cell(metric, row['low'])} … {cell(metric, row['high'])}"
    parts = "; ".join(f"{s['name']}: {cell(metric, s['effect'])} (n {s['n']})" for s in row["strata"])
    return (row["policy"], _TITLES.get(metric, metric), row["by"], cell(metric, row["pooled"]),
            cell(metric, row["session_weighted"]), bounds, cell(metric, row["equal_weighted"]), parts,
            "turns" if row["reversed"] else "same")
