"""How far back actions reach (B2): a description of the session, the same under every policy.

The distance is taken to the newest place of what is needed, which the agent's own re-reading brings nearer: a lower
bound. A tail that covers 95 % of it is not thereby safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evals.metrics.base import Measurement, Trial, missing
from evals.needs import Evidence
from evals.watch import study

QUANTILES = {"evidence_half_life_tokens": 0.5, "safe_tail_75_tokens": 0.75, "safe_tail_90_tokens": 0.9,
             "safe_tail_95_tokens": 0.95, "safe_tail_99_tokens": 0.99}
STEP_QUANTILES = {"evidence_half_life_steps": 0.5, "safe_tail_90_steps": 0.9, "safe_tail_95_steps": 0.95}
FIRST_QUANTILES = {"first_acquired_half_life_tokens": 0.5, "first_acquired_95_tokens": 0.95}


@dataclass(frozen=True, slots=True)
class Distances:
    """For each need how far back it reaches."""

    tokens: list[int]
    """Counted tokens from the end of the newest message that holds it to the action."""
    steps: list[int]
    """Steps since it came into view; 0: the action was the first to see it."""
    first_tokens: list[int]
    """Tokens from the end of the first message that holds it."""


@dataclass(frozen=True)
class EvidenceDistance:
    """Weighted quantiles of the distance between actions and what they need, in tokens and in steps."""

    name: str = "evidence-distance"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """Half-life (median) and safe tails; missing without needs."""
        evidence = study(trial.session).evidence
        if not len(evidence.needs):
            return [missing(n, "no action needs anything that stands in the log")
                    for n in (*QUANTILES, *STEP_QUANTILES, *FIRST_QUANTILES)]
        return [Measurement(name=n, value=v) for n, v in _quantiles(evidence).items()]


def _quantiles(evidence: Evidence) -> dict[str, float]:
    """All quantiles of a session; worked out once."""
    kept = vars(evidence)
    if "_distance_quantiles" not in kept:
        found = distances(evidence)
        weights = evidence.needs.weights
        kept["_distance_quantiles"] = {
            name: weighted_quantile(values, weights, q)
            for names, values in ((QUANTILES, found.tokens), (STEP_QUANTILES, found.steps),
                                  (FIRST_QUANTILES, found.first_tokens))
            for name, q in names.items()}
    made: dict[str, float] = kept["_distance_quantiles"]
    return made


def distances(evidence: Evidence) -> Distances:
    """The distances of a session's needs, in their order."""
    log, needs, units = evidence.log, evidence.needs, evidence.index.units
    sums = log.sums(log.tokens)
    starts = [log.steps[n.step].start for n in needs.rows]
    newest = [units[u].message for u in needs.latest]
    oldest = [units[u].message for u in needs.first]
    responses = np.array([s.start for s in log.steps])
    passed = np.searchsorted(responses, newest, side="left")
    return Distances(tokens=[sums[a] - sums[m + 1] for a, m in zip(starts, newest, strict=True)],
                     steps=[int(n.step - p) for n, p in zip(needs.rows, passed, strict=True)],
                     first_tokens=[sums[a] - sums[m + 1] for a, m in zip(starts, oldest, strict=True)])


def weighted_quantile(values: Sequence[float], weights: Sequence[float] | Any, q: float) -> float:
    """The smallest value at which at least the share `q` of all weight is reached; values must not be empty."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(np.asarray(weights)[order])
    # Sums of the same weights in another order must not miss a share that they reach exactly.
    place = int(np.searchsorted(reached, q * reached[-1] * (1 - 1e-12)))
    return float(values[int(order[min(place, len(order) - 1)])])
