"""Fingerprints of successive views, computed from what changed, and the prefix that two views share."""

from __future__ import annotations

from bisect import bisect_right
from hashlib import sha256
from operator import is_
from typing import NamedTuple

from replay.canonical import CHAIN_START, digest, link
from replay.log import Log
from replay.window import MANY, Inserted, Item, Mark, Rendering, Window, pieces, rendering_at


class Print(NamedTuple):
    """What is known of one view without rendering it."""

    fingerprint: bytes
    """Last value of the view's prefix chain; layers, the same in every view, are not part of it."""
    messages: int
    common_messages: int
    """Messages at the start that are the same as in the previous view."""
    common_tokens: int
    """Counted tokens of those."""
    kept: int = 0
    """Common messages without the layers: links of the chain that stay."""
    links: tuple[bytes, ...] = ()
    """Values of the chain behind those, one a message."""
    sizes: tuple[int, ...] = ()
    """Counted tokens of the view up to each of those links."""


class Chain:
    """Follows the views of one lane and fingerprints each; the work is what differs from the view before."""

    def __init__(self, log: Log, head: tuple[Inserted, ...] = ()) -> None:
        """Start before the first view. `head`: layers in front of every view, which no fingerprint covers."""
        self._log = log
        self._head = len(head)
        self._head_tokens = sum(log.inserted_size(item, log.tokens) for item in head)
        self._window: Window | None = None
        self._links: list[bytes] = [CHAIN_START]
        self._sizes: list[int] = [0]
        self._inserted: dict[int, tuple[Inserted, bytes]] = {}

    def follow(self, shown: Window) -> Print:
        """The print of the next view."""
        window = Window(shown.items[self._head:], shown.marks, shown.end) if self._head else shown
        head, tokens = (0, 0) if self._window is None else (self._head, self._head_tokens)
        grown = _grown(self._window, window)
        if grown is not None:
            common = self._append(grown, rendering_at(window.marks, grown.start) if window.marks else None)
        else:
            common = self._extend(window, _common_messages(self._log, self._window or Window(), window))
        self._window = window
        links, ends, layers = self._links, self._sizes, self._head_tokens
        sizes = [layers + size for size in ends[common + 1:]] if layers else ends[common + 1:]
        return Print(links[-1], self._head + len(links) - 1, head + common, tokens + ends[common], common,
                     tuple(links[common + 1:]), tuple(sizes))

    def _append(self, grown: range, rendering: Rendering | None) -> int:
        """Chain messages, shown in one form, that came behind the view before; that view's messages are all common."""
        common = len(self._links) - 1
        self._chain(grown.start, grown.stop, rendering)
        return common

    def _chain(self, start: int, stop: int, rendering: Rendering | None) -> None:
        """Chain log messages that are shown in one form."""
        log, links, sizes = self._log, self._links, self._sizes
        sums = log.sums(log.tokens, rendering)
        last, beyond = links[-1], sizes[-1] - sums[start]
        if last == log.links[start] and (rendering is None or not _changes(log, rendering, start, stop)):
            # All that is shown so far is the log as it stands: its links are the same in every lane.
            links += log.links[start + 1:stop + 1]
            sizes += [beyond + size for size in sums[start + 1:stop + 1]]
            return
        shown = log.digests[start:stop] if rendering is None else log.rendered_digests(rendering, start, stop)
        for item in shown:
            # As `link` does it; the call would cost as much again.
            last = sha256(last + item).digest()
            links.append(last)
        sizes += [beyond + size for size in sums[start + 1:stop + 1]]

    def _extend(self, window: Window, same: int) -> int:
        """Chain what follows on the first `same` messages; the number of messages that both views begin with."""
        links, sizes = self._links, self._sizes
        before = links[same + 1:]
        del links[same + 1:], sizes[same + 1:]
        self._rest(window, same)
        # Other places of the log may read the same: then the links agree although the ranges do not.
        more = 0
        while more < len(before) and same + more + 1 < len(links) and links[same + more + 1] == before[more]:
            more += 1
        return same + more

    def _rest(self, window: Window, skip: int) -> None:
        """Chain the messages of a window behind the first `skip`."""
        for item in window.items:
            if isinstance(item, Inserted):
                if skip:
                    skip -= 1
                    continue
                self._links.append(link(self._links[-1], self._inserted_digest(item)))
                self._sizes.append(self._sizes[-1] + self._log.inserted_size(item, self._log.tokens))
                continue
            passed = min(skip, item.stop - item.start)
            skip -= passed
            for start, stop, rendering in pieces(window.marks, item.start + passed, item.stop):
                self._chain(start, stop, rendering)

    def _inserted_digest(self, item: Inserted) -> bytes:
        known = self._inserted.get(id(item))
        if known is None or known[0] is not item:
            known = self._inserted[id(item)] = (item, digest(item.message))
        return known[1]


