"""A damaged JSON document without its bad spots: an entry of a list that cannot be read is left out, the rest stays."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NamedTuple

from replay.readers.json_text import DECODER, MAX_DEPTH

_SPACE = re.compile(r"\s*")
_BETWEEN = re.compile(r"[\s,]*")
_KEY = re.compile(r'("[^"\\\n]*+(?:\\.[^"\\\n]*+)*+")\s*:')
_TOKEN = re.compile(r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"(?=\s*[,:\]}])|[\[\]{},]|[^\[\]{},"]+|"')
"""A string counts as one only where what follows can follow a string: so a stray quote does not turn text and
structure round for the rest of the document."""
_ENTRY = re.compile(r"(?:(?<=,)|(?<=,\s)|(?<=\n))\s*(?=\{)")
_STRAY = re.compile(r"\}\s*,\s*(?=\{)")
_TRIES = 200
"""Places at which the next entry of a list may begin, until the search is given up."""
_ENDS = frozenset(",]}")


class Loss(NamedTuple):
    """A part of a document that was left out."""

    where: str
    """Path of the entry, such as `messages[12].content[0]`."""
    at: int
    """Place of the damage in the text, in characters."""
    is_cut: bool
    """The document ends there."""


class _BadSpot(ValueError):
    """Damage at a place, and how many objects are open there below the list that will leave the entry out."""

    def __init__(self, at: int, depth: int = 0, *, is_closed: bool = False) -> None:
        """`is_closed`: the bracket of the list itself stands at the place."""
        super().__init__(at)
        self.at = at
        self.depth = depth
        self.is_closed = is_closed


@dataclass
class _Reading:
    text: str
    at: int = 0
    losses: list[Loss] = field(default_factory=list)
    is_cut: bool = False
    depth: int = 0


def salvaged(text: str) -> tuple[Any, list[Loss]]:
    """The value of a document as far as it can be read, and what was left out; None where it holds nothing.

    Raises RecursionError for a document that is nested too deeply; `json_text.shallow` makes it readable.
    """
    reading = _Reading(text)
    _skip(reading, _SPACE)
    try:
        value = _value(reading, "", in_list=False)
    except _BadSpot as spot:
        return None, [Loss("", spot.at, spot.at >= len(text))]
    _skip(reading, _SPACE)
    if reading.at < len(text):
        reading.losses.append(Loss("text behind the document", reading.at, False))
    return value, reading.losses


def _skip(reading: _Reading, what: re.Pattern[str]) -> str:
    """Go on behind white space; the character there, empty at the end."""
    found = what.match(reading.text, reading.at)
    reading.at = found.end() if found else reading.at
    return reading.text[reading.at:reading.at + 1]


def _value(reading: _Reading, path: str, *, in_list: bool) -> Any:
    start = reading.at
    try:
        value, reading.at = DECODER.raw_decode(reading.text, start)
        following = _skip(reading, _SPACE)
    except ValueError:
        return _container(reading, path, start, in_list=in_list)
    is_complete = following in _ENDS or (not following and not isinstance(value, (int, float)))
    if is_complete or not path:
        return value
    reading.at = start
    raise _BadSpot(start)


def _container(reading: _Reading, path: str, start: int, *, in_list: bool) -> Any:
    opener = reading.text[start:start + 1]
    if opener not in ("{", "[") or reading.depth > 2 * MAX_DEPTH:
        raise _BadSpot(start)
    reading.depth += 1
    try:
        return _object(reading, path, in_list=in_list) if opener == "{" else _list(reading, path)
    finally:
        reading.depth -= 1


def _list(reading: _Reading, path: str) -> list[Any]:
    reading.at += 1
    found: list[Any] = []
    number = 0
    while (following := _skip(reading, _BETWEEN)) not in ("]", ""):
        where = f"{path}[{number}]"
        if following == "}" and not _step_over(reading, where, found):
            break
        number += 1
        try:
            found.append(_value(reading, where, in_list=True))
        except _BadSpot as spot:
            _lose(reading, where, spot.at)
            _leave_entry(reading, spot, found)
    _close(reading, following, "]")
    return found


def _step_over(reading: _Reading, where: str, before: list[Any]) -> bool:
    """Step over a stray brace in a list, right behind which another entry begins; whether there was one."""
    following = _STRAY.match(reading.text, reading.at)
    if following is None or not _is_entry(reading.text, following.end(), before):
        return False
    _lose(reading, where, reading.at)
    reading.at = following.end()
    return True


def _sibling(reading: _Reading, start: int, before: list[Any]) -> int | None:
    """Where the next entry begins that looks like the one before."""
    places = (found.end() for found in islice(_ENTRY.finditer(reading.text, start), _TRIES))
    return next((at for at in places if _is_entry(reading.text, at, before)), None)


def _is_entry(text: str, at: int, before: list[Any]) -> bool:
    """Whether a whole object begins here that has most of the keys of the entry before."""
    like = before[-1] if before else None
    if not isinstance(like, dict) or len(like) < 2:
        return False
    try:
        value, end = DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return False
    closed = _SPACE.match(text, end)
    following = text[closed.end():closed.end() + 1] if closed else ""
    return following in _ENDS and isinstance(value, dict) and 2 * len(value.keys() & like.keys()) > len(like)


def _object(reading: _Reading, path: str, *, in_list: bool) -> dict[str, Any]:
    """An object; damage in it is its list's to leave out, or where it is in none only a member is left out."""
    reading.at += 1
    found: dict[str, Any] = {}
    while (following := _skip(reading, _BETWEEN)) not in ("]", "}", ""):
        key = _KEY.match(reading.text, reading.at)
        name = str(DECODER.decode(key[1])) if key else ""
        where = f"{path}.{name or '?'}".lstrip(".")
        try:
            if key is None:
                raise _BadSpot(reading.at)
            reading.at = key.end()
            _skip(reading, _SPACE)
            found[name] = _value(reading, where, in_list=in_list)
        except _BadSpot as spot:
            if in_list:
                spot.depth += not spot.is_closed
                raise
            _lose(reading, where, spot.at)
            _leave_entry(reading, spot, [])
    if in_list and following != "}" and not reading.is_cut:
        raise _BadSpot(reading.at, is_closed=True)
    _close(reading, following, "}")
    return found


