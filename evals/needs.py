"""What each action of a session needs to have seen, where that stands in the log, and how much it weighs.

Everything here belongs to the session: no policy changes it, so it is computed once and shared by all lanes.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evals.spans import TextSpan, Want, distinct, is_masked, lines_of, path_span
from evals.spans_calls import Deed
from evals.spans_files import Act, Files
from evals.spans_index import SOURCES, Source, UnitIndex
from evals.spans_match import holds, words_of
from replay.engine import Session
from replay.log import Log

COMMON = math.log(4)
"""Weight taken off every span, so that one in more than a quarter of all blocks weighs nothing."""
CAP = 10.0
"""Most that one action weighs, as a multiple of the median action."""
ON_DISK = 1 << len(SOURCES)
"""Bit of a need's sources: the assistant's own text, but in a file that it wrote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One span that an action takes from what came before."""

    step: int
    """Position of the step in the session's steps, from 0."""
    span: TextSpan
    weight: float
    tool: str = ""
    """Tool that the action called."""


@dataclass(frozen=True)
class Needs:
    """The needs of a session as columns of equal length, in the order of the steps."""

    rows: tuple[Need, ...]
    span: list[int]
    """Number of each need's span."""
    latest: list[int]
    """Newest block before the action that holds it."""
    first: list[int]
    """Oldest such block."""
    origins: list[Source]
    """Whose words the oldest of them is."""
    sources: list[int]
    """Bits: bit i stands for `SOURCES[i]`, then `ON_DISK`; of all blocks before the action that hold it."""
    bounds: dict[int, range]
    """For each step with needs its rows."""

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def weights(self) -> NDArray[Any]:
        """Weight of each need."""
        return np.array([n.weight for n in self.rows])

    @cached_property
    def steps(self) -> NDArray[Any]:
        """Position of each need's step."""
        return np.array([n.step for n in self.rows], dtype=np.int64)


def weight(holding: int, before: int) -> float:
    """How much a span says that `holding` of the `before` blocks before the action hold; never below 0."""
    return max(0.0, math.log((before + 1) / (holding + 0.5)) - COMMON)


def capped(weights: Sequence[tuple[int, float]]) -> list[float]:
    """Weights by action with every action's sum brought down to `CAP` × the median action's.

    Takes pairs of action and weight, those of one action next to each other.
    """
    sums = {action: sum(w for _, w in group) for action, group in groupby(weights, key=lambda pair: pair[0])}
    positive = [s for s in sums.values() if s > 0]
    most = CAP * median(positive) if positive else 0.0
    return [w * most / sums[action] if sums[action] > most else w for action, w in weights]


class Evidence:
    """A session's needs with everything that tells whether a view still holds them."""

    def __init__(self, log: Log) -> None:
        """Read the log once; nothing of a policy is known here."""
        self.log = log
        self.index = UnitIndex(log.messages)
        self.files = Files(self.index)
        self.given: tuple[Need, ...] | None = None

    @cached_property
    def spans(self) -> list[TextSpan]:
        """All spans that a lane is asked about: those of needs and the lines of edits."""
        lines = (line for edit in self.files.edits for line in lines_of(edit.part.old))
        return list(dict.fromkeys([*(n.span for n in self._rows), *lines]))

    @cached_property
    def numbers(self) -> dict[TextSpan, int]:
        """Number of each span."""
        return {span: n for n, span in enumerate(self.spans)}

    @cached_property
    def places(self) -> list[list[int]]:
        """For each span the blocks that hold it."""
        return [self.index.locate(span) for span in self.spans]

    @cached_property
    def unit_spans(self) -> list[list[int]]:
        """For each block the spans that it holds."""
        held: list[list[int]] = [[] for _ in range(len(self.index))]
        for number, places in enumerate(self.places):
            for unit in places:
                held[unit].append(number)
        return held

    @cached_property
    def _rows(self) -> tuple[Need, ...]:
        return self.given if self.given is not None else tuple(_needs(self))

    @cached_property
    def needs(self) -> Needs:
        """The needs of all actions."""
        return self._columns(self._rows)

    def start_of(self, step: int) -> int:
        """First block that a step's action had not seen: its own response."""
        return self.index.first_unit[self.log.steps[step].start]

    def _columns(self, rows: tuple[Need, ...]) -> Needs:
        span = [self.numbers[n.span] for n in rows]
        counts = [bisect_left(self.places[s], self.start_of(n.step)) for n, s in zip(rows, span, strict=True)]
        steps = [n.step for n in rows]
        bounds = {step: range(bisect_left(steps, step), bisect_left(steps, step + 1)) for step in dict.fromkeys(steps)}
        first = [self.places[s][0] for s in span]
        return Needs(rows=rows, span=span, latest=[self.places[s][c - 1] for s, c in zip(span, counts, strict=True)],
                     first=first, origins=[self.index.units[u].source for u in first], bounds=bounds,
                     sources=[self._bits[s][c - 1] for s, c in zip(span, counts, strict=True)])

    @cached_property
    def _bits(self) -> list[list[int]]:
        """For each span the sources of its first block, of its first two, and so on."""
        own = [1 << SOURCES.index(u.source) for u in self.index.units]
        for act in self.files.acts:
            if act.deed.changes and not act.failed:
                own[act.call] |= ON_DISK
        found = []
        for places in self.places:
            bits = 0
            found.append([bits := bits | own[unit] for unit in places])
        return found

    def spans_in(self, text: str) -> set[int]:
        """Numbers of the spans that a text outside of the log holds, such as a summary.

        No span runs over a line's end, and successive summaries share most of their lines: each is searched once.
        """
        found: set[int] = set()
        for line in text.split("\n"):
            known = self._lines.get(line)
            if known is None:
                known = self._lines[line] = tuple(self._spans_in(line))
            found.update(known)
        return found

    @cached_property
    def _lines(self) -> dict[str, tuple[int, ...]]:
        return {}

    def _spans_in(self, line: str) -> Iterator[int]:
        for word in self._by_word.keys() & words_of(line):
            yield from (n for n in self._by_word[word] if holds(self.spans[n], line))

    @cached_property
    def _by_word(self) -> dict[str, list[int]]:
        words: dict[str, list[int]] = {}
        for number, span in enumerate(self.spans):
            word = self.index.rarest(span)
            if word is not None:
                words.setdefault(word, []).append(number)
        return words


