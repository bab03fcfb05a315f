"""Each arm as a whole: how often it solves, what a solved task costs, how much longer its runs are, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum
from typing import Any

from evals.leaderboard import SHARES
from evals.leaderboard_front import Table
from evals.outcomes_math import cost_per_solved, mean_over_tasks, pass_at_k, pass_hat_k
from evals.stats import Matched, Paired, matched, paired_by_unit
from evals.stats_binary import is_binary, paired_share_interval, share_interval
from evals.stats_bootstrap import interval
from evals.stats_margins import Margin, noninferior
from evals.stats_ratio import Ratio, ratio_of_sums
from evals.tasks.trial import Result
from replay.policy.load import RECORDED

FEW_TASKS = 6
"""Below so many tasks no interval of 95 % exists."""


def arm_rows(results: Sequence[Result], names: Sequence[str], control: str, trials: int) -> list[dict[str, Any]]:
    """A row for each arm; differences, intervals and the detectable effect are against the control, task by task."""
    known = {name: by_task([r for r in results if r.arm == name]) for name in names}
    return [_arm(name, known[name], known[control], trials, [r for r in results if r.arm == name]) for name in names]


def by_task(results: Sequence[Result]) -> dict[str, list[Result]]:
    """The judged trials of each task; a task without one is left out."""
    found: dict[str, list[Result]] = {}
    for result in results:
        if result.value != "infra":
            found.setdefault(result.task, []).append(result)
    return found


def rates(tasks: Mapping[str, Sequence[Result]]) -> dict[str, float | None]:
    """Share of passed trials by task."""
    return {t: pass_at_k(len(rs), _passed(rs), 1) for t, rs in _graded(tasks).items()}


def _graded(tasks: Mapping[str, Sequence[Result]]) -> dict[str, list[Result]]:
    """The trials of which somebody said pass or fail."""
    found = {t: [r for r in rs if r.graded] for t, rs in tasks.items()}
    return {t: rs for t, rs in found.items() if rs}


def with_width(found: Paired | None, both: Matched) -> Paired | None:
    """A difference of yes and no with an interval that keeps a width where all tasks differ alike."""
    if found is None or found.n < FEW_TASKS or not is_binary(both.values, both.reference):
        return found
    span = paired_share_interval(both.values, both.reference)
    return replace(found, low=span.low, high=span.high, coverage=span.coverage, method=span.method)


def _passed(results: Sequence[Result]) -> int:
    return sum(r.value == "pass" for r in results)


def _arm(name: str, ours: Mapping[str, Sequence[Result]], theirs: Mapping[str, Sequence[Result]], trials: int,
         every: Sequence[Result]) -> dict[str, Any]:
    found, both = paired_by_unit(rates(ours), rates(theirs))
    found = with_width(found, both)
    judged = [r for rs in ours.values() for r in rs]
    hat, lacking = mean_over_tasks(pass_hat_k(len(rs), _passed(rs), trials) for rs in _graded(ours).values())
    return {"arm": name, "tasks": len(ours), "trials": len(judged), "solved": _passed(judged),
            "ungraded": sum(not r.graded for r in judged),
            "infra": sum(r.value == "infra" for r in every), "endings": _endings(judged), **_rate(rates(ours)),
            "k": trials, "pass_hat_k": hat, "pass_hat_k_missing": lacking, **_difference(found),
            "pairs": len(both.units), **_cost(ours), **_longer(ours, theirs)}


def _endings(judged: Sequence[Result]) -> dict[str, int]:
    """How many runs ended in which way."""
    return {why: sum(r.why == why for r in judged) for why in sorted({r.why for r in judged})}


def _rate(found: Mapping[str, float | None]) -> dict[str, Any]:
    values = [v for v in found.values() if v is not None]
    if not values:
        return {"pass_at_1": None, "rate_low": None, "rate_high": None, "rate_coverage": None}
    span = share_interval(values) if is_binary(values) else interval(values)
    return {"pass_at_1": fsum(values) / len(values), **_ends("rate_", span.low, span.high, span.coverage)}


def _ends(prefix: str, low: float, high: float, coverage: float) -> dict[str, float | None]:
    bounded = coverage > 0
    return {f"{prefix}low": low if bounded else None, f"{prefix}high": high if bounded else None,
            f"{prefix}coverage": coverage}


def _difference(found: Paired | None) -> dict[str, Any]:
    if found is None:
        return dict.fromkeys(("difference", "low", "high", "coverage", "p", "mde"))
    return {"difference": found.difference, **_ends("", found.low, found.high, found.coverage), "p": found.p,
            "mde": found.mde}


def _cost(tasks: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    """Dollars of all trials over the number of solved ones; null where a price is unknown or nothing was solved."""
    costs = [[r.cost_usd for r in rs] for rs in tasks.values()]
    names = ("cost_usd", "cost_per_solved", "cost_per_solved_low", "cost_per_solved_high", "cost_per_solved_coverage")
    if not costs or any(c is None for row in costs for c in row):
        return dict.fromkeys(names)
    if not _graded(tasks):
        return dict.fromkeys(names) | {"cost_usd": fsum(c or 0.0 for row in costs for c in row)}
    sums, solved = [fsum(c or 0.0 for c in row) for row in costs], [float(_passed(rs)) for rs in tasks.values()]
    return {"cost_usd": fsum(sums), "cost_per_solved": cost_per_solved(sums, fsum(solved)),
            **_span("cost_per_solved_", ratio_of_sums(sums, solved))}


def _span(prefix: str, found: Ratio | None) -> dict[str, float | None]:
    if found is None:
        return dict.fromkeys((f"{prefix}low", f"{prefix}high", f"{prefix}coverage"))
    return _ends(prefix, found.low, found.high, found.coverage)


def _longer(ours: Mapping[str, Sequence[Result]], theirs: Mapping[str, Sequence[Result]]) -> dict[str, Any]:
    """Steps over the control's steps on the same tasks (D7): of all trials, and of those that solved on both sides."""
    return _ratio("elongation", _steps(ours), _steps(theirs)) | _ratio(
        "elongation_solved", _steps(_solved(ours)), _steps(_solved(theirs)))


