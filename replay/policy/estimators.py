"""Character estimators: what harnesses use where they do not have a tokenizer at hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from replay.blocks import Block, Image, Reasoning, Text, ToolCall, ToolResult
from replay.log import Log, same_request
from replay.policy.base import check
from replay.transcript import Message
from replay.window import Window

Rounding = Literal["floor-total", "floor-each", "ceil-each"]
Counted = Literal["text", "reasoning", "result", "result-name", "call-name", "arguments", "arguments-repr", "call-list",
                  "call-repr", "result-id", "role"]
"""What of a message has characters: text and results as they stand; a call's name, its arguments as JSON
(`arguments`) or as Python prints them (`arguments-repr`), the JSON list of all calls (`call-list`), or
that list as Python prints LangChain's form of it (`call-repr`); the id that a result answers (`result-id`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Characters:
    """Tokens as characters divided by a constant.

    `rounding` says where the division is rounded: once over all characters (`floor-total`), or for each
    message (`floor-each`, `ceil-each`). `counts` says which parts of a message have characters.
    """

    divisor: int = 4
    rounding: Rounding = "ceil-each"
    counts: tuple[Counted, ...] = ("text", "reasoning", "result", "call-name", "arguments")
    image_chars: int = 0
    result_image_chars: int | None = None
    """Characters of an image in a tool result, where they differ from those of another."""
    utf16: bool = False
    """Lengths as JavaScript counts them: a character beyond the basic plane counts twice."""
    overhead: int = 0
    """Tokens added for each message (only with rounding for each)."""
    unit: Literal["message", "request"] = "message"
    """`request`: what stands between two responses is one message, as pydantic-ai keeps it."""
    system: bool = True
    """System messages of the log count (False: the harness keeps them outside of what it measures)."""
    unmeasured_frame: str = ""
    """Text in front of a summary that the harness adds to the request alone, after it has measured."""
    unmeasured_end: str = ""
    """The same for text behind it."""

    def __post_init__(self) -> None:
        """Refuse what cannot be divided by."""
        check(self, "divisor", self.divisor > 0, "a positive number")

    @property
    def apart(self) -> bool:
        """Whether a message weighs the same whatever stands around it."""
        return self.unit == "message"

    def weights(self, messages: Sequence[Message]) -> list[int]:
        """Characters of each message (floor-total), or tokens of each (rounding for each)."""
        chars = [self._chars(m) for m in messages]
        if self.rounding == "floor-total":
            return chars
        if self.unit == "message":
            return [self._rounded(c) + self.overhead for c in chars]
        return list(self._by_request(messages, chars))

    def tokens(self, log: Log, window: Window, extra_chars: int = 0) -> int:
        """Estimated tokens of a window and `extra_chars` of text that is not in it."""
        size = log.size(window, self)
        if self.rounding == "floor-total":
            return (size + extra_chars) // self.divisor
        return size + extra_chars // self.divisor

    def tokens_of(self, log: Log, start: int, stop: int) -> int:
        """Estimated tokens of the log messages `[start, stop)` as they came in."""
        sums = log.sums(self)
        size = sums[stop] - sums[start]
        return size // self.divisor if self.rounding == "floor-total" else size

    def _rounded(self, chars: int) -> int:
        return chars // self.divisor if self.rounding == "floor-each" else -(-chars // self.divisor)

    def _by_request(self, messages: Sequence[Message], chars: list[int]) -> Iterator[int]:
        """Each message weighs what it adds to its request, so that a request is rounded once, whole or in part."""
        total = 0
        for i, more in enumerate(chars):
            if i and same_request(messages[i - 1], messages[i]):
                yield self._rounded(total + more) - self._rounded(total)
                total += more
            else:
                yield self._rounded(more) + self.overhead
                total = more

    def _chars(self, message: Message) -> int:
        if message.origin == "system" and not self.system:
            return 0
        total = sum(self._block_chars(b) for b in message.blocks)
        if "call-list" in self.counts and message.calls:
            total += len(json.dumps([_plain_call(c) for c in message.calls], ensure_ascii=False))
        if "call-repr" in self.counts and message.calls:
            total += len(repr([_langchain_call(c) for c in message.calls]))
        if message.origin == "summary" and message.text.startswith(self.unmeasured_frame):
            total -= len(self.unmeasured_frame) + len(self.unmeasured_end)
        return total + (len(message.role) if "role" in self.counts else 0)

    def _block_chars(self, block: Block) -> int:
        if isinstance(block, Text):
            return self._length(block.text) if "text" in self.counts else 0
        if isinstance(block, Reasoning):
            return self._length(block.text) if "reasoning" in self.counts else 0
        if isinstance(block, ToolCall):
            beyond = self._length(block.arguments) - len(block.arguments) if "arguments" in self.counts else 0
            return beyond + sum(_CALL_CHARS[name](block) for name in self.counts if name in _CALL_CHARS)
        if isinstance(block, ToolResult):
            return self._result_chars(block)
        return self.image_chars if isinstance(block, Image) else 0

    def _result_chars(self, block: ToolResult) -> int:
        name = len(block.name or "") if "result-name" in self.counts else 0
        name += len(block.call_id) if "result-id" in self.counts else 0
        image = self.image_chars if self.result_image_chars is None else self.result_image_chars
        return name + (self._length(block.text) if "result" in self.counts else 0) + image * len(block.images)

    def _length(self, text: str) -> int:
        if not self.utf16 or text.isascii():
            return len(text)
        return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _plain_call(call: ToolCall) -> dict[str, object]:
    """A call as MyCodeAgent keeps it in a message's metadata."""
    return {"id": call.id, "name": call.name, "arguments": call.parsed if call.is_object else call.arguments}


def _langchain_call(call: ToolCall) -> dict[str, object]:
    """A call as LangChain keeps it in an AIMessage."""
    return {"name": call.name, "args": dict(call.mapping), "id": call.id, "type": "tool_call"}


def _repr_chars(call: ToolCall) -> int:
    """Characters of the arguments as Python prints them, where they were stored as an object."""
    return len(str(call.parsed)) if call.is_object else len(call.arguments)


_CALL_CHARS: Mapping[str, Callable[[ToolCall], int]] = {
    "call-name": lambda call: len(call.name),
    "arguments": lambda call: len(call.arguments),
    "arguments-repr": _repr_chars,
}


ESTIMATORS: Mapping[str, type] = {"characters": Characters}
"""Names for `use = …` in an estimator table."""
