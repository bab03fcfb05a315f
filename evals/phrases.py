"""Phrases that a view may still hold, and how a text is searched for them: at word boundaries, never as bare substrings.

A phrase grades a text: 0 it is not there, 1 its sense is (most of its words in one sentence), 2 it is there to the letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from replay.blocks import Text, ToolCall, ToolResult
from replay.transcript import Message

WORD = re.compile(r"[a-z0-9_]{4,}")
"""Words as they are indexed: lower case, four characters or more; shorter ones are in most texts."""

_TOKEN = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_IN_PATH = frozenset("./@+~\\-")
_COMMON = frozenset("""
a an and are as at be been being but by can could do does for from had has have how i if in into is it its just let me
my of on or our please so some such than that the their them then there these they this those to us was we were what
when where which while who will with would you your also ok yes now
""".split())
NEGATIONS = frozenset(("not", "never", "no", "avoid", "without", "forbidden", "prohibited", "cannot", "nor", "refrain"))


def searchable(message: Message) -> str:
    """The text of a message that a reader of the view could find something in; reasoning may be stripped, so it is not."""
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
    """Whether a text holds a phrase between boundaries: `$800` is neither in `$8000` nor in `$800.50` nor in `x$800`."""
    start = text.find(phrase) if phrase else -1
    while start >= 0:
        if _bounded(text, start, start + len(phrase)):
            return True
        start = text.find(phrase, start + 1)
    return False


def _bounded(text: str, start: int, stop: int) -> bool:
    before = text[start - 1] if start else " "
    after, beyond = text[stop:stop + 1] or " ", text[stop + 1:stop + 2] or " "
    if _word(before) and (_word(text[start]) or text[start] in "$€£#@"):
        return False
    if _word(after) and _word(text[stop - 1]):
        return False
    grouped = text[stop - 1].isdigit() and after in ".," and beyond.isdigit()
    led = text[start].isdigit() and before in ".," and start > 1 and text[start - 2].isdigit()
    return not (grouped or led)


def _word(char: str) -> bool:
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

    def fits(self, words: set[str], summary: bool) -> bool:
        """Whether a text with these of the indexed words can hold the phrase."""

    def grade(self, prepared: Prepared, summary: bool) -> int:
        """0 absent, 1 its sense, 2 to the letter. `summary`: the text speaks for messages that left."""


class _Worded:
    """A phrase that is told by its content words."""

    @cached_property
    def indexed(self) -> frozenset[str]:
        """The content words that are indexed."""
        return frozenset(w for w in self.words if WORD.fullmatch(w))

    @cached_property
    def _need(self) -> int:
        """Enough of the content words, less those that are not indexed."""
        return max(0, enough(len(self.words)) - len(self.words) + len(self.indexed))

    @cached_property
    def keys(self) -> frozenset[str]:
        """So many of the longest words that a text with enough of them has one of these."""
        longest = sorted(self.indexed, key=lambda w: (-len(w), w))
        return frozenset(longest[:len(longest) - self._need + 1]) if self._need else frozenset()

    def fits(self, words: set[str], summary: bool) -> bool:
        """Whether enough of the content words are there."""
        return len(self.indexed & words) >= self._need

    @property
    def words(self) -> frozenset[str]:
        """The content words."""
        raise NotImplementedError


@dataclass(frozen=True)
class Rule(_Worded):
    """A standing constraint: to the letter, or anchored in one sentence that has its words and its polarity."""

    text: str
    marks: frozenset[str] = frozenset()
    """Words of which one must stand in the sentence; none for a prohibition, whose negation decides."""

    @cached_property
    def words(self) -> frozenset[str]:
        """Its content words without those that only say that it is a rule."""
        found = content_words(self.text)
        return (found - self.marks) or found

    @cached_property
    def negated(self) -> bool:
        """Whether it forbids."""
        return not NEGATIONS.isdisjoint(tokens(self.text))

    @cached_property
    def flat(self) -> str:
        """The rule on one line, without its full stop."""
        return flat(self.text).strip(" .!;:,")

    def grade(self, prepared: Prepared, summary: bool) -> int:
        """Verbatim 2, anchored 1."""
        if holds(prepared.flat, self.flat):
            return 2
        return int(any(map(self.anchored, prepared.words_of_sentences(self.keys))))

    def anchored(self, words: frozenset[str]) -> bool:
        """Whether a sentence's words carry the rule."""
        if len(self.words & words) < enough(len(self.words)):
            return False
        return NEGATIONS.isdisjoint(words) is not self.negated and (not self.marks or not self.marks.isdisjoint(words))


