"""Colours for code and JSON: texts into marked-up pieces, every character kept and escaped."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import Any

from evals.markup import Html, joined, tag

MOST_CHARS = 6_000
"""Characters of a text that are coloured; what comes behind them stays plain."""
_KINDS = (("Comment", "c"), ("Keyword", "k"), ("Literal.String", "s"), ("Literal.Number", "n"), ("Name.Tag", "t"),
          ("Name.Function", "f"), ("Name.Class", "f"), ("Name.Decorator", "f"), ("Name.Builtin", "k"),
          ("Generic.Deleted", "d"), ("Generic.Inserted", "i"), ("Generic.Heading", "k"), ("Generic.Subheading", "k"))


def highlighted(text: str, language: str | None) -> Html:
    """A text in the colours of a language (`json`, or a file's name); as it is where the language is not known."""
    lexer = _lexer(language) if language else None
    if lexer is None:
        return joined(text)
    pieces = ((_kind(str(kind)), value) for kind, value in lexer.get_tokens(text[:MOST_CHARS]))
    return joined(*_runs(pieces), text[MOST_CHARS:])


def _runs(pieces: Iterator[tuple[str, str]]) -> Iterator[str]:
    """Neighbours of one colour in one element."""
    for kind, run in groupby(pieces, key=lambda piece: piece[0]):
        text = "".join(value for _, value in run)
        yield tag("span", text, class_=f"rw-c-{kind}") if kind else text


def _kind(token: str) -> str:
    name = token.removeprefix("Token.")
    return next((short for long, short in _KINDS if name.startswith(long)), "")


@cache
def _lexer(language: str) -> Any:
    """The lexer for a language; None where there is none, and for files of plain text."""
    from pygments.lexers import JsonLexer, find_lexer_class_for_filename

    options = {"stripnl": False, "ensurenl": False}
    if language == "json":
        return JsonLexer(**options)
    found = find_lexer_class_for_filename(language)
    return None if found is None or found.name == "Text only" else found(**options)


def language_of(text: str, path: str | None) -> str | None:
    """The language of a text: that of the file it comes from, JSON by its brackets, else none."""
    if path:
        name = path.replace("\\", "/").rpartition("/")[2]
        return name[-80:] or None
    head, tail = text[:1], text[-1:]
    return "json" if (head, tail) in (("{", "}"), ("[", "]")) and '"' in text[:200] else None
