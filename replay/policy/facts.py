"""Facts that stand in a log, found without a model: what an extractive summary is made of."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from replay.blocks import Text, ToolCall, ToolResult
from replay.log import Log
from replay.transcript import Message

Topic = Literal["goal", "constraint", "done", "file", "decision", "error", "next"]
TOPICS: tuple[Topic, ...] = ("goal", "constraint", "done", "file", "decision", "error", "next")

_RULE = re.compile(r"\b(must|never|always|do not|don't|only|prefer|avoid|make sure|required?)\b", re.IGNORECASE)
_CHOICE = re.compile(r"\b(decided|because|instead of|chose|going with|the (?:root )?cause|turns out)\b", re.IGNORECASE)
_PLAN = re.compile(r"\b(next|now I(?:'ll| will)|remaining|still need|then I(?:'ll| will))\b", re.IGNORECASE)
_RULE_HINTS = ("must", "never", "always", "do not", "don't", "only", "prefer", "avoid", "make sure", "require")
_HINTS = ("decided", "because", "instead of", "chose", "going with", "cause", "turns out", "next", "now i", "remaining",
          "still need", "then i")
"""Words without which the patterns cannot match: most texts hold none, and looking for them is quick."""
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_TARGET_KEYS = ("file_path", "path", "filePath", "filename", "notebook_path")
_COMMAND_KEYS = ("command", "cmd")
_LONGEST = 240
_SCANNED_CHARS = 4_000
_SCANNED_FACTS = 120
"""Newest facts of a topic that a summary looks at, so that its cost does not grow with the session."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One line that a summary may hold, with the log index it was found at."""

    topic: Topic
    text: str
    index: int


class FactBook:
    """The facts of a log by topic; messages are scanned once, when they are first asked for."""

    def __init__(self, log: Log) -> None:
        """Start with nothing scanned."""
        self._log = log
        self._scanned = 0
        self._facts: dict[Topic, list[Fact]] = {topic: [] for topic in TOPICS}
        self._indices: dict[Topic, list[int]] = {topic: [] for topic in TOPICS}
        self.latest: tuple[object, str] | None = None
        """The last summary made from this book with what asked for it: harnesses in a no-gain loop ask again."""

    def between(self, topic: Topic, start: int, stop: int) -> list[Fact]:
        """The newest facts of a topic from log messages `[start, stop)`, oldest first, without repeats."""
        self._scan(stop)
        low, high = bisect_left(self._indices[topic], start), bisect_left(self._indices[topic], stop)
        recent = self._facts[topic][max(low, high - _SCANNED_FACTS):high]
        return list({fact.text: fact for fact in reversed(recent)}.values())[::-1]

    def first_goal(self, start: int, stop: int) -> Fact | None:
        """The oldest human prompt in `[start, stop)`."""
        self._scan(stop)
        position = bisect_left(self._indices["goal"], start)
        facts = self._facts["goal"]
        return facts[position] if position < len(facts) and facts[position].index < stop else None

    def _scan(self, stop: int) -> None:
        while self._scanned < stop:
            for fact in _facts_of(self._log.messages[self._scanned]):
                self._facts[fact.topic].append(fact)
                self._indices[fact.topic].append(fact.index)
            self._scanned += 1


_BOOKS: dict[int, tuple[Log, FactBook]] = {}


def fact_book(log: Log) -> FactBook:
    """The fact book of a log; only the latest few logs keep theirs."""
    known = _BOOKS.get(id(log))
    if known is not None and known[0] is log:
        return known[1]
    if len(_BOOKS) >= 4:
        _BOOKS.clear()
    book = FactBook(log)
    _BOOKS[id(log)] = (log, book)
    return book


def _facts_of(message: Message) -> Iterator[Fact]:
    for block in message.blocks:
        if isinstance(block, Text):
            yield from _text_facts(message, block.text[:_SCANNED_CHARS])
        elif isinstance(block, ToolCall):
            yield from _call_facts(message, block)
        elif isinstance(block, ToolResult) and block.is_error:
            yield Fact("error", _clip(_first_line(block.text)), message.index)


def _text_facts(message: Message, text: str) -> Iterator[Fact]:
    if message.origin in ("human", "nudge"):
        yield Fact("goal", _clip(" ".join(text.split())), message.index)
    low = text.lower()
    if not any(hint in low for hint in (_HINTS if message.role == "assistant" else _RULE_HINTS)):
        return
    for sentence in filter(None, map(str.strip, _SENTENCE.split(text))):
        topic = _topic(message, sentence)
        if topic is not None:
            yield Fact(topic, _clip(sentence), message.index)


def _topic(message: Message, sentence: str) -> Topic | None:
    if message.role != "assistant":
        return "constraint" if message.origin == "human" and _RULE.search(sentence) else None
    if _CHOICE.search(sentence):
        return "decision"
    return "next" if _PLAN.search(sentence) else None


def _call_facts(message: Message, call: ToolCall) -> Iterator[Fact]:
    arguments = call.mapping
    for key in _TARGET_KEYS:
        if isinstance(arguments.get(key), str):
            yield Fact("file", _clip(f"{call.name} {arguments[key]}"), message.index)
            return
    for key in _COMMAND_KEYS:
        if arguments.get(key):
            yield Fact("done", _clip(f"{call.name}: {_first_line(str(arguments[key]))}"), message.index)
            return


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def _clip(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
