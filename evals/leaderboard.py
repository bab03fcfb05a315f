"""From trials to the tables that compare: leaderboard, paired differences, and what follows from them."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

import numpy as np

from evals.leaderboard_front import Table, front, number, shared
from evals.recommendation import recommend as recommend
from evals.runs.compact import Compact
from evals.stats import Matched, matched, paired_columns
from evals.stats_binary import is_binary, share_interval
from evals.stats_bootstrap import Array, Interval, column_intervals, grouped, mean_draws
from evals.stats_rank import Rank, not_worse_than_best, rank_draws
from evals.stats_ratio import Ratio, ratio_columns
from evals.stats_significance import holm_by_family
from evals.trial import SessionRow, TrialRow

ENOUGH_REPOSITORIES = 6
"""From so many repositories on they are the units that are resampled: fewer allow no exact 95 % interval."""


@dataclass(frozen=True, slots=True)
class Headline:
    """A metric of the leaderboard: its name, how it reads, and which way is better."""

    metric: str
    title: str
    better: str
    """`low`, `high` or `none` (a descriptor that is not ranked)."""
    family: Literal["headline", "exploratory"] = "exploratory"
    """Tests are corrected together with all others of the family; families are fixed before anything is measured."""
    adds_up: bool = False
    """Whether sums over sessions mean something, so that a ratio of sums can be given."""


HEADLINES = (
    Headline("run_ended", "sessions that end in a refused request", "low", "headline"),
    Headline("pairing_violations", "broken call/result pairs", "low"),
    Headline("mean_view_tokens", "mean view, tokens", "low", "headline"),
    Headline("peak_view_tokens", "peak view, tokens", "low"),
    Headline("input_tokens", "input, tokens a session", "low", adds_up=True),
    Headline("input_cost_units", "input cost, uncached tokens a session", "low", "headline", adds_up=True),
    Headline("overflow_steps", "steps over the window", "low"),
    Headline("compactions", "full compactions", "none"),
    Headline("micro_compactions", "micro-compactions", "none"),
    Headline("compactions_futile", "futile compactions", "low"),
    Headline("view_churn", "view churn", "low"),
    Headline("identified_share", "identified share", "none"),
    Headline("evidence_retention", "needed evidence kept", "high", "headline"),
    Headline("edit_safety", "edits that could be typed", "high", "headline"),
    Headline("instruction_retention", "instructions kept", "high", "headline"),
    Headline("instruction_permanent_losses", "instructions lost for good, a session", "low"),
    Headline("rereads_per_100_steps", "would-be re-reads per 100 steps", "low"),
    Headline("repair_adjusted_cost", "cost with repairs, uncached tokens a session", "low", "headline", adds_up=True),
)
"""What the leaderboard shows. Ranks exist only where one direction is better."""
OUTCOMES = (
    Headline("pass_at_1", "solved by a single trial", "high", "headline"),
    Headline("pass_hat_k", "solved by every trial", "high"),
    Headline("pass_at_k", "solved by some trial", "high"),
    Headline("trial_cost_usd", "cost of a trial, dollars", "low", "headline", adds_up=True),
    Headline("trial_steps", "steps of a trial", "low", adds_up=True),
    Headline("solved_steps", "steps of a trial that solves", "low", adds_up=True),
    Headline("trial_input_tokens", "input of a trial, tokens", "low", adds_up=True),
    Headline("trial_compactions", "full compactions of a trial", "none"),
    Headline("followed_steps", "steps that go on as recorded", "none"),
)
"""What agents that really ran are measured by; the unit is the task."""
SHARES = frozenset(("run_ended", "pass_at_1", "pass_hat_k", "pass_at_k"))
"""Metrics that are yes or no for each unit, or a mean of such."""
WITH_MODEL = (
    Headline("next_action_agreement", "next actions as recorded, by a model", "high"),
    Headline("next_action_drop", "next actions lost against the whole history", "low"),
    Headline("probe_recall", "questions answered from the view", "high"),
    Headline("probe_loss", "questions lost against the whole history", "low"),
    Headline("likelihood_shift", "recorded actions less likely, nats a token", "low"),
    Headline("summary_faithfulness", "claims of summaries that the record supports", "high"),
    Headline("summary_grounding", "what the next actions needed, in summaries", "high"),
)
"""What a model was asked about recorded views (level L2); a run without it has no rows of theirs."""
TITLED = (*OUTCOMES, *HEADLINES, *WITH_MODEL)
"""Every headline of any kind of run, in the order in which they are shown."""
LOSSES = frozenset(h.metric for h in HEADLINES[-6:])
"""Those that are measured only where losses are; a run without them has no rows of theirs."""


def measured(data: Table) -> list[Headline]:
    """The headlines of a run: those of losses and of a model only where some trial has one."""
    found = {m for rows in data.values() for trial in rows.values() for m in trial}
    optional = LOSSES | {h.metric for h in WITH_MODEL}
    return [h for h in (*HEADLINES, *WITH_MODEL) if h.metric not in optional or h.metric in found]


def values(row: TrialRow) -> Mapping[str, float | None]:
    """A trial's measurements by name, with the sums that the leaderboard needs."""
    measured = row.measurements
    found = measured.values if isinstance(measured, Compact) else {m.name: m.value for m in measured}
    planned, reactive = found.get("compactions_planned"), found.get("compactions_reactive")
    more = {"compactions": None if planned is None or reactive is None else planned + reactive,
            "run_ended": float(row.ended is not None) if row.ok else None}
    # The values themselves stay where they are: of a large run there are millions.
    return ChainMap(more, cast("dict[str, float | None]", found))


