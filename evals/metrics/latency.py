"""How long the model calls of a lane would have taken (A11), the wait for its summaries included; level L1."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evals.latency import session_latency
from evals.metrics.base import Measurement, Trial, missing

NAMES = ("latency_seconds", "latency_fitted_steps")


@dataclass(frozen=True)
class ModelTime:
    """Seconds of all requests and summaries, and how many recorded steps the rates come from (0: published rates)."""

    name: str = "latency"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """Both numbers; missing without a model call."""
        if not trial.lane.views:
            return [missing(n, "the session has no model call", "L1") for n in NAMES]
        rates, cost = session_latency(trial.session), trial.cost
        read = sum(served.read for served in cost.served)
        sent = sum(view.figure.tokens for view in trial.lane.views)
        waited = rates.seconds(sent - read, read, cost.output_tokens) + rates.base * (len(trial.lane.views) - 1)
        summaries = sum(event.summariser is not None for event in trial.lane.events)
        waited += rates.seconds(cost.summary_input_tokens, 0, cost.summary_output_tokens) + rates.base * (summaries - 1)
        return [Measurement(name=NAMES[0], value=waited, level="L1"),
                Measurement(name=NAMES[1], value=rates.steps, level="L1")]
