"""Unpacking gzip and zstd: everything before the first damaged byte, and a note where data are missing."""

from __future__ import annotations

import zlib

from replay.errors import ReadError
from replay.transcript import ReadNote

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_CHUNK = 1 << 16


def unpacked(data: bytes, path: str, notes: list[ReadNote]) -> bytes:
    """The plain bytes of a file that may be packed. Raises ReadError when nothing comes out of an archive."""
    if data.startswith(_GZIP):
        return _checked("gzip", path, notes, *_gunzip(data))
    if data.startswith(_ZSTD):
        return _checked("zstd", path, notes, *_unzstd(data))
    return data


def head_of(data: bytes, limit: int) -> bytes:
    """At most `limit` plain bytes of a file whose first bytes are at hand; nothing where they cannot be unpacked."""
    try:
        if data.startswith(_GZIP):
            return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(data, limit)
        if data.startswith(_ZSTD):
            return _unzstd(data)[0][:limit]
    except zlib.error:
        return b""
    return data[:limit]


def _checked(kind: str, path: str, notes: list[ReadNote], found: bytes, fault: str) -> bytes:
    if fault and not found:
        raise ReadError(path, f"not readable as {kind}: {fault}")
    if fault:
        notes.append(ReadNote(code="cut-archive", text=f"{kind}: {fault}; what was packed before was read"))
    return found


def _gunzip(data: bytes) -> tuple[bytes, str]:
    """All members of a gzip file, and what is wrong with it (empty: nothing)."""
    parts: list[bytes] = []
    at = 0
    while data.startswith(_GZIP, at):
        at, fault = _inflate(data, at, parts)
        if fault:
            return b"".join(parts), fault
    rest = data[at:].strip(b"\x00")
    return b"".join(parts), "bytes that are no gzip data stand behind the archive" if rest else ""


def _inflate(data: bytes, at: int, parts: list[bytes]) -> tuple[int, str]:
    """Where a member that begins at `at` ends, and what is wrong with it."""
    member = zlib.decompressobj(zlib.MAX_WBITS | 16)
    for start in range(at, len(data), _CHUNK):
        before, chunk = member.copy(), data[start:start + _CHUNK]
        try:
            parts.append(member.decompress(chunk))
        except zlib.error as error:
            parts.append(_inflate_bytewise(before, chunk))
            return start, str(error)
        if member.eof:
            return start + len(chunk) - len(member.unused_data), ""
    return len(data), "the data end early"


def _inflate_bytewise(member: zlib._Decompress, chunk: bytes) -> bytes:
    """What a chunk gives before its first damaged byte."""
    found: list[bytes] = []
    for at in range(len(chunk)):
        try:
            found.append(member.decompress(chunk[at:at + 1]))
        except zlib.error:
            break
    return b"".join(found)


def _unzstd(data: bytes) -> tuple[bytes, str]:
    """All frames of a zstd file, and what is wrong with it (empty: nothing)."""
    parts: list[bytes] = []
    at = 0
    while data.startswith(_ZSTD, at):
        at, fault = _expand(data, at, parts)
        if fault:
            return b"".join(parts), fault
    rest = data[at:].strip(b"\x00")
    return b"".join(parts), "bytes that are no zstd data stand behind the archive" if rest else ""


def _expand(data: bytes, at: int, parts: list[bytes]) -> tuple[int, str]:
    """Where a frame that begins at `at` ends, and what is wrong with it."""
    import zstandard

    frame = zstandard.ZstdDecompressor().decompressobj()
    for start in range(at, len(data), _CHUNK):
        chunk = data[start:start + _CHUNK]
        try:
            parts.append(frame.decompress(chunk))
        except zstandard.ZstdError as error:
            return start, str(error)
        if frame.eof:
            return start + len(chunk) - len(frame.unused_data), ""
    return len(data), "the data end early"
