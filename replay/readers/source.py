"""Bytes of a file into numbered JSON records, with a note for everything odd.

Lines end at LF only; a trailing CR is dropped; blank lines are skipped. A damaged line is noted with
its number and byte offset and never costs another line; of a damaged document the rest is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from replay.errors import ReadError
from replay.readers.archives import unpacked
from replay.readers.documents import damaged_document, is_laid_out, looks_whole, whole_document
from replay.readers.encodings import Lines, to_utf8
from replay.readers.json_lines import decode
from replay.readers.json_text import NotJson
from replay.transcript import ReadNote

_SQLITE = b"SQLite format 3\x00"
_LIKE = 50
"""Earlier records that a record behind a cut one is compared with."""


class Record(NamedTuple):
    """One JSON value of a file with its place."""

    line: int
    """1-based."""
    byte: int
    """Offset of the line in the decompressed file."""
    value: Any


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file, decoded once: either one JSON document or a list of line records."""

    path: str
    size_bytes: int
    records: tuple[Record, ...]
    """One record for a document; one a line (or glued value) otherwise."""
    is_document: bool
    notes: tuple[ReadNote, ...] = ()
    folder: Path | None = field(default=None)
    """The file's folder, for formats that spread over several files; None for standard input."""
    database: Path | bytes | None = field(default=None, repr=False)
    """An SQLite database instead of records: where it lies, or its bytes where it was packed or piped."""

    @property
    def document(self) -> Any:
        """The single JSON value of a document; None for line files."""
        return self.records[0].value if self.is_document else None

    def objects(self, limit: int = 50) -> list[dict[str, Any]]:
        """The first `limit` records that are JSON objects, for telling the format."""
        found: list[dict[str, Any]] = []
        for record in self.records:
            if isinstance(record.value, dict):
                found.append(record.value)
                if len(found) == limit:
                    break
        return found


def open_source(path: Path) -> Source:
    """Read a file (gzip and zstd are unpacked) into records. Raises ReadError when it cannot be opened."""
    try:
        with path.open("rb") as file:
            if file.peek(len(_SQLITE)).startswith(_SQLITE):
                return Source(path=str(path), size_bytes=path.stat().st_size, records=(), is_document=False,
                              folder=path.parent, database=path)
            data = file.read()
    except OSError as error:
        raise ReadError(str(path), error.strerror or str(error)) from error
    return parse_source(data, str(path), path.parent)


def parse_source(data: bytes, path: str, folder: Path | None = None) -> Source:
    """Turn the bytes of a file into records and notes."""
    notes: list[ReadNote] = []
    plain = unpacked(data, path, notes)
    if plain.startswith(_SQLITE):
        return Source(path=path, size_bytes=len(plain), records=(), is_document=False, notes=tuple(notes),
                      folder=folder, database=plain)
    lines = to_utf8(plain, notes)
    records, is_document = _records(lines, notes)
    return Source(path=path, size_bytes=len(plain), records=tuple(records), is_document=is_document,
                  notes=tuple(notes), folder=folder)


def _records(lines: Lines, notes: list[ReadNote]) -> tuple[list[Record], bool]:
    """The records of a file, and whether they are one document."""
    value = whole_document(lines.data)
    if value is None and is_laid_out(lines.data):
        value = damaged_document(lines, notes)
    if value is None:
        own: list[ReadNote] = []
        records = _line_records(lines, own)
        if any(isinstance(record.value, dict) for record in records):
            notes.extend(own)
            return records, _is_alone(records, lines.data)
        value = damaged_document(lines, notes)
        if value is None:
            notes.extend(own)
            return records, False
    return [Record(1, lines.start_of(1, 0), value)], True


def _is_alone(records: Sequence[Record], data: bytes) -> bool:
    """Whether the one record of a file is a document that needed a repair."""
    return len(records) == 1 and b"\n" not in data.strip() and looks_whole(records[0].value)


def _line_records(lines: Lines, notes: list[ReadNote]) -> list[Record]:
    rows = lines.data.split(b"\n")
    last = len(rows)
    while last and not rows[last - 1].strip():
        last -= 1
    found: list[Record] = []
    loads, offset = orjson.loads, 0
    for number, row in enumerate(rows[:last], 1):
        try:
            found.append(Record(number, offset, loads(row)))
        except orjson.JSONDecodeError:
            if row.strip():
                found += _repaired(number, offset, row, found, notes, is_last=number == last)
        offset += len(row) + 1
    return _placed(found, notes, lines)


def _repaired(number: int, offset: int, row: bytes, before: Sequence[Record], notes: list[ReadNote], *,
              is_last: bool) -> list[Record]:
    """The records of a line that is not one JSON value; what was repaired or left out becomes a note."""
    try:
        values, repairs = decode(row, [record.value for record in before[-_LIKE:]])
    except NotJson as error:
        code, what = ("cut-tail", "the last line is cut") if is_last else ("bad-json", "not valid JSON")
        notes.append(ReadNote(code=code, text=f"{what}: {error}", line=number, byte=offset))
        return []
    for code, text in repairs:
        at_end = code != "cut-tail" or is_last
        notes.append(ReadNote(code=code if at_end else "bad-json", text=text, line=number, byte=offset))
    return [Record(number, offset, value) for value in values]


def _placed(found: list[Record], notes: list[ReadNote], lines: Lines) -> list[Record]:
    """Records and notes with their offsets in the file as it stood."""
    if lines.starts is None and not lines.shift:
        return found
    notes[:] = [replace(n, byte=lines.start_of(n.line, n.byte)) if n.line and n.byte is not None else n for n in notes]
    return [record._replace(byte=lines.start_of(record.line, record.byte)) for record in found]