def table(rows: Sequence[SessionRow], policies: Sequence[str]) -> dict[str, dict[str, Mapping[str, float | None]]]:
    """All values of the named policies, sessions in the order of the rows."""
    made: dict[str, dict[str, Mapping[str, float | None]]] = {p: {} for p in policies}
    for row in rows:
        for trial in row.trials:
            if trial.policy in made:
                made[trial.policy][row.session] = values(trial)
    return made


def repositories(rows: Sequence[SessionRow]) -> dict[str, str] | None:
    """Session to its repository, for resampling whole repositories; None where they are too few, or sessions are alone.

    A session that names no working directory stands for itself.
    """
    found = {r.session: r.cwd or f"session {r.session}" for r in rows}
    count = len(set(found.values()))
    return found if ENOUGH_REPOSITORIES <= count < len(found) else None


def scope(rows: Sequence[SessionRow]) -> str | None:
    """What intervals speak of when sessions share repositories that are too few to be resampled; else None."""
    count = len({r.cwd or f"session {r.session}" for r in rows})
    if count >= ENOUGH_REPOSITORIES or count == len(rows):
        return None
    word = "repository" if count == 1 else "repositories"
    return (f"{len(rows)} sessions come from {count} {word}: intervals speak of further sessions there, not of other "
            "repositories")


def leaderboard(data: Table, clusters: Mapping[str, str] | None = None,
                shown: Sequence[Headline] | None = None) -> list[dict[str, Any]]:
    """One row for each policy and headline metric, on the sessions that every policy could be measured on.

    With `clusters` (session to repository) whole repositories are resampled. `shown`: only these metrics.
    """
    usable = front(data, clusters)
    rows = [row for headline in shown or measured(data) for row in _rows(data, headline, clusters)]
    return [row | {"pareto": row["policy"] in usable} for row in rows]


def _rows(data: Table, headline: Headline, clusters: Mapping[str, str] | None) -> list[dict[str, Any]]:
    """A metric's rows: all policies on the same sessions, resampled jointly."""
    sessions = shared(data, [headline.metric])
    if not sessions:
        return [_row(p, headline, np.empty(0), None, None, False) for p in data]
    columns = {p: np.array([number(data[p][s][headline.metric]) for s in sessions]) for p in data}
    groups = _groups(sessions, clusters)
    grouped_columns = grouped(np.column_stack(list(columns.values())), groups)
    draws = mean_draws(grouped_columns)
    spans = column_intervals(grouped_columns, draws=draws)
    ranked = headline.better != "none" and grouped_columns.clusters > 1
    places = rank_draws(draws if headline.better == "low" else -draws, grouped_columns.clusters) if ranked else []
    good = not_worse_than_best(columns, headline.better == "low", clusters=groups) if ranked else set()
    return [_row(p, headline, columns[p], _span(headline, columns[p], spans[k], groups), places[k] if ranked else None,
                 p in good) for k, p in enumerate(data)]


