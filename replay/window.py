"""What is in context now, as ranges of the log and inserted messages: small, immutable, cheap to extend."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Literal, NamedTuple, Protocol

from replay.transcript import Message

InsertedKind = Literal["summary", "injected", "notice", "truncated"]


class Span(NamedTuple):
    """The log's messages `[start, stop)`, verbatim but for the window's marks."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inserted:
    """A message of the window that is not in the log, or stands for one that is."""

    message: Message
    kind: InsertedKind
    covers: tuple[Span, ...] = ()
    """Log ranges that a summary speaks for, or the message that was truncated."""
    tokens: int | None = None
    """Size where the text itself is only modelled (summariser `length-model`)."""
    label: str | None = None
    """What made it, e.g. the summariser's name."""
    source: str | None = None
    """The summary's own text, without what stands around it in the message."""


Item = Span | Inserted


class Rendering(Protocol):
    """Shows a message in another form; it must leave calls and ids alone."""

    def render(self, message: Message) -> Message:
        """The message as the model sees it; the same object where nothing changes."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A rendering of some log messages alone."""

    rendering: Rendering
    indices: frozenset[int]

    def render(self, message: Message) -> Message:
        """The message rendered, where its log index is among the chosen ones."""
        return self.rendering.render(message) if message.index in self.indices else message


@dataclass(frozen=True, slots=True)
class Layered:
    """Several renderings, one on top of the other."""

    renderings: tuple[Rendering, ...]

    def render(self, message: Message) -> Message:
        """The message after all of them."""
        for rendering in self.renderings:
            message = rendering.render(message)
        return message


class Mark(NamedTuple):
    """Log messages `[start, stop)` are shown through a rendering; where marks overlap, one after the other."""

    rendering: Rendering
    start: int
    stop: int


class Window(NamedTuple):
    """What is in context: items in order and the marks that change how log messages are shown."""

    items: tuple[Item, ...] = ()
    marks: tuple[Mark, ...] = ()
    end: int = 0
    """Length of the log that the window has seen."""

    def extended(self, stop: int) -> Window:
        """The window after the log grew to `stop` messages."""
        if stop <= self.end:
            return self
        last = self.items[-1] if self.items else None
        if isinstance(last, Span) and last.stop == self.end:
            return Window((*self.items[:-1], Span(last.start, stop)), self.marks, stop)
        return Window((*self.items, Span(self.end, stop)), self.marks, stop)

    def with_items(self, items: tuple[Item, ...]) -> Window:
        """The same marks over other items; empty spans are dropped and neighbours joined."""
        return Window(joined(items), self.marks, self.end)

    def with_mark(self, mark: Mark) -> Window:
        """With a mark on top, or the mark of the same rendering widened where both touch."""
        marks = list(self.marks)
        for position, old in enumerate(marks):
            same = old.rendering is mark.rendering or old.rendering == mark.rendering
            if same and old.start <= mark.stop and mark.start <= old.stop:
                marks[position] = Mark(old.rendering, min(old.start, mark.start), max(old.stop, mark.stop))
                return Window(self.items, tuple(marks), self.end)
        return Window(self.items, (*marks, mark), self.end)

    def rendered_to(self, rendering: Rendering) -> int:
        """Log index below which a rendering is in force; 0 where it is not."""
        return max([m.stop for m in self.marks if m.rendering is rendering or m.rendering == rendering], default=0)

    def indices(self) -> Iterator[int]:
        """The log indices that are visible, in view order."""
        for item in self.items:
            if isinstance(item, Span):
                yield from range(item.start, item.stop)

    def message_count(self) -> int:
        """Messages in the window; an inserted one counts as one."""
        return sum(i.stop - i.start if isinstance(i, Span) else 1 for i in self.items)

    def summaries(self) -> tuple[Inserted, ...]:
        """The summaries in the window."""
        return tuple(i for i in self.items if isinstance(i, Inserted) and i.kind == "summary")


def spans_after(items: tuple[Item, ...], index: int) -> tuple[Item, ...]:
    """The part of the items whose log messages have an index of at least `index`; inserted items drop out."""
    return tuple(Span(max(i.start, index), i.stop) for i in items if isinstance(i, Span) and i.stop > index)


def spans_before(items: tuple[Item, ...], index: int) -> tuple[Span, ...]:
    """The log ranges of the items below `index`."""
    return tuple(Span(i.start, min(i.stop, index)) for i in items if isinstance(i, Span) and i.start < index)


def without(items: tuple[Item, ...], indices: frozenset[int]) -> tuple[Item, ...]:
    """The items without these log messages."""
    kept: list[Item] = []
    for item in items:
        if not isinstance(item, Span):
            kept.append(item)
            continue
        start = item.start
        for index in sorted(i for i in indices if item.start <= i < item.stop):
            kept.append(Span(start, index))
            start = index + 1
        kept.append(Span(start, item.stop))
    return joined(kept)


