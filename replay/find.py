"""From paths, folders and globs to session files."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from replay.errors import ReadError
from replay.readers.companions import companion_files

SUFFIXES = (".jsonl", ".json", ".traj", ".ndjson")
PACKED = (".gz", ".zst")
STANDARD_INPUT = Path("-")


@dataclass(frozen=True, slots=True)
class Found:
    """A file that may hold sessions."""

    path: Path
    named: bool
    """The user named this very file (False: it was found in a folder or by a pattern)."""


def find(paths: Iterable[str]) -> list[Found]:
    """The files behind the arguments, each once, in order; raises ReadError for what does not exist.

    A folder is searched recursively for files that a reader might know by their suffix; files that belong
    to another session (a sub-agent's beside its parent) are left out there, since their parent reads them.
    """
    seen: dict[Path, Found] = {}
    for argument in paths:
        for found in _expand(argument):
            known = seen.get(found.path)
            if known is None or (found.named and not known.named):
                seen[found.path] = found
    owned = _owned(f.path for f in seen.values() if not f.named)
    return [f for f in seen.values() if f.named or f.path not in owned]


def _expand(argument: str) -> Iterator[Found]:
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
    name = path.name
    for ending in PACKED:
        name = name.removesuffix(ending)
    return name.endswith(SUFFIXES) and not name.startswith(".")


def _owned(paths: Iterable[Path]) -> set[Path]:
    return {owned for path in paths for owned in companion_files(path)}