@dataclass(frozen=True)
class Task(_Worded):
    """An item of a plan: to the letter anywhere, by its words in one sentence of a summary."""

    text: str

    @cached_property
    def flat(self) -> str:
        """The item on one line."""
        return flat(self.text).strip(" .")

    @cached_property
    def words(self) -> frozenset[str]:
        """Its content words."""
        return content_words(self.text)

    def grade(self, prepared: Prepared, summary: bool) -> int:
        """Verbatim 2; 1 in a summary that has most of its words in one sentence."""
        if holds(prepared.flat, self.flat):
            return 2
        if not summary or not self.words:
            return 0
        need = enough(len(self.words))
        return int(any(len(self.words & words) >= need for words in prepared.words_of_sentences(self.keys)))


@dataclass(frozen=True)
class FilePath:
    """A file: named by any end of one of its paths that has a folder, or by its bare name where only it has that name."""

    paths: tuple[str, ...]
    """The file's path and what it was called before; `/` between components."""
    unique: bool = False
    """No other watched file has the same name."""

    @cached_property
    def _pieces(self) -> list[list[str]]:
        """The indexed words of what must stand in a text, for each path."""
        return [WORD.findall(needle(p, self.unique)[0].lower()) for p in self.paths]

    @cached_property
    def keys(self) -> frozenset[str]:
        """The longest piece of each name; none where a name has only short ones."""
        return frozenset(max(p, key=len) for p in self._pieces) if all(self._pieces) else frozenset()

    @cached_property
    def indexed(self) -> frozenset[str]:
        """All pieces."""
        return frozenset(word for pieces in self._pieces for word in pieces)

    def fits(self, words: set[str], summary: bool) -> bool:
        """Whether one of the paths has all its pieces there."""
        return any(words.issuperset(pieces) for pieces in self._pieces)

    def grade(self, prepared: Prepared, summary: bool) -> int:
        """2 where the text names the file."""
        return 2 if any(named(prepared.text, path, self.unique) for path in self.paths) else 0


def named(text: str, path: str, bare: bool) -> bool:
    """Whether a text names a path by one of its ends, between components. `bare`: its file name alone will do."""
    wanted, folders = needle(path, bare)
    at = text.find(wanted)
    while at >= 0:
        stop = at + len(wanted)
        after = text[stop:stop + 1]
        if not (_word(after) or after in ("-", "/") or (after == "." and _word(text[stop + 1:stop + 2]))) and _starts(
                text, at, folders):
            return True
        at = text.find(wanted, stop)
    return False


def needle(path: str, bare: bool) -> tuple[str, list[str]]:
    """The shortest end of a path that names it, and the folders in front of that."""
    *folders, name = path.strip("/").split("/")
    return (name, folders) if bare or not folders else (f"{folders[-1]}/{name}", folders[:-1])


def _starts(text: str, at: int, folders: list[str]) -> bool:
    """Whether what stands before a name is the path's own folders, one after the other, and then no part of a path."""
    for folder in reversed(folders):
        start = at - 1 - len(folder)
        if start < 0 or text[at - 1] != "/" or not text.startswith(folder, start):
            break
        at = start
    else:
        return not at or text[at - 1] == "/" or not _part_of_path(text[at - 1])
    before = text[max(0, at - 4):at]
    # `./a.py`, `../a.py` and `~/a.py` say no more than `a.py`; a leading slash says that the path starts here.
    plain = before.removesuffix("../").removesuffix("./").removesuffix("~/")
    return not plain or not _part_of_path(plain[-1])


def _part_of_path(char: str) -> bool:
    return _word(char) or char in _IN_PATH
