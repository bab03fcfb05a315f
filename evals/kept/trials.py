"""What came of a file under policies, kept as it is stored in an unfinished run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from evals.kept.keys import part_key
from evals.kept.store import Kept
from evals.runs.rows import from_json, to_json
from evals.trial import FileResult, Settings
from replay.find import Found
from replay.policy.policy import Policy

Outcome = tuple[FileResult, Mapping[str, bytes]]
"""The result of a file without its step and event rows, and those rows by table."""


def kept_or_made(found: Found, policies: Sequence[Policy], settings: Settings, kept: Kept | None,
                 make: Callable[[], Outcome]) -> Outcome:
    """The outcome of a file as it was before, else as it is made now; failed trials are tried again each time."""
    name = part_key(found, policies, settings) if kept is not None else None
    if kept is None or name is None:
        return make()
    if (before := kept.get(name)) is not None:
        result, tables = before
        return from_json(result), tables
    result, tables = make()
    if _is_whole(result) and part_key(found, policies, settings) == name:
        kept.put(name, (to_json(result), dict(tables)))
    return result, tables


def _is_whole(result: FileResult) -> bool:
    trials = (trial for row in result.sessions for trial in (row.recorded, *row.trials) if trial is not None)
    return bool(result.sessions) and all(trial.ok for trial in trials)
