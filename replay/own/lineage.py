"""Where the messages that own code gives come from: found by their content, so every metric works on a black box."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

from replay.own.base import Native, NativeShape
from replay.own.natives import Piece, call_ids, message_of, pieces_of, shaped, text_of
from replay.transcript import Message
from replay.window import Inserted, Item, Span, Window, joined, merged

_HEAD = 40
"""Characters at an end of a text by which a shortened message is known."""


class Place(NamedTuple):
    """A piece of the log."""

    at: int
    """Log index."""
    part: int


class Known(NamedTuple):
    """What a piece that own code gave is."""

    piece: Piece
    place: Place | None
    """The very piece of the log."""
    at: int | None
    """The log message that it is, or that it stands for in another form."""
    row: int
    """Which of the messages that were given it is in."""


@dataclass
class Lineage:
    """The log that one session's code has been shown, and what it made of it."""

    shape: NativeShape
    _places: dict[bytes, list[Place]] = field(default_factory=dict)
    _parts: list[int] = field(default_factory=list)
    """Pieces of each log message."""
    _calls: dict[tuple[str, str], int] = field(default_factory=dict)
    """Role and call id to the log message."""
    _heads: dict[tuple[str, str], int] = field(default_factory=dict)
    _tails: dict[tuple[str, str], int] = field(default_factory=dict)
    _made: dict[tuple[bytes, ...], Inserted] = field(default_factory=dict)
    """What the code made before: it stays the same thing."""

    def add(self, message: Message) -> list[Native]:
        """The next message of the log, in the code's shape."""
        natives = shaped(message, self.shape)
        pieces = [piece for native in natives for piece in pieces_of(native, self.shape)]
        for part, piece in enumerate(pieces):
            self._places.setdefault(piece.key, []).append(Place(message.index, part))
            for call in call_ids(piece):
                self._calls[piece.role, call] = message.index
            text = text_of(piece)
            if len(text) > _HEAD:
                self._heads.setdefault((piece.role, text[:_HEAD]), message.index)
                self._tails.setdefault((piece.role, text[-_HEAD:]), message.index)
        self._parts.append(len(pieces))
        return natives

    def window(self, given: Sequence[Native], before: Window) -> Window:
        """The window that shows what the code gave; `before`: what it was offered."""
        known = list(self._known(given))
        groups = [list(group) for _, group in groupby(known, key=lambda k: (k.at, k.row if k.at is None else -1))]
        seen = {k.at for k in known}
        gone = [i for i in _offered(before) if i not in seen]
        fresh = [g for g in groups if g[0].at is None and tuple(k.piece.key for k in g) not in self._made]
        # Something that is new where something else went stands for it; of several the longest does.
        covers = _ranges(gone, _lost_covers(before, groups, self._made))
        summary = max(fresh, key=lambda g: sum(len(k.piece.key) for k in g), default=None) if covers else None
        items = (self._item(group, covers if group is summary else None) for group in groups)
        return Window(joined(item for item in items if item is not None), (), before.end)

    def _known(self, given: Sequence[Native]) -> Iterator[Known]:
        used: set[Place] = set()
        last = Place(-1, -1)
        for row, native in enumerate(given):
            for piece in pieces_of(native, self.shape):
                place = _next(self._places.get(piece.key, ()), last, used)
                if place is not None:
                    used.add(place)
                    last = place
                yield Known(piece, place, place.at if place else self._changed(piece), row)

    def _changed(self, piece: Piece) -> int | None:
        """The log message that a piece is a changed form of, by its call's id or the text at either end."""
        for call in call_ids(piece):
            if (piece.role, call) in self._calls:
                return self._calls[piece.role, call]
        text = text_of(piece)
        if len(text) <= _HEAD:
            return None
        return self._heads.get((piece.role, text[:_HEAD]), self._tails.get((piece.role, text[-_HEAD:])))

    def _item(self, group: Sequence[Known], covers: tuple[Span, ...] | None) -> Item | None:
        index = group[0].at
        whole = [Place(index, part) for part in range(self._parts[index])] if index is not None else []
        if index is not None and whole == [k.place for k in group]:
            return Span(index, index + 1)
        key = tuple(k.piece.key for k in group)
        if key not in self._made:
            self._made[key] = _inserted(group, index, covers)
        return self._made[key]


def _inserted(group: Sequence[Known], index: int | None, covers: tuple[Span, ...] | None) -> Inserted:
    message = message_of([k.piece for k in group])
    if index is not None:
        return Inserted(message=message, kind="truncated", covers=(Span(index, index + 1),), label="own code")
    if covers is not None:
        return Inserted(message=replace(message, origin="summary"), kind="summary", covers=covers, label="own code",
                        source=message.text)
    return Inserted(message=replace(message, origin="injected"), kind="injected", label="own code")


def _next(places: Sequence[Place], last: Place, used: set[Place]) -> Place | None:
    """The place behind the last one that holds a piece, else the first that is not taken."""
    free = [place for place in places if place not in used]
    return next((place for place in free if place > last), free[0] if free else None)


def _offered(before: Window) -> Iterator[int]:
    """The log messages that were offered, those in another form too."""
    for item in before.items:
        if isinstance(item, Span):
            yield from range(item.start, item.stop)
        elif item.kind == "truncated":
            yield from (i for span in item.covers for i in range(span.start, span.stop))


def _lost_covers(before: Window, groups: Iterable[Sequence[Known]],
                 made: Mapping[tuple[bytes, ...], Inserted]) -> Iterator[Span]:
    """What summaries spoke for that are not shown any more."""
    shown = {id(found) for group in groups if (found := made.get(tuple(k.piece.key for k in group))) is not None}
    for summary in before.summaries():
        if id(summary) not in shown:
            yield from summary.covers


def _ranges(indices: Sequence[int], more: Iterable[Span]) -> tuple[Span, ...]:
    """Log indices and ranges as ranges in order, each as long as can be."""
    return merged([*(Span(i, i + 1) for i in indices), *more])
