"""Reading again: what a lane would force an agent to read again, and what the recorded agent did read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evals.acquisition import Acquisitions
from evals.needs import ON_DISK, Evidence
from evals.spans import CONTENT_KINDS
from evals.spans_files import Act
from evals.spans_index import SOURCES
from evals.spans_paths import same_path
from evals.spans_shell import Reading
from evals.visibility import Sight

HEAVY = 0.5
"""Weight from which a lost need of content sends an agent back to its source."""
OWN_WORDS = 1 << SOURCES.index("user") | 1 << SOURCES.index("assistant")
"""Sources that no tool brings back."""
ReadClass = Literal["first", "changed", "new-range", "same"]
_RECENT_BLOCKS = 50
_EARLIER_READS = 32
"""Newest reads of a file that a read is compared with."""


@dataclass(slots=True)
class Repair:
    """One simulated repetition of a call for something that the view had lost."""

    step: int
    """Position of the step whose action would have needed it, from 0."""
    act: Act
    """The call that brought it in the first place."""
    call_tokens: float
    result_tokens: float
    gone: int = 0
    """Position of the first later step whose view no longer holds the repetition."""

    @property
    def tokens(self) -> float:
        """Counted tokens that come into the view."""
        return self.call_tokens + self.result_tokens


class Repairs:
    """Simulates repairs along a lane. A repetition is as old as the newest result in view and leaves with it."""

    def __init__(self, made: Evidence, acquisitions: Acquisitions, sight: Sight) -> None:
        """No repair yet."""
        self.made: list[Repair] = []
        self.irrecoverable = 0
        self._evidence = made
        self._acquisitions = acquisitions
        self._sight = sight
        self._alive: dict[str, tuple[Repair, int]] = {}

    def take(self, step: int, lost: Sequence[int]) -> None:
        """The needs that an action lost: each source that brings one back is read again once."""
        needs = self._evidence.needs
        for need in lost:
            row = needs.rows[need]
            if row.weight < HEAVY or row.span.kind not in CONTENT_KINDS:
                continue
            act = self._acquisitions.newest(need)
            if act is not None:
                self._repair(step, act)
            elif needs.sources[need] | OWN_WORDS == OWN_WORDS:
                self.irrecoverable += 1

    def _repair(self, step: int, act: Act) -> None:
        if act.deed.key in self._alive:
            return
        before = self._evidence.start_of(step)
        repair = Repair(step, act, *self._acquisitions.cost(act, before))
        self.made.append(repair)
        self._alive[act.deed.key] = (repair, self._companion(before))

    def _companion(self, before: int) -> int:
        """The block that a repetition is as old as: the newest result before the action, else the newest block."""
        units = self._evidence.index.units
        recent = range(before - 1, max(-1, before - _RECENT_BLOCKS), -1)
        return next((u for u in recent if units[u].source == "tool"), before - 1)

    def evict(self, step: int) -> None:
        """The view changed: repetitions whose companion left are gone."""
        for key, (repair, companion) in list(self._alive.items()):
            if not self._sight.shows(companion):
                repair.gone = step
                del self._alive[key]

    def end(self, steps: int) -> None:
        """After the last step: what is still there stayed to the end."""
        for repair, _ in self._alive.values():
            repair.gone = steps


@dataclass(frozen=True, slots=True)
class Reread:
    """A recorded read of a file and how it relates to the reads before it."""

    act: Act
    reading: Reading
    kind: ReadClass
    """`same`: the same lines with the same content had been read before; whether that was in view tells the rest."""
    copy: int | None = None
    """For `same`: block of the earlier result."""


def classified(made: Evidence) -> list[Reread]:
    """Every recorded read of a file, in order."""
    earlier: dict[str, list[tuple[Act, Reading]]] = {}
    found = []
    for act, reading in made.files.reads:
        name = reading.path.rstrip("/").rpartition("/")[2]
        known = earlier.setdefault(name, [])
        same = [pair for pair in known[-_EARLIER_READS:] if same_path(pair[1].path, reading.path)]
        found.append(_classify(made, act, reading, same))
        known.append((act, reading))
    return found


def _classify(made: Evidence, act: Act, reading: Reading, same: Sequence[tuple[Act, Reading]]) -> Reread:
    if not same:
        return Reread(act, reading, "first")
    covering = [(a, r) for a, r in same if r.covers(reading)]
    if not covering:
        return Reread(act, reading, "new-range")
    latest = covering[-1][0].result or 0
    if made.files.changed_since((reading.path,), latest, act.call) or not _agrees(made, act, reading, covering[-1]):
        return Reread(act, reading, "changed")
    return Reread(act, reading, "same", copy=latest)


def _agrees(made: Evidence, act: Act, reading: Reading, earlier: tuple[Act, Reading]) -> bool:
    """Whether two reads of the same lines gave the same text; a longer read is trusted to."""
    if earlier[1].lines != reading.lines:
        return True
    now, before = (made.index.units[a.result or 0].text for a in (act, earlier[0]))
    return now == before


def is_on_disk(sources: int) -> bool:
    """Whether the assistant wrote what is needed into a file."""
    return bool(sources & ON_DISK)
