"""OpenCode's folder of small files: `session/<project>/<id>.json`, `message/<session>/`, `part/<message>/`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from replay.errors import ReadError
from replay.readers.opencode_records import StoredMessage, StoredSession, mapping, plain
from replay.readers.source import open_source
from replay.transcript import ReadNote

_NAME = re.compile(r"[\w-]+")
"""An id that may stand in a path; anything else is not looked for."""


def from_storage(session: StoredSession, path: Path) -> list[StoredSession]:
    """A session file's session with the messages that lie beside it, then the sessions of its sub-agents."""
    root = path.absolute().parent.parent.parent
    _fill(session, root)
    found = [session]
    for file in children_of(path):
        info = _read(file, session.notes)
        if info is not None:
            found.append(StoredSession(info))
            _fill(found[-1], root)
    return found


def children_of(path: Path) -> tuple[Path, ...]:
    """The files of the sub-agents of a session file's session, and of theirs."""
    folder = path.parent
    if folder.parent.name != "session" or not path.stem.startswith("ses_"):
        return ()
    below = _by_parent(folder, folder.stat().st_mtime_ns)
    found: list[Path] = []
    queue = [path.stem]
    while queue:
        fresh = [file for file in below.get(queue.pop(0), ()) if file not in found and file != path]
        found += fresh
        queue += [file.stem for file in fresh]
    return tuple(found)


@lru_cache(maxsize=8)
def _by_parent(folder: Path, changed: int) -> dict[str, list[Path]]:  # noqa: ARG001 - part of the cache's key
    """The session files of a folder by the session that each belongs to; `changed` tells when to look again."""
    found: dict[str, list[Path]] = {}
    for file in sorted(folder.glob("ses_*.json")):
        info = _read(file, [])
        if info is not None and isinstance(info.get("parentID"), str):
            found.setdefault(info["parentID"], []).append(file)
    return found


def _fill(session: StoredSession, root: Path) -> None:
    folder = root / "message" / session.id
    if not (_NAME.fullmatch(session.id) and folder.is_dir()):
        session.notes.append(ReadNote(code="missing-messages", text=f"no folder of messages of {session.id} beside it"))
        return
    for info in _objects(folder, session.notes):
        name = str(info.get("id"))
        parts = _objects(root / "part" / name, session.notes) if _NAME.fullmatch(name) else ()
        session.messages.append(StoredMessage(info, list(parts)))


def _objects(folder: Path, notes: list[ReadNote]) -> Iterator[dict[str, Any]]:
    """The objects of a folder's files; names sort by time."""
    for file in sorted(folder.glob("*.json")):
        value = _read(file, notes)
        if value is not None:
            yield value


def _read(file: Path, notes: list[ReadNote]) -> dict[str, Any] | None:
    try:
        source = open_source(file)
    except ReadError as error:
        notes.append(ReadNote(code="unreadable-file", text=str(error)))
        return None
    value = source.records[0].value if source.records else None
    if isinstance(value, dict):
        return value
    reason = source.notes[0].text if source.notes else "no JSON object in it"
    notes.append(ReadNote(code="bad-json", text=f"{file.parent.name}/{file.name}: {reason}"))
    return None


def child_of(part: dict[str, Any]) -> str | None:
    """The id of the session that a tool part started."""
    told = mapping(mapping(part.get("state")).get("metadata"))
    return plain(told.get("sessionId")) or plain(told.get("sessionID"))
