"""From trials to a run like any other: tables, leaderboard and paired differences of level L3, the task as the unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from evals import leaderboard
from evals.board import metric_levels
from evals.compare import session_entry, trial_entry
from evals.metrics.base import Measurement, missing
from evals.outcomes import Label
from evals.outcomes_math import pass_at_k, pass_hat_k
from evals.runs.summary_text import pieces
from evals.runs.tables import COLUMNS, encode, merge, write_trials
from evals.store import SCHEMA_VERSION
from evals.tasks.arms import arm_rows, few_tasks, infra_words, same_intervals, verdicts
from evals.tasks.experiment import Experiment
from evals.tasks.trial import Place, Result, from_json
from evals.tasks.workspace import containment
from evals.trial import SessionRow, Settings, TrialRow, run_session
from replay.policy.load import RECORDED, spec, spec_hash
from replay.readers import read
from replay.tokens import TokenCounter, tokenizer
from replay.writers.json_lines import json_bytes

NOT_RUN = "every trial failed through nobody's fault, or none was made"


def put_together(job: Experiment, results: Sequence[Result], transcripts: Path, place: Path,
                 out: Path) -> dict[str, Any]:
    """Write the tables of a run into `place`, and give its summary. The run will lie at `out`."""
    rows = [_task_row(job, task, results, transcripts, out / "transcripts") for task in job.units]
    found = summary(job, rows, results, out)
    for name in COLUMNS:
        merge([(encode(rows, name), [r.session for r in rows])], name, place / f"{name}.parquet")
    write_trials(rows, place / "trials.parquet", {})
    with (place / "summary.json").open("wb") as file:
        file.writelines(pieces(found))
    (place / "run.toml").write_text(recipe(job), encoding="utf-8")
    return found


def arms_of(job: Experiment) -> list[str]:
    """Names of the arms: what was recorded, the control, the changed ones."""
    return [*([RECORDED.name] if job.recorded else []), *(p.name for p in job.policies)]


def _task_row(job: Experiment, task: str, results: Sequence[Result], transcripts: Path,
              shown: Path) -> SessionRow:
    arms = {arm: [r for r in results if (r.task, r.arm) == (task, arm)] for arm in arms_of(job)}
    lanes = {arm: _lane(job, Place(task, arm, 1), transcripts) for arm in arms}
    control = job.policies[0].name
    trials = tuple(_trial_row(arm, found, job.trials, lanes[arm]) for arm, found in arms.items())
    base = lanes[control]
    name = f"{Place(task, control, 1).name}.jsonl"
    if base is None:
        return SessionRow(session=task, path=str(shown / name), format="rewindow", position=0,
                          harness_version=None, model=job.setup.model, steps=0, messages=0, notes=(),
                          recorded_compactions=0, calibration_factor=1.0, calibration_overhead=None,
                          calibration_error=None, trials=trials)
    return replace(base, session=task, path=str(shown / name), trials=trials, cwd=None,
                   recorded=replace(base.recorded, steps=(), events=()) if base.recorded else None,
                   outcome=Label(value="unknown", source="trials", detail="see the trials"))


def _lane(job: Experiment, place: Place, transcripts: Path) -> SessionRow | None:
    """The recorded lane of an arm's first transcript; None where there is none."""
    path = transcripts / f"{place.name}.jsonl"
    if not path.is_file():
        return None
    settings = Settings(capacity=job.setup.capacity, tokenizer=job.setup.tokenizer, summariser="extractive")
    return run_session(read(path)[0], 0, (), settings, TokenCounter(tokenizer(job.setup.tokenizer)))


def _trial_row(arm: str, found: Sequence[Result], trials: int, lane: SessionRow | None) -> TrialRow:
    shown = lane.recorded if lane else None
    judged = [r for r in found if r.value != "infra"]
    return TrialRow(policy=arm, ok=bool(judged), error=None if judged else NOT_RUN, kind="alternative",
                    measurements=tuple(measurements(judged, trials)), steps=shown.steps if shown else (),
                    events=shown.events if shown else ())


def measurements(judged: Sequence[Result], trials: int) -> list[Measurement]:
    """The measurements of one arm on one task, from the trials that were judged."""
    passed = [r for r in judged if r.value == "pass"]
    n, c = sum(r.graded for r in judged), len(passed)
    nobody = "nobody was asked whether it passed" if judged else NOT_RUN
    followed = [r.about["followed"] for r in judged if "followed" in r.about]
    costs = [r.cost_usd for r in judged]
    known = [c for c in costs if c is not None]
    return [
        _measured("pass_at_1", pass_at_k(n, c, 1) if n else None, nobody),
        _measured("pass_hat_k", pass_hat_k(n, c, trials), f"fewer than {trials} trials were judged"),
        _measured("pass_at_k", pass_at_k(n, c, trials), f"fewer than {trials} trials were judged"),
        _measured("trial_cost_usd", fmean(known) if known and len(known) == len(judged) else None, "no price is known"),
        _measured("trial_steps", _mean(r.steps for r in judged), NOT_RUN),
        _measured("solved_steps", _mean(r.steps for r in passed), "no trial solved it"),
        _measured("trial_input_tokens", _mean(r.input_tokens for r in judged), NOT_RUN),
        _measured("trial_compactions", _mean(r.compactions for r in judged), NOT_RUN),
        *([_measured("followed_steps", _mean(followed), NOT_RUN)] if followed else []),
    ]


