"""Bytes of a file into numbered JSON records, with a note for everything odd.

Lines end at LF only; a trailing CR is dropped; blank lines are skipped. A damaged line is noted with
its number and byte offset and never costs another line.
"""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from replay.errors import ReadError
from replay.readers.json_text import NotJson, decode
from replay.transcript import ReadNote

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
         (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_SQLITE = b"SQLite format 3\0"
_REPAIRS = {
    "bad-utf8": "bytes that are not UTF-8 were replaced",
    "nul-bytes": "NUL bytes were dropped",
    "bad-escape": "invalid JSON escapes were read as plain backslashes",
    "glued-values": "several JSON values stood on one line; each was read",
    "loose-json": "read with a lenient JSON decoder (control characters, NaN or lone surrogates)",
}


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
    plain = _decompress(data, path, notes)
    if plain.startswith(_SQLITE):
        return Source(path=path, size_bytes=len(plain), records=(), is_document=False, notes=tuple(notes),
                      folder=folder, database=plain)
    text = _to_utf8(plain, notes)
    document = _whole_document(text)
    if document is not None:
        records: tuple[Record, ...] = (Record(1, 0, document),)
    else:
        records = tuple(_records(text, notes))
    return Source(path=path, size_bytes=len(text), records=records, is_document=document is not None,
                  notes=tuple(notes), folder=folder)


def _decompress(data: bytes, path: str, notes: list[ReadNote]) -> bytes:
    if data.startswith(_GZIP):
        return _gunzip(data, path, notes)
    if data.startswith(_ZSTD):
        return _unzstd(data, path, notes)
    return data


def _gunzip(data: bytes, path: str, notes: list[ReadNote]) -> bytes:
    out = io.BytesIO()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            while chunk := packed.read(1 << 20):
                out.write(chunk)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        if not out.tell():
            raise ReadError(path, f"not readable as gzip: {error}") from error
        notes.append(ReadNote(code="cut-archive", text=f"compressed data end early: {error}"))
    return out.getvalue()


def _unzstd(data: bytes, path: str, notes: list[ReadNote]) -> bytes:
    import zstandard

    out = io.BytesIO()
    try:
        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data), read_across_frames=True) as packed:
            while chunk := packed.read(1 << 20):
                out.write(chunk)
    except zstandard.ZstdError as error:
        if not out.tell():
            raise ReadError(path, f"not readable as zstd: {error}") from error
        notes.append(ReadNote(code="cut-archive", text=f"compressed data end early: {error}"))
    return out.getvalue()


def _to_utf8(data: bytes, notes: list[ReadNote]) -> bytes:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            notes.append(ReadNote(code="byte-order-mark", text=f"a {encoding} byte-order mark was skipped",
                                  line=1, byte=0))
            if encoding == "utf-8":
                return data[len(bom):]
            return data.decode(encoding, "replace").encode("utf-8", "replace")
    return data


def _whole_document(data: bytes) -> Any:
    head = data[:64].lstrip()
    if not head.startswith((b"{", b"[")):
        return None
    first, _, rest = data.partition(b"\n")
    if rest.strip() and _is_json(first):
        return None
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return _repaired_document(data)
    return value if rest.strip() or isinstance(value, list) or _looks_whole(value) else None


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _looks_whole(value: Any) -> bool:
    """A single-line object is a document unless it could be the only line of a line format."""
    if not isinstance(value, dict):
        return False
    return not ({"type", "role", "event_type"} & value.keys()) or any(isinstance(v, list) for v in value.values())


def _repaired_document(data: bytes) -> Any:
    """A pretty-printed document that needs a repair; None where lines must be tried instead."""
    head = data[:2048].lstrip()
    if not (head.startswith((b"{\n", b"[\n", b"{\r\n", b"[\r\n")) or head[:1] == b"["):
        return None
    try:
        values, _ = decode(data)
    except NotJson:
        return None
    return values[0] if len(values) == 1 else None


def _records(data: bytes, notes: list[ReadNote]) -> Iterator[Record]:
    lines = data.split(b"\n")
    last = len(lines)
    while last and not lines[last - 1].strip():
        last -= 1
    offset = 0
    for number, line in enumerate(lines[:last], 1):
        stripped = line.strip(b" \t\r")
        if stripped:
            yield from _line_records(number, offset, stripped, number == last, notes)
        offset += len(line) + 1


def _line_records(number: int, offset: int, line: bytes, is_last: bool, notes: list[ReadNote]) -> Iterator[Record]:
    try:
        values: list[Any] = [orjson.loads(line)]
        repairs: tuple[str, ...] = ()
    except orjson.JSONDecodeError:
        try:
            values, repairs = decode(line)
        except NotJson as error:
            code = "cut-tail" if is_last else "bad-json"
            what = "the last line is cut" if is_last else "not valid JSON"
            notes.append(ReadNote(code=code, text=f"{what}: {error}", line=number, byte=offset))
            return
    notes.extend(ReadNote(code=c, text=_REPAIRS[c], line=number, byte=offset) for c in repairs)
    for value in values:
        yield Record(number, offset, value)
