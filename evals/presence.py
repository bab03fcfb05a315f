"""When each message of a log was shown in a lane, told from what changes between views; no view is rendered.

Positions count the views of a lane from 0. The work is that of the changes: a view that only grew costs very little.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replay.engine import View
from replay.log import Log
from replay.window import Inserted, Item, Mark, Rendering, Span, Window, merged, pieces, rendering_at

IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Views in which no message comes back after it has left; most lanes are one stretch."""

    first: int
    stop: int
    """Positions of its views: `[first, stop)`."""
    shown: IntArray
    """For each log message the position of the first view that shows it."""
    gone: IntArray
    """For each log message the position from which it is no longer shown."""
    altered: Mapping[Rendering, tuple[IntArray, IntArray]]
    """For each rendering and message the positions from which on and up to which it is shown through it."""


@dataclass(frozen=True, slots=True)
class Placed:
    """An inserted message and the positions `[first, stop)` of the views that show it."""

    item: Inserted
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class Presence:
    """What a lane showed when."""

    views: int
    stretches: tuple[Stretch, ...]
    placed: tuple[Placed, ...]
    whole: bool = False
    """Every view showed everything that had arrived, as it was recorded, and nothing besides."""


def arrivals(log: Log) -> IntArray:
    """For each message the position of the first view that could show it; the number of views where none could."""
    starts = np.fromiter((s.start for s in log.steps), np.int64, len(log.steps))
    return np.searchsorted(starts, np.arange(len(log)), side="right").astype(np.int64)


def presence(views: Sequence[View], log: Log) -> Presence:
    """Follow the views of a lane."""
    follower = _Follower(arrivals(log), len(views))
    for position, view in enumerate(views):
        follower.take(position, view.window)
    return follower.done()


def intact(view: View, index: int, log: Log) -> bool:
    """Whether a view shows a log message as it was recorded."""
    window = view.window
    if not any(isinstance(i, Span) and i.start <= index < i.stop for i in window.items):
        return False
    return not any(m.start <= index < m.stop and _changes(log, m.rendering, index) for m in window.marks)


def _changes(log: Log, rendering: Rendering, index: int) -> bool:
    counts = log.changed(rendering)
    return counts[index + 1] > counts[index]


class _Follower:
    """Keeps the current window and writes down what leaves it, what is shown otherwise, and what is inserted."""

    def __init__(self, arrival: IntArray, views: int) -> None:
        self._arrival, self._views = arrival, views
        self._window, self._whole = Window(), True
        self._stretches: list[Stretch] = []
        self._open: dict[int, tuple[Inserted, int]] = {}
        self._placed: list[Placed] = []
        self._start(0)

    def _start(self, position: int) -> None:
        self._first = position
        self._shown = np.maximum(self._arrival, position)
        self._gone = np.full(len(self._arrival), self._views, np.int64)
        self._altered: dict[Rendering, tuple[IntArray, IntArray]] = {}

    def take(self, position: int, window: Window) -> None:
        """The next view."""
        before, self._window = self._window, window
        grew = _only_grew(before, window)
        if grew and before.marks is window.marks:
            return
        self._whole = self._whole and before.end == 0 and window.items == (Span(0, window.end),) and not window.marks
        if not grew:
            self._insertions(position, window.items)
        if not self._fits(position, before, window, grew):
            self._restart(position, window)

    def _fits(self, position: int, before: Window, window: Window, grew: bool) -> bool:
        """Write the change down; False where something comes back, which needs a new stretch."""
        if not grew:
            old = covered(before.items, (before.end, window.end))
            new = covered(window.items)
            if minus(new, old):
                return False
            for start, stop in minus(old, new):
                self._gone[start:stop] = position
        return self._mark(position, before, window)

    def _mark(self, position: int, last: Window, window: Window) -> bool:
        if last.marks is window.marks:
            return True
        if (stop := _widened(last.marks, window.marks)) is not None:
            self._alter(position, last.marks, window.marks, (stop, min(window.marks[0].stop, len(self._gone))))
            return True
        before, after = _ranges(last.marks), _ranges(window.marks)
        for rendering, ranges in before.items():
            # Shown again as recorded: what is in view, and what a mark was laid over before it came.
            if overlap(minus(ranges, after.get(rendering, [])), covered(window.items, (last.end, len(self._gone)))):
                return False
        for rendering, ranges in after.items():
            for start, stop in minus(ranges, before.get(rendering, [])):
                self._alter(position, last.marks, window.marks, (start, min(stop, len(self._gone))))
        return True

    def _alter(self, position: int, old: tuple[Mark, ...], new: tuple[Mark, ...], where: tuple[int, int]) -> None:
        """Messages of a range are shown through other renderings from a position on."""
        for start, stop, _ in pieces(old + new, *where):
            before, after = rendering_at(old, start), rendering_at(new, start)
            # What has left keeps the form that it left in.
            live = self._gone[start:stop] == self._views
            if before is not None:
                self._through(before)[1][start:stop][live] = position
            if after is not None:
                self._through(after)[0][start:stop][live] = position

    def _through(self, rendering: Rendering) -> tuple[IntArray, IntArray]:
        if rendering not in self._altered:
            never = np.full(len(self._arrival), self._views, np.int64)
            self._altered[rendering] = never, never.copy()
        return self._altered[rendering]

    def _restart(self, position: int, window: Window) -> None:
        self._close(position)
        self._start(position)
        for start, stop in minus([(0, window.end)], covered(window.items)):
            self._gone[start:stop] = position
        self._mark(position, Window(), window)

    def _close(self, position: int) -> None:
        np.minimum(self._gone, position, out=self._gone)
        if position > self._first:
            self._stretches.append(Stretch(self._first, position, self._shown, self._gone, self._altered))

    def _insertions(self, position: int, items: tuple[Item, ...]) -> None:
        now = {id(i): i for i in items if isinstance(i, Inserted)}
        for key in [k for k in self._open if k not in now]:
            item, first = self._open.pop(key)
            self._placed.append(Placed(item, first, position))
        for key, item in now.items():
            self._open.setdefault(key, (item, position))

    def done(self) -> Presence:
        """Everything, when the last view has been taken."""
        self._insertions(self._views, ())
        self._close(self._views)
        return Presence(self._views, tuple(self._stretches), tuple(self._placed), self._whole)


