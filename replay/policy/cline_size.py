"""How Cline's SDK measures its history: by the JSON of the messages that it stores."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from replay.blocks import Block, Image, Reasoning, Text, ToolCall, ToolResult
from replay.policy.base import Moment, check
from replay.policy.estimators import Characters, Rounding
from replay.policy.estimators_json import json_length
from replay.transcript import Message

_CUT_OUT = re.compile(r"(?:\\n|\n){2}\.\.\.\[truncated (\d+) chars\]\.\.\.(?:\\n|\n){2}")
_TEXT_FRAME, _CALL_FRAME, _RESULT_FRAME = 23, 42, 56
"""Characters of keys and brackets around a text, a call and a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJson(Characters):
    """Tokens as characters of a stored message's JSON by three, rounded up for each message.

    Imitates Cline's SDK: ids, times and usage that it stores with a message count, a summary counts twice, because
    its metadata repeat it. `restores`: of a result that was truncated for the request the whole counts, as its
    marker tells.
    """

    divisor: int = 3
    rounding: Rounding = "ceil-each"
    prompt_frame: int = 129
    """Characters around a prompt's blocks: role, id, time, and the tag around what the person typed."""
    response_frame: int = 225
    """The same around a response's: model and usage besides."""
    tool_frame: int = 67
    """The same around results."""
    summary_frame: int = 300
    """The same around a summary: its metadata."""
    restores: bool = True

    def _chars(self, message: Message) -> int:
        if message.origin == "system" and not self.system:
            return 0
        if message.origin == "summary":
            return self.summary_frame + 2 * json_length(message.text)
        frames = {"assistant": self.response_frame, "tool": self.tool_frame}
        blocks = sum(self._stored(b) for b in message.blocks) + max(0, len(message.blocks) - 1)
        return frames.get(message.role, self.prompt_frame) + blocks

    def _stored(self, block: Block) -> int:
        if isinstance(block, Text):
            return _TEXT_FRAME + json_length(block.text)
        if isinstance(block, Reasoning):
            return _TEXT_FRAME + json_length(block.text) if "reasoning" in self.counts else 0
        if isinstance(block, ToolCall):
            return _CALL_FRAME + json_length(block.id) + json_length(block.name) + len(block.arguments)
        if isinstance(block, ToolResult):
            named = json_length(block.call_id) + json_length(block.name or "")
            return _RESULT_FRAME + named + self._content(block.text) + self.image_chars * len(block.images)
        return self.image_chars if isinstance(block, Image) else 0

    def _content(self, text: str) -> int:
        """A result that is JSON itself is stored as such, another as a string."""
        size = len(text) if text[:1] in ("[", "{") else json_length(text)
        found = _CUT_OUT.search(text) if self.restores else None
        return size if found is None else size - len(found[0]) + int(found[1][:9])


@dataclass(frozen=True, slots=True, kw_only=True)
class SentThenStored:
    """Until the first compaction the messages as they are sent, afterwards as they are stored.

    Imitates Cline's SDK: results are truncated for the request, which counts until a compaction took its place.
    """

    sent: StoredJson = field(default_factory=lambda: StoredJson(restores=False), metadata={"part": "estimator"})
    stored: StoredJson = field(default_factory=StoredJson, metadata={"part": "estimator"})

    def __post_init__(self) -> None:
        """Refuse estimators of another kind than the two forms need."""
        for name in ("sent", "stored"):
            check(self, name, isinstance(getattr(self, name), Characters), "an estimator")

    def words(self) -> str:
        """The measure in words."""
        return (f"the characters of the stored messages divided by {self.stored.divisor} (results as they are sent "
                "until the first compaction)")

    def tokens(self, moment: Moment) -> int:
        """Estimated tokens in the window."""
        ruler = self.stored if moment.compactions else self.sent
        return ruler.tokens(moment.log, moment.window)


CLINE_ESTIMATORS: Mapping[str, type] = {"stored-json": StoredJson}
"""Names for `use = …` in an estimator table."""
CLINE_MEASURES: Mapping[str, type] = {"sent-then-stored": SentThenStored}
"""Names for `use = …` in a measure table."""
