"""Whether a text holds a span: at boundaries, so that `$800` is not held by `$8000`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from evals.spans import TextSpan

_NOT_WORD = {code: " " for code in range(0x3100) if not (chr(code).isalnum() or chr(code) == "_")}
_WORDS_ONLY: dict[int, str] = {**{code: chr(code) for code in range(128)}, **_NOT_WORD}
_BEFORE_LINE = re.compile(r"[ \t]*(?:\S*?\d+[ \t]*[→\t|:)-]|[+\-<>*])?[ \t]*")
_AFTER_NUMBER = re.compile(r"\.\d|,\d{3}(?!\d)")
_BEFORE_NUMBER = re.compile(r"\d\.")
_BEFORE_GROUP = re.compile(r"\d[.,]")
_IN_PATH = frozenset("_.@%+~=-")
_PATH_GOES_ON = re.compile(r"[\w-]|\.\w")
_PATH_BACKWARDS = re.compile(r"[\w./@%+~=-]*")
_LONGEST_PATH = 300
_LONGEST_PREFIX = 300
_MOST_FILES, _MOST_FOLDERS = 64, 16
"""Places of one name in one text that are looked at."""


def words_of(text: str) -> list[str]:
    """The words of a text, underscores kept, in order."""
    return text.translate(_WORDS_ONLY).split()


def key_words(span: TextSpan) -> list[str]:
    """Words of which every text that holds the span has all; of a path those of its last part."""
    if is_path(span):
        parts = path_parts(span.text)
        return words_of(parts[-1]) if parts else []
    return words_of(span.text)


def is_path(span: TextSpan) -> bool:
    """Whether a span is a path of files, not a URL."""
    return span.kind == "path" and "://" not in span.text


def holder(span: TextSpan) -> Callable[[str], bool]:
    """Tells whether a text holds a span that is no path."""
    wanted, length = span.text, len(span.text)
    check = {"line": _ends_line, "number": _whole_number}.get(span.kind, _at_words)

    def holds(text: str) -> bool:
        start = text.find(wanted)
        while start >= 0:
            if check(text, start, start + length):
                return True
            start = text.find(wanted, start + 1)
        return False

    return holds


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _at_words(text: str, start: int, stop: int) -> bool:
    """Whether neither end of `text[start:stop]` cuts a word."""
    opened = start == 0 or not (_is_word(text[start]) and _is_word(text[start - 1]))
    return opened and (stop == len(text) or not (_is_word(text[stop - 1]) and _is_word(text[stop])))


def _whole_number(text: str, start: int, stop: int) -> bool:
    """Whether the digits are a number of their own and no part of a decimal, a version or grouped thousands."""
    if not _at_words(text, start, stop):
        return False
    joined = _BEFORE_GROUP if stop - start == 3 else _BEFORE_NUMBER
    return not (joined.match(text, max(0, start - 2), start) or _AFTER_NUMBER.match(text, stop))


def _ends_line(text: str, start: int, stop: int) -> bool:
    """Whether `text[start:stop]` is a line, but for spaces and what tools put in front: number, file, diff mark."""
    end = text.find("\n", stop)
    if end != stop and text[stop:end if end >= 0 else len(text)].strip():
        return False
    begin = text.rfind("\n", 0, start) + 1
    if begin == start:
        return True
    return start - begin <= _LONGEST_PREFIX and _BEFORE_LINE.fullmatch(text, begin, start) is not None


@lru_cache(maxsize=1 << 16)
def path_parts(path: str) -> tuple[str, ...]:
    """The named folders of a path and its last part; what only says where it starts is left out."""
    return tuple(p for p in path.split("/") if p not in ("", ".", "..", "~"))


def same_path(one: str, other: str) -> bool:
    """Whether two paths name one file: one ends with all parts of the other."""
    return compatible(path_parts(one), path_parts(other))


def compatible(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether one sequence of path parts is the other's end; nothing is no path."""
    shared = min(len(one), len(other))
    return shared > 0 and one[-shared:] == other[-shared:]


class NamedPath(NamedTuple):
    """A path in a text, cut behind the name that was looked for."""

    parts: tuple[str, ...]
    goes_on: bool
    """A slash follows."""


def paths_named(text: str, name: str) -> tuple[NamedPath, ...]:
    """The different paths in a text whose last part, or a folder of which, is `name`.

    Of a folder, which a listing repeats line by line, only the first places are looked at.
    """
    found: dict[tuple[str, bool], None] = {}
    left = _MOST_FILES if "." in name else _MOST_FOLDERS
    start = text.find(name)
    while start >= 0 and left:
        stop = start + len(name)
        if not _PATH_GOES_ON.match(text, stop):
            if start == 0 or text[start - 1] == "/":
                found[_path_before(text, start), text.startswith("/", stop)] = None
            elif text[start - 1] not in _IN_PATH and not text[start - 1].isalnum():
                found["", text.startswith("/", stop)] = None
            left -= 1
        start = text.find(name, stop)
    return tuple(NamedPath((*path_parts(head), name), goes_on) for head, goes_on in found)


def _path_before(text: str, stop: int) -> str:
    """What of the text before `stop` belongs to a path."""
    # Backwards, so that one match in C finds where it begins.
    found = _PATH_BACKWARDS.match(text[max(0, stop - _LONGEST_PATH):stop][::-1])
    return found.group()[::-1] if found else ""


@dataclass(slots=True)
class PathFinder:
    """Decides for one text after the other, in log order, whether the paths in it name a wanted path.

    The order matters: a bare file name stands for a longer path only while no other path of that name has been seen.
    """

    wanted: tuple[str, ...]
    folder_alone: bool = False
    """The wanted path is one folder, `tests/`: the word without a slash does not name it."""
    _ambiguous: bool = field(default=False, init=False)

    @classmethod
    def of(cls, path: str) -> PathFinder:
        """The finder of a path."""
        parts = path_parts(path)
        return cls(parts, folder_alone=len(parts) == 1 and path.endswith("/"))

    def holds(self, paths: Sequence[NamedPath]) -> bool:
        """Whether one of the paths of a text, all of the wanted name, is the wanted one."""
        if len(self.wanted) == 1:
            return any(path.goes_on for path in paths) if self.folder_alone else bool(paths)
        bare = whole = False
        for parts, _ in paths:
            if len(parts) == 1:
                bare = True
            elif compatible(parts, self.wanted):
                whole = True
            else:
                self._ambiguous = True
        return whole or (bare and not self._ambiguous)


def holds(span: TextSpan, text: str) -> bool:
    """Whether one text by itself holds a span."""
    if is_path(span):
        return PathFinder.of(span.text).holds(paths_named(text, path_parts(span.text)[-1]))
    return holder(span)(text)
