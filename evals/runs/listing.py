"""Runs of a folder, whole and unfinished ones."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from evals.runs.unfinished import ENDING, Unfinished, locked, place_of
from evals.store import load_summary
from replay.errors import ConfigError, ReadError


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A run as a list shows it."""

    path: str
    state: str
    """`done`, `unfinished`, or `running` (a process writes it)."""
    sessions: int | None
    """Of a run that is done."""
    policies: int | None
    files_done: int | None
    """Of one that is not."""
    started: str | None
    size_bytes: int


def listing(folder: Path) -> Iterator[Listed]:
    """The runs in a folder, by name. Raises ReadError where it is no folder."""
    if not folder.is_dir():
        raise ReadError(str(folder), "no such folder")
    for path in sorted(folder.iterdir()):
        if path.name.endswith(ENDING) and (path / "job.json").is_file():
            yield _unfinished(path)
        elif (path / "summary.json").is_file():
            yield _done(path)


def _done(path: Path) -> Listed:
    summary = load_summary(path)
    moment = datetime.fromtimestamp((path / "summary.json").stat().st_mtime, UTC)
    return Listed(path=str(path), state="done", sessions=len(summary.get("sessions", ())), files_done=None,
                  policies=len(summary.get("policies", ())), started=moment.isoformat(timespec="seconds"),
                  size_bytes=_size(path))


def _unfinished(path: Path) -> Listed:
    note, target = _note(path), path.with_name(path.name[1:-len(ENDING)])
    started = note.get("started")
    moment = datetime.fromtimestamp(started, UTC).isoformat(timespec="seconds") if isinstance(started, float) else None
    options = note.get("job", {}).get("options", {})
    return Listed(path=str(target), state="running" if _is_running(path, target) else "unfinished", sessions=None,
                  policies=len(options.get("policies", ())) or None, files_done=Unfinished(path).count,
                  started=moment, size_bytes=_size(path))


def _is_running(path: Path, target: Path) -> bool:
    try:
        with locked(path, target):
            return False
    except ConfigError:
        return True


def _note(path: Path) -> dict[str, Any]:
    with suppress(ValueError, OSError):
        value = orjson.loads((path / "job.json").read_bytes())
        return value if isinstance(value, dict) else {}
    return {}


def _size(path: Path) -> int:
    return sum(f.stat().st_size for f in path.rglob("*") if f.is_file())


def job_of(target: Path) -> dict[str, Any]:
    """What the command of an unfinished run needs to go on. Raises ReadError where there is none to go on with."""
    place = place_of(target)
    if not place.is_dir():
        done = "is done; there is nothing to go on with" if target.is_dir() else "no run, and no unfinished one"
        raise ReadError(str(target), done)
    job = _note(place).get("job")
    if not isinstance(job, dict) or not isinstance(job.get("options"), dict) or not job.get("paths"):
        raise ReadError(str(place / "job.json"), "does not tell how the run was begun; delete it and begin anew")
    return job


def delete(target: Path) -> None:
    """Delete a run, whole or unfinished. Raises ReadError for what is no run, ConfigError while it is written."""
    place = place_of(target)
    if place.is_dir():
        with locked(place, target):
            shutil.rmtree(place)
        return
    if not (target / "summary.json").is_file():
        raise ReadError(str(target), "not a run folder (no summary.json in it); nothing was deleted")
    shutil.rmtree(target)
