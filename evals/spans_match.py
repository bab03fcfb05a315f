"""Whether a text holds a span: at boundaries, so that `$800` is not held by `$8000`."""

from __future__ import annotations

import re
from collections.abc import Callable

from evals.spans import TextSpan
from evals.spans_paths import names_path, path_parts

_NOT_WORD = {code: " " for code in range(0x3100) if not (chr(code).isalnum() or chr(code) == "_")}
_WORDS_ONLY: dict[int, str] = {**{code: chr(code) for code in range(128)}, **_NOT_WORD}
_COMMON_SIGNS = "→…–—“”‘’•·─━│├└═✓✗✅❌⏺"
_BEFORE_LINE = re.compile(r"[ \t]*(?:\S*?\d+[ \t]*[→\t|:)-]|[+\-<>*])?[ \t]*")
_AFTER_NUMBER = re.compile(r"\.\d|,\d{3}(?!\d)")
_BEFORE_NUMBER = re.compile(r"\d\.")
_BEFORE_GROUP = re.compile(r"\d[.,]")
_LONGEST_PREFIX = 300


def words_of(text: str) -> list[str]:
    """The words of a text, underscores kept, in order."""
    if not text.isascii():
        # Translation is many times faster once these are out: most texts are plain ASCII then.
        for sign in _COMMON_SIGNS:
            text = text.replace(sign, " ")
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


def holds(span: TextSpan, text: str) -> bool:
    """Whether one text by itself holds a span."""
    return names_path(text, span.text) if is_path(span) else holder(span)(text)