def _mean(values: Any) -> float | None:
    given = [float(v) for v in values]
    return fmean(given) if given else None


def _measured(name: str, value: float | None, why: str) -> Measurement:
    return missing(name, why, "L3") if value is None else Measurement(name=name, value=float(value), level="L3")


def summary(job: Experiment, rows: Sequence[SessionRow], results: Sequence[Result], out: Path) -> dict[str, Any]:
    """The summary of a run, in the shape of every other, with `live`: every trial, and each arm as a whole."""
    names, control = arms_of(job), job.policies[0].name
    data = leaderboard.table(rows, names)
    trials = [trial_entry(r, t) | {"lane": "live"} for r in rows for t in r.trials]
    policies = {p.name: p for p in (*([RECORDED] if job.recorded else []), *job.policies)}
    arms = arm_rows(results, names, control, job.trials)
    known = {m for rows in data.values() for values in rows.values() for m in values}
    shown = [h for h in leaderboard.OUTCOMES if h.metric in known]
    return {
        "schema": SCHEMA_VERSION, "run": str(out), "sessions": [session_entry(r) for r in rows],
        "policies": [{"name": n, "spec": spec(p), "spec_hash": spec_hash(p)} for n, p in policies.items()],
        "baseline": control, "window": job.setup.capacity.window, "output_reserve": job.setup.capacity.output_reserve,
        "tokenizer": job.setup.tokenizer, "prices": job.setup.model, "cache_model": "as billed",
        "summariser": job.setup.summariser, "trials": trials, "levels": metric_levels(trials),
        "leaderboard": leaderboard.leaderboard(data, shown=shown),
        "pairs": same_intervals(leaderboard.pairs(data, control, shown=shown), data), "strata": [],
        "recommendation": _advice(arms, control), "reprojection": [], "outcomes": {},
        "warnings": [*infra_words(results, names), *few_tasks(len(job.units))],
        "live": {"model": job.setup.model, "temperature": job.models.temperature, "seed": job.setup.seed,
                 "trials_each": job.trials, "control": control, "containment": containment(job.setup.enclosed),
                 "arms": arms, "trials": [r.to_json() for r in results]},
    }


def gate(summary: Mapping[str, Any], margin: float) -> dict[str, str]:
    """The verdict on each changed arm of a stored run."""
    live = summary["live"]
    return verdicts([from_json(t) for t in live["trials"]], [a["arm"] for a in live["arms"]], live["control"], margin)


def _advice(arms: Sequence[Mapping[str, Any]], control: str) -> dict[str, str | None]:
    """Which changed arm solves more or fewer tasks than the control, as far as the intervals say."""
    apart = [a for a in arms if a["low"] is not None and a["arm"] != control and (a["low"] > 0 or a["high"] < 0)]
    better = [a for a in apart if a["low"] > 0]
    best = max(better, key=lambda a: float(a["difference"]), default=None)
    if best is not None:
        return {"policy": best["arm"], "why": _solves(best, control), "would_change": "other tasks, another model"}
    worse = "; ".join(_solves(a, control) for a in apart)
    why = worse or f"no arm is shown to solve more or fewer tasks than {control}"
    return {"policy": None, "why": why, "would_change": "more tasks: see the smallest difference that could be found"}


def _solves(arm: Mapping[str, Any], control: str) -> str:
    more = "more" if arm["difference"] > 0 else "fewer"
    low, high = sorted((abs(arm["low"]), abs(arm["high"])))
    return (f"{arm['arm']} solves {abs(arm['difference']):.0%} {more} of the tasks than {control} "
            f"(95 %: {low:.0%} to {high:.0%})")


def recipe(job: Experiment) -> str:
    """The run as TOML: everything needed to run it again."""
    def text(value: Any) -> str:
        return json_bytes(value).decode()

    setup = job.setup
    lines = ["# rewindow run tasks: the settings of this run", f"tasks = {text(list(job.units))}",
             f"policies = {text([p.name for p in job.policies])}", f"trials = {job.trials}", f"seed = {setup.seed}",
             f"model = {text(setup.model)}", f"endpoint = {text(job.models.address)}",
             f"temperature = {job.models.temperature}", f"window = {setup.capacity.window}",
             f"output_reserve = {setup.capacity.output_reserve}", f"tokenizer = {text(setup.tokenizer)}",
             f"summariser = {text(setup.summariser)}", f"enclosed = {text(setup.enclosed)}"]
    return "\n".join([*lines, ""])
