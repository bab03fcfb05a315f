"""Decoding one line, strictly first, then with stated repairs; of a damaged line what whole records are on it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from replay.readers.json_text import (
    DECODER,
    LENIENT,
    MAX_DEPTH,
    NotJson,
    Repair,
    all_values,
    cleaned,
    escaped,
    reason_of,
    shallow,
)

_RECORD = re.compile(r'\{\s*"')
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_SPACE = re.compile(r"\s*(?:,\s*$)?")
"""What may stand between records and behind the last."""
_WORK_PER_CHARACTER = 12
"""Bound of the work on one damaged line, in characters decoded for each of its characters."""
_TRIES = 1_000
"""Places of one damaged line at which a record may begin but none does, until the search is given up."""


def decode(raw: bytes, like: Sequence[Any] = ()) -> tuple[list[Any], tuple[Repair, ...]]:
    """Decode one line into its JSON values, with the repairs that were needed.

    One value is the rule; several mean that records were glued together, none that there was only padding.
    Of a repeated key the last value counts. `like`: earlier records of the file, by which a record behind a
    cut one can be told from a part of it. Raises NotJson with the reason.
    """
    try:
        return [orjson.loads(raw)], ()
    except orjson.JSONDecodeError:
        return _decode_slowly(raw, like)


def _decode_slowly(raw: bytes, like: Sequence[Any]) -> tuple[list[Any], tuple[Repair, ...]]:
    text, repairs = cleaned(raw)
    if not text and repairs:
        return [], tuple(repairs)
    try:
        values, more = _values(text, like)
    except RecursionError:
        repairs.append(Repair("too-deep", f"what is nested deeper than {MAX_DEPTH} levels was kept as text"))
        values, more = _shallow_values(text, like)
    return values, (*repairs, *more) if repairs or more else (LENIENT,)


def _shallow_values(text: str, like: Sequence[Any]) -> tuple[list[Any], list[Repair]]:
    try:
        return _values(shallow(text), like)
    except RecursionError as error:
        raise NotJson("nested too deeply") from error


def _values(text: str, like: Sequence[Any]) -> tuple[list[Any], list[Repair]]:
    try:
        return all_values(text)
    except ValueError as error:
        reason = error
    doubled = escaped(text)
    repairs = [] if doubled == text else [Repair("bad-escape", "invalid JSON escapes were read as plain backslashes")]
    if repairs:
        try:
            values, more = all_values(doubled)
        except ValueError as error:
            reason = error
        else:
            return values, [*repairs, *more]
    values, more = _records(doubled, like)
    if not values:
        raise NotJson(reason_of(reason))
    return values, [*repairs, *more]


def _records(text: str, like: Sequence[Any]) -> tuple[list[Any], list[Repair]]:
    """The whole records on a damaged line, in order, with a note on each piece that was left out.

    A record behind a damaged piece must reach to the end of the line or to another record. Where it could as
    well be a part of the damaged record it must also have the keys of an earlier record of the file (`like`).
    """
    values: list[Any] = []
    lost: list[Repair] = []
    at = 0
    while at < len(text):
        found = _value(text, at)
        if found is None or not isinstance(found[0], (dict, list)):
            begin, found = _next_record(text, at, like)
            lost.append(_lost(text[at:begin], begin >= len(text)))
            if found is None:
                break
        values.append(found[0])
        at = _skipped(text, found[1])
    return values, lost or [Repair("loose-json", "commas behind records were passed over")]


def _lost(piece: str, is_end: bool) -> Repair:
    is_record = piece.startswith(("{", "["))
    if is_record and is_end:
        return Repair("cut-tail", "the record at the end of the line is cut; what stands before it was read")
    if is_record:
        return Repair("bad-json", f"a cut record of {len(piece)} characters was left out; "
                                  "the record behind it on the line was read")
    return Repair("bad-json", f"{len(piece)} characters that belong to no record were left out: {piece[:40]!r}")


def _value(text: str, at: int) -> tuple[Any, int] | None:
    try:
        return DECODER.raw_decode(text, at)
    except ValueError:
        return None


def _skipped(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _next_record(text: str, start: int, like: Sequence[Any]) -> tuple[int, tuple[Any, int] | None]:
    """Where the next record begins behind a damaged one, and the record; the end of the text where there is none."""
    work, budget, tries = 0, _WORK_PER_CHARACTER * len(text), 0
    at = start + 1
    while work < budget and tries < _TRIES and (found := _RECORD.search(text, at)):
        begin = found.start()
        try:
            value, end = DECODER.raw_decode(text, begin)
        except ValueError as error:
            work += getattr(error, "pos", begin) - begin + 1
            at, tries = begin + 1, tries + 1
            continue
        work += end - begin
        rest = _skipped(text, end)
        if (rest == len(text) or text[rest] == "{") and (_stands_alone(text, start, begin) or _is_like(value, like)):
            return begin, (value, end)
        at = end
    return len(text), None


def _stands_alone(text: str, start: int, begin: int) -> bool:
    """Whether a record that begins here cannot be a part of the damaged one, which began at `start`."""
    before = text[start:begin].rstrip()
    if before.startswith('"') and before.endswith(":"):
        return False
    if not before.startswith(("{", "[")) or not before.endswith((":", ",", "[", "]", "}", "{")):
        return True
    # Behind a comma or bracket it could be a part, unless that stands in a string that was cut.
    open_string = False
    for token in _STRING.finditer(before):
        open_string = token.end() == len(before) and (len(token[0]) < 2 or not _closes(token[0]))
    return open_string


def _closes(string: str) -> bool:
    body = string[1:-1]
    return string.endswith('"') and (len(body) - len(body.rstrip("\\"))) % 2 == 0


def _is_like(value: Mapping[str, Any], like: Sequence[Any]) -> bool:
    keys = value.keys()
    return any(len(keys & other.keys()) >= max(2, (len(keys | other.keys()) + 1) // 2)
               for other in like if isinstance(other, dict))

