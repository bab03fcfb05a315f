"""A thread's log with everything that is computed from it once: sizes, digests, turns, requests."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple, Protocol

from replay.canonical import CHAIN_START, digest, digests, link
from replay.tokens.counter import MessageCounter
from replay.transcript import Message, Step, Thread
from replay.window import MANY, Inserted, Item, Mark, Rendering, Window, pieces, segments

CLASSES = ("system", "user", "assistant", "tool", "summary", "injected")
"""The classes by which a view's tokens are split."""


class Ruler(Protocol):
    """Gives each message of a log a weight; a window's weight is the sum.

    One with a true attribute `apart` weighs a message by itself, whatever stands around it.
    """

    def weights(self, messages: Sequence[Message]) -> list[int]:
        """Weights in order. Equal rulers must give equal weights: they are used as keys."""


class Log:
    """The messages of a thread and the sizes, digests and boundaries that policies ask for again and again.

    Sizes are prefix sums, so the size of any window costs the number of its items, not of its messages.
    """

    def __init__(self, thread: Thread, counter: MessageCounter) -> None:
        """Wrap a thread; nothing is counted before it is asked for."""
        self.messages: tuple[Message, ...] = thread.messages
        self.steps: tuple[Step, ...] = thread.steps
        self.counter = counter
        self._sums: dict[tuple[Ruler, Rendering | None], list[int]] = {}
        self._sums_by_identity: dict[tuple[int, int], tuple[Ruler, Rendering | None, list[int]]] = {}
        self._class_sums: dict[Rendering | None, dict[str, list[int]]] = {}
        self._rendered: dict[Rendering, tuple[Message, ...]] = {}
        self._rendered_by_identity: dict[int, tuple[Rendering, tuple[Message, ...]]] = {}
        self._changed: dict[Rendering, list[int]] = {}
        self._changed_by_identity: dict[int, tuple[Rendering, list[int]]] = {}
        self._rendered_digests: dict[tuple[int, int], bytes] = {}
        self._fronts: dict[int, tuple[Ruler, tuple[Item, ...], tuple[Mark, ...], int]] = {}
        self._marked_sums: dict[int, tuple[Ruler, tuple[Mark, ...], _Marked]] = {}
        self._ordinals: dict[str, int] = {}
        self._inserted: dict[tuple[int, int], tuple[Ruler, Inserted, int]] = {}

    def __len__(self) -> int:
        return len(self.messages)

    @cached_property
    def tokens(self) -> Ruler:
        """The ruler that counts tokens with the session's counter."""
        return _TokenRuler(self.counter)

    def rendered(self, rendering: Rendering) -> tuple[Message, ...]:
        """The whole log as a rendering shows it."""
        quick = self._rendered_by_identity.get(id(rendering))
        if quick is not None and quick[0] is rendering:
            return quick[1]
        if rendering not in self._rendered:
            self._rendered[rendering] = tuple(map(rendering.render, self.messages))
        self._rendered_by_identity[id(rendering)] = (rendering, self._rendered[rendering])
        return self._rendered[rendering]

    def changed(self, rendering: Rendering) -> list[int]:
        """Prefix counts of the messages that a rendering changes: entry i counts those below i."""
        quick = self._changed_by_identity.get(id(rendering))
        if quick is not None and quick[0] is rendering:
            return quick[1]
        if rendering not in self._changed:
            pairs = zip(self.messages, self.rendered(rendering), strict=True)
            self._changed[rendering] = _prefix(int(a is not b) for a, b in pairs)
        self._changed_by_identity[id(rendering)] = (rendering, self._changed[rendering])
        return self._changed[rendering]

    def sums(self, ruler: Ruler, rendering: Rendering | None = None) -> list[int]:
        """Prefix sums of a ruler's weights over the log, verbatim or rendered; entry i sums those below i."""
        # Hashing a ruler means hashing its settings; the identity of the object answers faster.
        quick = self._sums_by_identity.get((id(ruler), id(rendering)))
        if quick is not None and quick[0] is ruler and quick[1] is rendering:
            return quick[2]
        key = (ruler, rendering)
        if key not in self._sums:
            self._sums[key] = _prefix(self._weights(ruler, rendering))
        self._sums_by_identity[id(ruler), id(rendering)] = (ruler, rendering, self._sums[key])
        return self._sums[key]

    def _weights(self, ruler: Ruler, rendering: Rendering | None) -> list[int]:
        """Weights of the log in one form; where each message is weighed apart only what is changed is weighed anew."""
        if rendering is None:
            return ruler.weights(self.messages)
        shown = self.rendered(rendering)
        if not getattr(ruler, "apart", False):
            return ruler.weights(shown)
        plain = self.sums(ruler)
        weights = [plain[i + 1] - plain[i] for i in range(len(shown))]
        changed = [i for i, message in enumerate(shown) if message is not self.messages[i]]
        for index, weight in zip(changed, ruler.weights([shown[i] for i in changed]), strict=True):
            weights[index] = weight
        return weights

    def size(self, window: Window, ruler: Ruler | None = None) -> int:
        """Weight of a window under a ruler (default: tokens)."""
        ruler, marks = ruler or self.tokens, window.marks
        if not window.items:
            return 0
        return self._front(window, ruler) + self.item_size(window.items[-1], marks, ruler)

    def _front(self, window: Window, ruler: Ruler) -> int:
        """Weight of all items but the last one: the same from step to step while the window only grows."""
        front, marks = window.items[:-1], window.marks
        known = self._fronts.get(id(ruler))
        if known is not None and known[0] is ruler and known[1] == front and known[2] == marks:
            return known[3]
        total = 0
        for item in front:
            total += self.item_size(item, marks, ruler)
        self._fronts[id(ruler)] = (ruler, front, marks, total)
        return total

    def item_size(self, item: Item, marks: tuple[Mark, ...], ruler: Ruler) -> int:
        """Weight of one item of a window."""
        if isinstance(item, Inserted):
            return self.inserted_size(item, ruler)
        if not marks:
            sums = self.sums(ruler)
            return sums[item.stop] - sums[item.start]
        if len(marks) >= MANY:
            below = self._marked(marks, ruler)
            return below.up_to(item.stop) - below.up_to(item.start)
        total = 0
        for start, stop, rendering in pieces(marks, item.start, item.stop):
            sums = self.sums(ruler, rendering)
            total += sums[stop] - sums[start]
        return total

    def _marked(self, marks: tuple[Mark, ...], ruler: Ruler) -> _Marked:
        """Sums of weights under many marks; windows share their marks, so they are found by identity."""
        known = self._marked_sums.get(id(ruler))
        if known is not None and known[0] is ruler and known[1] is marks:
            return known[2]
        found, totals, below, start = segments(marks), [0], 0, 0
        sums = {id(r): self.sums(ruler, r) for r in {id(r): r for r in found.renderings}.values()}
        for border, rendering in zip(found.starts, found.renderings, strict=False):
            weights = sums[id(rendering)]
            below += weights[border] - weights[start] if border < len(weights) else weights[-1] - weights[start]
            totals.append(below)
            start = min(border, len(weights) - 1)
        made = _Marked(found.starts, [sums[id(r)] for r in found.renderings], totals)
        self._marked_sums[id(ruler)] = (ruler, marks, made)
        return made

    def inserted_size(self, item: Inserted, ruler: Ruler) -> int:
        """Weight of an inserted message; a modelled size counts as it stands under the token ruler."""
        key = (id(ruler), id(item))
        known = self._inserted.get(key)
        if known is not None and known[0] is ruler and known[1] is item:
            return known[2]
        size = item.tokens if item.tokens is not None and ruler == self.tokens else ruler.weights([item.message])[0]
        self._inserted[key] = (ruler, item, size)
        return size

    def by_class(self, window: Window) -> dict[str, int]:
        """Counted tokens of a window by class (`CLASSES`)."""
        totals = dict.fromkeys(CLASSES, 0)
        for item in window.items:
            if isinstance(item, Inserted):
                name = "summary" if item.kind == "summary" else "injected"
                totals[name] += self.inserted_size(item, self.tokens)
                continue
            for start, stop, rendering in pieces(window.marks, item.start, item.stop):
                for name, sums in self._classes(rendering).items():
                    totals[name] += sums[stop] - sums[start]
        return totals

    def _classes(self, rendering: Rendering | None) -> dict[str, list[int]]:
        if rendering not in self._class_sums:
            sums = self.sums(self.tokens, rendering)
            weights = [sums[i + 1] - sums[i] for i in range(len(self.messages))]
            names = [message_class(m) for m in self.messages]
            self._class_sums[rendering] = {
                name: _prefix(w if n == name else 0 for w, n in zip(weights, names, strict=True))
                for name in CLASSES if name in names}
        return self._class_sums[rendering]

    @cached_property
    def pairs(self) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
        """For each message the ids of its calls and of the calls that it answers."""
        return [(tuple(c.id for c in m.calls), tuple(r.call_id for r in m.results)) for m in self.messages]

    @cached_property
    def links(self) -> list[bytes]:
        """The prefix chain over the whole log: entry i is that of the messages below i, all verbatim."""
        return list(accumulate(self.digests, link, initial=CHAIN_START))

    @cached_property
    def digests(self) -> list[bytes]:
        """Digest of each message's canonical form."""
        return digests(self.messages, self._ordinals)

    def rendered_digests(self, rendering: Rendering, start: int, stop: int) -> list[bytes]:
        """Digests of the messages `[start, stop)` as a rendering shows them; only what it changes is looked up."""
        found, counts, index = self.digests[start:stop], self.changed(rendering), start
        while (index := bisect_right(counts, counts[index]) - 1) < stop:
            found[index - start] = self.rendered_digest(rendering, index)
            index += 1
        return found

    def rendered_digest(self, rendering: Rendering, index: int) -> bytes:
        """Digest of one message as a rendering shows it; a rendering keeps ids, so their order is known."""
        plain, message = self.digests[index], self.rendered(rendering)[index]
        if message is self.messages[index]:
            return plain
        # Equal renderings share the message, so its identity stands for the rendering without hashing its settings.
        key = (id(message), index)
        if key not in self._rendered_digests:
            self._rendered_digests[key] = digest(message, self._ordinals)
        return self._rendered_digests[key]

    @cached_property
    def rounds(self) -> list[int]:
        """Indices of the messages that start a round: a person's prompt, or the program's in a person's place."""
        return [m.index for m in self.messages if m.role == "user" and m.origin in ("human", "nudge")]

    @cached_property
    def prompts(self) -> list[int]:
        """Indices of a person's prompts: each starts a run, in which the program's nudges may start more rounds."""
        return [m.index for m in self.messages if m.role == "user" and m.origin == "human"]

    @cached_property
    def pinned(self) -> list[int]:
        """Indices of system messages, which no policy drops."""
        return [m.index for m in self.messages if m.origin == "system"]

    @cached_property
    def requests(self) -> list[int]:
        """For each message the index at which its request starts.

        A request is a run of messages between two responses of the model; a response is one of its own.
        """
        starts: list[int] = []
        for message in self.messages:
            joined = message.index > 0 and same_request(self.messages[message.index - 1], message)
            starts.append(starts[-1] if joined else message.index)
        return starts

    @cached_property
    def joints(self) -> list[int]:
        """For each index, the end included, the nearest cut at or before it that parts no result from its call."""
        called: dict[str, int] = {}
        change = [0] * (len(self.messages) + 2)
        for index, (calls, answers) in enumerate(self.pairs):
            for made in (called[i] for i in answers if i in called):
                change[made + 1] += 1
                change[index + 1] -= 1
            called.update(dict.fromkeys(calls, index))
        found: list[int] = []
        for index, open_pairs in enumerate(accumulate(change[:-1])):
            found.append(found[-1] if open_pairs else index)
        return found

    def find(self, start: int, stop: int, wanted: Callable[[Message], bool]) -> int | None:
        """The first index in `[start, stop)` whose message is wanted; None where there is none."""
        return next((i for i in range(start, stop) if wanted(self.messages[i])), None)


