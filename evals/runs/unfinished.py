"""The folder of a run that is not done yet: `.NAME.unfinished` beside the run's place, which appears when whole."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from evals.runs.part import Part
from evals.runs.rows import from_json, to_json
from evals.trial import FileResult
from replay.errors import ConfigError, Interrupted, RewindowError

ENDING = ".unfinished"
_FULL = {errno.ENOSPC, errno.EDQUOT}


class RunExists(RewindowError):
    """The run folder is there already."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Parts of a run that is under way, each written whole or not at all."""

    folder: Path

    @property
    def trying(self) -> Path:
        """Where workers say what they are at."""
        return self.folder / "trying"

    @property
    def run(self) -> Path:
        """Where the tables of the whole run are put together."""
        return self.folder / "run"

    def _file(self, number: int, kind: str) -> Path:
        return self.folder / "parts" / f"{number // 1000:03}" / f"{number:06}.{kind}"

    def keep(self, number: int, part: Part) -> None:
        """Store a part; it counts once its JSON is there, which is written last."""
        self._file(number, "json").parent.mkdir(parents=True, exist_ok=True)
        for name, data in part.tables.items():
            _write(self._file(number, f"{name}.parquet"), data)
        digests = {name: hashlib.sha256(data).hexdigest() for name, data in part.tables.items()}
        _write(self._file(number, "json"), orjson.dumps(digests) + b"\n" + to_json(part.result))

    def kept(self, number: int) -> FileResult | None:
        """The result of a part; None where it is not there or its files are not what was written."""
        path = self._file(number, "json")
        if not path.is_file():
            return None
        try:
            digests, _, result = path.read_bytes().partition(b"\n")
            tables = orjson.loads(digests)
            intact = all(hashlib.sha256(self.table(number, name) or b"").hexdigest() == tables[name] for name in tables)
            return from_json(result) if intact else None
        except (ValueError, KeyError, TypeError):
            return None

    def table(self, number: int, name: str) -> bytes | None:
        """The rows of a part's table; None where it has none."""
        path = self._file(number, f"{name}.parquet")
        return path.read_bytes() if path.is_file() else None

    @property
    def count(self) -> int:
        """Parts that are there."""
        return sum(1 for _ in self.folder.glob("parts/*/*.json"))


def _write(path: Path, data: bytes) -> None:
    scratch = path.with_name(f"{path.name}.part")
    try:
        scratch.write_bytes(data)
        scratch.replace(path)
    except OSError:
        scratch.unlink(missing_ok=True)
        raise


def place_of(target: Path) -> Path:
    """Where the unfinished run of a target lies."""
    return target.with_name(f".{target.name}{ENDING}")


@contextmanager
def unfinished(target: Path, identity: str, job: Mapping[str, Any]) -> Iterator[Unfinished]:
    """The unfinished run of a target, new or as it was left; when the block ends well its `run` appears at the target.

    `identity` tells whether a run that was left is the same one; `job` is what its command needs to go on. Raises
    RunExists where the target is there, ConfigError where another process writes it or where what was left is
    another run, and Interrupted where the block was stopped after a part was kept.
    """
    if target.exists():
        raise RunExists(f"{target}: there already; choose another --out or delete it")
    found = Unfinished(place_of(target))
    found.folder.mkdir(parents=True, exist_ok=True)
    with locked(found.folder, target):
        _begin(found, target, identity, job)
        try:
            yield found
            found.run.rename(target)
        except BaseException as error:
            _stopped(found, target, error)
            raise
        shutil.rmtree(found.folder, ignore_errors=True)


@contextmanager
def locked(folder: Path, target: Path) -> Iterator[None]:
    """Hold a run folder: the lock is the system's, so it ends with the process that holds it, however that ends."""
    from filelock import FileLock, Timeout

    try:
        lock = FileLock(folder / "lock").acquire(timeout=0)
    except Timeout:
        raise ConfigError("--out", "", f"{target}: another process is writing this run") from None
    with lock:
        yield


def _begin(found: Unfinished, target: Path, identity: str, job: Mapping[str, Any]) -> None:
    if target.exists():
        raise RunExists(f"{target}: there already; choose another --out or delete it")
    note = found.folder / "job.json"
    if note.is_file() and _identity(note) != identity:
        raise ConfigError("--out", "", f"{target}: an unfinished run of other sessions or settings lies there; "
                          "finish it "
                          f"(rewindow runs resume {target}), delete it (rewindow runs delete {target}), or choose "
                          "another --out")
    if not note.is_file():
        _write(note, orjson.dumps({"identity": identity, "started": time.time(), "job": job}))
    shutil.rmtree(found.trying, ignore_errors=True)
    shutil.rmtree(found.run, ignore_errors=True)
    found.trying.mkdir()
    found.run.mkdir()


def _identity(note: Path) -> str | None:
    with suppress(ValueError):
        value = orjson.loads(note.read_bytes())
        return value.get("identity") if isinstance(value, dict) else None
    return None


def _stopped(found: Unfinished, target: Path, error: BaseException) -> None:
    """Keep what can be gone on with, and say so; what cannot is removed."""
    is_wrong = isinstance(error, RewindowError) and not isinstance(error, Interrupted)
    count = 0 if is_wrong else found.count
    if not count:
        shutil.rmtree(found.folder, ignore_errors=True)
        return
    shutil.rmtree(found.run, ignore_errors=True)
    kept = f"{count} finished files are kept: the same command, or rewindow runs resume {target}, goes on from there"
    if isinstance(error, KeyboardInterrupt):
        raise Interrupted(f"interrupted; {kept}") from error
    if isinstance(error, OSError) and error.errno in _FULL:
        raise RewindowError(f"{target}: no space left on the disk ({os.strerror(error.errno)}); {kept}") from error
