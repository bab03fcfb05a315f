"""What the endpoint reports as usage: by a rule that the user chose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from replay.blocks import Text, ToolCall
from replay.readers.common import json_text
from replay.readers.wire_items import ItemTable, Piece
from replay.serving.requests import Asked
from replay.tokens import TokenCounter, tokenizer
from replay.transcript import Message, Usage

UsageRule = Literal["counted", "bytes/4", "recorded"]
USAGE_RULES: tuple[UsageRule, ...] = get_args(UsageRule)
_BYTES = 4


@dataclass
class Meter:
    """Measures requests and answers in tokens.

    `counted`: tokens of the messages and tool schemas that were sent. `bytes/4`: a quarter of the body's bytes,
    rounded up. `recorded`: as the session has it for this step; a request without a recorded figure is counted.
    """

    rule: UsageRule
    items: ItemTable
    counter: TokenCounter = field(default_factory=lambda: TokenCounter(tokenizer()))
    _known: dict[int, int] = field(default_factory=dict)
    """Tokens of items; most of a request is the one before it."""
    _tools: dict[str, int] = field(default_factory=dict)

    def prompt(self, asked: Asked) -> int:
        """Tokens of a request, by the rule; for `recorded` as counted."""
        if self.rule == "bytes/4":
            return -(-asked.size // _BYTES)
        return sum(map(self._item, asked.ids)) + self._schemas(asked.parsed.tools)

    def usage(self, asked: Asked, text: str, calls: Sequence[ToolCall], recorded: Usage | None) -> Usage:
        """Usage of a request and its answer."""
        if self.rule == "recorded" and recorded is not None:
            return recorded
        return Usage(input_uncached=self.prompt(asked), output=_OUTPUT[self.rule](self, text, calls))

    def _item(self, number: int) -> int:
        if number not in self._known:
            self._known[number] = self._count(self.items.pieces([number]))
        return self._known[number]

    def _count(self, pieces: Sequence[Piece]) -> int:
        return sum(self.counter.tokens([Message(index=-1, role=p.role, blocks=p.blocks, origin="injected")
                                        for p in pieces]))

    def _schemas(self, tools: Sequence[object]) -> int:
        text = json_text(list(tools)) if tools else ""
        if text not in self._tools:
            self._tools[text] = self._count([Piece("system", (Text(text=text),), -1)]) if text else 0
        return self._tools[text]

    def counted_output(self, text: str, calls: Sequence[ToolCall]) -> int:
        """Tokens of an answer."""
        return self._count([Piece("assistant", (Text(text=text), *calls), -1)])


def _quarter(_: Meter, text: str, calls: Sequence[ToolCall]) -> int:
    answer = json_text([text, [[c.name, c.arguments] for c in calls]])
    return -(-len(answer.encode()) // _BYTES)


_OUTPUT: Mapping[str, Callable[[Meter, str, Sequence[ToolCall]], int]] = {
    "counted": Meter.counted_output, "recorded": Meter.counted_output, "bytes/4": _quarter}
