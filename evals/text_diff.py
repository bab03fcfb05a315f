"""Two texts line by line, and changed lines word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

MOST_LINES = 400
"""Lines of either text that are compared."""
MOST_LINE_CHARS = 2_000
"""Characters of a line that are compared word by word; a longer one is only said to differ."""
CONTEXT = 2
"""Equal lines that are kept on each side of a change."""
_WORD = re.compile(r"\w+|\s+|[^\w\s]")

Sign = Literal["same", "gone", "new", "skipped"]


class Piece(NamedTuple):
    """A part of a line."""

    text: str
    changed: bool


class Line(NamedTuple):
    """One line of a difference: in both, only in the old text, only in the new one, or equal lines left out."""

    sign: Sign
    pieces: tuple[Piece, ...]


def line_diff(old: str, new: str) -> list[Line]:
    """The difference, equal lines far from any change left out; what lies beyond the limits is counted."""
    a, b = old.split("\n"), new.split("\n")
    beyond = max(len(a), len(b)) - MOST_LINES
    found = list(_shortened(list(_lines(a[:MOST_LINES], b[:MOST_LINES]))))
    if beyond > 0:
        found.append(Line("skipped", (Piece(f"{beyond:,} more lines are not compared", False),)))
    return found


def _lines(a: Sequence[str], b: Sequence[str]) -> Iterator[Line]:
    for operation, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if operation == "equal":
            yield from (Line("same", (Piece(text, False),)) for text in a[i:j])
            continue
        pairs = min(j - i, m - k)
        both = [_words(a[i + n], b[k + n]) for n in range(pairs)]
        yield from (Line("gone", pieces) for pieces, _ in both)
        yield from (Line("gone", (Piece(text, True),)) for text in a[i + pairs:j])
        yield from (Line("new", pieces) for _, pieces in both)
        yield from (Line("new", (Piece(text, True),)) for text in b[k + pairs:m])


def _words(old: str, new: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Both versions of a line, what differs marked."""
    if max(len(old), len(new)) > MOST_LINE_CHARS:
        return (Piece(old, True),), (Piece(new, True),)
    a, b = _WORD.findall(old), _WORD.findall(new)
    left: list[Piece] = []
    right: list[Piece] = []
    for operation, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        left += [Piece("".join(a[i:j]), operation != "equal")] if j > i else []
        right += [Piece("".join(b[k:m]), operation != "equal")] if m > k else []
    return tuple(left), tuple(right)


def _shortened(lines: Sequence[Line]) -> Iterator[Line]:
    changed = [n for n, line in enumerate(lines) if line.sign != "same"]
    near = {n for c in changed for n in range(c - CONTEXT, c + CONTEXT + 1)}
    skipped = 0
    for number, line in enumerate(lines):
        if number in near:
            if skipped:
                yield _left_out(skipped)
            skipped = 0
            yield line
        else:
            skipped += 1
    if skipped:
        yield _left_out(skipped)


def _left_out(count: int) -> Line:
    return Line("skipped", (Piece(f"{count:,} equal line{'' if count == 1 else 's'}", False),))
