"""Paths in texts: which a text names, whether two name one file, and which blocks of a log name a path."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

_FROM_SLASH = re.compile(r"/[\w./@%+~-]*")
_BACKWARDS = re.compile(r"[\w.@%+~-]*")
_GOES_ON = re.compile(r"[\w/-]|\.\w")
_LONGEST_HEAD = 100
"""Characters of a path's first part that are looked at."""
_IN_PATH = frozenset("_./@%+~-")


@lru_cache(maxsize=1 << 16)
def path_parts(path: str) -> tuple[str, ...]:
    """The named folders of a path and its last part; what only says where it starts is left out."""
    return tuple(p for p in path.split("/") if p not in ("", ".", "..", "~"))


def compatible(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether one sequence of path parts is the other's end; nothing is no path."""
    shared = min(len(one), len(other))
    return shared > 0 and one[-shared:] == other[-shared:]


def same_path(one: str, other: str) -> bool:
    """Whether two paths name one file: one ends with all parts of the other."""
    return compatible(path_parts(one), path_parts(other))


def paths_in(text: str) -> set[str]:
    """The paths in a text that have a slash."""
    found = set()
    for match in _FROM_SLASH.finditer(text):
        start, path = match.start(), match.group().rstrip(".")
        if start and (text[start - 1] in _IN_PATH or text[start - 1].isalnum()):
            # Backwards, so that one match in C finds where the first part begins.
            head = _BACKWARDS.match(text[max(0, start - _LONGEST_HEAD):start][::-1])
            path = head.group()[::-1] + path if head else path
        found.add(path)
    return found


def names_bare(text: str, name: str) -> bool:
    """Whether a text has a name by itself, with no folder before it or behind."""
    start = text.find(name)
    while start >= 0:
        stop = start + len(name)
        begins = start == 0 or not (text[start - 1] in _IN_PATH or text[start - 1].isalnum())
        if begins and not _GOES_ON.match(text, stop):
            return True
        start = text.find(name, stop)
    return False


class _Named(NamedTuple):
    """A path of some texts, cut behind one of its names."""

    parts: tuple[str, ...]
    goes_on: bool
    """Something follows the name, be it only a slash."""
    texts: Sequence[int]
    """Numbers of the texts, in order."""


def _cut(path: str, name: str, texts: Sequence[int]) -> Iterator[_Named]:
    parts = path_parts(path)
    for place, part in enumerate(parts, 1):
        if part == name:
            yield _Named(parts[:place], place < len(parts) or path[-1] == "/", texts)


class PathIndex:
    """The paths of texts that are numbered from 0, by each of their names."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Find every path once."""
        self._texts: dict[str, list[int]] = {}
        for number, text in enumerate(texts):
            if "/" in text:
                for path in paths_in(text):
                    self._texts.setdefault(path, []).append(number)
        self._by_name: dict[str, list[str]] = {}
        for path in self._texts:
            for name in set(path_parts(path)):
                self._by_name.setdefault(name, []).append(path)

    def holders(self, path: str, is_bare: Callable[[int], bool], candidates: Sequence[int]) -> list[int]:
        """Texts that name a path, in order.

        A bare name stands for a longer path only in texts before the first that has another path of this name.
        `candidates`: texts that may have the bare name; `is_bare` tells whether one does.
        """
        wanted = path_parts(path)
        named = [n for p in self._by_name.get(wanted[-1], ()) for n in _cut(p, wanted[-1], self._texts[p])]
        if len(wanted) == 1 and path.endswith("/"):
            return sorted({t for n in named if n.goes_on for t in n.texts})
        whole = {t for n in named if _agrees(n.parts, wanted) for t in n.texts}
        others = [n.texts[0] for n in named if len(wanted) > 1 and not compatible(n.parts, wanted)]
        unique = candidates[:bisect_left(candidates, min(others))] if others else candidates
        short = {t for n in named if len(n.parts) == 1 for t in n.texts if not others or t < min(others)}
        return sorted(whole | short | {t for t in unique if t not in whole and is_bare(t)})


def _agrees(found: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    """Whether a path in a text names the wanted one without any doubt."""
    return compatible(found, wanted) and (len(found) > 1 or len(wanted) == 1)


def names_path(text: str, path: str) -> bool:
    """Whether one text by itself names a path."""
    wanted = path_parts(path)
    named = [n for p in paths_in(text) for n in _cut(p, wanted[-1], ())] if "/" in text else []
    if len(wanted) == 1 and path.endswith("/"):
        return any(n.goes_on for n in named)
    if any(_agrees(n.parts, wanted) for n in named):
        return True
    is_unique = all(compatible(n.parts, wanted) for n in named)
    return is_unique and (any(len(n.parts) == 1 for n in named) or names_bare(text, wanted[-1]))
