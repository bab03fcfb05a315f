"""The main job: every session under every policy, measured, stored and compared."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evals import leaderboard
from evals.board import metric_levels
from evals.execute import default_jobs
from evals.kept.store import Kept
from evals.leaderboard_strata import stratified
from evals.metrics.base import Measurement
from evals.metrics.retention import Loss
from evals.model.config import Models
from evals.outcome_files import OutcomeTable
from evals.outcome_report import outcome_summary
from evals.runs.collect import Collected, collect, finish
from evals.runs.compact import Compact
from evals.runs.engine import Engine, cores
from evals.runs.part import Work
from evals.runs.unfinished import Unfinished, unfinished
from evals.store import SCHEMA_VERSION
from evals.sweep.effects import Sweep, effects
from evals.trial import FileResult, SessionRow, Settings, TrialRow
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
    """Workers; None: one for each core where the input is worth it."""
    backend: str = "processes"
    """As `evals.runs.engine.Engine`."""
    address: str | None = None
    memory_mb: int | None = None
    """Memory that a worker may use for its data; None: any."""
    kept: Kept | None = None
    """Where sessions are kept that were read and counted before; None: all are read anew."""
    sweep: Sweep | None = None
    """Where the policies are settings of one: what is swept."""
    command: Mapping[str, Any] = field(default_factory=dict)
    """How the command line would make this comparison again: kept while the run is unfinished."""
    endpoint: Models | None = None
    """Where summaries are written, and within which limits; None: no model is asked."""
    extra: Mapping[tuple[str, int, str], tuple[Measurement, ...]] = field(default_factory=dict)
    """Measurements that were made elsewhere, such as by asking a model: by file, session of the file, and policy."""
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

    @property
    def engine(self) -> Engine:
        """What carries out the work."""
        jobs = self.jobs or (default_jobs(self.files) if self.backend == "processes" else cores())
        return Engine(backend=self.backend, jobs=jobs, address=self.address)


def compare(job: Comparison, out: Path | None, done: Callable[[FileResult], None] = lambda _: None,
            place: str | None = None) -> dict[str, Any]:
    """Run a comparison and give its summary; with `out` the run is stored there. Raises ReadError without sessions.

    A stored run that was stopped goes on where it was when the same comparison is made again. `place`: where the run
    will be in the end, where that is not `out`.
    """
    if out is None:
        job = replace(job, settings=replace(job.settings, rows=False))
        return _summary(job, _collected(job, done, None), None)
    command = {**job.command, "place": place} if place else job.command
    with unfinished(out, identity(job), command) as kept:
        found = _collected(job, done, kept)
        summary = _summary(job, found, place or str(out))
        finish(kept, found, summary, _recipe(job), job.sweep.settings if job.sweep else {})
    return summary


def _collected(job: Comparison, done: Callable[[FileResult], None], kept: Unfinished | None) -> Collected:
    work = Work(policies=job.policies, settings=job.settings, memory_mb=job.memory_mb, kept=job.kept)
    found = collect(job.files, work, job.engine, done, kept)
    if job.kept is not None:
        job.kept.shrink()
    if not found.rows:
        reasons = "; ".join(f"{r.path}: {r.unreadable}" for r in found.unreadable[:3])
        raise ReadError("input", f"no session could be read. {reasons}" if reasons else "no session files found")
    if job.extra:
        found.rows = [replace(row, trials=tuple(_with_extra(job, row, t) for t in row.trials)) for row in found.rows]
    return found


def _with_extra(job: Comparison, row: SessionRow, trial: TrialRow) -> TrialRow:
    more = job.extra.get((row.path, row.position, trial.policy), ())
    return replace(trial, measurements=(*trial.measurements, *more)) if more else trial


def identity(job: Comparison) -> str:
    """What makes two comparisons the same run: files as they are, policies, baseline, settings, and our version."""
    files = [(str(f.path.absolute()), *_state(f.path)) for f in job.files]
    policies = [(p.name, spec_hash(p)) for p in job.policies]
    parts = (version("rewindow"), SCHEMA_VERSION, files, policies, job.baseline, repr(job.settings), str(job.outcomes),
             repr(job.sweep))
    return hashlib.sha256(repr(parts).encode("utf-8", "replace")).hexdigest()


def _state(path: Path) -> tuple[int, int]:
    """Size and time of a file; what is read from a pipe is never the same again."""
    if not path.is_file():
        return time.time_ns(), 0
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _summary(job: Comparison, found: Collected, out: str | None) -> dict[str, Any]:
    rows, unreadable = found.rows, found.unreadable
    names = [p.name for p in job.policies]
    data = leaderboard.table(rows, names)
    clusters = leaderboard.repositories(rows)
    trials = [trial_entry(r, t) for r in rows for t in r.trials]
    return {
        "schema": SCHEMA_VERSION, "run": out,
        "sessions": [session_entry(r) for r in rows],
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
        **({"sweep": effects(job.sweep, data, rows)} if job.sweep else {}),
    }


def session_entry(row: SessionRow) -> dict[str, Any]:
    """A session as a summary lists it."""
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


def trial_entry(row: SessionRow, trial: TrialRow) -> dict[str, Any]:
    """A trial as a summary lists it."""
    found = leaderboard.values(trial)
    return {"session": row.session, "policy": trial.policy, "lane": trial.kind, "ok": trial.ok, "error": trial.error,
            "metrics": found, **_about(trial.measurements),
            "first_divergence": _whole(found.get("first_divergence")),
            "identified_share": found.get("identified_share"), "compactions": _whole(found.get("compactions")),
            "ended": trial.ended,
            "worst_losses": [{name: getattr(loss, name) for name in LOSS_FIELDS} for loss in trial.worst]}


def _about(measured: Sequence[Measurement]) -> dict[str, Mapping[str, Any]]:
    """Levels and reasons of measurements; those of many trials are the same and held once."""
    if isinstance(measured, Compact):
        return {"level": measured.shape.levels, "missing": measured.shape.missing}
    return {"level": {m.name: m.level for m in measured},
            "missing": {m.name: m.reason for m in measured if m.value is None}}


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