def _lose(reading: _Reading, where: str, at: int) -> None:
    is_cut = at >= len(reading.text) or not _has_more(reading.text, at)
    reading.is_cut = reading.is_cut or is_cut
    reading.losses.append(Loss(where, at, is_cut))


def _has_more(text: str, at: int) -> bool:
    """Whether anything is closed behind a bad spot: if not, the document was cut there."""
    return any(token[0] in "]}" for token in _TOKEN.finditer(text, at))


def _leave_entry(reading: _Reading, spot: _BadSpot, before: list[Any]) -> None:
    """Go on behind the entry that a bad spot is in: where its brackets end, or where another entry begins earlier."""
    end = _end_of_entry(reading.text, spot)
    following = _sibling(reading, spot.at, before)
    reading.at = following if following is not None and (following < end or spot.is_closed) else end


def _end_of_entry(text: str, spot: _BadSpot) -> int:
    depth = spot.depth
    for token in _TOKEN.finditer(text, spot.at):
        mark = token[0]
        if mark in ("]", "}") and depth == 0:
            return token.start()
        if mark == "," and depth == 0:
            return token.end()
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(mark, 0)
    return len(text)


def _close(reading: _Reading, following: str, own: str) -> None:
    """Step over the own bracket; another's means that the own one is missing."""
    if following == own:
        reading.at += 1
    elif not following and not reading.is_cut:
        reading.is_cut = True
        reading.losses.append(Loss("the end", reading.at, True))
