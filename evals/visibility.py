"""What a lane's views hold of a session's spans, followed from view to view by what changed.

A view that only grew costs nothing; any other change costs the spans of the blocks that came, went or look otherwise.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise

from evals.needs import Evidence
from evals.spans_index import block_text
from replay.window import Inserted, Item, Rendering, Span, Window, pieces

Piece = tuple[int, int, Rendering | None]
_ABSENT: tuple[str] = ("absent",)
_NEVER = 1 << 60


class Sight:
    """The current view of a lane: which blocks it shows, and for every span how many of them hold it."""

    def __init__(self, evidence: Evidence) -> None:
        """Before the first view: nothing is seen."""
        self._evidence = evidence
        self._log = evidence.log
        self._window = Window()
        self._pieces: list[Piece] = []
        self._starts: list[int] = []
        self._held: dict[int, tuple[Inserted, set[int]]] = {}
        self._counted = 0
        """Log messages from here on are visible as they stand, and not in the counts."""
        self.verbatim = [0] * len(evidence.spans)
        """For each span the visible blocks of the log that hold it, but for those from `fresh` on."""
        self.inserted = [0] * len(evidence.spans)
        """For each span the summaries and other inserted messages in view that hold it."""
        self.fresh = 0
        """Blocks from here on are visible as they stand, up to the end of the view."""

    def follow(self, window: Window) -> bool:
        """Go on to the next view. Whether more happened than that messages came at the end."""
        before = self._window
        self._window = window
        if self._only_grew(before, window):
            return False
        self._settle(before)
        old, self._pieces = self._pieces, _pieces_of(window)
        self._exchange(old, self._pieces)
        self._starts = [start for start, _, _ in self._pieces]
        self._exchange_inserted(window.items)
        self._counted = self._plain_from(window)
        first = self._evidence.index.first_unit
        self.fresh = first[self._counted] if self._counted < len(first) else _NEVER
        return True

    def _plain_from(self, window: Window) -> int:
        """Log index from which messages that come later are shown as they stand; `_NEVER` where that is not sure."""
        last = window.items[-1] if window.items else None
        marked = max((mark.stop for mark in window.marks), default=0)
        is_open = isinstance(last, Span) and last.stop == window.end and marked <= window.end
        return window.end if is_open else _NEVER

    def _only_grew(self, before: Window, after: Window) -> bool:
        if before.marks != after.marks or len(before.items) != len(after.items):
            return False
        if not after.items or self._counted > before.end:
            return before.items == after.items
        old, new = before.items[-1], after.items[-1]
        return (isinstance(old, Span) and isinstance(new, Span) and old.start == new.start and new.stop == after.end
                and old.stop <= new.stop and before.items[:-1] == after.items[:-1])

    def _settle(self, before: Window) -> None:
        """Count what came since the last change, so that counts and pieces say what the old view showed."""
        if before.items and self._counted < before.end:
            self._add(self._counted, before.end, None, 1)
            start, _, rendering = self._pieces[-1]
            self._pieces[-1] = (start, before.end, rendering)

    def _exchange(self, old: list[Piece], new: list[Piece]) -> None:
        for start, stop, was, now in _differences(old, new):
            if isinstance(was, tuple):
                self._add(start, stop, _rendering(now), 1)
            elif isinstance(now, tuple):
                self._add(start, stop, _rendering(was), -1)
            else:
                for index in self._changed(start, stop, _rendering(was), _rendering(now)):
                    self._add(index, index + 1, _rendering(was), -1)
                    self._add(index, index + 1, _rendering(now), 1)

    def _changed(self, start: int, stop: int, *renderings: Rendering | None) -> Iterator[int]:
        """Messages that one of the renderings shows otherwise than they stand."""
        counts = [self._log.changed(r) for r in renderings if r is not None]
        index = start
        while counts and index < stop:
            index = min(bisect_right(c, c[index]) - 1 for c in counts)
            if index < stop:
                yield index
            index += 1

    def _add(self, start: int, stop: int, rendering: Rendering | None, step: int) -> None:
        """Count the spans of messages `[start, stop)` as shown; `step` 1 or -1."""
        counts, first = self.verbatim, self._evidence.index.first_unit
        stop = min(stop, len(first) - 1)
        if rendering is not None:
            for index in range(start, stop):
                for number in self._shown_spans(rendering, index):
                    counts[number] += step
            return
        for spans in self._evidence.unit_spans[first[start]:first[max(start, stop)]]:
            for number in spans:
                counts[number] += step

    def _shown_spans(self, rendering: Rendering, index: int) -> Iterable[int]:
        """Spans of a message as a rendering shows it."""
        shown, message = self._log.rendered(rendering)[index], self._log.messages[index]
        first = self._evidence.index.first_unit[index]
        own = {id(block): first + place for place, block in enumerate(message.blocks)}
        for block in shown.blocks:
            if id(block) in own:
                yield from self._evidence.unit_spans[own[id(block)]]
            else:
                yield from self._evidence.spans_in(block_text(block))

    def _exchange_inserted(self, items: tuple[Item, ...]) -> None:
        """Count what inserted messages hold; one that stays in view is read once."""
        now = {id(item): item for item in items if isinstance(item, Inserted)}
        for key in self._held.keys() - now.keys():
            self._count_inserted(*self._held.pop(key), -1)
        for key in now.keys() - self._held.keys():
            item = now[key]
            spans = self._evidence.spans_in("\n".join(map(block_text, item.message.blocks)))
            self._held[key] = (item, spans)
            self._count_inserted(item, spans, 1)

    def _count_inserted(self, item: Inserted, spans: set[int], step: int) -> None:
        """A message that was cut short still says word for word what is left of it."""
        counts = self.verbatim if item.kind == "truncated" else self.inserted
        for number in spans:
            counts[number] += step

    def shows(self, unit: int) -> bool:
        """Whether a block of the log is visible as it stands."""
        block = self._evidence.index.units[unit]
        if block.message >= self._counted:
            return block.message < self._window.end
        place = bisect_right(self._starts, block.message) - 1
        if place < 0 or block.message >= self._pieces[place][1]:
            return False
        rendering = self._pieces[place][2]
        return rendering is None or any(b is block.block for b in self._log.rendered(rendering)[block.message].blocks)

    def holds(self, number: int, before: int) -> str:
        """How a span is in view for an action whose own blocks start at `before`: `verbatim`, `summary` or `gone`."""
        places = self._evidence.places[number]
        known = bisect_left(places, before)
        if self.verbatim[number] or (known and places[known - 1] >= self.fresh):
            return "verbatim"
        return "summary" if self.inserted[number] else "gone"


def _pieces_of(window: Window) -> list[Piece]:
    """The log messages of a window in log order, cut where they are shown otherwise."""
    spans = sorted((i for i in window.items if isinstance(i, Span)), key=lambda s: s.start)
    if not window.marks:
        return [(s.start, s.stop, None) for s in spans]
    return [piece for s in spans for piece in pieces(window.marks, s.start, s.stop)]


def _differences(old: list[Piece], new: list[Piece]) -> Iterator[tuple[int, int, object, object]]:
    """Ranges that the two show differently, with the rendering in each; the tuple `_ABSENT` where it is not shown."""
    borders = sorted({edge for start, stop, _ in (*old, *new) for edge in (start, stop)})
    places = [0, 0]
    for start, stop in pairwise(borders):
        shown: list[object] = []
        for side, listed in enumerate((old, new)):
            while places[side] < len(listed) and listed[places[side]][1] <= start:
                places[side] += 1
            inside = places[side] < len(listed) and listed[places[side]][0] <= start
            shown.append(listed[places[side]][2] if inside else _ABSENT)
        if shown[0] is not shown[1] and shown[0] != shown[1]:
            yield start, stop, shown[0], shown[1]


def _rendering(shown: object) -> Rendering | None:
    return shown  # type: ignore[return-value]
