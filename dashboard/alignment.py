"""Two views beside each other: labels in words and signs, equal messages folded, changes line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dashboard import messages
from evals.browse import OpenSession
from evals.markup import Html, tag
from evals.side_by_side import Row, SideBySide, ranges
from replay.diff import Label
from replay.view import Shown
from replay.window import Window

FOLD_FROM = 3
"""So many equal messages in a row are folded into one line."""

SIGNS: Mapping[Label, str] = {"missing": "−", "added": "+", "changed": "≠", "truncated": "…", "moved": "⇅"}
MEANINGS: Mapping[Label, str] = {
    "missing": "only the right view has it", "added": "only the left view has it",
    "changed": "in both, with another text", "truncated": "the left view holds a part of the right one's text",
    "moved": "in both, at another place",
}
"""What each label says, seen from the left view."""
_ABSENT = {"missing": "not in this view", "added": "not in this view", "moved": "stands elsewhere in this view"}


@dataclass(frozen=True, slots=True)
class Fold:
    """A run of messages that both views show alike."""

    rows: tuple[Row, ...]


def folded(rows: Sequence[Row]) -> list[Row | Fold]:
    """The rows with every longer run of equal messages folded."""
    found: list[Row | Fold] = []
    run: list[Row] = []
    for row in [*rows, None]:
        if row is not None and row.label is None:
            run.append(row)
            continue
        found += [Fold(tuple(run))] if len(run) >= FOLD_FROM else run
        run = []
        if row is not None:
            found.append(row)
    return found


def legend(sides: SideBySide) -> Html:
    """How many messages carry each label, which ones, and what the labels mean."""
    entries = [tag("span", _chip(label), tag("b", f" {sides.counts.get(label, 0):,}"), f" {meaning}",
                   *_places(sides.indices.get(label, ())), class_="rw-key") for label, meaning in MEANINGS.items()
               if sides.counts.get(label)]
    same = tag("span", _chip(None), tag("b", f" {sides.same:,}"), " in both alike", class_="rw-key")
    return tag("div", *entries, same, class_="rw-legend")


def _places(indices: Sequence[int]) -> Iterator[Html]:
    if indices:
        words = ranges(indices)
        short = words if len(words) <= 60 else words[:59] + "…"
        yield tag("span", f" (#{short})", class_="rw-dim", title=words[:2_000])


def _chip(label: Label | None) -> Html:
    if label is None:
        return tag("span", "= same", class_="rw-label rw-l-same")
    return tag("span", f"{SIGNS[label]} {label}", class_=f"rw-label rw-l-{label}", title=MEANINGS[label])


def side_by_side(rows: Sequence[Row | Fold], titles: tuple[Html, Html], opened: OpenSession,
                 windows: tuple[Window, Window]) -> Html:
    """Rows of two views beside each other; equal messages stand once, across both."""
    head = tag("div", tag("div"), *(tag("div", t, class_="rw-side") for t in titles), class_="rw-row rw-titles")
    return tag("div", head, *(_row(r, opened, windows) for r in rows), class_="rw-views")


def _row(row: Row | Fold, opened: OpenSession, windows: tuple[Window, Window]) -> Html:
    if isinstance(row, Fold):
        return _fold(row)
    if row.label is None and row.ours is not None:
        cells = [_cell(row.ours, opened, windows[0], "rw-wide rw-b-same")]
    else:
        cells = [_side(s, row.label, opened, w) for s, w in zip((row.ours, row.theirs), windows, strict=True)]
    if row.label in ("changed", "truncated") and row.ours and row.theirs:
        changes = messages.difference(row.theirs.message, row.ours.message)
        cells.append(tag("div", changes, class_="rw-cell rw-wide"))
    return tag("div", tag("div", _chip(row.label)), *cells, class_="rw-row")


def _fold(row: Fold) -> Html:
    first, last = row.rows[0].ours, row.rows[-1].ours
    where = f"{messages.number(first)} to {messages.number(last)}" if first and last else ""
    text = f"{len(row.rows):,} messages are the same in both views ({where}); “All messages” shows them"
    return tag("div", tag("div", _chip(None)), tag("div", text, class_="rw-cell rw-wide rw-fold"), class_="rw-row")


def _side(shown: Shown | None, label: Label | None, opened: OpenSession, window: Window) -> Html:
    if shown is None:
        return tag("div", _ABSENT[label or "missing"], class_="rw-cell rw-void")
    return _cell(shown, opened, window, f"rw-b-{label}")


def _cell(shown: Shown, opened: OpenSession, window: Window, look: str) -> Html:
    return tag("div", messages.head(shown, opened.tokens(window, shown)), messages.body(shown.message, opened),
               class_=f"rw-cell {look}")
