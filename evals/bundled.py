"""Where the sessions are that come with Rewindow."""

from __future__ import annotations

import sys
from pathlib import Path

from replay.errors import ReadError

_CHECKOUT = Path(__file__).resolve().parent.parent / "datasets" / "samples"
_INSTALLED = Path(sys.prefix) / "share" / "rewindow" / "samples"


def sample_folder() -> Path:
    """The folder of bundled sessions: of the checkout, or inside the installed package. Raises ReadError."""
    for folder in (_CHECKOUT, _INSTALLED):
        if folder.is_dir():
            return folder
    raise ReadError(str(_INSTALLED), "the bundled sessions are missing; reinstall rewindow")


def sample_paths() -> list[str]:
    """The bundled session files, in order; the sources of the sample repositories are not among them."""
    folder = sample_folder()
    return [str(p) for p in sorted(folder.glob("*/*.json*")) if p.parent.name != "repositories"]
