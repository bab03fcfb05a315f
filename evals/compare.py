"""The main job: every session under every policy, measured, stored and compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from evals import leaderboard
from evals.board import metric_levels
from evals.execute import FileResult, run_files
from evals.leaderboard_strata import stratified
from evals.metrics.retention import Loss
from evals.outcome_files import OutcomeTable
from evals.outcome_report import outcome_summary
from evals.store import SCHEMA_VERSION, new_run
from evals.trial import SessionRow, Settings, TrialRow
from replay.errors import ConfigError, ReadError
from replay.find import Found
from replay.policy.load import spec, spec_hash
from replay.policy.policy import Policy

LOSS_FIELDS = tuple(f.name for f in fields(Loss))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What is compared: files, policies, the baseline, and what all trials share."""

    files: tuple[Found, ...]
    policies: tuple[Policy, ...]
    baseline: str
    settings: Settings
    jobs: int | None = None
    remarks: tuple[str, ...] = ()
    """What is to be said about the choice of files; part of the warnings."""
    outcomes: OutcomeTable | None = None
    """How sessions ended, by somebody else's table; None: by sidecar files and the transcripts."""

    def __post_init__(self) -> None:
        """Raises ConfigError when a name occurs twice or the baseline is not among the policies."""
        names = [p.name for p in self.policies]
        if len(set(names)) != len(names):
            raise ConfigError("--policy", "", f"a policy is named twice: {', '.join(names)}")
        if self.baseline not in names:
            raise ConfigError("--baseline", "", f"{self.baseline!r} is not among the policies: {', '.join(names)}")


def compare(job: Comparison, out: Path | None, done: Callable[[FileResult], None] = lambda _: None) -> dict[str, Any]:
    """Run a comparison and give its summary; with `out` the run is stored there. Raises ReadError without sessions."""
    if out is None:
        job = replace(job, settings=replace(job.settings, rows=False))
        rows, unreadable = _collect(job, lambda _: None, done)
        return _summary(job, rows, unreadable, None)
    with new_run(out) as writer:
        rows, unreadable = _collect(job, writer.add, done)
        summary = _summary(job, rows, unreadable, out)
        writer.close(summary, _recipe(job))
    return summary


def _collect(job: Comparison, keep: Callable[[SessionRow], None],
             done: Callable[[FileResult], None]) -> tuple[list[SessionRow], list[FileResult]]:
    rows: list[SessionRow] = []
    unreadable: list[FileResult] = []
    taken: dict[str, int] = {}
    for result in run_files(job.files, job.policies, job.settings, job.jobs):
        done(result)
        if result.unreadable is not None:
            unreadable.append(result)
        for row in result.sessions:
            named = _distinct(row, taken)
            keep(named)
            rows.append(_light(named))
    if not rows:
        reasons = "; ".join(f"{r.path}: {r.unreadable}" for r in unreadable[:3])
        raise ReadError("input", f"no session could be read. {reasons}" if reasons else "no session files found")
    return rows, unreadable


def _distinct(row: SessionRow, taken: dict[str, int]) -> SessionRow:
    """Sessions of the same id are told apart by a number in the order of the files."""
    count = taken[row.session] = taken.get(row.session, 0) + 1
    return row if count == 1 else replace(row, session=f"{row.session}~{count}")


def _light(row: SessionRow) -> SessionRow:
    """Without step and event rows, which are stored already."""
    trials = tuple(replace(t, steps=(), events=()) for t in row.trials)
    recorded = replace(row.recorded, steps=(), events=()) if row.recorded else None
    return replace(row, trials=trials, recorded=recorded)


def _summary(job: Comparison, rows: Sequence[SessionRow], unreadable: Sequence[FileResult],
             out: Path | None) -> dict[str, Any]:
    names = [p.name for p in job.policies]
    data = leaderboard.table(rows, names)
    clusters = leaderboard.repositories(rows)
    trials = [_trial(r, t) for r in rows for t in r.trials]
    return {
        "schema": SCHEMA_VERSION, "run": str(out) if out else None,
        "sessions": [_session(r) for r in rows],
        "policies": [{"name": p.name, "spec": spec(p), "spec_hash": spec_hash(p)} for p in job.policies],
        "baseline": job.baseline, "window": job.settings.capacity.window,
        "output_reserve": job.settings.capacity.output_reserve, "tokenizer": job.settings.tokenizer,
        "prices": job.settings.pricing.prices or "recorded model",
        "cache_model": job.settings.pricing.cache, "summariser": job.settings.summariser,
        "trials": trials, "levels": metric_levels(trials),
        "leaderboard": leaderboard.leaderboard(data, clusters),
        "pairs": leaderboard.pairs(data, job.baseline, clusters),
        "strata": stratified(data, rows, job.baseline),
        "recommendation": leaderboard.recommend(data, len(rows), clusters),
        "reprojection": [_reprojection(r, t) for r in rows for t in r.trials if t.kind == "re-projected"],
        "outcomes": outcome_summary(rows, names, job.outcomes),
        "warnings": _warnings(job, rows, unreadable),
    }


