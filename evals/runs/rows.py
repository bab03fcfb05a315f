"""Results of a file without their step and event rows, as JSON and back."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import orjson

from evals.metrics.base import Measurement
from evals.metrics.retention import Loss
from evals.outcomes import Label
from evals.trial import FileResult, SessionRow, TrialRow
from replay.writers.json_lines import json_bytes


def light(result: FileResult) -> FileResult:
    """The result without the rows that are stored in tables."""
    return replace(result, sessions=tuple(map(_light_session, result.sessions)))


def _light_session(row: SessionRow) -> SessionRow:
    recorded = replace(row.recorded, steps=(), events=()) if row.recorded else None
    return replace(row, recorded=recorded, trials=tuple(replace(t, steps=(), events=()) for t in row.trials))


def to_json(result: FileResult) -> bytes:
    """A result as JSON. Its numbers come back as they were, whole ones as whole ones."""
    return json_bytes(asdict(result))


def from_json(data: bytes) -> FileResult:
    """A result again. Raises ValueError, KeyError or TypeError for what `to_json` did not write."""
    native = orjson.loads(data)
    return FileResult(**native | {"sessions": tuple(map(_session, native["sessions"]))})


def _session(native: dict[str, Any]) -> SessionRow:
    recorded, outcome = native["recorded"], native["outcome"]
    return SessionRow(**native | {
        "notes": tuple(native["notes"]), "outcome": Label(**outcome) if outcome else None,
        "recorded": _trial(recorded) if recorded else None, "trials": tuple(map(_trial, native["trials"]))})


def _trial(native: dict[str, Any]) -> TrialRow:
    return TrialRow(**native | {
        "measurements": tuple(Measurement(**m) for m in native["measurements"]),
        "worst": tuple(Loss(**loss) for loss in native["worst"]), "steps": (), "events": ()})
