"""How large views are (metrics A1 to A5) and how they hang together from step to step (B15).

Sizes are those of the views as formed, the hypothetical ones after a run's end included: a run that dies
early must not look cheap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from evals.metrics.base import Measurement, Trial, missing, quantile

SIZE_NAMES = ("mean_view_tokens", "p50_view_tokens", "p95_view_tokens", "peak_view_tokens", "input_tokens",
              "overflow_steps", "overflow_excess_tokens", "first_overflow_step", "headroom_tokens",
              "headroom_p05_tokens")


@dataclass(frozen=True)
class ViewSize:
    """Tokens of views: mean, quantiles, peak, sum, overflow and headroom against the usable window."""

    name: str = "view-size"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """All size measurements; without steps none can be made."""
        sizes = [v.figure.tokens for v in trial.lane.views]
        if not sizes:
            return [missing(name, "the session has no model call") for name in SIZE_NAMES]
        return [Measurement(name=n, value=v) for n, v in _sizes(sizes).items()] + _overflow(trial, sizes)


def _sizes(sizes: list[int]) -> dict[str, float]:
    return {"mean_view_tokens": fmean(sizes), "p50_view_tokens": quantile(sizes, 0.5),
            "p95_view_tokens": quantile(sizes, 0.95), "peak_view_tokens": max(sizes), "input_tokens": sum(sizes)}


def _overflow(trial: Trial, sizes: list[int]) -> list[Measurement]:
    usable = trial.capacity.usable
    over = [(step, size - usable) for step, size in enumerate(sizes, 1) if size > usable]
    room = [usable - size for size in sizes]
    first = (Measurement(name="first_overflow_step", value=over[0][0]) if over
             else missing("first_overflow_step", "no view exceeds the usable window"))
    return [Measurement(name="overflow_steps", value=len(over)),
            Measurement(name="overflow_excess_tokens", value=sum(excess for _, excess in over)), first,
            Measurement(name="headroom_tokens", value=min(room)),
            Measurement(name="headroom_p05_tokens", value=quantile(room, 0.05))]


@dataclass(frozen=True)
class Churn:
    """How much of a view is new against the one before: 1 − common prefix ÷ the smaller of the two, mean over steps."""

    name: str = "churn"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """`view_churn` and the number of distinct views."""
        views = trial.lane.views
        if len(views) < 2:
            return [missing("view_churn", "fewer than two model calls"),
                    Measurement(name="distinct_views", value=len(views))]
        overhead = _counted_overhead(trial)
        shares = [1 - (overhead + now.print.common_tokens) / max(1.0, overhead + min(before.counted, now.counted))
                  for before, now in pairwise(views)]
        return [Measurement(name="view_churn", value=max(0.0, fmean(shares))),
                Measurement(name="distinct_views", value=len({v.print.fingerprint for v in views}))]


def _counted_overhead(trial: Trial) -> float:
    """The unlogged system prompt and schemas in counted tokens: they are common to any two views."""
    calibration = trial.session.calibration
    return (calibration.overhead or 0.0) / calibration.factor
