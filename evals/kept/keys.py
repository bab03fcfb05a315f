"""What an entry is known by: the bytes that were read, and everything that decides what they come to."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import evals
import replay
from evals.outcome_files import sidecars
from evals.trial import Settings
from replay.find import STANDARD_INPUT, Found
from replay.policy.policy import Policy
from replay.readers.companions import companion_files
from replay.readers.registry import own_readers

_LAYOUT = 1
"""Raised when entries are written differently."""
_SQLITE = b"SQLite format 3\0"
_CHUNK = 1 << 20


def sessions_key(found: Found, reader: str | None, tokenizer: str) -> str | None:
    """The key of a file's sessions as read and counted; None where they depend on more than the files' bytes.

    That is so for standard input, databases (their last writes may stand elsewhere) and where own readers are
    installed or named: their code is not ours to know.
    """
    if found.path == STANDARD_INPUT or own_readers() or (reader is not None and ":" in reader):
        return None
    read = (found.path, *companion_files(found.path), *_results(found.path))
    return _key(("sessions", reader, tokenizer, str(found.path)), read)


def part_key(found: Found, policies: Sequence[Policy], settings: Settings) -> str | None:
    """The key of what comes of a file under policies; None where that depends on code that is not ours."""
    if settings.metrics or not _is_known(settings.summariser) or not all(map(_is_ours, policies)):
        return None
    sessions = sessions_key(found, settings.reader, settings.tokenizer)
    if sessions is None:
        return None
    # A trial that was done within its limit is the same under any other.
    parts = ("part", sessions, version("genai-prices"), repr(policies), repr(replace(settings, time_limit=None)))
    return _key(parts, sidecars(str(found.path)))


def _key(parts: Sequence[Any], files: Sequence[Path]) -> str | None:
    digest = hashlib.sha256(repr((_LAYOUT, _code(), *parts)).encode("utf-8", "surrogateescape"))
    try:
        return digest.hexdigest() if all(_add(digest, path) for path in files) else None
    except OSError:
        return None


def _results(path: Path) -> Iterator[Path]:
    """Where a trial's result may stand beside its log."""
    return (folder / "result.json" for folder in (path.parent, path.parent.parent)
            if (folder / "result.json").is_file())


def _add(digest: hashlib._Hash, path: Path) -> bool:
    """Add a file's name and bytes; False for a database."""
    digest.update(f"\n{path.name} {path.stat().st_size}\n".encode("utf-8", "surrogateescape"))
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            if chunk.startswith(_SQLITE):
                return False
            digest.update(chunk)
    return True


def _is_known(name: str) -> bool:
    """Whether a summariser is one of ours that needs no model."""
    return ":" not in name and "." not in name


def _is_ours(part: Any) -> bool:
    """Whether a policy and all its parts are this program's own."""
    if isinstance(part, (tuple, list)):
        return all(map(_is_ours, part))
    if not is_dataclass(part):
        return not callable(part)
    return type(part).__module__.startswith("replay.") and all(_is_ours(getattr(part, f.name)) for f in fields(part))


@cache
def _code() -> str:
    """What tells this program's code from any other: its version, and name, size and time of its modules."""
    roots = [Path(package.__path__[0]) for package in (replay, evals)]
    modules = [(str(p.relative_to(root)), p.stat().st_size, p.stat().st_mtime_ns)
               for root in roots for p in sorted(root.rglob("*")) if p.suffix in (".py", ".toml")]
    return repr((version("rewindow"), version("splintr-rs"), modules))
