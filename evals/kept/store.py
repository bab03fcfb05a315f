"""The folder of what is kept: one file an entry, which appears whole or not at all, and no more of them than asked."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.kept.packing import seal, unseal
from replay.remote import cache_folder

_ENDING = ".kept"
_SCRATCH = ".writing-"
DEFAULT_MB = 2_000


@dataclass(frozen=True, slots=True)
class Kept:
    """A folder of entries by key, of at most about `limit_mb` MB. It quotes sessions: only its owner may read it.

    Many processes may use it at once. What cannot be read or written there is done without.
    """

    folder: Path
    limit_mb: int = DEFAULT_MB

    def get(self, key: str) -> Any:
        """The entry of a key; None where there is none. A damaged one is removed."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        value = unseal(data)
        with suppress(OSError):
            path.unlink() if value is None else os.utime(path)
        return value

    def put(self, key: str, value: Any) -> None:
        """Keep transcripts and plain data as an entry. A full disk keeps nothing, and the run goes on."""
        path = self._path(key)
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=_SCRATCH)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(seal(value))
                Path(scratch).replace(path)
            except BaseException:
                Path(scratch).unlink(missing_ok=True)
                raise

    def shrink(self) -> None:
        """Remove the entries used longest ago until the rest fits the limit, and what stopped writers left."""
        found = sorted(self._files(), key=lambda item: item[1].st_mtime)
        size = sum(stat.st_size for _, stat in found)
        for path, stat in found:
            if size <= self.limit_mb << 20:
                return
            with suppress(OSError):
                path.unlink()
                size -= stat.st_size

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self.folder.glob("*/*"):
            if path.name.endswith(_ENDING) or path.name.startswith(_SCRATCH):
                with suppress(OSError):
                    yield path, path.stat()

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}{_ENDING}"


def default_folder() -> Path:
    """The user's cache folder for what is kept."""
    return cache_folder("sessions")
