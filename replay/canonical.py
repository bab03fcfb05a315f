"""Canonical bytes and digests of messages, and the prefix chain that fingerprints a view.

A message's digest covers role and blocks: JSON with sorted keys, UTF-8, no Unicode normalisation; tool
call ids are replaced by the order of their first appearance, so a session with other ids has the same
fingerprints. Chain: h(0) = SHA-256 of a fixed salt, h(i) = SHA-256(h(i-1) + digest(i)).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from replay.blocks import Block, Image, Opaque, Reasoning, ToolCall, ToolResult
from replay.transcript import Message

CHAIN_START = hashlib.sha256(b"rewindow view chain 1").digest()


def digests(messages: Sequence[Message], ordinals: dict[str, int] | None = None) -> list[bytes]:
    """Digest of each message of a log; ids count by the order of their first appearance in it.

    `ordinals` is filled with that order, so that a message of the log can be digested in another form later.
    """
    names = {} if ordinals is None else ordinals
    return [digest(m, names) for m in messages]


def digest(message: Message, ordinals: dict[str, int] | None = None) -> bytes:
    """Digest of one message; `ordinals` carries the ids seen so far and is extended."""
    names = {} if ordinals is None else ordinals
    value = [message.role, [_canonical(b, names) for b in message.blocks]]
    try:
        raw = orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        raw = repr(value).encode("utf-8", "surrogatepass")
    return hashlib.sha256(raw).digest()


def link(chain: bytes, item: bytes) -> bytes:
    """The next value of a prefix chain."""
    return hashlib.sha256(chain + item).digest()


def chain_of(items: Iterable[bytes], start: bytes = CHAIN_START) -> bytes:
    """The last value of a chain over digests."""
    for item in items:
        start = link(start, item)
    return start


def _canonical(block: Block, ordinals: dict[str, int]) -> list[Any]:
    if isinstance(block, ToolCall):
        return ["call", ordinals.setdefault(block.id, len(ordinals)), block.name, plain_arguments(block.arguments)]
    if isinstance(block, ToolResult):
        images = [i.sha256 for i in block.images]
        return ["result", ordinals.setdefault(block.call_id, len(ordinals)), block.text, images]
    if isinstance(block, Image):
        return ["image", block.mime, block.sha256]
    if isinstance(block, Opaque):
        return ["opaque", block.label, block.size_bytes]
    return ["reasoning" if isinstance(block, Reasoning) else "text", block.text]


def plain_arguments(text: str) -> str:
    """JSON with sorted keys and no spaces, so that the same arguments read the same; other text as it stands."""
    try:
        return orjson.dumps(orjson.loads(text), option=orjson.OPT_SORT_KEYS).decode()
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        return text
