"""Phrases that a view may still hold, and how a text is searched for them: between boundaries, not as substrings.

A phrase grades a text: 0 it is not there, 1 its sense is (most of its words in one sentence), 2 it is, to the letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Protocol

from replay.blocks import Text, ToolCall, ToolResult
from replay.transcript import Message

WORD = re.compile(r"[a-z0-9_]{4,}")
"""Words as they are indexed: lower case, four characters or more; shorter ones are in most texts."""

_TOKEN = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_COMMON = frozenset((
    "a", "an", "and", "are", "as", "at", "be", "been", "being", "but", "by", "can", "could", "do", "does",
    "for", "from", "had", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "just", "let", "me",
    "my", "of", "on", "or", "our", "please", "so", "some", "such", "than", "that", "the", "their", "them",
    "then", "there", "these", "they", "this", "those", "to", "us", "was", "we", "were", "what", "when", "where",
    "which", "while", "who", "will", "with", "would", "you", "your", "also", "ok", "yes", "now"))
NEGATIONS = frozenset(("not", "never", "no", "avoid", "without", "forbidden", "prohibited", "cannot", "nor", "refrain"))


def searchable(message: Message) -> str:
    """The text of a message in which something can be found; reasoning is none of it, since it may be stripped."""
    return "\n".join(_block_texts(message))


def _block_texts(message: Message) -> Iterator[str]:
    for block in message.blocks:
        if isinstance(block, (Text, ToolResult)):
            yield block.text
        elif isinstance(block, ToolCall):
            # Line breaks and quotes are escaped in JSON; unescaped they separate words as they do for a reader.
            yield block.arguments.replace("\\n", "\n").replace('\\"', '"')


def flat(text: str) -> str:
    """Lower case with one space wherever there is white space."""
    return " ".join(text.lower().split())


def tokens(text: str) -> list[str]:
    """Words of a text in lower case; a contracted `not` is a word of its own."""
    return _TOKEN.findall(text.lower().replace("n't", " not").replace("n’t", " not"))


def content_words(text: str) -> frozenset[str]:
    """Words that carry meaning: no common ones, no negations, no single letters."""
    return frozenset(w for w in tokens(text) if (len(w) > 1 or w.isdigit()) and w not in _COMMON and w not in NEGATIONS)


def holds(text: str, phrase: str) -> bool:
    """Whether a text holds a phrase between boundaries: `$800` is not in `$8000`, in `$800.50` or in `x$800`."""
    start = text.find(phrase) if phrase else -1
    while start >= 0:
        if _bounded(text, start, start + len(phrase)):
            return True
        start = text.find(phrase, start + 1)
    return False


def _bounded(text: str, start: int, stop: int) -> bool:
    before = text[start - 1] if start else " "
    after, beyond = text[stop:stop + 1] or " ", text[stop + 1:stop + 2] or " "
    if is_word(before) and (is_word(text[start]) or text[start] in "$€£#@"):
        return False
    if is_word(after) and is_word(text[stop - 1]):
        return False
    grouped = text[stop - 1].isdigit() and after in ".," and beyond.isdigit()
    led = text[start].isdigit() and before in ".," and start > 1 and text[start - 2].isdigit()
    return not (grouped or led)


def is_word(char: str) -> bool:
    """Whether a character is part of a word."""
    return char.isalnum() or char == "_"


def enough(words: int) -> int:
    """Of so many content words the number that one sentence must hold to carry their sense: four fifths, rounded up."""
    return -(-4 * words // 5)


class Prepared:
    """A text with what several phrases ask of it, worked out once."""

    def __init__(self, text: str) -> None:
        """Nothing is worked out before it is asked for."""
        self.text = text
        self._tokens: dict[str, frozenset[str]] = {}

    @cached_property
    def flat(self) -> str:
        """The text on one line, in lower case."""
        return flat(self.text)

    @cached_property
    def sentences(self) -> list[str]:
        """Its sentences."""
        return [s for s in _SENTENCE.split(self.text) if s]

    @cached_property
    def _lowered(self) -> list[str]:
        return [s.lower() for s in self.sentences]

    def words_of_sentences(self, keys: frozenset[str]) -> Iterator[frozenset[str]]:
        """The words of each sentence in which one of the keys may stand; without keys of every sentence."""
        for sentence, lowered in zip(self.sentences, self._lowered, strict=True):
            if not keys or any(key in lowered for key in keys):
                if sentence not in self._tokens:
                    self._tokens[sentence] = frozenset(tokens(sentence))
                yield self._tokens[sentence]


class Phrase(Protocol):
    """Something that a view may still hold."""

    @property
    def keys(self) -> frozenset[str]:
        """Indexed words of which a text that holds the phrase has at least one; empty: every text is searched."""

    @property
    def indexed(self) -> frozenset[str]:
        """All indexed words that `fits` asks for."""

    @property
    def groups(self) -> Sequence[tuple[Sequence[str], int]]:
        """Words as spelled in the phrase, and how many of them a text of a log has that holds it; one group will do."""

    def fits(self, words: set[str], summary: bool) -> bool:
        """Whether a text with these of the indexed words can hold the phrase."""

    def grade(self, prepared: Prepared, summary: bool) -> int:
        """0 absent, 1 its sense, 2 to the letter. `summary`: the text speaks for messages that left."""


def spelled(words: Iterable[str], text: str) -> list[str]:
    """Lower-case words as a text spells them first."""
    spelling: dict[str, str] = {}
    for token in _TOKEN.findall(text):
        spelling.setdefault(token.lower(), token)
    return [spelling.get(word, word) for word in words]
