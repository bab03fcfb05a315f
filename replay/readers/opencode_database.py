"""The SQLite database of OpenCode, opened so that nothing in it or beside it changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from replay.errors import ReadError
from replay.readers.opencode_records import TABLES, StoredSession, Tables
from replay.transcript import ReadNote

_JOURNAL_MODE = slice(18, 20)
"""Bytes of the header that say how the file is written; 2 asks for a log file that bytes alone do not have."""


def has_sessions(database: Path | bytes) -> bool:
    """Whether the three tables are there."""
    try:
        with closing(_open(database)) as connection:
            return set(TABLES) <= _tables(connection)
    except sqlite3.Error:
        return False


def from_database(database: Path | bytes, path: str) -> tuple[list[StoredSession], list[ReadNote]]:
    """Every session of a database. Raises ReadError where the tables are not there or cannot be read."""
    try:
        with closing(_open(database)) as connection:
            return _sessions(connection, path)
    except sqlite3.Error as error:
        raise ReadError(path, f"not readable as an SQLite database: {error}") from error


def _open(database: Path | bytes) -> sqlite3.Connection:
    if isinstance(database, bytes):
        connection = sqlite3.connect(":memory:")
        image = bytearray(database)
        image[_JOURNAL_MODE] = b"\x01\x01"
        connection.deserialize(bytes(image))
    else:
        log = database.with_name(database.name + "-wal")
        has_log = log.exists() and log.stat().st_size > 0
        mode = "mode=ro" if has_log else "mode=ro&immutable=1"
        connection = sqlite3.connect(f"file:{quote(str(database.absolute()))}?{mode}", uri=True)
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    return connection


def _tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def _sessions(connection: sqlite3.Connection, path: str) -> tuple[list[StoredSession], list[ReadNote]]:
    present = _tables(connection)
    if not set(TABLES) <= present:
        raise ReadError(path, f"an SQLite database without the tables of OpenCode; it has {', '.join(sorted(present))}")
    tables = Tables()
    for table in TABLES:
        for row in _rows(connection, table):
            tables.add(table, row)
    notes = _unread(connection) if "session_message" in present else []
    return tables.gathered(), tables.notes + notes


def _rows(connection: sqlite3.Connection, table: str) -> Iterator[dict[str, Any]]:
    cursor = connection.execute(f"SELECT * FROM {table}")  # noqa: S608 - the name is one of ours
    names = [column[0] for column in cursor.description]
    for row in cursor:
        yield dict(zip(names, row, strict=True))


def _unread(connection: sqlite3.Connection) -> list[ReadNote]:
    (count,) = connection.execute("SELECT count(*) FROM session_message").fetchone()
    text = f"{count} rows of the table session_message, which holds sessions in another layout, were not read"
    return [ReadNote(code="unread-table", text=text)] if count else []
