"""Tokens as bytes divided by four: no vocabulary, the rule of a scripted endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from replay.blocks import Block, Reasoning, Text, ToolCall, ToolResult
from replay.transcript import Message

BYTES_PER_TOKEN = 4


@dataclass(frozen=True)
class ByteCounter:
    """Counts a message as the UTF-8 bytes of its texts, names and arguments divided by four, rounded up."""

    name: str = "bytes/4"

    def tokens(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of each message, in order."""
        return [-(-sum(map(_bytes, m.blocks)) // BYTES_PER_TOKEN) for m in messages]


def _bytes(block: Block) -> int:
    if isinstance(block, ToolCall):
        return len((block.name + block.arguments).encode("utf-8", "replace"))
    if isinstance(block, (Text, Reasoning, ToolResult)):
        return len(block.text.encode("utf-8", "replace"))
    return block.size_bytes
