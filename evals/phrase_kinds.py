"""The kinds of phrases that retention metrics look for: a rule, an item of a plan, a file."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

from evals.phrases import NEGATIONS, WORD, Prepared, content_words, enough, flat, holds, is_word, spelled, tokens

_TURNED = re.compile(r"(?:\b(?:not|never|no longer)|n['’]t)\s+\w+")
_WORDS = re.compile(r"\w+")
_IN_PATH = frozenset("./@+~\\-")


class Worded(ABC):
    """A phrase that is told by its content words."""

    text: str

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

    @property
    def groups(self) -> list[tuple[list[str], int]]:
        """All content words, of which enough are needed."""
        return [(spelled(sorted(self.words), self.text), enough(len(self.words)))]

    def fits(self, words: set[str], summary: bool) -> bool:
        """Whether enough of the content words are there."""
        return len(self.indexed & words) >= self._need

    @property
    @abstractmethod
    def words(self) -> frozenset[str]:
        """The content words."""


@dataclass(frozen=True)
class Rule(Worded):
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
        """Verbatim 2, anchored 1; a negation in front of an order turns it round."""
        text = prepared.flat if self.negated else _TURNED.sub(" ", prepared.flat)
        if holds(text, self.flat):
            return 2
        return int(any(map(self.anchored, prepared.words_of_sentences(self.keys))))

    def anchored(self, words: frozenset[str]) -> bool:
        """Whether a sentence's words carry the rule."""
        if len(self.words & words) < enough(len(self.words)):
            return False
        return NEGATIONS.isdisjoint(words) is not self.negated and (not self.marks or not self.marks.isdisjoint(words))


@dataclass(frozen=True)
class Task(Worded):
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
    """A file: named by any end of one of its paths that has a folder; by its bare name where no other has that name."""

    paths: tuple[str, ...]
    """The file's path and what it was called before; `/` between components."""
    unique: bool = False
    """No other watched file has the same name."""

    @cached_property
    def _needles(self) -> list[tuple[str, list[str]]]:
        return [needle(p, self.unique) for p in self.paths]

    @cached_property
    def _pieces(self) -> list[frozenset[str]]:
        """The indexed words of what must stand in a text, for each path."""
        return [frozenset(WORD.findall(wanted.lower())) for wanted, _ in self._needles]

    @cached_property
    def keys(self) -> frozenset[str]:
        """The longest piece of each name; none where a name has only short ones."""
        return frozenset(max(p, key=len) for p in self._pieces) if all(self._pieces) else frozenset()

    @cached_property
    def indexed(self) -> frozenset[str]:
        """All pieces."""
        return frozenset().union(*self._pieces)

    @property
    def groups(self) -> list[tuple[list[str], int]]:
        """All words of the end of each path that must stand in a text."""
        pieces = [_WORDS.findall(wanted) for wanted, _ in self._needles]
        return [(p, len(p)) for p in pieces]

    def fits(self, words: set[str], summary: bool) -> bool:
        """Whether one of the paths has all its pieces there."""
        return self._pieces[0] <= words or any(pieces <= words for pieces in self._pieces[1:])

    def grade(self, prepared: Prepared, summary: bool) -> int:
        """2 where the text names the file."""
        for wanted, folders in self._needles:
            if wanted in prepared.text and _stands(prepared.text, wanted, folders):
                return 2
        return 0


def named(text: str, path: str, bare: bool) -> bool:
    """Whether a text names a path by one of its ends, between components. `bare`: its file name alone will do."""
    return _stands(text, *needle(path, bare))


def _stands(text: str, wanted: str, folders: list[str]) -> bool:
    at = text.find(wanted)
    while at >= 0:
        stop = at + len(wanted)
        after = text[stop:stop + 1]
        goes_on = is_word(after) or after in ("-", "/") or (after == "." and is_word(text[stop + 1:stop + 2]))
        if not goes_on and _starts(text, at, folders):
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
    return is_word(char) or char in _IN_PATH
