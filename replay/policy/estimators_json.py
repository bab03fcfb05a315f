"""An estimator for harnesses that measure a message by its JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from json.encoder import encode_basestring

from replay.blocks import Block, Image, Reasoning, Text, ToolCall, ToolResult
from replay.policy.base import check
from replay.policy.estimators import Characters
from replay.transcript import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonCharacters(Characters):
    """Tokens as characters of a message's JSON, texts escaped, divided by a constant.

    The frames are the characters of the keys and brackets around a message and around each of its blocks, without
    role, ids, names and texts, which are measured. Non-ASCII characters stay as they are, as in JavaScript.
    Imitates OpenCode (messages of the AI SDK) and Gemini CLI and Qwen Code (contents).
    """

    message_frame: int = 24
    text_frame: int = 23
    call_frame: int = 53
    result_frame: int = 82

    def __post_init__(self) -> None:
        """Refuse negative numbers."""
        check(self, "divisor", self.divisor > 0, "a positive number")
        for name in ("message_frame", "text_frame", "call_frame", "result_frame"):
            check(self, name, getattr(self, name) >= 0, "0 or more characters")

    def _chars(self, message: Message) -> int:
        if message.origin == "system" and not self.system:
            return 0
        blocks = sum(self._json_chars(b) for b in message.blocks)
        return self.message_frame + len(message.role) + blocks + max(0, len(message.blocks) - 1)

    def _json_chars(self, block: Block) -> int:
        if isinstance(block, Text):
            return self.text_frame + json_length(block.text)
        if isinstance(block, Reasoning):
            return self.text_frame + json_length(block.text) if "reasoning" in self.counts else 0
        if isinstance(block, ToolCall):
            return self.call_frame + json_length(block.id) + json_length(block.name) + len(block.arguments)
        if isinstance(block, ToolResult):
            return self._result(block)
        return self.image_chars if isinstance(block, Image) else 0

    def _result(self, block: ToolResult) -> int:
        named = json_length(block.call_id) + json_length(block.name or "")
        return self.result_frame + named + json_length(block.text) + self.image_chars * len(block.images)


def json_length(text: str) -> int:
    """Characters of a text as a JSON string, quotes included."""
    return len(encode_basestring(text))


JSON_ESTIMATORS: Mapping[str, type] = {"json": JsonCharacters}
"""Names for `use = …` in an estimator table."""
