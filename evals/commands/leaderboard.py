"""The summary of a run on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evals.leaderboard import HEADLINES
from replay.commands.output import console, literal, number, table

_FRACTIONS = {"view_churn", "identified_share"}
_RATES = {"overflow_steps", "compactions", "micro_compactions", "compactions_futile", "pairing_violations"}


def print_summary(summary: Mapping[str, Any]) -> None:
    """Leaderboard, paired differences, how exact the figures are, recommendation and warnings."""
    screen = console()
    screen.print(_leaderboard(summary))
    screen.print(_pairs(summary))
    for line in _calibration(summary["sessions"]):
        screen.print(line)
    for line in _reprojection(summary["reprojection"]):
        screen.print(literal(line))
    advice = summary["recommendation"]
    screen.print(literal(f"recommendation: {advice['policy'] or 'none'} – {advice['why']}"), style="bold")
    for warning in summary["warnings"]:
        screen.print(literal(f"warning: {warning}"))
    if summary["run"]:
        screen.print(literal(f"run stored in {summary['run']}; open it with: rewindow dashboard {summary['run']}"))


def cell(metric: str, value: float | None) -> str:
    """A headline value as text; shares in per cent, means of counts with one digit."""
    if value is None:
        return "–"
    if metric in _FRACTIONS:
        return f"{value:.1%}"
    return number(value, 2 if metric in _RATES else 0)


def _leaderboard(summary: Mapping[str, Any]) -> Any:
    names = [p["name"] for p in summary["policies"]]
    found = {(r["policy"], r["metric"]): r for r in summary["leaderboard"]}
    sessions = len(summary["sessions"])
    rows = [_line(name, found, sessions) for name in names]
    title = (f"{sessions} sessions, window {summary['window']:,}, tokenizer {summary['tokenizer']}, summariser "
             f"{summary['summariser']} – means per session with 95 % intervals; every number L0, exact up to a "
             "session's first divergence, conditional on the recording behind it")
    return table(("policy", "end in refusal", "mean view", "95 %", "peak", "input", "full", "micro", "futile",
                  "churn", "identified", "rank"), rows, title)


def _line(name: str, found: Mapping[tuple[str, str], Mapping[str, Any]], sessions: int) -> Sequence[str]:
    def value(metric: str) -> float | None:
        row = found.get((name, metric))
        return row["value"] if row else None

    mean = found[name, "mean_view_tokens"]
    ended = value("run_ended")
    interval = "–" if mean["low"] is None else f"{number(mean['low'])}…{number(mean['high'])}"
    rank = "–" if mean["rank_low"] is None else f"{mean['rank_low']}–{mean['rank_high']}"
    share = "–" if ended is None else f"{round(ended * mean['n'])} of {sessions}"
    return (name, share, cell("mean_view_tokens", mean["value"]), interval,
            *(cell(m, value(m)) for m in ("peak_view_tokens", "input_tokens", "compactions", "micro_compactions",
                                          "compactions_futile", "view_churn", "identified_share")), rank)


def _pairs(summary: Mapping[str, Any]) -> Any:
    titles = {h.metric: h.title for h in HEADLINES}
    wanted = ("run_ended", "mean_view_tokens", "peak_view_tokens", "input_tokens", "view_churn")
    rows = [(r["policy"], titles[r["metric"]], _signed(r["metric"], r["difference"]),
             f"{_signed(r['metric'], r['low'])} … {_signed(r['metric'], r['high'])}", f"{r['p_adjusted']:.3f}",
             str(r["n"]), cell(r["metric"], r["mde"])) for r in summary["pairs"] if r["metric"] in wanted]
    return table(("policy", f"against {summary['baseline']}", "difference", "95 %", "p (Holm)", "pairs", "MDE"), rows,
                 left=2)


def _signed(metric: str, value: float) -> str:
    if metric in _FRACTIONS:
        return f"{value:+.1%}"
    return f"{value:+,.2f}" if metric == "run_ended" else f"{value:+,.0f}"


def _calibration(sessions: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    errors = sorted(s["calibration"]["median_error"] for s in sessions if s["calibration"]["median_error"] is not None)
    if not errors:
        return ["no session records usage: sizes are plain counts, system prompt and tool schemas left out"]
    middle = errors[len(errors) // 2]
    return [f"counted against billed tokens (fitted on odd steps, judged on even ones): median error {middle:.1%} over "
            f"{len(errors)} sessions with usage, worst {errors[-1]:.1%}; sizes there are anchored to recorded usage"]


def _reprojection(rows: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    return [f"re-projected {r['policy']} on {r['session']}: " +
            ("equal to the record at every step" if r["first_difference"] is None else
             f"differs from the record from step {r['first_difference']} of {r['steps']} on (our preset's error, or "
             "settings that the file does not hold)") for r in rows]
