"""JSON text that strict decoders refuse: what may be put right before it is decoded, and a lenient decoder."""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple

_BAD_ESCAPE = re.compile(r'((?:[^\\]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})++)|\\')
"""A run without invalid escapes, or a backslash that begins none."""
_SURROGATE = re.compile(r"(\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
                        r"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_NESTING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[{]|[\]}]', re.DOTALL)
_EDGES = "".join(map(chr, range(33))) + "\ufeff\x7f"
"""What may stand around a record: white space, control characters, byte-order marks of files joined together."""
_OPENING = re.compile(r"[{\[]\s*[\"{\[\]}\d-]")
_LOST = "�"
MAX_DEPTH = 100
"""Levels of nesting that are kept as structure where a value is too deep for the decoder."""


class NotJson(ValueError):
    """The text cannot be read as JSON, repaired or not."""


class Repair(NamedTuple):
    """What had to be done to read a piece of text: the code of its note and its words."""

    code: str
    text: str


LENIENT = Repair("loose-json", "raw control characters, NaN or numbers out of range were read leniently")


def cleaned(raw: bytes) -> tuple[str, list[Repair]]:
    """Bytes as text without what no JSON text can hold, and the repairs made."""
    if raw.count(0) * 4 >= len(raw) and (text := _from_utf16(raw)):
        return text, [Repair("encoding", "UTF-16 within a file of another encoding was read as such")]
    text = raw.decode("utf-8", "replace")
    repairs: list[Repair] = []
    if lost := text.count(_LOST) - raw.count(_LOST.encode()):
        repairs.append(Repair("bad-utf8", f"bytes that are not UTF-8 were replaced x {lost}"))
    if "\x00" in text:
        repairs.append(Repair("nul-bytes", f"NUL bytes were dropped x {text.count(chr(0))}"))
        text = text.replace("\x00", "")
    bare = text.strip(" \t\r\n")
    text = bare.strip(_EDGES)
    if text and text != bare:
        repairs.append(Repair("loose-json", "control characters or byte-order marks around the record were dropped"))
    if "\\u" in text and (fixed := _SURROGATE.sub(lambda m: m[0] if m[1] else "\\ufffd", text)) != text:
        repairs.append(Repair("lone-surrogate", "halves of surrogate pairs were replaced"))
        text = fixed
    return text, repairs


def _from_utf16(raw: bytes) -> str:
    """A line of UTF-16, perhaps with half of a line break at its edges; empty where it is none."""
    for encoding in ("utf-16-le", "utf-16-be"):
        for begin in (0, 1):
            piece = raw[begin:len(raw) - (len(raw) - begin) % 2]
            try:
                text = piece.decode(encoding).strip(_EDGES)
            except UnicodeDecodeError:
                continue
            if _OPENING.match(text):
                return text
    return ""


def escaped(text: str) -> str:
    """The text with each backslash doubled that begins no JSON escape."""
    return _BAD_ESCAPE.sub(lambda m: m[1] or "\\\\", text) if "\\" in text else text


def reason_of(error: ValueError) -> str:
    """Why a text is not JSON, with the place in it."""
    if isinstance(error, json.JSONDecodeError):
        words = error.msg.removesuffix(" at")
        return f"{words[:1].lower()}{words[1:]} at character {error.pos + 1}"
    return str(error)


def all_values(text: str) -> tuple[list[Any], list[Repair]]:
    """The JSON values that a text consists of. Raises ValueError at the first place that is none."""
    values, end = [], 0
    while end < len(text):
        value, end = DECODER.raw_decode(text, end)
        values.append(value)
        while end < len(text) and text[end] in " \t\r\n":
            end += 1
    if len(values) == 1:
        return values, []
    if not all(isinstance(value, (dict, list)) for value in values) or not values:
        raise ValueError("no record in it")
    return values, [Repair("glued-values", "several JSON values stood on one line; each was read")]


def shallow(text: str, limit: int = MAX_DEPTH) -> str:
    """JSON text in which every value nested deeper than the limit is a string that holds its text."""
    parts: list[str] = []
    depth = done = start = 0
    for token in _NESTING.finditer(text):
        if token[0] in "[{":
            depth += 1
            if depth == limit + 1:
                start = token.start()
        elif token[0] in "]}":
            if depth == limit + 1:
                parts += [text[done:start], json.dumps(text[start:token.end()], ensure_ascii=False)]
                done = token.end()
            depth = max(0, depth - 1)
    if depth > limit:
        return "".join([*parts, text[done:start], json.dumps(text[start:], ensure_ascii=False)])
    return "".join([*parts, text[done:]])


def flattened(value: Any, limit: int = MAX_DEPTH) -> bool:
    """Turn, in place, what is nested deeper than the limit into its JSON text; whether there was any."""
    found = False
    queue = [(value, 1)]
    while queue:
        holder, depth = queue.pop()
        for key, inner in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            if not isinstance(inner, (dict, list)):
                continue
            if depth < limit:
                queue.append((inner, depth + 1))
            else:
                holder[key], found = _written(inner), True
    return found


def _written(value: Any) -> str:
    """JSON text of a value of any depth."""
    parts: list[str] = []
    stack: list[Any] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, _Mark):
            parts.append(item)
        elif isinstance(item, dict):
            inside = [x for key, inner in item.items() for x in (_Mark(f"{json.dumps(key)}:"), inner, _Mark(","))]
            stack += [_Mark("}"), *reversed(inside[:-1]), _Mark("{")]
        elif isinstance(item, list):
            inside = [x for inner in item for x in (inner, _Mark(","))]
            stack += [_Mark("]"), *reversed(inside[:-1]), _Mark("[")]
        else:
            parts.append(json.dumps(item, ensure_ascii=False))
    return "".join(parts)


class _Mark(str):
    """Text between the values that are still to be written."""

    __slots__ = ()


def _nothing(_: str) -> None:
    """NaN and Infinity, which JSON does not have."""


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _whole(text: str) -> int | float | None:
    value = int(text) if len(text) <= 20 else 1 << 64
    return value if -(1 << 63) <= value < 1 << 64 else _finite(text)


DECODER = json.JSONDecoder(strict=False, parse_constant=_nothing, parse_float=_finite, parse_int=_whole)
"""Takes raw control characters; gives null for numbers that are none or that no float can hold."""
