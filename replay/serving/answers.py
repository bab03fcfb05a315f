"""What the endpoint answers, before a protocol gives it its form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from replay.blocks import ToolCall
from replay.transcript import Usage
from replay.writers.json_lines import json_bytes

NO_USAGE = Usage()
_PIECE_CHARS = 400
"""A streamed text comes in pieces of so many characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A recorded turn or a summary."""

    number: int
    """Of the request."""
    model: str
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A request that gets an error in the place of an answer."""

    status: int
    message: str
    code: str
    """`context_length_exceeded`, `rewindow_divergence` or `invalid_request`."""

    @property
    def is_overflow(self) -> bool:
        """Whether the request is said to be too long."""
        return self.code == OVERFLOW


OVERFLOW = "context_length_exceeded"
CREATED = 0
"""Seconds since the epoch of every answer, so that equal runs get equal bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Status and body of a response; `stream`: the body is server-sent events."""

    status: int
    body: bytes
    stream: bool = False
    headers: Mapping[str, str]


def text_pieces(text: str) -> Iterator[str]:
    """A text in the pieces in which it is streamed."""
    return (text[i:i + _PIECE_CHARS] for i in range(0, len(text), _PIECE_CHARS))


def event(data: Mapping[str, Any], name: str | None = None) -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return head.encode() + b"data: " + json_bytes(data) + b"\n\n"


def loads(body: bytes) -> dict[str, Any]:
    """The object that a body holds. Raises ValueError with what is wrong."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        value = _lenient(body)
    if not isinstance(value, dict):
        raise ValueError("the body is not a JSON object")
    return value


def _lenient(body: bytes) -> Any:
    """What orjson refuses but JavaScript writes: halves of surrogate pairs."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the body is not JSON: {error}") from error
