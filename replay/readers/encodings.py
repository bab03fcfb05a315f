"""From the encoding of a file to UTF-8 lines: byte-order marks, UTF-16 and UTF-32 with and without one."""

from __future__ import annotations

import codecs
from typing import NamedTuple

from replay.transcript import ReadNote

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
         (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_WIDE = {"utf-32-le": (4, 0), "utf-32-be": (4, 3), "utf-16-le": (2, 0), "utf-16-be": (2, 1)}
"""Encoding to the bytes of a unit and the place in it of an ASCII character."""
_FIRST = 4
"""Characters by which an encoding is told."""
_LOST = "�".encode()


class Lines(NamedTuple):
    """The bytes of a file as UTF-8, and where its lines began before."""

    data: bytes
    shift: int
    """Bytes in front of the first line: those of a byte-order mark."""
    starts: tuple[int, ...] | None = None
    """Offset of each line in the file; None where a line's offset in `data` plus `shift` is it."""

    def start_of(self, line: int, offset: int) -> int:
        """Offset in the file of a line (from 1) that begins at `offset` of `data`."""
        return self.starts[line - 1] if self.starts else offset + self.shift


def to_utf8(data: bytes, notes: list[ReadNote]) -> Lines:
    """The same text as UTF-8. Damaged characters of UTF-16 and UTF-32 are replaced and noted."""
    bom, encoding = next(((b, e) for b, e in _BOMS if data.startswith(b)), (b"", ""))
    if bom:
        notes.append(ReadNote(code="byte-order-mark", text=f"a byte-order mark of {encoding.upper()} was skipped",
                              line=1, byte=0))
    encoding = encoding or _unmarked(data)
    if encoding in _WIDE:
        if not bom:
            notes.append(ReadNote(code="encoding", text=f"read as {encoding.upper()}, which the file does not say",
                                  line=1, byte=0))
        return _from_wide(data, len(bom), encoding, notes)
    return Lines(data[len(bom):] if bom else data, len(bom))


def _unmarked(data: bytes) -> str:
    """The wide encoding of a file that begins with ASCII characters, as all JSON does; empty for none."""
    for encoding, (width, place) in _WIDE.items():
        units = [data[at:at + width] for at in range(0, min(len(data) - 1, _FIRST * width), width)]
        if len(units) > 1 and all(_is_ascii(unit, width, place) for unit in units):
            return encoding
    return ""


def _from_wide(data: bytes, begin: int, encoding: str, notes: list[ReadNote]) -> Lines:
    lines: list[bytes] = []
    starts: list[int] = []
    lost = 0
    for start, raw in _wide_lines(data, begin, encoding):
        line = raw.decode(encoding, "replace").encode()
        lost += line.count(_LOST)
        lines.append(line)
        starts.append(start)
    if lost and (lost := lost - _genuine(data, encoding)) > 0:
        notes.append(ReadNote(code="bad-utf8", text=f"{lost} characters that are not valid {encoding.upper()} "
                                                    "were replaced"))
    return Lines(b"\n".join(lines), begin, tuple(starts))


def _genuine(data: bytes, encoding: str) -> int:
    return data.count("�".encode(encoding))


def _wide_lines(data: bytes, begin: int, encoding: str) -> list[tuple[int, bytes]]:
    """Lines with their offsets. A break between whole characters ends a line. One that is not comes behind a
    lost byte, and ends a damaged line, where an ASCII character follows; else it is part of two others."""
    width, place = _WIDE[encoding]
    end_of_line = "\n".encode(encoding)
    found: list[tuple[int, bytes]] = []
    start, at = begin, data.find(end_of_line, begin)
    while at >= 0:
        if (at - start) % width == 0 or _is_ascii(data[at + width:at + 2 * width], width, place):
            found.append((start, data[start:at]))
            start = at + width
            at = data.find(end_of_line, start)
        else:
            at = data.find(end_of_line, at + 1)
    return [*found, (start, data[start:])]


def _is_ascii(unit: bytes, width: int, place: int) -> bool:
    return len(unit) == width and 0 < unit[place] < 128 and unit.count(0) == width - 1
