"""Printing for every command: one JSON document, tables, and text from transcripts made harmless."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import orjson

if TYPE_CHECKING:
    from rich.console import Console

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def print_json(value: Any) -> None:
    """One JSON document on stdout; lone surrogates are replaced."""
    try:
        raw = orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS, default=plain)
    except (TypeError, orjson.JSONEncodeError):
        import json

        raw = json.dumps(value, indent=2, ensure_ascii=True, default=_plain_or_text).encode()
    click.echo(raw.decode())


def plain(value: Any) -> Any:
    """A mapping of any kind as JSON writes it. Raises TypeError for all else that JSON does not know."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


def _plain_or_text(value: Any) -> Any:
    return plain(value) if isinstance(value, Mapping) else str(value)


def literal(text: str) -> str:
    """Text of a transcript for a terminal: control and direction characters are shown as escapes, never sent."""
    shown = _CONTROL.sub(lambda m: f"\\x{ord(m[0]):02x}" if ord(m[0]) < 256 else f"\\u{ord(m[0]):04x}", text)
    return shown.encode("utf-8", "replace").decode()


def console() -> Console:
    """A console for stdout that renders no markup from data."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, soft_wrap=False)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str = "", left: int = 1) -> Any:
    """A table whose first `left` columns are aligned left and the rest right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    made = Table(title=Text(literal(title)) if title else None, box=SIMPLE_HEAD, title_justify="left")
    for position, name in enumerate(columns):
        made.add_column(Text(name), justify="left" if position < left else "right", overflow="fold")
    for row in rows:
        made.add_row(*(Text(literal(cell)) for cell in row))
    return made


def number(value: float | None, digits: int = 0) -> str:
    """The one way numbers are printed: thousands separated, missing as a dash."""
    if value is None:
        return "–"
    return f"{value:,.{digits}f}"
