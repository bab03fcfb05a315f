"""From paths, folders and globs to session files."""

from __future__ import annotations

import glob
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from replay.errors import ReadError
from replay.readers.companions import companion_files
from replay.readers.registry import read_source
from replay.readers.source import Source, open_source, parse_source
from replay.remote import brought, is_remote
from replay.transcript import Transcript

_NAME = re.compile(r"(?:.+\.(?:jsonl|json|traj|ndjson)(?:\.\d+)?(?:\.gz|\.zst)?|opencode.*\.db)", re.IGNORECASE)
"""Names of files in which a reader might find a session; a log may be cut into chunks `.jsonl.001`, `.jsonl.002`."""
OUTCOMES = ".outcome.json"
"""Ending of files beside sessions that say how those ended; they hold no session."""
STANDARD_INPUT = Path("-")


@dataclass(frozen=True, slots=True)
class Found:
    """A file that may hold sessions."""

    path: Path
    named: bool
    """The user named this very file (False: it was found in a folder or by a pattern)."""


def find(paths: Iterable[str]) -> list[Found]:
    """The files behind the arguments, each once, in order; raises ReadError for what does not exist.

    A folder is searched recursively for files that a reader might know by their suffix; files that belong to
    another one's session (a sub-agent's beside its parent) are left out there, since they are read with it.
    """
    seen: dict[Path, Found] = {}
    for argument in paths:
        for found in _expand(argument):
            key = found.path if found.path == STANDARD_INPUT else found.path.absolute()
            known = seen.get(key)
            if known is None or (found.named and not known.named):
                seen[key] = found
    if all(found.named for found in seen.values()):
        return list(seen.values())
    owned = {file for path in seen if path != STANDARD_INPUT for file in companion_files(path)}
    return [found for path, found in seen.items() if found.named or path not in owned]


def open_found(found: Found) -> Source:
    """The records of a found file, or of standard input. Raises ReadError."""
    if found.path == STANDARD_INPUT:
        return parse_source(sys.stdin.buffer.read(), "<stdin>")
    return open_source(found.path)


def read_found(found: Found, reader: str | None = None) -> tuple[Transcript, ...]:
    """The sessions of a found file; `reader` as in `replay.readers.read`. Raises ReadError."""
    return read_source(open_found(found), reader)[1]


def _expand(argument: str) -> Iterator[Found]:
    if is_remote(argument):
        argument = brought(argument)
    path = Path(argument).expanduser()
    if argument == "-":
        yield Found(STANDARD_INPUT, True)
    elif path.is_dir():
        yield from (Found(p, False) for p in _files(path))
    elif path.exists():
        yield Found(path, True)
    else:
        matches = sorted(glob.glob(str(path), recursive=True))  # noqa: PTH207 - the pattern may be absolute
        if not matches:
            raise ReadError(argument, "no such file or folder, and no file matches it as a pattern")
        for match in map(Path, matches):
            yield from (Found(p, False) for p in (_files(match) if match.is_dir() else [match]))


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if _may_hold_a_session(p) and p.is_file())


def _may_hold_a_session(path: Path) -> bool:
    return not path.name.startswith(".") and not path.name.endswith(OUTCOMES) and _NAME.fullmatch(path.name) is not None
