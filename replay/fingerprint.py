"""Fingerprints of successive views, computed from what changed, and the prefix that two views share."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from replay.canonical import CHAIN_START, digest, link
from replay.log import Log
from replay.window import Inserted, Item, Mark, Span, Window


@dataclass(frozen=True, slots=True)
class Print:
    """What is known of one view without rendering it."""

    fingerprint: bytes
    """Last value of the view's prefix chain; layers, the same in every view, are not part of it."""
    messages: int
    common_messages: int
    """Messages at the start that are the same as in the previous view."""
    common_tokens: int
    """Counted tokens of those."""


class Chain:
    """Follows the views of one lane and fingerprints each; the work is what differs from the view before."""

    def __init__(self, log: Log, head: tuple[Inserted, ...] = ()) -> None:
        """Start before the first view. `head`: layers in front of every view, which no fingerprint covers."""
        self._log = log
        self._head = len(head)
        self._head_tokens = sum(log.inserted_size(item, log.tokens) for item in head)
        self._window = Window()
        self._links: list[bytes] = [CHAIN_START]
        self._sizes: list[int] = [0]
        self._inserted: dict[int, tuple[Inserted, bytes]] = {}

    def follow(self, shown: Window) -> Print:
        """The print of the next view."""
        window = Window(shown.items[self._head:], shown.marks, shown.end) if self._head else shown
        first = not self._window.items
        common = _common_messages(self._log, self._window, window)
        del self._links[common + 1:], self._sizes[common + 1:]
        for item_digest, size in self._rest(window, common):
            self._links.append(link(self._links[-1], item_digest))
            self._sizes.append(self._sizes[-1] + size)
        self._window = window
        head, tokens = (0, 0) if first else (self._head, self._head_tokens)
        return Print(self._links[-1], self._head + len(self._links) - 1, head + common, tokens + self._sizes[common])

    def _rest(self, window: Window, skip: int) -> Iterator[tuple[bytes, int]]:
        for item in window.items:
            if isinstance(item, Inserted):
                if skip:
                    skip -= 1
                    continue
                yield self._inserted_digest(item), self._log.inserted_size(item, self._log.tokens)
                continue
            length = item.stop - item.start
            passed = min(skip, length)
            skip -= passed
            yield from self._span(item.start + passed, item.stop, window.marks)

    def _inserted_digest(self, item: Inserted) -> bytes:
        known = self._inserted.get(id(item))
        if known is None or known[0] is not item:
            known = self._inserted[id(item)] = (item, digest(item.message))
        return known[1]

    def _span(self, start: int, stop: int, marks: tuple[Mark, ...]) -> Iterator[tuple[bytes, int]]:
        digests, sums = self._log.digests, self._log.sums(self._log.tokens)
        for index in range(start, stop):
            mark = mark_at(marks, index) if marks else None
            if mark is None:
                yield digests[index], sums[index + 1] - sums[index]
                continue
            changed = self._log.sums(self._log.tokens, mark.rendering)
            yield self._log.rendered_digest(mark, index), changed[index + 1] - changed[index]


def mark_at(marks: tuple[Mark, ...], index: int) -> Mark | None:
    """The mark through which a log message is shown; None: verbatim."""
    for mark in marks:
        if mark.start <= index < mark.stop and (mark.only is None or index in mark.only):
            return mark
    return None


def _common_messages(log: Log, old: Window, new: Window) -> int:
    """Messages at the start that both windows show alike."""
    count = 0
    changed_from = _first_mark_change(log, old.marks, new.marks)
    for before, after in zip(old.items, new.items, strict=False):
        same, whole = _common_of(before, after, changed_from)
        count += same
        if not whole:
            break
    return count


def _common_of(before: Item, after: Item, changed_from: int) -> tuple[int, bool]:
    """Common messages of two items, and whether the comparison may go on behind them."""
    if isinstance(before, Inserted) or isinstance(after, Inserted):
        same = before is after or (isinstance(before, Inserted) and isinstance(after, Inserted)
                                   and before.message.blocks == after.message.blocks
                                   and before.message.role == after.message.role)
        return int(same), same
    if before.start != after.start:
        return 0, False
    stop = min(before.stop, after.stop)
    if before.start <= changed_from < stop:
        return changed_from - before.start, False
    return stop - before.start, before.stop == after.stop


def _first_mark_change(log: Log, old: tuple[Mark, ...], new: tuple[Mark, ...]) -> int:
    """Lowest log index that is shown differently under the new marks; the log's length where none is."""
    if old == new:
        return len(log)
    found = [len(log)]
    for mark in new:
        if mark in old:
            continue
        counts = log.changed(mark.rendering)
        same = next((m for m in old if m.rendering == mark.rendering and m.only is None and mark.only is None), None)
        low = mark.start if same is None else same.stop
        if mark.only is not None:
            found.append(min((i for i in mark.only if counts[i + 1] > counts[i]), default=len(log)))
        elif counts[mark.stop] > counts[low]:
            found.append(bisect_right(counts, counts[low]) - 1)
    removed = [m.start for m in old if m not in new and not any(n.rendering == m.rendering for n in new)]
    return min(found + removed)
