"""Which messages of a log hold which phrases, and in which views of a lane each phrase was therefore visible.

The log is searched once a session; a lane then costs a few array operations over the places found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np

from evals.key_index import KeyIndex
from evals.log_search import Ask, search_log
from evals.phrases import Prepared, searchable
from evals.presence import IntArray, Presence, Stretch, steps_with
from evals.spans_index import UnitIndex
from replay.log import Log
from replay.window import Rendering

SENSE, LETTER = 1, 2
"""Grades that a place can have: the phrase's sense, or the phrase to the letter."""
_REMEMBERED_LINES = 20_000


@dataclass(frozen=True, slots=True)
class Pieces:
    """Disjoint runs of views `[start, stop)` in which phrases are visible."""

    phrase: IntArray
    start: IntArray
    stop: IntArray

    def steps(self, phrases: int) -> Any:
        """For each phrase the number of views that show it."""
        return np.bincount(self.phrase, weights=self.stop - self.start, minlength=phrases)

    def of(self, first: int, stop: int) -> Pieces:
        """The pieces of the phrases with numbers `[first, stop)`, numbered from 0."""
        chosen = (self.phrase >= first) & (self.phrase < stop)
        return Pieces(self.phrase[chosen] - first, self.start[chosen], self.stop[chosen])

    def per_view(self, views: int) -> Any:
        """For each view the number of phrases that are visible in it."""
        return steps_with((self.start, self.stop), views)


_NONE = np.zeros(0, np.int64)
NO_PIECES = Pieces(_NONE, _NONE, _NONE)


class Mentions:
    """The places of a set of phrases in a log, with the views in which each phrase is asked for."""

    def __init__(self, log: Log, asks: Sequence[Ask], index: UnitIndex | None = None) -> None:
        """Search the log. `index`: its index of words, where there is one already."""
        self._log, self._asks = log, asks
        self._on = np.array([a.first for a in asks], np.int64)
        self._off = np.array([a.stop for a in asks], np.int64)
        found = search_log(UnitIndex(log.messages) if index is None else index, asks) if asks else {}
        found |= {(number, a.source): LETTER for number, a in enumerate(asks) if a.source is not None}
        columns = np.array(sorted((n, m, g) for (n, m), g in found.items()), np.int64).reshape(-1, 3)
        self.phrase, self.message, self.grade = (np.ascontiguousarray(c) for c in columns.T)
        self._changed: dict[Rendering, tuple[Any, IntArray]] = {}
        self._chosen: dict[tuple[int, int], tuple[IntArray, IntArray]] = {}
        self._inserted: tuple[Presence, IntArray] | None = None
        self._passing = np.array([n for n, a in enumerate(asks) if a.until is not None], np.int64)
        self._lasting = KeyIndex([a.phrase for a in asks], (n for n, a in enumerate(asks) if a.until is None))
        self._lines: dict[tuple[str, bool], tuple[list[tuple[int, int]], set[str]]] = {}

    def __len__(self) -> int:
        return len(self._asks)

    def holders(self, number: int) -> list[tuple[int, int]]:
        """Log index and grade of the messages that hold a phrase."""
        chosen = self.phrase == number
        return list(zip(self.message[chosen].tolist(), self.grade[chosen].tolist(), strict=True))

    def in_text(self, text: str, summary: bool, first: int, stop: int) -> dict[int, int]:
        """Numbers and grades of the phrases that a text holds and that some view in `[first, stop)` asks for.

        It is read line by line: one summary shares most of its lines with the next.
        """
        lines = text.split("\n")
        known = [self._line(line, summary) for line in lines]
        found: dict[int, int] = {}
        for graded, _ in known:
            for number, grade in graded:
                found[number] = max(grade, found.get(number, 0))
        asked = self._passing[(self._on[self._passing] < stop) & (self._off[self._passing] > first)].tolist()
        for number in asked:
            phrase = self._asks[number].phrase
            likely = (line for line, (_, words) in zip(lines, known, strict=True)
                      if words and phrase.fits(words, summary))
            grade = max((phrase.grade(Prepared(line), summary) for line in likely), default=0)
            found |= {number: grade} if grade else {}
        return found

    def _line(self, line: str, summary: bool) -> tuple[list[tuple[int, int]], set[str]]:
        """The lasting phrases of a line, and all words that some phrase asks for."""
        known = self._lines.get((line, summary))
        if known is None:
            if len(self._lines) >= _REMEMBERED_LINES:
                self._lines.clear()
            words = self._lasting.words(line)
            known = self._lines[line, summary] = self._lasting.graded(line, words, summary), words
        return known

    def pieces(self, shown: Presence, grade: int, pinned: Iterable[int] = (), below: int | None = None) -> Pieces:
        """When each phrase was visible with at least a grade.

        `pinned`: phrases that a harness puts into every view. `below`: only phrases with smaller numbers.
        """
        below = len(self) if below is None else below
        inserted = self._inserted_places(shown)
        more = np.concatenate((inserted[(inserted[:, 3] >= grade) & (inserted[:, 0] < below), :3],
                               np.array([(n, 0, shown.views) for n in pinned], np.int64).reshape(-1, 3)))
        parts = [self._in_stretch(stretch, grade, more, below) for stretch in shown.stretches if below]
        return Pieces(*(np.concatenate(c) for c in zip(*parts, strict=True))) if parts else NO_PIECES

    def _inserted_places(self, shown: Presence) -> IntArray:
        """Rows of phrase, first view, one past the last and grade of what a lane inserted; kept for the latest lane."""
        if self._inserted is None or self._inserted[0] is not shown:
            rows = [(n, p.first, p.stop, g) for p in shown.placed for n, g in self.in_text(
                searchable(p.item.message), p.item.kind == "summary", p.first, p.stop).items()]
            self._inserted = shown, np.array(rows, np.int64).reshape(-1, 4)
        return self._inserted[1]

    def _in_stretch(self, stretch: Stretch, grade: int, more: IntArray,
                    below: int) -> tuple[IntArray, IntArray, IntArray]:
        phrase, message = self._places(grade, below)
        start, stop = stretch.shown[message], stretch.gone[message]
        rows = [more]
        for rendering, (since, until) in stretch.altered.items():
            is_changed, places = self._through(rendering)
            stop = np.where(is_changed[message], np.minimum(stop, since[message]), stop)
            kept = places[(places[:, 2] >= grade) & (places[:, 0] < below)]
            rows.append(_altered_rows(kept, stretch, since, until))
        added = np.concatenate(rows)
        if len(added):
            phrase, start, stop = _merged(phrase, start, stop, added)
        start = np.maximum(np.maximum(start, self._on[phrase]), stretch.first)
        stop = np.minimum(np.minimum(stop, self._off[phrase]), stretch.stop)
        return _disjoint(phrase, start, stop)

    def _places(self, grade: int, below: int) -> tuple[IntArray, IntArray]:
        """Phrase and message of the places with at least a grade, of the phrases below a number."""
        key = grade, below
        if key not in self._chosen:
            good = (self.grade >= grade) & (self.phrase < below)
            self._chosen[key] = self.phrase[good], self.message[good]
        return self._chosen[key]

    def _through(self, rendering: Rendering) -> tuple[Any, IntArray]:
        """Which messages a rendering changes, and rows of phrase, message and grade for what it leaves in them."""
        if rendering not in self._changed:
            shown, changed = self._log.rendered(rendering), np.diff(np.array(self._log.changed(rendering))) > 0
            found = _search(((i, searchable(shown[i])) for i in np.flatnonzero(changed).tolist()), self._asks)
            rows = [(number, index, grade) for (number, index), grade in found.items()]
            self._changed[rendering] = changed, np.array(sorted(rows), np.int64).reshape(-1, 3)
        return self._changed[rendering]


