"""OpenCode's folder of small files: `session/<project>/<id>.json`, `message/<session>/`, `part/<message>/`."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
    found, queue = [session], [session]
    seen = {session.id}
    while queue:
        current = queue.pop(0)
        _fill(current, root)
        for name in _started(current):
            if name not in seen and (child := _session(root, name)) is not None:
                seen.add(name)
                found.append(child)
                queue.append(child)
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


def _started(session: StoredSession) -> Iterator[str]:
    """Ids of the sessions that tool calls of a session started."""
    for message in session.messages:
        for part in message.parts:
            if name := child_of(part):
                yield name


def child_of(part: dict[str, Any]) -> str | None:
    """The id of the session that a tool part started."""
    told = mapping(mapping(part.get("state")).get("metadata"))
    return plain(told.get("sessionId")) or plain(told.get("sessionID"))


def _session(root: Path, name: str) -> StoredSession | None:
    if not _NAME.fullmatch(name):
        return None
    for file in (root / "session").glob(f"*/{name}.json"):
        info = _read(file, [])
        if info is not None:
            return StoredSession(info)
    return None
