"""Where the sessions and tasks are that come with Rewindow."""

from __future__ import annotations

import sys
from pathlib import Path

from replay.errors import ReadError

_PLACES = (Path(__file__).resolve().parent.parent / "datasets", Path(sys.prefix) / "share" / "rewindow")
"""Of the checkout, and of the installed package."""


def sample_folder() -> Path:
    """The folder of bundled sessions: of the checkout, or inside the installed package. Raises ReadError."""
    return _folder("samples", "sessions")


def task_folder() -> Path:
    """The folder of bundled tasks, in the same places. Raises ReadError."""
    return _folder("tasks", "tasks")


def _folder(name: str, what: str) -> Path:
    for place in _PLACES:
        if (place / name).is_dir():
            return place / name
    raise ReadError(str(_PLACES[-1] / name), f"the bundled {what} are missing; reinstall rewindow")


def sample_paths() -> list[str]:
    """The bundled session files, in order; the sources of the sample repositories are not among them."""
    folder = sample_folder()
    return [str(p) for p in sorted(folder.glob("*/*.json*")) if p.parent.name != "repositories"]
