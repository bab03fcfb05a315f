"""HTML and SVG built so that text cannot become markup: what is not `Html` is escaped."""

from __future__ import annotations

import html

from replay.commands.output import literal


class Html(str):
    """Text that is markup already, made by `tag` or written in this program's source."""

    __slots__ = ()


VOID = frozenset({"meta", "br", "hr", "line", "rect", "circle", "path", "polyline"})
"""Elements that are written without an end tag here; SVG's close themselves."""


def escaped(text: str) -> Html:
    """Text as it reads: markup characters as entities, control and direction characters as visible escapes."""
    return Html(html.escape(literal(text), quote=True))


def joined(*children: str) -> Html:
    """Children one after the other; plain text is escaped."""
    return Html("".join(c if isinstance(c, Html) else escaped(c) for c in children))


def tag(element: str, /, *children: str, **attributes: str | float | None) -> Html:
    """An element. Attribute names: `_` stands for `-`, a trailing `_` is dropped; None leaves one out."""
    pairs = "".join(f' {_attribute(k)}="{escaped(_value(v))}"' for k, v in attributes.items() if v is not None)
    if element in VOID:
        return Html(f"<{element}{pairs}/>")
    return Html(f"<{element}{pairs}>{joined(*children)}</{element}>")


def _attribute(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _value(value: str | float | None) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
