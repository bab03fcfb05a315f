"""Text spans that an action needs: what is taken from a text, by kind.

A span is a piece of text with a kind. Kinds: paths and URLs, identifiers of 4 characters or more (hashes too), numbers
of 3 digits or more, quoted phrases, whole lines of 12 characters or more, error signatures.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

EXTRACTOR = "spans-1"
"""Version of the rules in this module and of how spans are found in texts; numbers of two versions do not compare."""

Kind = Literal["path", "identifier", "number", "quoted", "line", "error"]
KINDS: tuple[Kind, ...] = ("path", "identifier", "number", "quoted", "line", "error")
CONTENT_KINDS: tuple[Kind, ...] = ("identifier", "line", "error")
"""Kinds whose loss sends an agent back to the source: names, lines, errors."""
SHORTEST_LINE = 12
"""Characters of a stripped line from which it counts."""

_EXTENSIONS = ("py pyi js jsx ts tsx mjs cjs go rs java kt swift rb php c h cc cpp hpp cs scala lua sql sh bash zsh "
               "ps1 md mdx rst txt json jsonl json5 toml yaml yml xml html htm css scss less vue svelte lock cfg ini "
               "env conf log csv tsv ipynb proto gradle mod sum png jpg svg pdf diff patch").replace(" ", "|")
_QUOTED = r'"(?:[^"\\\n]|\\.){4,200}"' + r"|'[^'\n]{4,200}'|`[^`\n]{4,200}`"
_PIECE = re.compile(
    r"(?P<url>https?://[^\s\"'`<>()\[\]{}|\\]+)"
    r"|(?P<error>(?<!\w)[A-Z]\w*(?:Error|Exception|Warning|Panic)(?!\w)(?::[ ][^\n\"'`]{4,80})?)"
    rf"|(?P<quoted>{_QUOTED})"
    rf"|(?P<path>[\w.~@%+-]*/[\w./@%+~=-]*|[\w@%+-][\w@%+.-]*\.(?:{_EXTENSIONS})(?![\w/]))"
    r"|(?P<number>(?<![\w.])\d+(?:\.\d+)*(?!\w))"
    r"|(?P<identifier>\w{4,})")
_PLAIN_PHRASE = re.compile(r"[\w .,:;=/()#@-]+")
_COUNTED = re.compile(r"\d+[a-zA-Z]?|_+")
"""Words that are no identifiers: line addresses such as `180p`, sizes, rules of underscores."""
_VARIABLE_PART = re.compile(r"[\d\"'`/\\].*")
_MASKED = re.compile(r"(?<!\w)(?:(?:[A-Z0-9]+_)*REDACTED(?:_[A-Z0-9]+)*|redacted|[xX]{4,})(?!\w)|\*{4,}"
                     r"|<[A-Z][A-Z0-9_]{3,}>|\[[A-Z][A-Z0-9_]{3,}\]")
_EDGES = "\"'`.,:;()"


class TextSpan(NamedTuple):
    """A piece of text that an action needs to have seen."""

    kind: Kind
    text: str


class Want(NamedTuple):
    """What an action asks for in one place: a whole, or the parts that count where the whole occurs nowhere."""

    whole: TextSpan
    parts: tuple[TextSpan, ...] = ()


def wants_of(text: str) -> Iterator[Want]:
    """What an argument or command asks for, in order."""
    for found in _PIECE.finditer(text):
        piece, kind = found.group(), found.lastgroup
        if kind == "identifier":
            if not _COUNTED.fullmatch(piece):
                yield Want(TextSpan("identifier", piece))
        elif kind == "quoted":
            yield from _quoted(piece[1:-1])
        else:
            made = _span(str(kind), piece)
            if made is not None:
                yield Want(made)


def lines_of(text: str) -> list[TextSpan]:
    """The lines of an edit's old text, stripped, in order; short ones and ones without a word are left out."""
    stripped = (line.strip() for line in text.split("\n"))
    return [TextSpan("line", s) for s in stripped if len(s) >= SHORTEST_LINE and any(map(str.isalnum, s))]


def path_span(text: str) -> TextSpan | None:
    """The span of an argument that is a path as a whole; None where it names nothing."""
    text = text.strip().removeprefix("./")
    return TextSpan("path", text) if any(map(str.isalnum, text)) and "\n" not in text else None


def is_masked(span: TextSpan) -> bool:
    """Whether a span is, or holds, a placeholder of redacted data: the same text stands for different things."""
    if span.kind in ("identifier", "number"):
        return _MASKED.fullmatch(span.text) is not None
    text = span.text.rstrip("/").rpartition("/")[2] if span.kind == "path" else span.text
    return _MASKED.search(text) is not None


def distinct(wants: Iterable[Want]) -> list[Want]:
    """Each want once, in order of first appearance."""
    return list(dict.fromkeys(wants))


def _quoted(inner: str) -> Iterator[Want]:
    """A plain phrase of several words counts as a whole; anything else as what it is made of."""
    inside = tuple(span for want in wants_of(inner) for span in (want.parts or (want.whole,)))
    if len(inside) == 1 and len(inside[0].text) >= len(inner.strip(_EDGES + " ")):
        yield Want(inside[0])
    elif _PLAIN_PHRASE.fullmatch(inner) and " " in inner.strip() and any(map(str.isalpha, inner)):
        yield Want(TextSpan("quoted", inner.strip()), inside)
    else:
        yield from map(Want, inside)


def _span(kind: str, piece: str) -> TextSpan | None:
    if kind == "number":
        return TextSpan("number", piece) if sum(map(str.isdigit, piece)) >= 3 else None
    if kind == "error":
        return TextSpan("error", error_signature(piece))
    piece = piece.rstrip(_EDGES)
    if kind == "path" and not any(map(str.isalpha, piece)):
        return None
    return path_span(piece)


def error_signature(text: str) -> str:
    """An error's name with the part of its message that does not vary: up to the first digit, quote or path."""
    name, colon, message = text.partition(": ")
    stable = _VARIABLE_PART.sub("", message).strip(_EDGES + " ")
    return f"{name}: {stable}" if colon and len(stable) >= 4 else name
