"""Files that a visitor drops: into a private folder, under names that lead nowhere else."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

_UNSAFE = re.compile(r"[^\w.-]+")
_LONGEST = 120


class Dropped(Protocol):
    """A file as the browser sends it."""

    @property
    def name(self) -> str:
        """What the visitor's machine calls it."""

    def getvalue(self) -> bytes:
        """Its bytes."""


def keep(files: Iterable[Dropped]) -> Path:
    """Write the files into a new folder that only this user can read, and give it."""
    folder = Path(tempfile.mkdtemp(prefix="rewindow-dropped-"))
    for number, file in enumerate(files, 1):
        # A number in front: no two names are one, none is hidden, and none has a meaning of its own.
        (folder / f"{number:03}-{safe(file.name)}").write_bytes(file.getvalue())
    return folder


def safe(name: str) -> str:
    """The last part of a name with nothing but letters, digits, dots, dashes and underscores; its end is kept."""
    last = name.replace("\\", "/").rpartition("/")[2]
    return _UNSAFE.sub("_", last).lstrip(".")[-_LONGEST:] or "file"
