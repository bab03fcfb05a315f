"""Needed-evidence retention (B1): of what the recorded actions took from earlier blocks, how much a lane still shows.

The headline counts only needs that the recorded view held itself; what is held is an upper bound of what a model would
use, what is lost is the reliable side.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evals.metrics.base import Measurement, Trial, missing
from evals.needs import Needs
from evals.spans import KINDS, Kind
from evals.spans_index import SOURCES
from evals.watch import FATES, RECOVERABLE, Fate, study, watched

SHARES = ("evidence_retention", "evidence_retention_macro", "evidence_retention_unweighted", "evidence_verbatim",
          "evidence_summary", "evidence_recoverable", "evidence_lost")
SPLITS = (*(f"evidence_retention_{name}" for name in (*SOURCES, *KINDS)),)
LONGEST_TEXT = 120
"""Characters of a lost span that are shown."""


@dataclass(frozen=True)
class Retention:
    """Shares of needed evidence by fate, also by source and by kind of span, and the share that is censored."""

    name: str = "retention"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """All shares in [0, 1]; without a need that weighs something there is none."""
        tally = Tally(study(trial.session).evidence.needs, watched(trial).fates, study(trial.session).censored)
        yield Measurement(name="evidence_needs", value=len(tally.needs))
        if not len(tally.needs):
            yield from (missing(n, "no action needs anything that stands in the log")
                        for n in (*SHARES, *SPLITS, "evidence_censored_share"))
            return
        yield Measurement(name="evidence_censored_share", value=tally.share(~tally.counted))
        if not tally.counted.any():
            yield from (missing(n, "the recorded view held none of what was needed") for n in (*SHARES, *SPLITS))
            return
        yield from (Measurement(name=n, value=v) for n, v in zip(SHARES, tally.headline(), strict=True))
        for name, rows in tally.splits.items():
            yield from _split(tally, name, rows & tally.counted)


def _split(tally: Tally, name: str, rows: NDArray[Any]) -> Iterable[Measurement]:
    name = f"evidence_retention_{name}"
    if rows.any():
        yield Measurement(name=name, value=tally.share(tally.kept, rows))
    else:
        yield missing(name, "nothing of this sort was needed")


class Tally:
    """Needs, their weights and their fates, ready to be summed."""

    def __init__(self, needs: Needs, fates: bytearray, censored: bytes) -> None:
        """Arrays of equal length."""
        self.needs = needs
        self.fates = np.frombuffer(bytes(fates), dtype=np.uint8)
        self.counted = np.frombuffer(censored, dtype=np.uint8) == 0
        self.kept = self.fates < RECOVERABLE
        self.weights = needs.weights

    def share(self, rows: NDArray[Any], among: NDArray[Any] | None = None) -> float:
        """Share by weight of some needs among others (default: all)."""
        whole = self.weights.sum() if among is None else self.weights[among].sum()
        part = self.weights[rows if among is None else rows & among].sum()
        return float(part / whole) if whole else 0.0

    def headline(self) -> list[float]:
        """Values of `SHARES`."""
        kept = self.kept[self.counted]
        by_fate = [self.share(self.fates == place, self.counted) for place in range(len(FATES))]
        return [by_fate[0] + by_fate[1], self._macro(), float(kept.mean()), *by_fate]

    def _macro(self) -> float:
        """Mean over actions of the share that each still sees."""
        steps = self.needs.steps[self.counted]
        whole = np.bincount(steps, self.weights[self.counted])
        part = np.bincount(steps, (self.weights * self.kept)[self.counted])
        return float((part[whole > 0] / whole[whole > 0]).mean())

    @cached_property
    def splits(self) -> dict[str, NDArray[Any]]:
        """For each source, by the oldest block, and for each kind the needs of it."""
        return self.needs.splits


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A need that a lane's view no longer held, with its place in the session."""

    step: int
    """Number of the step, from 1."""
    index: int
    """Log index of the action."""
    text: str
    """The span, cut to `LONGEST_TEXT` characters."""
    kind: Kind
    weight: float
    source: int
    """Log index of the newest message before the action that holds it."""
    fate: Fate
    """`recoverable` or `lost`."""
    tool: str
    """Tool that the action called."""


def losses(trial: Trial) -> list[Loss]:
    """What the lane lost although the recorded view held it, heaviest first, then in the order of the session."""
    own, fates = study(trial.session), watched(trial).fates
    found = [_loss(trial, i) for i, fate in enumerate(fates) if fate >= RECOVERABLE and not own.censored[i]]
    return sorted(found, key=lambda loss: (-loss.weight, loss.step))


def _loss(trial: Trial, number: int) -> Loss:
    evidence, fates = study(trial.session).evidence, watched(trial).fates
    need, step = evidence.needs.rows[number], evidence.log.steps[evidence.needs.rows[number].step]
    text = need.span.text
    return Loss(step=step.number, index=step.start, kind=need.span.kind, weight=need.weight, tool=need.tool,
                text=text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT - 1] + "…",
                source=evidence.index.units[evidence.needs.latest[number]].message, fate=FATES[fates[number]])


def losses_by_step(trial: Trial) -> list[tuple[int, int]]:
    """For each view how many of its action's needs were lost and how many of its edits could not have been typed."""
    own, seen = study(trial.session), watched(trial)
    counts = [[0, 0] for _ in trial.lane.views]
    for i, fate in enumerate(seen.fates):
        if fate >= RECOVERABLE and not own.censored[i]:
            counts[own.evidence.needs.rows[i].step][0] += 1
    for step, numbers in own.edits_at.items():
        counts[step][1] = sum(seen.verdicts[n] == "unsafe" for n in numbers)
    return [(lost, unsafe) for lost, unsafe in counts]
