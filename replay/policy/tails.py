"""The newest part of a window by size: found in prefix sums, so the work is that of its items, not of its messages."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from replay.log import Ruler
from replay.policy.base import Moment
from replay.window import Span, pieces


@dataclass(frozen=True, slots=True)
class Stretch:
    """A range of the log that a window shows in one form; or an inserted message (`sums` is None)."""

    start: int
    stop: int
    size: int
    sums: Sequence[int] | None = None
    """Prefix sums of the log's weights in that form."""
    begins_item: bool = True
    """The range begins where its item begins."""


def backwards(moment: Moment, ruler: Ruler) -> Iterator[Stretch]:
    """What the window holds with its weight, newest first."""
    log, marks = moment.log, moment.window.marks
    for item in reversed(moment.window.items):
        if not isinstance(item, Span):
            yield Stretch(0, 0, log.inserted_size(item, ruler))
            continue
        for start, stop, rendering in reversed(list(pieces(marks, item.start, item.stop))):
            sums = log.sums(ruler, rendering)
            yield Stretch(start, stop, sums[stop] - sums[start], sums, start == item.start)


def fitting(moment: Moment, ruler: Ruler, room: int) -> int | None:
    """Log index where the newest whole requests begin that weigh no more than `room`.

    The window's end where not even the last one fits; None where everything does.
    """
    cut = moment.window.end
    for found in backwards(moment, ruler):
        if found.size > room:
            return _begin(moment, found, _first_fitting(found, room), cut)
        cut = _begin(moment, found, found.start, cut)
        room -= found.size
    return None


def _first_fitting(found: Stretch, room: int) -> int:
    """The first log index of a range from which on its messages weigh no more than `room`."""
    if found.sums is None:
        return found.stop
    return bisect_left(found.sums, found.sums[found.stop] - room, found.start, found.stop)


def _begin(moment: Moment, found: Stretch, low: int, otherwise: int) -> int:
    """The first index from `low` on where a request or an item begins."""
    requests = moment.log.requests
    return next((i for i in range(low, found.stop)
                 if requests[i] == i or (found.begins_item and i == found.start)), otherwise)


def filling(moment: Moment, ruler: Ruler, tokens: int, start: int = 0) -> int | None:
    """Log index of the message with which the newest ones from `start` on weigh `tokens`; inserted ones do not count.

    None where they weigh less; a message without weight fills nothing.
    """
    room = max(1, tokens)
    for found in backwards(moment, ruler):
        low = max(found.start, start)
        if found.sums is None or low >= found.stop:
            continue
        weight = found.sums[found.stop] - found.sums[low]
        if weight >= room:
            return bisect_right(found.sums, found.sums[found.stop] - room, low, found.stop) - 1
        room -= weight
    return None