def evidence(session: Session) -> Evidence:
    """The evidence of a session, built when it is first asked for and kept with the session."""
    kept = vars(session)
    if "_evidence" not in kept:
        kept["_evidence"] = Evidence(session.log)
    found: Evidence = kept["_evidence"]
    return found


def use_needs(session: Session, needs: Iterable[Need]) -> Evidence:
    """Take these needs and weights, in the order of their steps, for a session instead of those that its actions show.

    Needs that stand nowhere before their action are left out: no view could hold them.
    """
    made = Evidence(session.log)
    made.given = tuple(n for n in sorted(needs, key=lambda n: n.step)
                       if bisect_left(made.index.locate(n.span), made.start_of(n.step)))
    vars(session)["_evidence"] = made
    return made


def _needs(made: Evidence) -> Iterator[Need]:
    found = [n for step, acts in _actions(made) for n in _of_action(made, step, acts)]
    for need, w in zip(found, capped([(n.step, n.weight) for n in found]), strict=True):
        yield Need(step=need.step, span=need.span, weight=w, tool=need.tool)


def _actions(made: Evidence) -> Iterator[tuple[int, list[Act]]]:
    """The calls of each step."""
    first = made.index.first_unit
    for number, step in enumerate(made.log.steps):
        if step.response is not None:
            units = range(first[step.response], first[step.response + 1])
            yield number, [made.files.by_call[u] for u in units if u in made.files.by_call]


def _of_action(made: Evidence, step: int, acts: Sequence[Act]) -> Iterator[Need]:
    """The spans of an action that stand in an earlier block and weigh something."""
    before = made.start_of(step)
    done: set[TextSpan] = set()
    for act in acts:
        for span in (s for want in wants_of_deed(act.deed) for s in _known(made.index, want, before)):
            heavy = weight(bisect_left(made.index.locate(span), before), before)
            if heavy > 0 and span not in done and not is_masked(span):
                yield Need(step=step, span=span, weight=heavy, tool=act.deed.tool)
            done.add(span)


def _known(index: UnitIndex, want: Want, before: int) -> Iterator[TextSpan]:
    """The whole where it stands before, else those of its parts that do."""
    for spans in ((want.whole,), want.parts):
        found = [s for s in spans if bisect_left(index.locate(s), before)]
        if found:
            yield from found
            return


def wants_of_deed(deed: Deed) -> list[Want]:
    """What a call takes from elsewhere: its paths, what its arguments name, the lines that its edits replace."""
    paths = () if deed.command is not None else deed.paths
    named = (Want(span) for span in map(path_span, paths) if span is not None)
    lines = (Want(line) for edit in deed.edits for line in lines_of(edit.old))
    return distinct([*named, *deed.asked, *lines])


__all__ = ["CAP", "COMMON", "ON_DISK", "Evidence", "Need", "Needs", "capped", "evidence", "use_needs", "wants_of_deed",
           "weight"]
