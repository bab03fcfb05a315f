"""A sweep in the terminal: the best setting and how far it can be trusted, what each parameter does, the grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evals.commands.leaderboard import cell
from replay.commands.output import console, literal, table

MOST_ROWS, MOST_WARNINGS = 30, 10


def print_sweep(summary: Mapping[str, Any]) -> None:
    """Print a sweep's summary."""
    found, out = summary["sweep"], console()
    metric = found["objective"]
    out.print(literal(f"{len(found['points'])} settings of {found['policy']}, valued on {found['n']} of "
                      f"{len(summary['sessions'])} sessions; {metric}: {found['better']} is better, unchanged "
                      f"{_value(metric, found['unchanged'])}"))
    for line in found["sensitivity"]:
        rows = [(str(row["value"]), _value(metric, {**row, "value": row["mean"]})) for row in line["rows"]]
        others = "".join(f", {n}={v}" for n, v in line["others"].items())
        out.print(table([line["parameter"], metric], rows, f"{line['parameter']} alone{others}"))
    out.print(_points(found["points"], metric))
    for warning in summary["warnings"][:MOST_WARNINGS]:
        out.print(literal(f"warning: {warning}"), style="yellow")
    out.print(literal(f"\nbest setting: {_best(found['best'], metric)}"), style="bold")
    if summary["run"]:
        out.print(literal(f"run stored in {summary['run']}; open it with: rewindow dashboard {summary['run']}"))


def _best(best: Mapping[str, Any], metric: str) -> str:
    if best["policy"] is None:
        return f"none – {best['why']}"
    span = f" [{cell(metric, best['low'])}, {cell(metric, best['high'])}]" if best["low"] is not None else ""
    setting = ", ".join(f"{n}={v}" for n, v in best["values"].items())
    return (f"{setting} – chosen on {best['chosen_on']} sessions; on the {best['confirmed_on']} others it differs from "
            f"the unchanged policy by {cell(metric, best['difference'])}{span}: {best['why']}")


def _points(points: Sequence[Mapping[str, Any]], metric: str) -> Any:
    names = list(points[0]["values"])
    known = sorted(points, key=lambda p: (p["ended"], p["value"] is None, p["value"] or 0.0))
    rows = [(*(str(p["values"][n]) for n in names), _value(metric, p), str(p["ended"])) for p in known[:MOST_ROWS]]
    more = f"; {len(points) - MOST_ROWS} more in --json" if len(points) > MOST_ROWS else ""
    return table([*names, metric, "sessions that end in refusal"], rows, f"Settings{more}")


def _value(metric: str, found: Mapping[str, Any]) -> str:
    if found["value"] is None:
        return "not measured"
    span = f" [{cell(metric, found['low'])}, {cell(metric, found['high'])}]" if found["low"] is not None else ""
    return f"{cell(metric, found['value'])}{span}"
