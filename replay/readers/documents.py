"""Files that are one JSON document, intact or damaged."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

import orjson

from replay.readers.encodings import Lines
from replay.readers.json_document import Loss, salvaged
from replay.readers.json_text import LENIENT, MAX_DEPTH, Repair, all_values, cleaned, escaped, shallow
from replay.transcript import ReadNote

_FIRST = re.compile(rb"\s*([^\n]*)(?:\n\s*(\S?))?")
_OPEN = (b"{", b"[", b",", b":")
_MAX_NOTES = 20
"""Bad spots of one document that are noted one by one."""


def whole_document(data: bytes) -> Any:
    """The value of a file that is one intact JSON document; None for lines and for damaged ones."""
    first, following = _first_line(data)
    if not first.startswith((b"{", b"[")) or (following and _is_json(first)):
        return None
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return None
    return value if following or looks_whole(value) else None


def looks_whole(value: Any) -> bool:
    """Whether the value of a single line is a document: an object could be the only record of a line format."""
    if not isinstance(value, dict):
        return isinstance(value, list)
    return not ({"type", "role", "event_type"} & value.keys()) or any(isinstance(v, list) for v in value.values())


def is_laid_out(data: bytes) -> bool:
    """Whether a file that is no intact document is laid out over lines like one."""
    first, following = _first_line(data)
    if first.startswith(b"["):
        return first == b"[" or first.endswith(_OPEN)
    return first == b"{" or (first.startswith(b"{") and first.endswith(_OPEN) and following != b"{")


def damaged_document(lines: Lines, notes: list[ReadNote]) -> Any:
    """The value of a damaged document, with notes on what was repaired and left out.

    None where the rest holds no list of objects, so that a cut record of a log is not taken for a document.
    """
    text, repairs = cleaned(lines.data)
    if not text.startswith(("{", "[")):
        return None
    try:
        value, losses, more = _read(text)
    except RecursionError:
        repairs.append(Repair("too-deep", f"what is nested deeper than {MAX_DEPTH} levels was kept as text"))
        text = shallow(text)
        try:
            value, losses, more = _read(text)
        except RecursionError:
            # Damage among the brackets: where the deep value begins and ends cannot be told.
            return None
    if losses and not _holds_objects(value):
        return None
    if repairs and not losses and more == [LENIENT]:
        more = []  # the other repairs were enough
    notes.extend(_repair_notes([*repairs, *more], lines))
    notes.extend(_loss_notes(losses, escaped(text), lines))
    return value


def _first_line(data: bytes) -> tuple[bytes, bytes]:
    """The first line that is not blank, stripped, and the first character behind it (empty: there is none)."""
    found = _FIRST.match(data)
    return (found[1].rstrip(), found[2] or b"") if found else (b"", b"")


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _read(text: str) -> tuple[Any, list[Loss], list[Repair]]:
    """The value of a document, what was left out of it, and what was repaired."""
    value = _single(text)
    if value is not None:
        return value, [], [LENIENT]
    doubled = escaped(text)
    repairs = [] if doubled == text else [Repair("bad-escape", "invalid JSON escapes were read as plain backslashes")]
    value = _single(doubled) if repairs else None
    return (value, [], repairs) if value is not None else (*salvaged(doubled), repairs)


def _single(text: str) -> Any:
    try:
        values, _ = all_values(text)
    except ValueError:
        return None
    return values[0] if len(values) == 1 else None


def _holds_objects(value: Any) -> bool:
    members: Iterable[Any] = value.values() if isinstance(value, dict) else [value]
    return any(isinstance(m, list) and any(isinstance(entry, dict) for entry in m) for m in members)


def _repair_notes(repairs: list[Repair], lines: Lines) -> list[ReadNote]:
    """The notes on repairs, at the first line that a strict decoder stumbles over."""
    try:
        orjson.loads(lines.data)
    except orjson.JSONDecodeError as error:
        line = error.lineno
        return [ReadNote(code=code, text=text, line=line, byte=_byte_of(line, lines)) for code, text in repairs]
    return []


def _byte_of(line: int, lines: Lines) -> int:
    offset = 0
    for _ in range(line - 1):
        offset = lines.data.find(b"\n", offset) + 1
    return lines.start_of(line, offset)


def _loss_notes(losses: list[Loss], text: str, lines: Lines) -> list[ReadNote]:
    """A note on each bad spot, up to a limit, and one on how many more there are."""
    lead = lines.data[:len(lines.data) - len(lines.data.lstrip())].count(b"\n")
    breaks = [found.start() for found in re.finditer("\n", text)] if losses else []
    notes = []
    for where, at, is_cut in losses[:_MAX_NOTES]:
        line = 1 + lead + bisect_right(breaks, max(0, at - 1))
        column = at - (breaks[line - lead - 2] if line - lead > 1 else -1)
        code, what = ("cut-tail", "the document is cut") if is_cut else ("bad-json", "not valid JSON")
        notes.append(ReadNote(code=code, line=line, byte=_byte_of(line, lines),
                              text=f"{what} at character {column} of the line; {where or 'the rest'} was left out"))
    if len(losses) > _MAX_NOTES:
        notes.append(ReadNote(code="bad-json", text=f"{len(losses) - _MAX_NOTES} more bad spots of the document"))
    return notes