class _Marked(NamedTuple):
    """Weights of a log under many marks: total below each border, and the sums that count behind it."""

    borders: list[int]
    sums: list[list[int]]
    totals: list[int]

    def up_to(self, index: int) -> int:
        """Weight of the messages below an index."""
        place = bisect_right(self.borders, index)
        start = self.borders[place - 1] if place else 0
        return self.totals[place] + self.sums[place][index] - self.sums[place][start]


class _TokenRuler:
    """Weighs messages by the session's counter."""

    apart = True

    def __init__(self, counter: MessageCounter) -> None:
        self.counter = counter

    def weights(self, messages: Sequence[Message]) -> list[int]:
        return self.counter.tokens(messages)


def same_request(before: Message, after: Message) -> bool:
    """Whether two neighbours of a log are part of one request: neither is a response or a system message."""
    return after.role not in ("assistant", "system") and before.role not in ("assistant", "system")


def message_class(message: Message) -> str:
    """The class (`CLASSES`) that a log message's tokens are counted under."""
    if message.origin == "system":
        return "system"
    if message.origin == "summary":
        return "summary"
    if message.role == "tool":
        return "tool"
    if message.role == "assistant":
        return "assistant"
    return "injected" if message.origin == "injected" else "user"


def _prefix(weights: Iterable[int]) -> list[int]:
    return list(accumulate(weights, initial=0))
