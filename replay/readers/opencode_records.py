"""Sessions of OpenCode as they were stored: a session's facts, its messages, and the parts of each message.

The same three kinds of record stand in export documents, in folders of small files and in database rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from replay.readers.common import not_an_object
from replay.readers.source import Record, Source
from replay.transcript import ReadNote

_COLUMNS = {"parent_id": "parentID", "project_id": "projectID", "workspace_id": "workspaceID"}
_JSON_COLUMNS = ("revert", "model", "permission", "metadata", "summary_diffs")
TABLES = ("session", "message", "part")


@dataclass
class StoredMessage:
    """A message's facts and its parts, in order."""

    info: dict[str, Any]
    parts: list[dict[str, Any]] = field(default_factory=list)
    line: int | None = None

    @property
    def id(self) -> str:
        """The message's id; empty where there is none."""
        return plain(self.info.get("id")) or ""


@dataclass
class StoredSession:
    """A session's facts and its messages, in order."""

    info: dict[str, Any]
    messages: list[StoredMessage] = field(default_factory=list)
    notes: list[ReadNote] = field(default_factory=list)

    @property
    def id(self) -> str:
        """The session's id; empty where there is none."""
        return plain(self.info.get("id")) or ""

    @property
    def parent(self) -> str | None:
        """The session that this one belongs to."""
        return plain(self.info.get("parentID"))


def plain(value: Any) -> str | None:
    """The value if it is text, and not empty."""
    return value if isinstance(value, str) and value else None


