"""From a policy and its parameters to the comparison that sweeps them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evals.compare import Comparison
from evals.leaderboard import table
from evals.runs.collect import Collected, collect
from evals.runs.part import Work
from evals.sweep.choice import Objective, halves
from evals.sweep.effects import Sweep
from evals.sweep.grid import Parameter, Setting, grid, policy_name
from evals.sweep.search import search
from evals.sweep.where import Constraint
from replay.find import Found
from replay.policy.load import policy
from replay.policy.policy import Policy


def swept(job: Comparison, base: str, parameters: Sequence[Parameter], constraints: Sequence[Constraint],
          objective: Objective, trials: int | None = None) -> Comparison:
    """The comparison of the unchanged policy (the job's baseline) with every setting of the grid, or of a search.

    Raises ConfigError where a parameter is none of the policy's, or a setting cannot be meant.
    """
    if trials is None:
        settings = grid(parameters, constraints)
    else:
        settings = _search(job, base, parameters, constraints, objective, trials)
    named = {policy_name(base, s): s for s in settings}
    made = tuple(map(policy, named))
    names = {p.name: named[n] for n, p in zip(named, made, strict=True)}
    return replace(job, policies=(*job.policies, *made),
                   sweep=Sweep(base=job.baseline, settings=names, objective=objective))


def _search(job: Comparison, base: str, parameters: Sequence[Parameter], constraints: Sequence[Constraint],
            objective: Objective, trials: int) -> list[Setting]:
    """The settings that a search tried on the choosing half of the sessions."""
    files = _choosing(job, objective)

    def value(setting: Setting) -> float | None:
        made = policy(policy_name(base, setting))
        found = table(_collect(job, files, made).rows, [made.name])[made.name].values()
        numbers = [v.get(objective.metric) for v in found]
        if any(v.get("run_ended") or v.get("pairing_violations") for v in found) or None in numbers or not numbers:
            return None
        return float(np.mean([n for n in numbers if n is not None]))

    return search(parameters, constraints, objective, trials, value)


def _choosing(job: Comparison, objective: Objective) -> list[Found]:
    """The files of the choosing half: those whose sessions it holds and could be measured."""
    rows = _collect(job, job.files, *job.policies).rows
    data = table(rows, [job.baseline])[job.baseline]
    measured = [r.session for r in rows if data[r.session].get(objective.metric) is not None]
    first, _ = halves(measured, {r.session: r.cwd or f"session {r.session}" for r in rows})
    chosen = {r.path for r in rows if r.session in set(first)}
    return [f for f in job.files if str(f.path) in chosen]


def _collect(job: Comparison, files: Sequence[Found], *policies: Policy) -> Collected:
    work = Work(policies=policies, settings=replace(job.settings, rows=False), memory_mb=job.memory_mb, kept=job.kept)
    return collect(files, work, job.engine, lambda _: None)