def joined(items: Iterable[Item]) -> tuple[Item, ...]:
    """Items in their order without empty spans, and with one span where two follow on each other."""
    kept: list[Item] = []
    for item in items:
        last = kept[-1] if kept else None
        if isinstance(item, Span) and isinstance(last, Span) and last.stop == item.start:
            kept[-1] = Span(last.start, max(item.stop, item.start))
        elif not isinstance(item, Span) or item.stop > item.start:
            kept.append(item)
    return tuple(kept)


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The same log indices in as few ranges as there can be, in order."""
    given = list(spans)
    if len(given) < 2:
        return tuple(given)
    found: list[Span] = []
    for span in sorted(given, key=_start):
        if found and span.start <= found[-1].stop:
            found[-1] = Span(found[-1].start, max(found[-1].stop, span.stop))
        else:
            found.append(span)
    return tuple(found)


def _start(span: Span) -> int:
    return span.start


def spoken_for(window: Window) -> tuple[Span, ...]:
    """The log messages that a window holds, or that its summaries speak for."""
    return merged([s for i in window.items for s in ((i,) if isinstance(i, Span) else i.covers)])


def rendering_at(marks: tuple[Mark, ...], index: int) -> Rendering | None:
    """What a log message is shown through; None: verbatim."""
    if len(marks) == 1:
        return marks[0].rendering if marks[0].start <= index < marks[0].stop else None
    if len(marks) >= MANY:
        known = segments(marks)
        return known.renderings[bisect_right(known.starts, index)]
    found = tuple(mark.rendering for mark in marks if mark.start <= index < mark.stop)
    if len(found) < 2:
        return found[0] if found else None
    return _layered(found)


def pieces(marks: tuple[Mark, ...], start: int, stop: int) -> Iterator[tuple[int, int, Rendering | None]]:
    """The range `[start, stop)` cut where the marks change: start, stop and rendering of each piece, in order."""
    if not marks:
        if start < stop:
            yield start, stop, None
        return
    if len(marks) == 1:
        yield from _one_mark(marks[0], start, stop)
        return
    if len(marks) >= MANY:
        yield from segments(marks).between(start, stop)
        return
    inside = {border for mark in marks for border in (mark.start, mark.stop) if start < border < stop}
    for low, high in pairwise(sorted({start, stop, *inside})):
        yield low, high, rendering_at(marks, low)


def _one_mark(mark: Mark, start: int, stop: int) -> Iterator[tuple[int, int, Rendering | None]]:
    low, high = max(start, mark.start), min(stop, mark.stop)
    if low >= high:
        if start < stop:
            yield start, stop, None
        return
    if start < low:
        yield start, low, None
    yield low, high, mark.rendering
    if high < stop:
        yield high, stop, None


class Segments(NamedTuple):
    """Many marks as ranges of the log that do not overlap, so that an index is found without asking every mark."""

    marks: tuple[Mark, ...]
    starts: list[int]
    renderings: list[Rendering | None]
    """What messages below each start are shown through; last, those behind all of them."""

    def between(self, start: int, stop: int) -> Iterator[tuple[int, int, Rendering | None]]:
        """The pieces of a range, in order."""
        place = bisect_right(self.starts, start)
        while start < stop:
            end = min(stop, self.starts[place]) if place < len(self.starts) else stop
            yield start, end, self.renderings[place]
            start, place = end, place + 1


def segments(marks: tuple[Mark, ...]) -> Segments:
    """The segments of marks; windows share their marks from step to step, so they are found by identity."""
    known = _SEGMENTS.get(id(marks))
    if known is not None and known.marks is marks:
        return known
    made = _apart(marks) or _overlapping(marks)
    if len(_SEGMENTS) >= _SEGMENTS_KEPT:
        _SEGMENTS.clear()
    _SEGMENTS[id(marks)] = made
    return made


def _apart(marks: tuple[Mark, ...]) -> Segments | None:
    """The segments of marks that follow on each other with room between them; None where they do not."""
    starts: list[int] = []
    renderings: list[Rendering | None] = [None]
    last = -1
    for mark in marks:
        if mark.start <= last or mark.stop <= mark.start:
            return None
        starts += (mark.start, mark.stop)
        renderings += (mark.rendering, None)
        last = mark.stop
    return Segments(marks, starts, renderings)


def _overlapping(marks: tuple[Mark, ...]) -> Segments:
    """The segments of any marks."""
    changes: dict[int, list[int]] = {}
    for place, mark in enumerate(marks):
        changes.setdefault(mark.start, []).append(place)
        changes.setdefault(mark.stop, []).append(place)
    made, over = Segments(marks, sorted(changes), [None]), set[int]()
    for border in made.starts:
        over.symmetric_difference_update(p for p in changes[border] if marks[p].start < marks[p].stop)
        found = tuple(marks[p].rendering for p in sorted(over))
        made.renderings.append(_layered(found) if len(found) > 1 else found[0] if found else None)
    return made


MANY = 4
"""Marks from which on their segments are worth finding."""
_SEGMENTS_KEPT = 32
_SEGMENTS: dict[int, Segments] = {}


@lru_cache(maxsize=1024)
def _layered(renderings: tuple[Rendering, ...]) -> Rendering:
    """The same object for the same renderings: what a log computes from it is found by identity."""
    return Layered(renderings)
