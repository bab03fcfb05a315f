"""What a lane would have cost (A7, A8, A10) and whether blanking old results pays back (A9), level L1.

Costs in `units` are uncached input tokens: one unit is the price of one input token that no cache served.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from evals.caches import CacheModel, Served
from evals.costing import LaneCost
from evals.metrics.base import Measurement, Trial, missing
from evals.prices import NoPrice
from replay.engine import View

COST_NAMES = ("input_cost_units", "input_cost_units_warm", "input_cost_units_cold", "cache_read_share", "output_tokens",
              "summary_input_tokens", "summary_output_tokens", "summary_cost_units", "summary_cost_units_shared",
              "cost_usd", "summary_cost_usd")


@dataclass(frozen=True)
class Cost:
    """Cache-aware cost of requests, outputs and the summariser, with warm and cold bounds."""

    name: str = "cost"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """Costs in units always, in dollars where a price is known; without a price there is a reason, not a zero."""
        if not trial.lane.views:
            return [missing(n, "the session has no model call", "L1") for n in COST_NAMES]
        cost = trial.cost
        sent = sum(v.figure.tokens for v in trial.lane.views)
        numbers = {
            "input_cost_units": cost.input_units(), "input_cost_units_warm": cost.input_units("warm"),
            "input_cost_units_cold": cost.input_units("cold"),
            "cache_read_share": sum(s.read for s in cost.served) / sent if sent else 0.0,
            "output_tokens": cost.output_tokens, "summary_input_tokens": cost.summary_input_tokens,
            "summary_output_tokens": cost.summary_output_tokens, "summary_cost_units": cost.summary_units(),
            "summary_cost_units_shared": cost.summary_units(shares_prefix=True)}
        return [*(Measurement(name=n, value=v, level="L1") for n, v in numbers.items()), *_dollars(cost)]


def _dollars(cost: LaneCost) -> list[Measurement]:
    try:
        listed = cost.price()
    except NoPrice as error:
        return [missing(n, str(error), "L1") for n in ("cost_usd", "summary_cost_usd")]
    return [Measurement(name="cost_usd", value=cost.usd(), level="L1"),
            Measurement(name="summary_cost_usd", value=cost.summary_usd(listed), level="L1")]


@dataclass(frozen=True, slots=True)
class PayBack:
    """One change that broke a cached prefix: what it cost and when it would have paid back."""

    step: int
    penalty_units: float
    saved_per_step: float
    break_even_steps: int | None
    """Steps after which the saving covers the penalty; 0: at once; None: never."""
    steps_until_next: int
    was_cold: bool
    """The cache had expired before, so the break cost nothing."""

    @property
    def paid(self) -> bool:
        """Whether the next break, or the end, left enough steps."""
        return self.break_even_steps is not None and self.break_even_steps <= self.steps_until_next


@dataclass(frozen=True)
class Elisions:
    """For each change of the window: does what it saves pay for the cached prefix that it breaks?"""

    name: str = "elisions"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """Breaks, those that never paid back, the share at cold moments, and the median break-even in steps."""
        found = pay_backs(trial)
        counts = {"cache_breaks": len(found), "cache_breaks_unpaid": sum(not p.paid for p in found)}
        made = [Measurement(name=n, value=v, level="L1") for n, v in counts.items()]
        names = ("break_even_steps", "cache_breaks_cold_share")
        if not found:
            return [*made, *(missing(n, "no change of the window", "L1") for n in names)]
        steps = [p.break_even_steps for p in found if p.break_even_steps is not None]
        middle = (Measurement(name=names[0], value=median(steps), level="L1") if steps
                  else missing(names[0], "no change pays back", "L1"))
        cold = sum(p.was_cold for p in found) / len(found)
        return [*made, middle, Measurement(name=names[1], level="L1", value=cold)]


def pay_backs(trial: Trial) -> list[PayBack]:
    """The changes of a lane's window that broke a prefix, in order."""
    views, served = trial.lane.views, trial.cost.served
    changed = [i for i, v in enumerate(views) if i and any(e.kind in ("full", "micro") for e in v.events)]
    ends = [*changed[1:], len(views)] if changed else []
    return [_pay_back(trial.cost, views[i - 1], views[i], served[i], end - i - 1)
            for i, end in zip(changed, ends, strict=True)]


def _pay_back(cost: LaneCost, before: View, after: View, served: Served, left: int) -> PayBack:
    """Penalty and saving a step of one change, the summariser's reading added."""
    model = cost.model
    summary = sum(cost.session.calibration.factor * (e.summary_input_tokens or 0) for e in after.events)
    taken = max(0.0, cost.session.calibration.factor * sum(e.gain or 0 for e in after.events))
    whole = after.figure.tokens + taken
    cold = served.read == 0 and before.figure.tokens > 0
    penalty = penalty_units(model, whole, taken, 0.0 if cold else served.read, cold)
    return PayBack(step=after.step, penalty_units=penalty + summary, saved_per_step=model.read * taken,
                   break_even_steps=break_even(penalty + summary, model.read * taken), steps_until_next=left,
                   was_cold=cold)


def penalty_units(model: CacheModel, whole: float, taken: float, kept: float, cold: bool = False) -> float:
    """What the next request costs more because a view of `whole` tokens lost `taken` and only `kept` stayed cached.

    `cold`: nothing of the whole view was cached any more, so that a smaller one is written for less.
    """
    unbroken = model.write * whole if cold else model.read * (whole - kept)
    return model.write * (whole - taken - kept) - unbroken


def break_even(penalty: float, saved_per_step: float) -> int | None:
    """Steps until savings cover a penalty: 0 for none, None where nothing is saved."""
    if penalty <= 0:
        return 0
    return math.ceil(penalty / saved_per_step) if saved_per_step > 0 else None


__all__ = ["Cost", "Elisions", "PayBack", "break_even", "pay_backs", "penalty_units"]