def _search(texts: Iterable[tuple[int, str]], asks: Sequence[Ask]) -> dict[tuple[int, int], int]:
    """Grades by phrase and log index. Texts come in the order of the log, each searched for what is asked for then."""
    index = KeyIndex([a.phrase for a in asks])
    coming = sorted(range(len(asks)), key=lambda n: asks[n].since, reverse=True)
    going: list[tuple[int, int]] = []
    found: dict[tuple[int, int], int] = {}
    for at, text in texts:
        while coming and asks[coming[-1]].since <= at:
            number = coming.pop()
            index.change((number,), ())
            if (until := asks[number].until) is not None:
                heappush(going, (until, number))
        while going and going[0][0] <= at:
            index.change((), (heappop(going)[1],))
        found |= {(number, at): grade for number, grade in index.graded(text, index.words(text), False)}
    return found


def _altered_rows(places: IntArray, stretch: Stretch, since: IntArray, until: IntArray) -> IntArray:
    """Rows of phrase, start and stop for what messages hold while they are shown through a rendering."""
    phrase, message, _ = places.T
    start = np.maximum(stretch.shown[message], since[message])
    return np.stack((phrase, start, np.minimum(stretch.gone[message], until[message])), axis=1)


def _merged(phrase: IntArray, start: IntArray, stop: IntArray, more: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Places with more rows, in the order of phrase and start."""
    phrase, start, stop = (np.concatenate((a, b)) for a, b in zip((phrase, start, stop), more.T, strict=True))
    # Two runs that are nearly sorted: a stable sort takes them as they are.
    order = np.argsort(phrase * (int(stop.max(initial=0)) + int(start.max(initial=0)) + 2) + start, kind="stable")
    return phrase[order], start[order], stop[order]


def _disjoint(phrase: IntArray, start: IntArray, stop: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The union of each phrase's intervals; they come in the order of phrase and start."""
    kept = start < stop
    phrase, start, stop = phrase[kept], start[kept], stop[kept]
    if not len(phrase):
        return phrase, start, stop
    # Each phrase gets its own range of numbers, so that a running maximum never reaches into the next.
    base = phrase * (int(stop.max()) + 1)
    reach = np.maximum.accumulate(stop + base)
    start[1:] = np.maximum(start[1:] + base[1:], reach[:-1]) - base[1:]
    kept = start < stop
    return phrase[kept], start[kept], stop[kept]


def visible_share(seen: Any, asked: Any) -> float | None:
    """Mean over the views that ask for something of the share that is visible there; None where no view asks."""
    some = asked > 0
    return float(np.mean(seen[some] / asked[some])) if bool(some.any()) else None


def asked_per_view(asked: Sequence[tuple[int, int]], views: int) -> Any:
    """For each view how many phrases matter in it."""
    starts = np.array([a for a, b in asked if a < b], np.int64)
    stops = np.array([b for a, b in asked if a < b], np.int64)
    return steps_with((starts, stops), views)
