"""Repair-adjusted cost (A12): what a lane costs once it has paid for what it forgot, level L1.

A repair is one more model call over the current view, and the repeated call with its result, which stays in view until
it is evicted. It assumes that the agent notices a loss and runs the same call again; it may do worse or not need to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evals.caches import CacheModel
from evals.metrics.base import Measurement, Trial, missing
from evals.prices import NoPrice, Price
from evals.rereading import Repair
from evals.watch import watched

MULTIPLIERS = (0, 1, 2)
"""Repairs are counted not at all, as simulated, and twice."""
NAMES = {0: "repair_adjusted_cost_x0", 1: "repair_adjusted_cost", 2: "repair_adjusted_cost_x2"}
USD_NAMES = {0: "repair_adjusted_usd_x0", 1: "repair_adjusted_usd", 2: "repair_adjusted_usd_x2"}


@dataclass(frozen=True)
class RepairAdjustedCost:
    """The lane's whole bill with simulated repairs, in uncached input tokens and, with a known price, in dollars."""

    name: str = "repair-adjusted-cost"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """Costs with repairs counted 0, 1 and 2 times; the two last tell how much hangs on the assumption."""
        if not trial.lane.views:
            names = (*NAMES.values(), *USD_NAMES.values())
            return [missing(n, "the session has no model call", "L1") for n in names]
        repairs = watched(trial).repairs
        return [*_in_units(trial, repairs), *_in_dollars(trial, repairs)]


@dataclass(frozen=True, slots=True)
class RepairCost:
    """Tokens that one repair adds to the bill."""

    read: float
    """Served by the cache: the view of the extra call, and the repetition in every later request that holds it."""
    written: float
    """New in the next request: the repeated call and its result."""
    output: float
    """The repeated call as the model writes it."""

    def units(self, model: CacheModel, output_price: float) -> float:
        """In uncached input tokens."""
        return self.read * _read_price(model) + self.written * _write_price(model) + self.output * output_price


def repair_cost(trial: Trial, repair: Repair) -> RepairCost:
    """What a repair adds: one more step over the view, and its tokens in each request from then until they are gone."""
    factor = trial.session.calibration.factor
    tokens = factor * repair.tokens
    later = max(0, repair.gone - repair.step - 1)
    return RepairCost(read=trial.lane.views[repair.step].figure.tokens + later * tokens, written=tokens,
                      output=factor * repair.call_tokens)


def _read_price(model: CacheModel) -> float:
    if model.entries == "never":
        return 1.0
    return model.hit_probability * model.read + 1 - model.hit_probability


def _write_price(model: CacheModel) -> float:
    return 1.0 if model.entries == "never" else model.write


def _in_units(trial: Trial, repairs: list[Repair]) -> Iterator[Measurement]:
    cost = trial.cost
    price = cost.output_price
    written = cost.output_tokens + cost.summary_output_tokens
    base = cost.input_units() + cost.summary_input_tokens + price * written
    added = sum(repair_cost(trial, r).units(cost.model, price) for r in repairs)
    return (Measurement(name=NAMES[m], value=base + m * added, level="L1") for m in MULTIPLIERS)


def _in_dollars(trial: Trial, repairs: list[Repair]) -> list[Measurement]:
    try:
        listed = trial.cost.price()
    except NoPrice as error:
        return [missing(n, str(error), "L1") for n in USD_NAMES.values()]
    base, added = trial.cost.usd(), sum(_usd(trial, r, listed) for r in repairs)
    return [Measurement(name=USD_NAMES[m], value=base + m * added, level="L1") for m in MULTIPLIERS]


def _usd(trial: Trial, repair: Repair, listed: Price) -> float:
    model, cost = trial.cost.model, repair_cost(trial, repair)
    rates = listed.rates(trial.lane.views[repair.step].figure.tokens)
    read = rates.read if rates.read is not None and model.entries != "never" else rates.input * _read_price(model)
    return cost.read * read + cost.written * rates.input * _write_price(model) + cost.output * rates.output
