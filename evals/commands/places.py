"""Where a run is to be stored, as an option."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from replay.remote import is_remote


class RunPlace(click.ParamType[str | Path]):
    """A new folder on this machine, or a URL."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | Path:
        """The URL as text, anything else as a path."""
        return value if is_remote(str(value)) else Path(value)