def _span(headline: Headline, column: Array, found: Interval, groups: Sequence[Hashable] | None) -> Interval:
    """Shares of sessions have an interval even where no session, or every one, is a case."""
    return share_interval(column, groups) if headline.metric in SHARES and is_binary(column) else found


def _row(policy: str, headline: Headline, column: Array, span: Interval | None, rank: Rank | None,
         not_worse: bool) -> dict[str, Any]:
    bounded = span is not None and span.coverage > 0
    return {"policy": policy, "metric": headline.metric, "value": float(column.mean()) if column.size else None,
            "low": span.low if span and bounded else None, "high": span.high if span and bounded else None,
            "n": int(column.size), "coverage": span.coverage if span else None, "method": span.method if span else None,
            "rank_low": rank.low if rank else None, "rank_high": rank.high if rank else None,
            "p_best": rank.p_best if rank else None, "not_worse": not_worse if rank else None}


def _groups(sessions: Sequence[str], clusters: Mapping[str, str] | None) -> list[str] | None:
    return [clusters.get(s, s) for s in sessions] if clusters is not None else None


def pairs(data: Table, baseline: str, clusters: Mapping[str, str] | None = None,
          shown: Sequence[Headline] | None = None) -> list[dict[str, Any]]:
    """Paired differences of every policy to the baseline, Holm-adjusted within each family of metrics.

    `coverage` is what the interval covers: less than 0.95 below six sessions, 0 for a single one.
    """
    rows = [row for headline in shown or measured(data) for row in _pairs(data, baseline, headline, clusters)]
    adjusted = holm_by_family([r["p"] for r in rows], [r["family"] for r in rows])
    return [row | {"p_adjusted": p} for row, p in zip(rows, adjusted, strict=True)]


def _pairs(data: Table, baseline: str, headline: Headline, clusters: Mapping[str, str] | None) -> list[dict[str, Any]]:
    """A metric's differences in the order of the policies; those on the same sessions are resampled jointly."""
    theirs = {s: v.get(headline.metric) for s, v in data[baseline].items()}
    both = {p: matched({s: v.get(headline.metric) for s, v in rows.items()}, theirs)
            for p, rows in data.items() if p != baseline}
    alike: dict[tuple[str, ...], list[str]] = {}
    for policy, found in both.items():
        alike.setdefault(found.units, []).append(policy)
    numbers = {p: n for units, names in alike.items() if units
               for p, n in _numbers(headline, {p: both[p] for p in names}, _groups(units, clusters)).items()}
    return [{"policy": p, "baseline": baseline, "metric": headline.metric, "family": headline.family,
             "dropped_policy": both[p].dropped_by_values, "dropped_baseline": both[p].dropped_by_reference,
             **numbers[p]}
            for p in both if p in numbers]


def _numbers(headline: Headline, both: Mapping[str, Matched],
             groups: Sequence[Hashable] | None) -> dict[str, dict[str, Any]]:
    """The statistics of policies on the same sessions as the baseline; the ratio of whole bills where sums count."""
    columns, theirs = np.column_stack([m.values for m in both.values()]), next(iter(both.values())).reference
    ratios = ratio_columns(columns, theirs, groups) if headline.adds_up else []
    found = paired_columns(columns, theirs, clusters=groups)
    return {p: asdict(result) | _ratio(ratios[k] if ratios else None)
            for k, (p, result) in enumerate(zip(both, found, strict=True))}


def _ratio(found: Ratio | None) -> dict[str, float | None]:
    if found is None or found.coverage == 0:
        return {"ratio": found.ratio if found else None, "ratio_low": None, "ratio_high": None}
    return {"ratio": found.ratio, "ratio_low": found.low, "ratio_high": found.high}
