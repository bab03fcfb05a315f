"""Tokens of whole messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from replay.blocks import Block, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from replay.tokens.bpe import Tokenizer
from replay.transcript import Message

IMAGE_TOKENS = 1_600
"""Counted for an image, whose real cost depends on its pixels, which transcripts do not keep."""
BYTES_PER_OPAQUE_TOKEN = 4
SIGNATURE_BYTES = 400
"""Of what is sealed with a piece of reasoning so much is signature; the rest is the reasoning itself, which the
readable text may only sum up: the larger of both counts. With it real sessions are billed as counted."""


class MessageCounter(Protocol):
    """Counts the tokens of messages."""

    @property
    def name(self) -> str:
        """The name that results carry."""

    def tokens(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of each message, in order."""


@dataclass(frozen=True)
class TokenCounter:
    """Counts messages with a vocabulary: text, reasoning, call names and arguments, results, images.

    What cannot be read (images, sealed reasoning, opaque items) counts by its size.
    """

    tokenizer: Tokenizer

    @property
    def name(self) -> str:
        """The vocabulary's name."""
        return self.tokenizer.name

    def tokens(self, messages: Sequence[Message]) -> list[int]:
        """Tokens of each message, in order; every distinct text is counted once."""
        self.tokenizer.learn(text for m in messages for b in m.blocks for text in texts(b))
        return [sum(map(self._block, m.blocks)) for m in messages]

    def _block(self, block: Block) -> int:
        counted = sum(self.tokenizer.count(text) for text in texts(block))
        if isinstance(block, ToolResult):
            return counted + IMAGE_TOKENS * len(block.images)
        if isinstance(block, Image):
            return IMAGE_TOKENS
        if isinstance(block, Opaque):
            return block.size_bytes // BYTES_PER_OPAQUE_TOKEN
        if isinstance(block, Reasoning):
            sealed = max(0, block.opaque_bytes - SIGNATURE_BYTES) // BYTES_PER_OPAQUE_TOKEN
            return max(counted, sealed)
        return counted


def texts(block: Block) -> Iterator[str]:
    """The texts of a block that are counted; none for what is counted by its size."""
    if isinstance(block, (Text, ToolResult, Reasoning)):
        yield block.text
    elif isinstance(block, ToolCall):
        yield block.name
        yield block.arguments