def _session(row: SessionRow) -> dict[str, Any]:
    recorded = leaderboard.values(row.recorded) if row.recorded else {}
    return {"session": row.session, "path": row.path, "position": row.position, "format": row.format,
            "model": row.model, "steps": row.steps, "messages": row.messages, "notes": list(row.notes),
            "recorded_compactions": row.recorded_compactions,
            "calibration": {"factor": row.calibration_factor, "overhead": row.calibration_overhead,
                            "median_error": row.calibration_error},
            "repository": row.cwd,
            "recorded": {"peak_view_tokens": recorded.get("peak_view_tokens"),
                         "mean_view_tokens": recorded.get("mean_view_tokens"),
                         "input_tokens": recorded.get("input_tokens")}}


def _trial(row: SessionRow, trial: TrialRow) -> dict[str, Any]:
    found = leaderboard.values(trial)
    return {"session": row.session, "policy": trial.policy, "lane": trial.kind, "ok": trial.ok, "error": trial.error,
            "metrics": found, "level": {m.name: m.level for m in trial.measurements},
            "missing": {m.name: m.reason for m in trial.measurements if m.value is None},
            "first_divergence": _whole(found.get("first_divergence")),
            "identified_share": found.get("identified_share"), "compactions": _whole(found.get("compactions")),
            "ended": trial.ended,
            "worst_losses": [{name: getattr(loss, name) for name in LOSS_FIELDS} for loss in trial.worst]}


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _reprojection(row: SessionRow, trial: TrialRow) -> dict[str, Any]:
    """Where our preset of the recorded harness differs from the record: that difference is our error."""
    found = leaderboard.values(trial)
    return {"session": row.session, "policy": trial.policy, "steps": row.steps,
            "first_difference": _whole(found.get("first_divergence")), "equal_share": found.get("identified_share")}


def _warnings(job: Comparison, rows: Sequence[SessionRow], unreadable: Sequence[FileResult]) -> list[str]:
    found = [*job.remarks, *(f"{r.path}: not read: {r.unreadable}" for r in unreadable)]
    failed = [f"{r.session} under {t.policy}: failed: {t.error}" for r in rows for t in r.trials if not t.ok]
    empty = sum(not r.steps for r in rows)
    if empty:
        found.append(f"{empty} of {len(rows)} sessions have no model call: their measurements are missing, not zero")
    claim = leaderboard.scope(rows)
    return found + failed + _window_warnings(job, rows) + ([claim] if claim else [])


def _window_warnings(job: Comparison, rows: Sequence[SessionRow]) -> list[str]:
    found = []
    for policy in job.policies:
        ended = [r.session for r in rows for t in r.trials if t.policy == policy.name and t.ended is not None]
        if ended:
            found.append(f"{policy.name}: {len(ended)} of {len(rows)} sessions end in a refused request at this "
                         "window; sizes of the steps behind it are of views that would never have been sent")
    return found


def _recipe(job: Comparison) -> str:
    """The run as TOML: everything needed to run it again."""
    import orjson

    def text(value: Any) -> str:
        return orjson.dumps(value).decode()

    lines = ["# rewindow compare: the settings of this run", f"baseline = {text(job.baseline)}",
             f"policies = {text([p.name for p in job.policies])}", f"window = {job.settings.capacity.window}",
             f"output_reserve = {job.settings.capacity.output_reserve}",
             f"tokenizer = {text(job.settings.tokenizer)}", f"summariser = {text(job.settings.summariser)}",
             f"metrics = {text(job.settings.metrics)}", f"losses = {text(job.settings.losses)}",
             "files = ["]
    return "\n".join([*lines, *(f"  {text(str(f.path.absolute()))}," for f in job.files), "]", ""])
