"""Sessions of OpenCode: exports, its folder of small files, and its database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from replay.readers.common import ThreadBuilder, leftover, seconds
from replay.readers.opencode_database import from_database, has_sessions
from replay.readers.opencode_log import SessionLog
from replay.readers.opencode_records import (
    StoredMessage,
    StoredSession,
    from_records,
    is_export,
    is_row,
    is_session,
    mapping,
    plain,
)
from replay.readers.opencode_storage import from_storage
from replay.readers.source import Source
from replay.transcript import NOTHING, Outcome, ReadNote, Thread, Transcript

_OUTCOMES: Mapping[str, Any] = {"length": "partial", "MessageAbortedError": "partial", "unfinished": "partial"}


class OpenCode:
    """Reads sessions of OpenCode (0.5 to 1.18): `opencode export` documents, session files with the folders of
    messages and parts beside them, the SQLite database, and rows of its tables as JSON lines.

    Sub-agents are threads of the session that started them. What a session reverted, responses that ended in an
    error, and requests that wrote summaries are under `abandoned`, so that what they cost is counted. A fork's
    copied messages carry no usage: they were billed in the session they come from. Not read: the tables of the
    layout that keeps messages in `session_message`.
    """

    name = "opencode"

    def sniff(self, source: Source) -> int:
        """95 for exports and databases, 90 for session files and table rows; 1 for any other database."""
        if source.database is not None:
            return 95 if has_sessions(source.database) else 1
        objects = source.objects()
        if isinstance(source.document, list):
            objects = [value for value in source.document[:50] if isinstance(value, dict)]
        if any(is_export(value) for value in objects):
            return 95
        return 90 if any(is_row(value) or is_session(value) for value in objects) else 0

    def read(self, source: Source) -> tuple[Transcript, ...]:
        """The sessions of the source; raises ReadError for a database without OpenCode's tables."""
        if source.database is not None:
            sessions, notes = from_database(source.database, source.path)
        else:
            sessions, notes = from_records(source)
            if len(sessions) == 1 and not sessions[0].messages and is_session(sessions[0].info) and source.folder:
                sessions = from_storage(sessions[0], Path(source.path))
        found = _transcripts(sessions, source.path)
        return (found[0].with_notes(*notes), *found[1:]) if found else ()


def _transcripts(sessions: Sequence[StoredSession], path: str) -> list[Transcript]:
    known = {session.id: session for session in sessions}
    roots = [s for s in sessions if s.parent not in known or is_fork(s) or s.parent == s.id]
    children: dict[str, list[StoredSession]] = {}
    for session in sessions:
        if session.parent in known and not is_fork(session):
            children.setdefault(str(session.parent), []).append(session)
    return [_transcript(root, children, path) for root in roots]


def is_fork(session: StoredSession) -> bool:
    """Whether a session began with messages of another: they are older than the session itself."""
    began = seconds(mapping(session.info.get("time")).get("created"))
    first = seconds(mapping(session.messages[0].info.get("time")).get("created")) if session.messages else None
    return began is not None and first is not None and first < began


def _transcript(session: StoredSession, children: Mapping[str, Sequence[StoredSession]], path: str) -> Transcript:
    name = session.id or Path(path).stem
    active, reverted = _split(session)
    log = SessionLog(session, ThreadBuilder(id=name), is_started_by_agent=session.parent is not None)
    main = log.read(active)
    below = _below(session, children, log.children, {session.id})
    logs = [log, *(log for log, _ in below)]
    left = SessionLog(session, ThreadBuilder(id=f"{name}/reverted"))
    abandoned = [left.read(reverted)] if reverted else []
    logs.append(left)
    notes = [*session.notes, *_fork_notes(log), *(n for each in logs for n in _notes(each))]
    info = session.info
    return Transcript(
        format="opencode", session_id=name, path=path, main=main, subagents=tuple(thread for _, thread in below),
        abandoned=(*abandoned, *(t for each in logs for t in each.side)), notes=tuple(notes),
        parent_session=session.parent, harness_version=plain(info.get("version")), model=log.model,
        cwd=plain(info.get("directory")), outcome=_outcome(log.ending), message_count=len(active),
        extra=leftover(info, "id", "parentID", "version", "directory") or NOTHING)


def _below(session: StoredSession, children: Mapping[str, Sequence[StoredSession]], calls: Mapping[str, str],
           seen: set[str], started_by: str | None = None) -> list[tuple[SessionLog, Thread]]:
    """The sub-agents of a session and theirs; all of them hang on the main thread's calls."""
    found: list[tuple[SessionLog, Thread]] = []
    for child in children.get(session.id, ()):
        if child.id in seen:
            continue
        seen.add(child.id)
        call = started_by or calls.get(child.id)
        log = SessionLog(child, ThreadBuilder(id=child.id, parent_call=call), is_started_by_agent=True)
        thread = log.read(child.messages)
        log.notes.extend(child.notes)
        found += [(log, thread), *_below(child, children, log.children, seen, call)]
    return found


def _split(session: StoredSession) -> tuple[list[StoredMessage], list[StoredMessage]]:
    """The active messages, and those that the person reverted."""
    target = mapping(session.info.get("revert")).get("messageID")
    at = next((n for n, m in enumerate(session.messages) if m.id == target), None) if plain(target) else None
    if at is None:
        return session.messages, []
    active, reverted = session.messages[:at], session.messages[at:]
    part = mapping(session.info["revert"]).get("partID")
    cut = next((n for n, p in enumerate(reverted[0].parts) if p.get("id") == part), 0) if plain(part) else 0
    if cut:
        whole = reverted[0]
        active = [*active, replace(whole, parts=whole.parts[:cut])]
        rest = {**whole.info, "tokens": None}
        reverted = [StoredMessage(rest, whole.parts[cut:], whole.line), *reverted[1:]]
    return active, reverted


def _notes(log: SessionLog) -> list[ReadNote]:
    odd = [replace(note, line=note.line or None, byte=None) for note in log.odd.notes()]
    return [*log.notes, *odd]


def _fork_notes(log: SessionLog) -> list[ReadNote]:
    text = f"{len(log.copied)} responses came with the fork from another session; they were billed there"
    return [ReadNote(code="forked-history", text=text)] if log.copied else []


def _outcome(ending: str | None) -> Outcome | None:
    if ending is None:
        return None
    name = ending.partition(":")[0]
    value = _OUTCOMES.get(name, "fail" if name.endswith(("Error", "error")) else "unknown")
    return Outcome(value=value, source="finish", detail=ending)
