"""Log messages as the pieces of provider dictionaries, and what own code made back into messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import orjson

from replay.blocks import Block, Text, ToolResult
from replay.own.base import Native, NativeShape
from replay.readers.common import json_text
from replay.readers.openai_chat_blocks import Pairing, assistant_blocks, content_blocks
from replay.transcript import Message, Origin, Role
from replay.view import anthropic_messages, openai_messages

_ORIGINS: dict[str, Origin] = {"assistant": "model", "tool": "tool", "system": "system", "developer": "system"}


class Piece(NamedTuple):
    """The smallest part that code can keep or change: an OpenAI message, or a block of an Anthropic one."""

    role: str
    native: Native
    key: bytes
    """Equal for equal pieces."""


def shaped(message: Message, shape: NativeShape) -> list[Native]:
    """A log message in a provider's shape."""
    return list(openai_messages(message)) if shape == "openai" else anthropic_messages([message])


def joined(natives: Sequence[Native], shape: NativeShape) -> list[Native]:
    """Messages as a provider takes them: Anthropic's neighbours of one role are one message."""
    if shape == "openai":
        return list(natives)
    merged: list[Native] = []
    for native in natives:
        if merged and merged[-1]["role"] == native["role"]:
            merged[-1]["content"] = [*_parts(merged[-1]), *_parts(native)]
        else:
            merged.append(dict(native))
    return merged


def pieces_of(native: Native, shape: NativeShape) -> Iterator[Piece]:
    """The pieces of one dictionary. Raises TypeError for content that JSON does not hold."""
    role = str(native["role"])
    for part in [native] if shape == "openai" else _parts(native):
        yield Piece(role, part, orjson.dumps([role, part], option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS))


def _parts(native: Native) -> list[Native]:
    content = native.get("content")
    listed = content if isinstance(content, list) else [] if content is None else [content]
    return [part if isinstance(part, dict) else {"type": "text", "text": str(part)} for part in listed]


def call_ids(piece: Piece) -> Iterator[str]:
    """The ids of the calls that a piece makes or answers."""
    native = piece.native
    for name in ("tool_call_id", "tool_use_id"):
        if isinstance(native.get(name), str):
            yield native[name]
    if native.get("type") == "tool_use":
        yield str(native.get("id"))
    listed = native.get("tool_calls")
    for call in listed if isinstance(listed, list) else ():
        if isinstance(call, dict):
            yield str(call.get("id"))


def text_of(piece: Piece) -> str:
    """The plain text of a piece."""
    content = piece.native.get("content") if "role" in piece.native else piece.native
    return "\n".join(b.text for b in content_blocks(content, Pairing()) if isinstance(b, (Text, ToolResult)))


def message_of(pieces: Sequence[Piece]) -> Message:
    """Pieces that own code made or changed as one message."""
    role = pieces[0].role
    blocks = tuple(block for piece in pieces for block in _blocks(piece))
    plain: Role = role if role in ("system", "developer", "user", "assistant", "tool") else "user"  # type: ignore[assignment]
    origin: Origin = "tool" if any(isinstance(b, ToolResult) for b in blocks) else _ORIGINS.get(role, "injected")
    return Message(index=-1, role=plain, blocks=blocks, origin=origin)


def _blocks(piece: Piece) -> list[Block]:
    native = piece.native
    if "role" not in native:
        return content_blocks([native], Pairing())
    if native["role"] == "tool":
        return [ToolResult(call_id=str(native.get("tool_call_id") or ""), text=_plain(native.get("content")))]
    if native["role"] == "assistant":
        return assistant_blocks(native, Pairing())
    return content_blocks(native.get("content"), Pairing())


def _plain(content: Any) -> str:
    if isinstance(content, str):
        return content
    texts = [b.text for b in content_blocks(content, Pairing()) if isinstance(b, Text)]
    return "\n".join(texts) if texts else json_text(content)