def _solved(tasks: Mapping[str, Sequence[Result]]) -> dict[str, list[Result]]:
    found = {t: [r for r in rs if r.value == "pass"] for t, rs in tasks.items()}
    return {t: rs for t, rs in found.items() if rs}


def _steps(tasks: Mapping[str, Sequence[Result]]) -> dict[str, float]:
    """Mean steps of a trial by task."""
    return {t: fsum(r.steps for r in rs) / len(rs) for t, rs in tasks.items()}


def _ratio(name: str, ours: Mapping[str, float], theirs: Mapping[str, float]) -> dict[str, Any]:
    both = sorted(ours.keys() & theirs.keys())
    found = ratio_of_sums([ours[t] for t in both], [theirs[t] for t in both]) if both else None
    return {name: found.ratio if found else None, f"{name}_tasks": len(both), **_span(f"{name}_", found)}


def same_intervals(pairs: Sequence[Mapping[str, Any]], data: Table) -> list[dict[str, Any]]:
    """The paired rows of a leaderboard, with the same intervals for yes and no as the arms have."""
    made = []
    for row in pairs:
        ours, theirs = ({u: v.get(row["metric"]) for u, v in data[row[k]].items()} for k in ("policy", "baseline"))
        both = matched(ours, theirs)
        if row["metric"] in SHARES and len(both.units) >= FEW_TASKS and is_binary(both.values, both.reference):
            span = paired_share_interval(both.values, both.reference)
            made.append({**row, "low": span.low, "high": span.high, "coverage": span.coverage, "method": span.method})
        else:
            made.append(dict(row))
    return made


def verdicts(results: Sequence[Result], names: Sequence[str], control: str, margin: float) -> dict[str, str]:
    """For each changed arm whether it solves at most so much less than the control, at one-sided 95 %, over tasks.

    `non-inferior`, `inferior`, or `undecided`: too few tasks, or too large an interval.
    """
    theirs = rates(by_task([r for r in results if r.arm == control]))
    found: dict[str, str] = {}
    for name in (n for n in names if n not in (control, RECORDED.name)):
        found[name] = _verdict(matched(rates(by_task([r for r in results if r.arm == name])), theirs), margin)
    return found


def _verdict(both: Matched, margin: float) -> str:
    """Equal outcomes of a few tasks prove nothing, so yes and no have their own interval."""
    if len(both.units) < FEW_TASKS:
        return "undecided"
    if not is_binary(both.values, both.reference):
        return noninferior(both.values, both.reference, Margin(margin, "high")).kind
    span = paired_share_interval(both.values, both.reference, coverage=0.9)
    return "non-inferior" if span.low >= -margin else "inferior" if span.high < -margin else "undecided"


def infra_words(results: Sequence[Result], names: Sequence[str]) -> list[str]:
    """What failed through nobody's fault, arm by arm: not counted as a failure, and not left unsaid."""
    found = []
    for name in names:
        broken = [r for r in results if r.arm == name and r.value == "infra"]
        if broken:
            found.append(f"{name}: {len(broken)} of {sum(r.arm == name for r in results)} trials were not judged, such "
                         f"as {broken[0].task} trial {broken[0].number}: {broken[0].detail[:160]}")
    return found


def few_tasks(count: int) -> list[str]:
    """A warning where the tasks are too few for an interval of 95 %."""
    if count >= FEW_TASKS:
        return []
    word = "task" if count == 1 else "tasks"
    return [f"{count} {word}: fewer than {FEW_TASKS} allow no interval of 95 %; the unit is the task, not the trial"]