def mapping(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def is_export(value: Mapping[str, Any]) -> bool:
    """Whether an object is what `opencode export` prints."""
    return isinstance(value.get("messages"), list) and (plain(mapping(value.get("info")).get("id")) or "").startswith(
        "ses_")


def is_session(value: Mapping[str, Any]) -> bool:
    """Whether an object is the facts of a session, without its messages."""
    return (plain(value.get("id")) or "").startswith("ses_") and "sessionID" not in value and "messages" not in value


def is_row(value: Mapping[str, Any]) -> bool:
    """Whether an object is a database row that names its table."""
    return value.get("table") in TABLES and str(value.get("id")).startswith(("ses_", "msg_", "prt_"))


def exported(value: dict[str, Any], line: int | None) -> StoredSession:
    """The session of an export document."""
    session = StoredSession(mapping(value.get("info")))
    seen: dict[str, StoredMessage] = {}
    rows = value.get("messages")
    for number, row in enumerate(rows if isinstance(rows, list) else [], 1):
        info = row.get("info") if isinstance(row, dict) else None
        if not isinstance(info, dict):
            session.notes.append(ReadNote(code="bad-message", line=line, text=(
                f"message {number} has no info object; kept out")))
            continue
        message = StoredMessage(info, _objects(row.get("parts"), session.notes, f"message {number}"), line)
        if message.id and message.id in seen:
            session.notes.append(_repeated(seen[message.id], message))
        else:
            seen[message.id] = message
            session.messages.append(message)
    return session


def _repeated(first: StoredMessage, again: StoredMessage) -> ReadNote:
    same = first.info == again.info and first.parts == again.parts
    fate = "; read once" if same else " with other content; the first one holds"
    return ReadNote(code="duplicate", text=f"message {again.id} is written again{fate}", line=again.line)


def _objects(value: Any, notes: list[ReadNote], where: str) -> list[dict[str, Any]]:
    parts = value if isinstance(value, list) else []
    found = [part for part in parts if isinstance(part, dict)]
    if len(found) < len(parts):
        notes.append(ReadNote(code="not-an-object", text=f"{len(parts) - len(found)} parts of {where} are not objects"))
    return found


class Tables:
    """Rows of the tables `session`, `message` and `part`, gathered into sessions."""

    def __init__(self) -> None:
        """Start without rows."""
        self.sessions: dict[str, StoredSession] = {}
        self.notes: list[ReadNote] = []
        self._messages: dict[str, tuple[float, StoredMessage]] = {}
        self._parts: dict[str, dict[str, dict[str, Any]]] = {}

    def add(self, table: str, row: Mapping[str, Any], line: int | None = None) -> None:
        """Take in a row of one of the three tables; a row with an id that was read before replaces it."""
        key = plain(row.get("id")) or f"{table}-{len(self._messages)}-{len(self._parts)}"
        if table == "session":
            self.sessions[key] = StoredSession(_session_info(row))
        elif (data := self._data(row, table, key, line)) is not None:
            self._place(table, key, row, data, line)

    def _place(self, table: str, key: str, row: Mapping[str, Any], data: dict[str, Any], line: int | None) -> None:
        data["id"] = key
        if table == "part":
            self._parts.setdefault(str(row.get("message_id")), {})[key] = data
            return
        data["sessionID"] = row.get("session_id")
        made = row.get("time_created")
        moment = float(made) if isinstance(made, (int, float)) else 0.0
        self._messages[key] = (moment, StoredMessage(data, [], line))

    def _data(self, row: Mapping[str, Any], table: str, key: str, line: int | None) -> dict[str, Any] | None:
        data = row.get("data")
        try:
            value = orjson.loads(data) if isinstance(data, (str, bytes)) else data
        except orjson.JSONDecodeError as error:
            value = f"not JSON: {error}"
        if isinstance(value, dict):
            return {**value}
        self.notes.append(ReadNote(code="bad-json", line=line, text=(
            f"the data of {table} {key} are no JSON object ({str(value)[:80]}); kept out")))
        return None

    def gathered(self) -> list[StoredSession]:
        """The sessions, each with its messages by time and id, each message with its parts by id."""
        for key, (_, message) in sorted(self._messages.items(), key=lambda item: (item[1][0], item[0])):
            parts = self._parts.pop(key, {})
            message.parts = [parts[name] for name in sorted(parts)]
            owner = str(message.info.get("sessionID"))
            if owner not in self.sessions:
                self.notes.append(ReadNote(code="missing-session", text=f"messages of {owner}, but no row of it"))
                self.sessions[owner] = StoredSession({"id": owner})
            self.sessions[owner].messages.append(message)
        if self._parts:
            self.notes.append(ReadNote(code="missing-message", text=(
                f"{sum(map(len, self._parts.values()))} parts of messages that are not there; kept out")))
        return list(self.sessions.values())


def _session_info(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the session table in the shape of an exported session's facts."""
    info = {_COLUMNS.get(name, name): value for name, value in row.items() if value is not None and name != "table"}
    for name in _JSON_COLUMNS:
        if isinstance(text := info.get(name), str):
            info[name] = _decoded(text)
    info["time"] = {"created": info.pop("time_created", None), "updated": info.pop("time_updated", None)}
    return info


def _decoded(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


def from_records(source: Source) -> tuple[list[StoredSession], list[ReadNote]]:
    """The sessions of a document or of lines: exports, facts of sessions, rows of tables."""
    gathering = _Gathering()
    for record in source.records:
        values = record.value if source.is_document and isinstance(record.value, list) else [record.value]
        for value in values:
            gathering.take(record, value, None if source.is_document else record.line)
    return gathering.found + gathering.tables.gathered(), gathering.notes + gathering.tables.notes


@dataclass
class _Gathering:
    found: list[StoredSession] = field(default_factory=list)
    notes: list[ReadNote] = field(default_factory=list)
    tables: Tables = field(default_factory=Tables)
    rows: dict[Any, dict[str, Any]] = field(default_factory=dict)

    def take(self, record: Record, value: Any, line: int | None) -> None:
        if not isinstance(value, dict):
            self.notes.append(not_an_object(record.line, record.byte, value))
        elif "table" in value:
            if value["table"] in TABLES:
                self._row(record, value)
        elif "messages" in value or "info" in value:
            self.found.append(exported(value, line))
        else:
            self.found.append(StoredSession(value))

    def _row(self, record: Record, row: dict[str, Any]) -> None:
        key = (row["table"], str(row.get("id")))
        before = self.rows.get(key)
        if before is not None:
            self.notes.append(ReadNote(code="duplicate", line=record.line, byte=record.byte, text=(
                f"{key[0]} {key[1]} is written again" + ("; read once" if before == row else "; the later row holds"))))
        self.rows[key] = row
        self.tables.add(row["table"], row, record.line)