def _changes(log: Log, rendering: Rendering, start: int, stop: int) -> bool:
    """Whether a rendering changes any of the log messages `[start, stop)`."""
    counts = log.changed(rendering)
    return counts[stop] > counts[start]


def mark_at(marks: tuple[Mark, ...], index: int) -> Mark | None:
    """A mark that shows one log message as all marks together do; None: verbatim."""
    rendering = rendering_at(marks, index)
    return None if rendering is None else Mark(rendering, index, index + 1)


def _grown(old: Window | None, new: Window) -> range | None:
    """The log indices that a view has more than the one before, where nothing else changed (the usual case)."""
    if old is None or not old.items or len(old.items) != len(new.items) or old.marks != new.marks:
        return None
    before, after = old.items[-1], new.items[-1]
    if isinstance(before, Inserted) or isinstance(after, Inserted) or before.start != after.start:
        return None
    # Insertions are compared by what they are, not by what they say: that would read every summary at each step.
    if before.stop > after.stop or (len(old.items) > 1 and not all(map(is_, old.items[:-1], new.items[:-1]))):
        return None
    if not new.marks:
        return range(before.stop, after.stop)
    # A mark that ends or begins among the new messages would show them in two forms.
    uniform = all(m.stop <= before.stop or (m.start <= before.stop and m.stop >= after.stop) for m in new.marks)
    return range(before.stop, after.stop) if uniform else None


def _common_messages(log: Log, old: Window, new: Window) -> int:
    """Messages at the start that both windows take from the same place and show alike."""
    count = 0
    for before, after in zip(old.items, new.items, strict=False):
        same, whole = _common_of(log, before, after, old.marks, new.marks)
        count += same
        if not whole:
            break
    return count


def _common_of(log: Log, before: Item, after: Item, old: tuple[Mark, ...], new: tuple[Mark, ...]) -> tuple[int, bool]:
    """Common messages of two items, and whether the comparison may go on behind them."""
    if isinstance(before, Inserted) or isinstance(after, Inserted):
        same = before is after or (isinstance(before, Inserted) and isinstance(after, Inserted)
                                   and before.message.blocks == after.message.blocks
                                   and before.message.role == after.message.role)
        return int(same), same
    if before.start != after.start:
        return 0, False
    stop = min(before.stop, after.stop)
    changed = stop if old is new else _first_change(log, old, new, before.start, stop)
    return changed - before.start, changed == stop and before.stop == after.stop


def _first_change(log: Log, old: tuple[Mark, ...], new: tuple[Mark, ...], start: int, stop: int) -> int:
    """Lowest log index in `[start, stop)` that the new marks show differently; `stop` where none is."""
    end = stop
    if len(old) + len(new) >= MANY:
        old, new, start, stop = _near(old, new, start, stop)
    for low, high, _ in pieces(old + new, start, stop):
        before, after = rendering_at(old, low), rendering_at(new, low)
        if before == after:
            continue
        index = _next_rendered(log, before, after, low)
        while index < high:
            if _shown(log, before, index) != _shown(log, after, index):
                return index
            index = _next_rendered(log, before, after, index + 1)
    return end


def _near(old: tuple[Mark, ...], new: tuple[Mark, ...], start: int,
          stop: int) -> tuple[tuple[Mark, ...], tuple[Mark, ...], int, int]:
    """Of two windows' marks those about the range in which they differ, and that range within `[start, stop)`."""
    shared = set(map(id, old)) & set(map(id, new))
    if [id(m) for m in old if id(m) in shared] != [id(m) for m in new if id(m) in shared]:
        return old, new, start, stop
    differing = [m for m in (*old, *new) if id(m) not in shared]
    low = max(start, min((m.start for m in differing), default=stop))
    high = min(stop, max((m.stop for m in differing), default=start))
    before, after = (tuple(m for m in marks if m.start < high and m.stop > low) for marks in (old, new))
    return before, after, low, max(low, high)


def _next_rendered(log: Log, before: Rendering | None, after: Rendering | None, index: int) -> int:
    """Lowest log index from `index` on that either rendering changes; the log's length where none does."""
    counts = [log.changed(rendering) for rendering in (before, after) if rendering is not None]
    return min(bisect_right(c, c[index]) - 1 for c in counts)


def _shown(log: Log, rendering: Rendering | None, index: int) -> bytes:
    return log.digests[index] if rendering is None else log.rendered_digest(rendering, index)
