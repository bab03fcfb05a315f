"""The summary of a run on a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from evals.commands.live_words import print_live
from evals.leaderboard import TITLED
from evals.loss_tables import WORST_COLUMNS, loss_metrics, worst_rows
from evals.outcome_report import outcome_lines
from replay.commands.output import console, literal, number, table

FRACTIONS = {"view_churn", "identified_share", "run_ended", "evidence_retention", "edit_safety",
             "instruction_retention", "pass_at_1", "pass_hat_k", "pass_at_k"}
RATES = {"instruction_permanent_losses", "rereads_per_100_steps", "overflow_steps", "trial_compactions",
         "followed_steps", "compactions", "micro_compactions", "compactions_futile", "pairing_violations"}
_SIZES = ("peak_view_tokens", "input_tokens", "compactions", "micro_compactions", "compactions_futile", "view_churn",
          "identified_share")
_PAIRED = ("run_ended", "mean_view_tokens", "peak_view_tokens", "input_tokens", "view_churn", "evidence_retention",
           "edit_safety", "instruction_retention", "repair_adjusted_cost")
MOST_SESSIONS = 60
"""Longer session lists are left to `rewindow report --csv`."""


def print_summary(summary: Mapping[str, Any]) -> None:
    """Sessions, leaderboard, paired differences, recommendation and warnings."""
    screen = console()
    if "live" in summary:
        print_live(summary)
        return
    if len(summary["sessions"]) <= MOST_SESSIONS:
        screen.print(_sessions(summary["sessions"]))
    screen.print(_leaderboard(summary))
    screen.print(literal(_reading(summary)))
    for part in _losses(summary):
        screen.print(part)
    screen.print(_pairs(summary))
    for part in _strata(summary):
        screen.print(part)
    for line in (*_calibration(summary["sessions"]), *_reprojection(summary["reprojection"])):
        screen.print(literal(line))
    for line in outcome_lines(summary.get("outcomes", {})):
        screen.print(literal(line))
    for warning in summary["warnings"]:
        screen.print(literal(f"warning: {warning}"), style="yellow")
    advice = summary["recommendation"]
    screen.print(literal(f"\nrecommendation: {advice['policy'] or 'none'} – {advice['why']}"), style="bold")
    if summary["run"]:
        screen.print(literal(f"run stored in {summary['run']}; open it with: rewindow dashboard {summary['run']}"))


def cell(metric: str, value: float | None) -> str:
    """A headline value as text; shares in per cent, means of counts with two digits."""
    if value is None:
        return "–"
    if metric in FRACTIONS:
        return f"{value:.1%}"
    if metric == "trial_cost_usd":
        return number(value, 4)
    return number(value, 2 if metric in RATES else 0)


def _sessions(sessions: Sequence[Mapping[str, Any]]) -> Any:
    rows = [(s["session"], s["format"], number(s["steps"]), number(s["recorded_compactions"]),
             number(s["recorded"]["peak_view_tokens"]), _share(s["calibration"]["median_error"]),
             number(len(s["notes"]))) for s in sessions]
    return table(("session", "format", "steps", "compactions", "peak", "count error", "notes"), rows,
                 "Sessions as recorded", left=2)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


def _leaderboard(summary: Mapping[str, Any]) -> Any:
    found = {(r["policy"], r["metric"]): r for r in summary["leaderboard"]}
    sessions = len(summary["sessions"])
    rows = [_recorded(summary["sessions"]), *(_line(p["name"], found, sessions) for p in summary["policies"])]
    return table(("policy", "end in refusal", "mean view", "95 %", "rank", "peak", "input", "full", "micro", "futile",
                  "churn", "identified"), rows, f"{sessions} sessions, window {summary['window']:,} tokens")


def _losses(summary: Mapping[str, Any]) -> Iterator[Any]:
    """What each policy keeps of what the agent used, and the worst that it lost; nothing where it was not measured."""
    metrics = loss_metrics(summary)
    if not metrics:
        return
    found = {(r["policy"], r["metric"]): r for r in summary["leaderboard"]}
    rows = [(p["name"], *(_kept(found[p["name"], m]) for m, _ in metrics)) for p in summary["policies"]]
    yield table(("policy", *(title for _, title in metrics)), rows,
                "What the agent used and the views still held (L0; re-reads and their cost L1)")
    worst = worst_rows(summary)
    if worst:
        yield table(WORST_COLUMNS, worst, "Worst losses", left=len(WORST_COLUMNS))


def _kept(row: Mapping[str, Any]) -> str:
    """A value with its interval where there is one."""
    shown = cell(row["metric"], row["value"])
    if row["low"] is None or row["low"] == row["high"]:
        return shown
    return f"{shown}\n{cell(row['metric'], row['low'])} … {cell(row['metric'], row['high'])}"


def _recorded(sessions: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    """What the harnesses themselves sent, for orientation."""
    def mean(name: str) -> float | None:
        known = [s["recorded"][name] for s in sessions if s["recorded"][name] is not None]
        return fmean(known) if known else None

    return ("(recorded)", "–", number(mean("mean_view_tokens")), "", "", number(mean("peak_view_tokens")),
            number(mean("input_tokens")), "", "", "", "", "")


def _line(name: str, found: Mapping[tuple[str, str], Mapping[str, Any]], sessions: int) -> Sequence[str]:
    mean, ended = found[name, "mean_view_tokens"], found[name, "run_ended"]
    interval = "–" if mean["low"] is None else f"{number(mean['low'])} … {number(mean['high'])}"
    rank = "–" if mean["rank_low"] is None else f"{mean['rank_low']}–{mean['rank_high']}"
    share = "–" if ended["value"] is None else f"{round(ended['value'] * ended['n'])} of {sessions}"
    return (name, share, cell("mean_view_tokens", mean["value"]), interval, rank,
            *(cell(m, found[name, m]["value"]) for m in _SIZES))


def _reading(summary: Mapping[str, Any]) -> str:
    return (f"Means per session; tokenizer {summary['tokenizer']}, summariser {summary['summariser']}. All L0: exact "
            "up to a session's first view that differs from the record (identified), behind it on the condition that "
            "the agent had acted as recorded. Rank: 95 % interval of the rank by mean view.")


def _pairs(summary: Mapping[str, Any]) -> Any:
    titles = {h.metric: h.title for h in TITLED}
    rows = [(r["policy"], titles[r["metric"]], _signed(r["metric"], r["difference"]),
             f"{_signed(r['metric'], r['low'])} … {_signed(r['metric'], r['high'])}", f"{r['p_adjusted']:.3f}",
             str(r["n"]), cell(r["metric"], r["mde"])) for r in summary["pairs"] if r["metric"] in _PAIRED]
    return table(("policy", "measurement", "difference", "95 %", "p (Holm)", "pairs", "detectable"), rows,
                 f"Paired against {summary['baseline']}", left=2)


def _strata(summary: Mapping[str, Any]) -> Iterator[Any]:
    """Whether effects hang on the mixture of sessions, and those whose sign does; `rewindow report` has them all."""
    from evals.strata_tables import STRATA_COLUMNS, STRATA_TITLE, strata_line, strata_rows

    line = strata_line(summary)
    if line is None:
        return
    turned = strata_rows(summary, only_reversed=True)
    if turned:
        yield table(STRATA_COLUMNS, turned, f"{STRATA_TITLE}: the sign hangs on their mixture", left=3)
    yield literal(line)


def _signed(metric: str, value: float) -> str:
    if metric in FRACTIONS:
        return f"{value:+.1%}"
    if metric == "trial_cost_usd":
        return f"{value:+,.4f}"
    return f"{value:+,.0f}"


def _calibration(sessions: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    errors = sorted(s["calibration"]["median_error"] for s in sessions if s["calibration"]["median_error"] is not None)
    if not errors:
        return ["No session records usage: sizes are plain counts without system prompt and tool schemas."]
    middle = errors[len(errors) // 2]
    return [f"Count error: counted against billed tokens, fitted on odd steps and judged on even ones: {middle:.1%} in "
            f"the middle session of {len(errors)} with usage, {errors[-1]:.1%} in the worst; sizes there are anchored "
            "to recorded usage."]


def _reprojection(rows: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    return [f"Re-projected {r['policy']} on {r['session']}: " +
            ("equal to the record at every step." if r["first_difference"] is None else
             f"differs from the record from step {r['first_difference']} of {r['steps']} on: our preset's error, or "
             "settings that the file does not hold.") for r in rows]
