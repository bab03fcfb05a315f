"""Parts, requests and threads aside of a capture: what a request showed, in the terms of the log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from replay.blocks import Block, Text
from replay.readers.common import ThreadBuilder, whole
from replay.readers.native import mapping, string
from replay.readers.wire_items import Piece, response_blocks
from replay.readers.wire_sent import Part, Sent
from replay.transcript import Message, Origin, Step, Thread, Usage

_SCRIPTED = re.compile(r"\bStep (\d+): ")
_NUMBERED = re.compile(r"STUB SUMMARY NUMBER (\d+)")
_MARK = re.compile(r'[^\n"\\]{12,60}')
"""The beginning of a text that stays the same however a harness writes it into a summary request."""
OVERFLOW = ("overflow", "context_length_exceeded", None)
"""Errors of refused requests that were too long."""


def is_repeated(before: Part, part: Part) -> bool:
    """A result that stands twice in a row: Gemini CLI sends it so after it has loaded a session."""
    return part.role == before.role == "tool" and part.index == before.index is not None


def signature(parts: Sequence[Part]) -> list[tuple[int | None, str, str]]:
    """What of a view counts for whether it is the same."""
    return [(p.index, p.role, "" if p.kind == "log" else p.text) for p in parts]


def log_part(message: Message) -> Part:
    """A log message as it stands."""
    return Part(role=message.role, text=message.text, kind="log", index=message.index)


def new_part(piece: Piece, kind: Any, index: int | None = None) -> Part:
    """A piece of a request as a part."""
    return Part(role=piece.role, text=piece.text, kind=kind, index=index)


def recorded_part(part: Part, log: Sequence[Message]) -> int | Message:
    """A part as an entry of a recorded compaction's window."""
    if part.kind == "log" and part.index is not None:
        return part.index
    blocks: tuple[Block, ...] = (Text(text=part.text),)
    if part.index is not None and log[part.index].results:
        blocks = (replace(log[part.index].results[0], text=part.text),)
    origin: Origin = "summary" if part.kind == "summary" else "tool" if part.role == "tool" else "injected"
    return Message(index=-1, role=part.role, blocks=blocks, origin=origin)


def sent_request(request: Mapping[str, Any], found: Sequence[Piece], step: int, parts: tuple[Part, ...],
                 response: Mapping[str, Any]) -> Sent:
    """A request with what it showed."""
    text = "" if parts else "\n".join(p.text for p in found)
    told = whole(mapping(response.get("usage")).get("prompt"))
    native = {key: request.get(key) for key in ("endpoint", "request_bytes", "instructions", "tools", "params")}
    return Sent(number=whole(request.get("index")), kind="step", step=step, accepted=response.get("status") == 200,
                parts=parts, named=frozenset(map(int, _SCRIPTED.findall(text))),
                earlier=frozenset(map(int, _NUMBERED.findall(text))), answer=string(response.get("text")) or "",
                tokens=told or -(-whole(request.get("request_bytes")) // 4), native=MappingProxyType(native))


def side_thread(sent: Sent, found: Sequence[Piece], response: Mapping[str, Any]) -> Thread:
    """A summary request as a thread of its own, so that its cost is counted."""
    builder = ThreadBuilder(id=f"{sent.kind}-{sent.number}")
    for piece in found:
        origin: Origin = "system" if piece.role == "system" else "model" if piece.role == "assistant" else "injected"
        builder.add(piece.role, piece.blocks, origin)
    used = mapping(response.get("usage"))
    usage = Usage(input_uncached=whole(used.get("prompt")), output=whole(used.get("completion")))
    if sent.accepted:
        builder.respond(response_blocks(response), usage, request_id=str(sent.number))
    else:
        builder.fail(failure(response), request_id=str(sent.number))
    return builder.build()


def failure(response: Mapping[str, Any]) -> str:
    """Why a request got no answer."""
    error = string(response.get("error"))
    return "rejected: context length" if error in OVERFLOW else f"rejected: {error}"


def marks(steps: Iterable[Step], log: Sequence[Message]) -> dict[str, int]:
    """Beginnings of texts, each of which stands in the response or the results of one of these steps alone."""
    found: dict[str, int | None] = {}
    for step in steps:
        if step.response is None:
            continue
        for mark in set(_marks_of(step.response, log)):
            found[mark] = None if mark in found else step.number
    return {mark: number for mark, number in found.items() if number is not None}


def _marks_of(response: int, log: Sequence[Message]) -> Iterator[str]:
    """Of the response's text and of the results behind it."""
    for index in range(response, len(log)):
        if index > response and log[index].role != "tool":
            return
        mark = _MARK.match(log[index].text.strip())
        if mark:
            yield mark[0]
