"""A summary as JSON, piece by piece: its trials are too many to be written at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from replay.commands.output import plain

_OPTIONS = orjson.OPT_INDENT_2
_LONG = "trials"
_MARK = b'"trials": []'


def pieces(summary: Mapping[str, Any]) -> Iterator[bytes]:
    """The text in pieces; joined they are the summary with an indentation of two."""
    text = orjson.dumps({**summary, _LONG: []}, option=_OPTIONS, default=plain)
    head, mark, tail = text.partition(b"\n  " + _MARK)
    yield head
    if summary[_LONG]:
        yield b'\n  "trials": ['
        for number, trial in enumerate(summary[_LONG]):
            item = orjson.dumps(trial, option=_OPTIONS, default=plain)
            yield (b",\n    " if number else b"\n    ") + item.replace(b"\n", b"\n    ")
        yield b"\n  ]"
    else:
        yield mark
    yield tail
