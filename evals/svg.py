"""Two charts as inline SVG, drawn without a library: lines over steps, and bars with intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from evals.markup import Html, tag
from evals.palette import WARNING_COLOUR

LEFT, RIGHT, TOP, BOTTOM = 78.0, 12.0, 16.0, 40.0
WIDTH = 960.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One curve; where `faint` says so it is drawn pale."""

    name: str
    colour: str
    dash: tuple[int, ...]
    x: Sequence[float]
    y: Sequence[float]
    faint: Sequence[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar with the interval of its value."""

    name: str
    colour: str
    value: float
    low: float
    high: float
    words: str


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round numbers from low to high, about so many."""
    if high <= low:
        return [low]
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw)
    return [step * n for n in range(math.ceil(low / step), math.floor(high / step) + 1)]


def lines(curves: Sequence[Line], limit: float, x_title: str, y_title: str, height: float = 300.0) -> Html:
    """Curves over steps with a limit as a dashed line."""
    top = max([limit, *(v for c in curves for v in c.y)]) * 1.05
    first, last = min(v for c in curves for v in c.x), max(v for c in curves for v in c.x)
    across = Scale(first, max(last, first + 1), LEFT, WIDTH - RIGHT)
    up = Scale(0.0, top, height - BOTTOM, TOP)
    ruler = tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=up(limit), y2=up(limit), stroke=WARNING_COLOUR, stroke_width=1.5,
                stroke_dasharray="8 3")
    said = tag("text", f"usable window {limit:,.0f}", x=LEFT + 6, y=up(limit) - 5, fill=WARNING_COLOUR, font_size=11)
    drawn = [piece for c in curves for piece in _pieces(c, across, up)]
    return _svg(height, [*_frame(across, up, height, x_title, y_title), *drawn, ruler, said])


def bars(entries: Sequence[Bar], x_title: str) -> Html:
    """Horizontal bars from zero, each with its interval."""
    height = TOP + BOTTOM + 34.0 * len(entries)
    low, high = min([0.0, *(b.low for b in entries)]), max([0.0, *(b.high for b in entries)])
    across = Scale(low, high if high > low else low + 1, 190.0, WIDTH - 130)
    pieces = [piece for n, b in enumerate(entries) for piece in _bar(b, TOP + 34.0 * n, across)]
    axis = [tag("text", f"{v:,.0f}", x=across(v), y=height - BOTTOM + 14, class_="tick", text_anchor="middle")
            for v in ticks(low, high)]
    title = tag("text", x_title, x=(across.start + across.stop) / 2, y=height - 6, class_="tick", text_anchor="middle")
    return _svg(height, [*pieces, *axis, title])


@dataclass(frozen=True, slots=True)
class Scale:
    """A linear map from values to places on the drawing."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """The place of a value."""
        return round(self.start + (value - self.low) / (self.high - self.low) * (self.stop - self.start), 1)


def _svg(height: float, pieces: Sequence[Html]) -> Html:
    return tag("svg", *pieces, viewBox=f"0 0 {WIDTH:.0f} {height:.0f}", role="img", class_="chart")


def _frame(across: Scale, up: Scale, height: float, x_title: str, y_title: str) -> list[Html]:
    """Grid, tick labels and titles."""
    pieces = []
    for value in ticks(up.low, up.high):
        pieces += [tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=up(value), y2=up(value), class_="grid"),
                   tag("text", f"{value:,.0f}", x=LEFT - 6, y=up(value) + 4, class_="tick", text_anchor="end")]
    for value in ticks(across.low, across.high, 12):
        pieces.append(tag("text", f"{value:,.0f}", x=across(value), y=height - BOTTOM + 14, class_="tick",
                          text_anchor="middle"))
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [*pieces, tag("text", x_title, x=middle, y=height - 6, class_="tick", text_anchor="middle"),
            tag("text", y_title, x=4, y=TOP - 5, class_="tick")]


def _pieces(curve: Line, across: Scale, up: Scale) -> list[Html]:
    """A curve in stretches that are drawn alike; a stretch starts where the one before ended."""
    points = [(across(x), up(y)) for x, y in zip(curve.x, curve.y, strict=True)]
    cuts = [n for n in range(1, len(points)) if curve.faint[n] != curve.faint[n - 1]]
    found = []
    for start, stop in zip([0, *cuts], [*cuts, len(points)], strict=True):
        stretch = points[max(0, start - 1):stop]
        found.append(tag("polyline", points=" ".join(f"{x:g},{y:g}" for x, y in stretch), fill="none",
                         stroke=curve.colour, stroke_width=1.0 if curve.faint[start] else 2.0,
                         stroke_opacity=0.6 if curve.faint[start] else 1.0,
                         stroke_dasharray=" ".join(map(str, curve.dash)) if curve.dash[1] else None))
    return found


def _bar(bar: Bar, y: float, across: Scale) -> list[Html]:
    left, right = sorted((across(0.0), across(bar.value)))
    middle = y + 13
    return [tag("text", bar.name if len(bar.name) <= 28 else bar.name[:27] + "…", x=182, y=middle + 4, class_="label",
                text_anchor="end"),
            tag("rect", x=left, y=y + 4, width=max(right - left, 1.0), height=18, fill=bar.colour, fill_opacity=0.55),
            tag("line", x1=across(bar.low), x2=across(bar.high), y1=middle, y2=middle, class_="whisker"),
            tag("text", bar.words, x=across(max(bar.high, bar.value, 0.0)) + 8, y=middle + 4, class_="label")]
