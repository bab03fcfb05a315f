"""Where in a session's log each word and each span stands; built once for a session and shared by all policies."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from evals.spans import TextSpan
from evals.spans_calls import text_of
from evals.spans_match import holder, is_path, key_words, words_of
from evals.spans_paths import PathIndex, names_bare, path_parts
from replay.blocks import Block, Reasoning, Text, ToolCall, ToolResult
from replay.transcript import Message

Source = Literal["user", "tool", "assistant", "injected"]
_FEW = 4
"""Blocks that are searched at once, without narrowing them down."""
SOURCES: tuple[Source, ...] = ("user", "tool", "assistant", "injected")


@dataclass(frozen=True, slots=True)
class Unit:
    """One block of the log, with what it says as text."""

    message: int
    """Log index."""
    block: Block
    source: Source
    text: str


class UnitIndex:
    """The blocks of a log in order, and for every word the blocks that hold it. Blocks are numbered from 0."""

    def __init__(self, messages: Sequence[Message]) -> None:
        """Read every block once."""
        self.units = [Unit(m.index, b, source_of(m, b), block_text(b)) for m in messages for b in m.blocks]
        owners = np.fromiter((u.message for u in self.units), np.int64, len(self.units))
        self.first_unit: list[int] = np.searchsorted(owners, np.arange(len(messages) + 1)).tolist()
        """For each message its first block; one more entry for the end."""
        self._located: dict[TextSpan, list[int]] = {}
        self._number, self._starts, self._holders = _postings([u.text for u in self.units])

    def __len__(self) -> int:
        return len(self.units)

    def holders(self, word: str) -> NDArray[Any]:
        """Blocks that hold a word, in order."""
        number = self._number.get(word)
        if number is None:
            return self._holders[:0]
        return self._holders[self._starts[number]:self._starts[number + 1]]

    def frequency(self, word: str) -> int:
        """Number of blocks that hold a word."""
        number = self._number.get(word)
        return 0 if number is None else self._starts[number + 1] - self._starts[number]

    def locate(self, span: TextSpan) -> list[int]:
        """Blocks that hold a span, in order."""
        known = self._located.get(span)
        if known is None:
            known = self._located[span] = self._locate(span)
        return known

    def _locate(self, span: TextSpan) -> list[int]:
        if is_path(span):
            name, places = path_parts(span.text)[-1], self.quick_places(span)
            return self._paths.holders(span.text, lambda u: names_bare(self.units[u].text, name), places)
        places = self.quick_places(span)
        if span.kind == "identifier" and self.frequency(span.text) == len(places):
            return places
        tell = holder(span)
        return [u for u in places if tell(self.units[u].text)]

    @cached_property
    def _paths(self) -> PathIndex:
        return PathIndex(u.text for u in self.units)

    def quick_places(self, span: TextSpan) -> list[int]:
        """Blocks that may hold a span, in order: those that hold its two rarest words."""
        words = sorted(dict.fromkeys(key_words(span)), key=self.frequency)
        if not words or not self.frequency(words[0]):
            return []
        places: list[int] = self.holders(words[0]).tolist()
        if len(words) == 1 or len(places) < _FEW:
            return places
        others = set(self.holders(words[1]).tolist())
        return [u for u in places if u in others]

    def rarest(self, span: TextSpan) -> str | None:
        """The rarest word of a span; None where a word of it occurs nowhere or it has none."""
        words = key_words(span)
        if not words:
            return None
        rarest = min(words, key=self.frequency)
        return rarest if self.frequency(rarest) else None


def _postings(texts: Sequence[str]) -> tuple[dict[str, int], list[int], NDArray[Any]]:
    """Words to numbers, and for each number the texts that hold it as one slice of an array."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    number_of = numbers.__getitem__
    held = [array("I", map(number_of, set(words_of(text)))) for text in texts]
    owners = np.repeat(np.arange(len(held), dtype=np.int64), [len(h) for h in held])
    words = np.frombuffer(b"".join(held), dtype=np.uint32)
    starts = np.concatenate(([0], np.cumsum(np.bincount(words, minlength=len(numbers)))))
    return dict(numbers), starts.tolist(), owners[np.argsort(words, kind="stable")]


def block_text(block: Block) -> str:
    """What a block says: of a call the values of its arguments, of a result in a JSON envelope what is inside."""
    if isinstance(block, ToolCall):
        return text_of(block.parsed)
    if isinstance(block, ToolResult):
        return _unwrapped(block.text)
    return block.text if isinstance(block, (Text, Reasoning)) else ""


def _unwrapped(text: str) -> str:
    if not (text.startswith("{") and text.endswith("}") and "\\n" in text):
        return text
    try:
        return text_of(orjson.loads(text))
    except orjson.JSONDecodeError:
        return text


def source_of(message: Message, block: Block) -> Source:
    """Whose words a block of the log is."""
    if isinstance(block, ToolResult) or message.role == "tool":
        return "tool"
    if message.role == "assistant":
        return "assistant"
    return "user" if message.origin in ("human", "nudge") else "injected"
