"""Runs that are stored elsewhere (`s3://`, `gs://`, … through fsspec): made here, then sent, the summary last."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evals.runs.unfinished import RunExists
from evals.store import load_summary
from replay.errors import RewindowError
from replay.remote import cache_folder, file_system

_LAST = "summary.json"
"""A run without it is not whole."""


def stored(place: str | Path | None, make: Callable[[Path | None], dict[str, Any]]) -> dict[str, Any]:
    """Have a run made and stored at a place; its summary. What is made for a URL is made here and then sent.

    Parts of a run that was stopped stay here, so that the same command goes on. Raises RunExists where a run is there.
    """
    if not isinstance(place, str):
        return make(place)
    system, path = file_system(place)
    if system.exists(f"{path}/{_LAST}"):
        raise RunExists(f"{place}: there already; choose another --out or delete it")
    name = path.rstrip("/").rpartition("/")[2]
    local = cache_folder("outgoing", hashlib.sha256(place.encode()).hexdigest()[:16], name)
    local.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # One that is whole here was not sent to its end.
    summary = load_summary(local) if (local / _LAST).is_file() else make(local)
    _send(system, local, path, place)
    shutil.rmtree(local.parent)
    return summary


def _send(system: Any, local: Path, path: str, place: str) -> None:
    files = sorted((p for p in local.rglob("*") if p.is_file()), key=lambda p: p.name == _LAST)
    try:
        system.makedirs(path, exist_ok=True)
        for file in files:
            system.put_file(str(file), f"{path}/{file.relative_to(local).as_posix()}")
    except OSError as error:
        raise RewindowError(f"{place}: cannot be written ({error}); the run is kept in {local}") from error
