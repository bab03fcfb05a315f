"""Reading many files one by one: of each session only its description is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from replay.detected import describe
from replay.errors import NotASession, ReadError
from replay.find import STANDARD_INPUT, Found, open_found
from replay.import_report import Tally
from replay.linking import Link, Scan
from replay.readers.registry import read_source

_BILLED = ("input_uncached", "cache_read", "cache_write_5m", "cache_write_1h", "output")


@dataclass
class Imported:
    """What came of the files of one scan, in their order."""

    sessions: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)
    """Files of a folder that hold no session, with the reason."""
    unreadable: list[dict[str, str]] = field(default_factory=list)
    """Files that the user named, or that are damaged beyond reading, with the reason."""
    is_named_unreadable: bool = False
    """A file that the user named is among the unreadable ones."""
    tally: Tally = field(default_factory=Tally)


def import_files(files: Iterable[Found], reader: str | None = None,
                 done: Callable[[Found], None] = lambda _: None) -> Imported:
    """Describe every session of the files. Usage that several sessions hold is counted in one of them."""
    imported, scan = Imported(), Scan()
    for found in files:
        imported.tally.files += 1
        try:
            _import_file(found, reader, imported, scan)
        except ReadError as error:
            _fail(found, error, imported)
        done(found)
    for session, link in zip(imported.sessions, scan.links(), strict=True):
        _apply(link, session, imported.sessions)
    return imported


def _import_file(found: Found, reader: str | None, imported: Imported, scan: Scan) -> None:
    name, transcripts = read_source(open_found(found), reader)
    for transcript in transcripts:
        scan.add(transcript)
        session = describe(transcript) | {"reader": name, "counted_elsewhere": None}
        imported.tally.add(session["notes"])
        imported.sessions.append(session)


def _fail(found: Found, error: ReadError, imported: Imported) -> None:
    path = "<stdin>" if found.path == STANDARD_INPUT else str(found.path)
    if isinstance(error, NotASession) and not found.named:
        imported.skipped.append({"path": path, "reason": error.reason})
        return
    imported.unreadable.append({"path": path, "reason": error.reason})
    imported.is_named_unreadable |= found.named


def _apply(link: Link, session: dict[str, Any], sessions: list[dict[str, Any]]) -> None:
    """Take what another session counts out of a session's usage, and say so; name its parent."""
    session["parent_session"] = session["parent_session"] or link.parent
    if link.counted_in is None:
        return
    usage = session["usage"]
    usage["requests"] -= link.copied_requests
    for part in _BILLED:
        usage[part] -= getattr(link.copied, part)
    other = sessions[link.counted_in]
    session["counted_elsewhere"] = {"requests": link.copied_requests, "session_id": other["session_id"],
                                    "path": other["path"], "is_contained": link.is_contained}
