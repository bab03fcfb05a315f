"""Which files a gate looks at: those of paths, or those of a frozen cohort."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from evals.cohort import Cohort, load_cohort
from replay.copies import without_copies
from replay.errors import ConfigError
from replay.find import Found, find, read_found
from replay.transcript import Transcript

Read = Callable[[Found, "str | None"], tuple[Transcript, ...]]
"""Reads the sessions of a file."""


def chosen_files(paths: Sequence[str], cohort: Path | None, tags: Sequence[str],
                 reader: str | None,
                 read: Read = read_found) -> tuple[tuple[Found, ...], list[str], Cohort | None]:
    """Files, remarks on them, and the cohort. Raises ConfigError where neither or both are named."""
    if cohort is None:
        if not paths:
            raise ConfigError("gate", "PATHS", "name files or folders of sessions, or a --cohort")
        if tags:
            raise ConfigError("gate", "--tag", "tags are those of a --cohort")
        files, remarks = without_copies(find(paths), reader, read)
        return tuple(files), sorted(remarks), None
    if paths:
        raise ConfigError("gate", "--cohort", "lists its own sessions: leave out PATHS")
    frozen = load_cohort(cohort)
    chosen = frozen.tagged(tags)
    return chosen.files(cohort.parent), [], chosen
