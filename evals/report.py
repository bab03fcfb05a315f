"""A run's summary as Markdown and CSV."""

from __future__ import annotations

import csv
import io
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evals.board import explained
from evals.commands.leaderboard import cell
from evals.leaderboard import TITLED
from evals.loss_tables import WORST_COLUMNS, worst_rows
from evals.strata_tables import STRATA_COLUMNS, STRATA_SAID, STRATA_TITLE, strata_rows


def write_atomically(path: Path, text: str) -> None:
    """Write a file beside its place and rename it there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        Path(scratch).chmod(0o644)
        Path(scratch).replace(path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise


def write_markdown(summary: Mapping[str, Any], path: Path) -> None:
    """The leaderboard, paired differences, recommendation and warnings as Markdown."""
    write_atomically(path, "\n\n".join(_parts(summary)) + "\n")


def write_csv(summary: Mapping[str, Any], path: Path) -> None:
    """One row a trial: session, policy and every measurement; missing values are empty."""
    names = list(dict.fromkeys(n for t in summary["trials"] for n in t["metrics"]))
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(["session", "policy", "lane", "ok", "error", *names])
    for trial in summary["trials"]:
        measured = [trial["metrics"].get(n) for n in names]
        writer.writerow([_cell_text(v) for v in (trial["session"], trial["policy"], trial["lane"], trial["ok"],
                                                 trial["error"], *measured)])
    write_atomically(path, out.getvalue())


def _cell_text(value: Any) -> Any:
    """Text that a spreadsheet would run as a formula is kept from it."""
    return f"'{value}" if isinstance(value, str) and value[:1] in ("=", "+", "-", "@") else value


def _parts(summary: Mapping[str, Any]) -> Sequence[str]:
    advice = summary["recommendation"]
    what, said = ("tasks", explained(live=True)) if "live" in summary else ("sessions", (
        "Means per session; every number is L0 and conditional on the recording behind a session's first divergence."))
    head = (f"{len(summary['sessions'])} {what}, window {summary['window']:,}, tokenizer {summary['tokenizer']}, "
            f"summariser {summary['summariser']}. {said}")
    advised = f"{advice['policy'] or 'none'}: {advice['why']}"
    parts = ["# Policies compared", _escape(head), _leaderboard_table(summary),
             f"## Against {_escape(summary['baseline'])}", _pair_table(summary), "## Recommendation", _escape(advised)]
    if strata := strata_rows(summary):
        parts += [f"## {STRATA_TITLE}", _escape(STRATA_SAID), _markdown(STRATA_COLUMNS, strata)]
    if worst := worst_rows(summary, per_policy=10):
        parts += ["## Worst losses", _markdown(WORST_COLUMNS, worst)]
    if summary["warnings"]:
        parts += ["## Warnings", "\n".join(f"- {_escape(w)}" for w in summary["warnings"])]
    return parts


def _leaderboard_table(summary: Mapping[str, Any]) -> str:
    found = {(r["policy"], r["metric"]): r for r in summary["leaderboard"]}
    shown = [h for h in TITLED if any(h.metric == metric for _, metric in found)]
    rows = [[p["name"], *(_value(found[p["name"], h.metric]) for h in shown)] for p in summary["policies"]]
    return _markdown(["policy", *(h.title for h in shown)], rows)


def _value(row: Mapping[str, Any]) -> str:
    shown = cell(row["metric"], row["value"])
    if row["low"] is None or row["low"] == row["high"]:
        return shown
    return f"{shown} [{cell(row['metric'], row['low'])}, {cell(row['metric'], row['high'])}]"


def _pair_table(summary: Mapping[str, Any]) -> str:
    titles = {h.metric: h.title for h in TITLED}
    rows = [[r["policy"], titles[r["metric"]], cell(r["metric"], r["difference"]),
             f"[{cell(r['metric'], r['low'])}, {cell(r['metric'], r['high'])}]", f"{r['p_adjusted']:.3f}", str(r["n"]),
             cell(r["metric"], r["mde"])] for r in summary["pairs"]]
    return _markdown(["policy", "measurement", "difference", "95 %", "p (Holm)", "pairs", "MDE"], rows)


def _markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *("| " + " | ".join(map(_escape, row)) + " |" for row in rows)])


def _escape(text: str) -> str:
    """Markdown and HTML characters of names and messages stay literal."""
    for character in "\\`*_[]<>|#":
        text = text.replace(character, "\\" + character)
    return text.replace("\n", " ")
