"""Sums of needed evidence by fate: what is the same for all lanes of a session, and what one lane makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evals.needs import Needs
from evals.spans import KINDS
from evals.spans_index import SOURCES

Array = NDArray[Any]
VERBATIM, SUMMARY, RECOVERABLE, LOST = range(4)
"""Fates of a need: kept word for word; in a summary or another inserted message; gone, with a handle to get it back in
view; gone."""
SPLITS: tuple[str, ...] = (*SOURCES, *KINDS)
"""By whom the oldest block that holds a need was written, and what kind of span it is."""


class Scale:
    """The needs of a session that count: those that the recorded view held."""

    def __init__(self, needs: Needs, censored: bytes) -> None:
        """`censored`: for each need 1 where it does not count."""
        self.needs = needs
        self.counted: Array = np.frombuffer(censored, dtype=np.uint8) == 0
        self.weights: Array = needs.weights[self.counted] if len(needs) else np.zeros(0)
        self.total = float(self.weights.sum())
        whole = float(needs.weights.sum()) if len(needs) else 0.0
        self.censored_share = 1 - self.total / whole if whole else 0.0
        self.steps: Array = needs.steps[self.counted]
        self._by_step = np.bincount(self.steps, self.weights) if len(self.steps) else np.zeros(0)
        self._codes = [np.array([names.index(value) for value in values], dtype=np.int64)[self.counted]
                       for names, values in ((SOURCES, needs.origins), (KINDS, [n.span.kind for n in needs.rows]))]
        self._sums = self._by_split(self.weights)

    def by_step(self, kept: Array) -> float:
        """Mean over actions of the share of each that is kept; takes the weight that is kept of each need."""
        part, some = np.bincount(self.steps, kept), self._by_step > 0
        return float((part[some] / self._by_step[some]).mean())

    def splits(self, kept: Array) -> dict[str, float | None]:
        """For each of `SPLITS` the share that is kept; None where nothing of the sort was needed."""
        parts = self._by_split(kept)
        return {name: float(part / whole) if whole else None
                for name, part, whole in zip(SPLITS, parts, self._sums, strict=True)}

    def _by_split(self, weights: Array) -> Array:
        sizes = zip(self._codes, (len(SOURCES), len(KINDS)), strict=True)
        return np.concatenate([np.bincount(codes, weights, size) for codes, size in sizes])


class Tally:
    """What became of the needs that count."""

    def __init__(self, scale: Scale, fates: bytes | bytearray) -> None:
        """One fate for each need of the session."""
        self.scale = scale
        self.fates: Array = np.frombuffer(bytes(fates), dtype=np.uint8)[scale.counted]
        self.kept: Array = scale.weights * (self.fates < RECOVERABLE)
        self._sums: Array = np.bincount(self.fates, scale.weights, 4)

    def shares(self) -> list[float]:
        """Share by weight of each fate; only where something counts."""
        found: list[float] = (self._sums / self._sums.sum()).tolist()
        return found

    def held(self) -> float:
        """Share by weight that is kept; 1 where nothing is gone, however the weights are rounded."""
        return float(self._sums[:RECOVERABLE].sum() / self._sums.sum())

    def unweighted(self) -> float:
        """Share by number that is kept."""
        return float((self.fates < RECOVERABLE).mean())
