"""How long a lane's requests would have taken (A11), under a linear model of tokens: level L1.

Seconds of a request = base + uncached input + cached input + output, each token at its own rate. Rates are fitted to
the session's recorded times where it has enough of them, else they are those of a published fit for one stack. They
say which of two lanes waits longer; on other hardware, or at another hour, both wait otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evals.costing import request_times
from replay.engine import Session

ENOUGH_STEPS = 30
"""From so many timed steps on the rates are the session's own."""
_LONGEST_SECONDS = 600.0
"""A response that took longer was interrupted, or its machine slept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Seconds for each request and for each of its tokens."""

    base: float = 1.457
    uncached: float = 4.266e-5
    cached: float = 4.266e-5
    output: float = 4.999e-3
    steps: int = 0
    """Steps that the rates were fitted to; 0: the published ones."""

    def seconds(self, uncached: float, cached: float, output: float) -> float:
        """A request's duration for its tokens."""
        return self.base + self.uncached * uncached + self.cached * cached + self.output * output


REFERENCE = Latency()
"""A published fit for one stack, which does not tell cached input from other."""


def session_latency(session: Session) -> Latency:
    """The session's own rates, or `REFERENCE`; worked out once and kept with the session."""
    kept = vars(session)
    if "_latency" not in kept:
        kept["_latency"] = _fitted(_timed(session))
    found: Latency = kept["_latency"]
    return found


def _timed(session: Session) -> list[tuple[int, int, int, float]]:
    """Uncached, cached and output tokens and seconds of each step whose times and usage were recorded."""
    rows = []
    for step, asked in zip(session.log.steps, request_times(session), strict=True):
        if step.usage is None or step.time is None or asked is None:
            continue
        if 0 < step.time - asked < _LONGEST_SECONDS:
            cached = step.usage.cache_read
            rows.append((step.usage.input_total - cached, cached, step.usage.output, step.time - asked))
    return rows


def _fitted(rows: list[tuple[int, int, int, float]]) -> Latency:
    if len(rows) < ENOUGH_STEPS:
        return REFERENCE
    table = np.array(rows, dtype=float)
    base, *rates = not_negative(np.column_stack([np.ones(len(table)), table[:, :3]]), table[:, 3])
    return Latency(base=base, uncached=rates[0], cached=rates[1], output=rates[2], steps=len(rows))


def not_negative(columns: Any, wanted: Any) -> list[float]:
    """Least-squares weights of columns, none below zero: the most negative is left out and the rest fitted anew."""
    used = list(range(columns.shape[1]))
    while used:
        found = np.linalg.lstsq(columns[:, used], wanted, rcond=None)[0]
        if (found >= 0).all():
            return [float(found[used.index(k)]) if k in used else 0.0 for k in range(columns.shape[1])]
        del used[int(found.argmin())]
    return [0.0] * columns.shape[1]
