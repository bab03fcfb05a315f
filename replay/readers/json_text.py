"""Decoding one piece of JSON text, strictly first and then with stated repairs."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

_BAD_ESCAPE = re.compile(r'\\(?:u(?![0-9a-fA-F]{4})|[^"\\/bfnrtu])|(\\\\)')
_DECODER = json.JSONDecoder(strict=False)


class NotJson(ValueError):
    """The text cannot be read as JSON, repaired or not."""


def decode(raw: bytes) -> tuple[list[Any], tuple[str, ...]]:
    """Decode one line into its JSON values, with the codes of the repairs that were needed.

    One value is the rule; several mean that objects were glued together. Raises NotJson with the reason.
    """
    try:
        return [orjson.loads(raw)], ()
    except orjson.JSONDecodeError:
        return _decode_slowly(raw)


def _decode_slowly(raw: bytes) -> tuple[list[Any], tuple[str, ...]]:
    repairs: list[str] = []
    text = raw.decode("utf-8", "replace")
    if "�" in text and "\ufffd".encode() not in raw:
        repairs.append("bad-utf8")
    if "\x00" in text:
        text = text.replace("\x00", "")
        repairs.append("nul-bytes")
    for candidate, code in ((text, ""), (_double_bad_escapes(text), "bad-escape")):
        try:
            values = _all_values(candidate)
        except (ValueError, RecursionError) as error:
            reason = str(error)
            continue
        extra = [code] if code else []
        glued = ["glued-values"] if len(values) > 1 else []
        odd = [] if repairs or extra or glued else ["loose-json"]
        return values, (*repairs, *extra, *glued, *odd)
    raise NotJson(reason)


def _double_bad_escapes(text: str) -> str:
    return _BAD_ESCAPE.sub(lambda m: m[0] if m[1] else "\\" + m[0], text)


def _all_values(text: str) -> list[Any]:
    values, end, length = [], 0, len(text)
    while True:
        while end < length and text[end] in " \t\r\n":
            end += 1
        if end >= length:
            break
        value, end = _DECODER.raw_decode(text, end)
        values.append(value)
    if not values:
        raise ValueError("no JSON value")
    return values