def _only_grew(old: Window, new: Window) -> bool:
    """Whether the new window shows what the old one did and everything that arrived since."""
    before, after = old.items, new.items
    if not before or len(before) != len(after):
        return False
    a, b = before[-1], after[-1]
    if isinstance(a, Span) and isinstance(b, Span):
        grew = a.start == b.start and a.stop == old.end and b.stop == new.end
    else:
        grew = a is b and old.end == new.end
    return grew and (len(before) == 1 or before[:-1] == after[:-1])


def _widened(old: tuple[Mark, ...], new: tuple[Mark, ...]) -> int | None:
    """Where the only mark stopped that now stops later, the commonest change of all; None for any other."""
    if len(old) != 1 or len(new) != 1 or old[0].start != new[0].start or old[0].stop > new[0].stop:
        return None
    return old[0].stop if old[0].rendering == new[0].rendering else None


Ranges = list[tuple[int, int]]


def covered(items: Iterable[Item], *more: tuple[int, int]) -> Ranges:
    """The log ranges that items show, in order and joined."""
    spans = [i for i in items if isinstance(i, Span)]
    if not more and len(spans) < 2:
        return [(s.start, s.stop) for s in spans if s.start < s.stop]
    spans += [Span(*m) for m in more]
    return [(s.start, s.stop) for s in merged(spans) if s.start < s.stop]


def minus(ranges: Ranges, taken: Ranges) -> Ranges:
    """What is in the first ranges and not in the second; both in order and disjoint."""
    left: Ranges = []
    for start, stop in ranges:
        for low, high in taken:
            if low >= stop:
                break
            if high > start:
                if low > start:
                    left.append((start, low))
                start = max(start, high)
        if start < stop:
            left.append((start, stop))
    return left


def overlap(ranges: Ranges, others: Ranges) -> bool:
    """Whether two lists of ranges share anything."""
    return any(a < d and c < b for a, b in ranges for c, d in others)


def _ranges(marks: Sequence[Mark]) -> dict[Rendering, Ranges]:
    found: dict[Rendering, list[Span]] = {}
    for mark in marks:
        found.setdefault(mark.rendering, []).append(Span(mark.start, mark.stop))
    return {r: [(s.start, s.stop) for s in merged(spans)] for r, spans in found.items()}


def steps_with(pieces: tuple[IntArray, IntArray], views: int) -> Any:
    """For each view in how many of the pieces (starts, stops) it lies."""
    starts, stops = pieces
    change = np.bincount(starts, minlength=views + 1) - np.bincount(stops, minlength=views + 1)
    return np.cumsum(change)[:views]
