"""Which messages of a log hold which phrases, and in which views of a lane each phrase was therefore visible.

The log is searched once a session; a lane then costs a few array operations over the places found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evals.phrases import WORD, Phrase, Prepared, searchable
from evals.presence import IntArray, Placed, Presence, Stretch, steps_with
from replay.log import Log
from replay.window import Inserted, Rendering

SENSE, LETTER = 1, 2
"""Grades that a place can have: the phrase's sense, or the phrase to the letter."""
_REMEMBERED_TEXTS = 512


class KeyIndex:
    """Finds the phrases that a text may hold by the words in it."""

    def __init__(self, phrases: Sequence[Phrase]) -> None:
        """Index phrases by their words."""
        self.phrases = phrases
        self._by_key: dict[str, list[int]] = {}
        self._keyless = [n for n, p in enumerate(phrases) if not p.need]
        self._vocabulary = {word for p in phrases for word in p.indexed}
        for number, phrase in enumerate(phrases):
            for key in phrase.keys if phrase.need else ():
                self._by_key.setdefault(key, []).append(number)

    def graded(self, text: str, summary: bool = False) -> list[tuple[int, int]]:
        """Numbers and grades of the phrases that a text holds, in order."""
        words = set(filter(self._vocabulary.__contains__, WORD.findall(text.lower())))
        if not words and not self._keyless:
            return []
        numbers = {n for word in words for n in self._by_key.get(word, ())}
        likely = [n for n in numbers if len(self.phrases[n].indexed & words) >= self.phrases[n].need]
        prepared = Prepared(text)
        grades = ((n, self.phrases[n].grade(prepared, summary)) for n in sorted([*likely, *self._keyless]))
        return [(n, grade) for n, grade in grades if grade]


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


class Mentions:
    """The places of a set of phrases in a log, with the views in which each phrase is asked for."""

    def __init__(self, log: Log, phrases: Sequence[Phrase], asked: Sequence[tuple[int, int]],
                 sources: Sequence[int | None]) -> None:
        """Search the log.

        `asked`: for each phrase the positions `[first, stop)` of the views that it matters in. `sources`: the message that
        each was taken from, which has it whatever its spelling there.
        """
        self.index = KeyIndex(phrases)
        self._log = log
        self._on = np.array([a for a, _ in asked], np.int64)
        self._off = np.array([b for _, b in asked], np.int64)
        found = {(number, message.index): grade for message in (log.messages if phrases else ())
                 for number, grade in self.index.graded(searchable(message))}
        found |= {(number, source): LETTER for number, source in enumerate(sources) if source is not None}
        columns = np.array(sorted((n, m, g) for (n, m), g in found.items()), np.int64).reshape(-1, 3)
        self.phrase, self.message, self.grade = (np.ascontiguousarray(c) for c in columns.T)
        self._altered_grades: dict[Rendering, IntArray] = {}
        self._graded: dict[tuple[str, bool], list[tuple[int, int]]] = {}

    def __len__(self) -> int:
        return len(self.index.phrases)

    def holders(self, number: int) -> list[tuple[int, int]]:
        """Log index and grade of the messages that hold a phrase."""
        chosen = self.phrase == number
        return list(zip(self.message[chosen].tolist(), self.grade[chosen].tolist(), strict=True))

    def in_text(self, item: Inserted) -> list[tuple[int, int]]:
        """Numbers and grades of the phrases that an inserted message holds."""
        return self._grades_of(searchable(item.message), item.kind == "summary")

    def _grades_of(self, text: str, summary: bool) -> list[tuple[int, int]]:
        key = (text, summary)
        if key not in self._graded:
            if len(self._graded) >= _REMEMBERED_TEXTS:
                self._graded.clear()
            self._graded[key] = self.index.graded(text, summary)
        return self._graded[key]

    def pieces(self, shown: Presence, grade: int, pinned: Iterable[int] = ()) -> Pieces:
        """When each phrase was visible with at least a grade. `pinned`: phrases that a harness puts into every view."""
        parts = [self._in_stretch(stretch, shown.placed, grade, pinned) for stretch in shown.stretches]
        columns = [np.concatenate(c) if c else np.zeros(0, np.int64) for c in zip(*parts, strict=True)] or [
            np.zeros(0, np.int64)] * 3
        return Pieces(*columns)

    def _in_stretch(self, stretch: Stretch, placed: Sequence[Placed], grade: int,
                    pinned: Iterable[int]) -> tuple[IntArray, IntArray, IntArray]:
        start, stop = stretch.shown[self.message], stretch.gone[self.message]
        for rendering, steps in stretch.altered.items():
            lost = self._grades_through(rendering) < grade
            stop = np.where(lost, np.minimum(stop, steps[self.message]), stop)
        stop = np.where(self.grade >= grade, stop, 0)
        more = [(n, p.first, p.stop) for p in placed if p.first < stretch.stop and p.stop > stretch.first
                for n, g in self.in_text(p.item) if g >= grade]
        more += [(n, stretch.first, stretch.stop) for n in pinned]
        phrase = self.phrase
        if more:
            phrase, start, stop = _merged(phrase, start, stop, np.array(more, np.int64))
        start = np.maximum(np.maximum(start, self._on[phrase]), stretch.first)
        stop = np.minimum(np.minimum(stop, self._off[phrase]), stretch.stop)
        return _disjoint(phrase, start, stop)

    def _grades_through(self, rendering: Rendering) -> IntArray:
        """Grades of the places when their messages are shown through a rendering."""
        if rendering not in self._altered_grades:
            grades, shown = self.grade.copy(), self._log.rendered(rendering)
            is_changed = np.diff(np.array(self._log.changed(rendering)))[self.message] > 0
            for place in np.flatnonzero(is_changed).tolist():
                left = dict(self._grades_of(searchable(shown[int(self.message[place])]), False))
                grades[place] = left.get(int(self.phrase[place]), 0)
            self._altered_grades[rendering] = grades
        return self._altered_grades[rendering]


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
