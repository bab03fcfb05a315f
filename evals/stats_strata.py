"""Effects by stratum: pooled beside standardised, so that a mixture of short and long sessions cannot turn the sign."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evals.stats import Values, matched
from evals.stats_bootstrap import SEED, SMALL_SAMPLE, Array, grouped, mean_draws

On = Literal["pairs", "valid"]
"""`pairs`: only units that both were measured on; `valid`: each policy on all units that it was measured on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """One stratum: how many units of the cohort fall into it, how many counted, and the effect there."""

    name: str
    units: int
    n: int
    effect: float | None
    """None where a policy has no value in the stratum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standardised:
    """A pooled effect beside the same effect with fixed weights of the strata."""

    pooled: float | None
    session_weighted: float | None
    """Strata weighted by their units in the whole cohort, measured or not."""
    equal_weighted: float | None
    strata: tuple[Stratum, ...]
    low: float | None = None
    high: float | None = None
    """95 % interval of the session-weighted effect; None below 12 pairs or with a single pair in a stratum."""

    @property
    def reversed(self) -> bool:
        """Whether pooling and standardising disagree about the sign, by either set of weights."""
        found = [e for e in (self.session_weighted, self.equal_weighted) if e is not None]
        return self.pooled is not None and any(e * self.pooled < 0 for e in found)


def standardised(values: Values, reference: Values, strata: Mapping[str, str], on: On = "pairs",
                 seed: int = SEED) -> Standardised:
    """Pooled and stratum-standardised difference of two policies; `strata` maps every unit of the cohort to one."""
    names = sorted(set(strata.values()))
    units = {name: [u for u in strata if strata[u] == name] for name in names}
    parts = {name: _pick(values, reference, units[name], on) for name in names}
    made = tuple(Stratum(name=name, units=len(units[name]), n=min(len(a), len(b)), effect=_effect(a, b))
                 for name, (a, b) in parts.items())
    low, high = _interval(made, parts, seed) if on == "pairs" else (None, None)
    return Standardised(pooled=_effect(*_pick(values, reference, list(strata), on)), strata=made, low=low, high=high,
                        session_weighted=weighted([s.effect for s in made], [s.units for s in made]),
                        equal_weighted=weighted([s.effect for s in made], [1] * len(made)))


def weighted(effects: Sequence[float | None], weights: Sequence[float]) -> float | None:
    """The effect under fixed weights of the strata; None when any stratum with weight has no effect."""
    used = [(e, w) for e, w in zip(effects, weights, strict=True) if w]
    if not used or any(e is None for e, _ in used):
        return None
    return sum(e * w for e, w in used if e is not None) / sum(w for _, w in used)


def _pick(values: Values, reference: Values, units: Sequence[str], on: On) -> tuple[Array, Array]:
    ours, theirs = {u: values.get(u) for u in units}, {u: reference.get(u) for u in units}
    if on == "pairs":
        both = matched(ours, theirs)
        return both.values, both.reference
    return matched(ours, ours).values, matched(theirs, theirs).values


def _effect(ours: Array, theirs: Array) -> float | None:
    return float(ours.mean() - theirs.mean()) if ours.size and theirs.size else None


def _interval(strata: Sequence[Stratum], parts: Mapping[str, tuple[Array, Array]],
              seed: int) -> tuple[float | None, float | None]:
    """Percentile interval of the session-weighted effect, units resampled within strata."""
    used = [s for s in strata if s.units]
    if sum(s.n for s in used) < SMALL_SAMPLE or any(s.n < 2 for s in used):
        return None, None
    total = sum(s.units for s in used)
    apart = [(seed + i, s.units / total, ours - theirs) for i, s in enumerate(used) for ours, theirs in [parts[s.name]]]
    # Where a policy never acted there is nothing to resample.
    draws = [share * mean_draws(grouped(values), start)[:, 0] for start, share, values in apart if values.any()]
    if not draws:
        return 0.0, 0.0
    low, high = np.quantile(sum(draws), (0.025, 0.975))
    return float(low), float(high)


def terciles(lengths: Mapping[str, float]) -> dict[str, str]:
    """Each unit's third by length, named with its bounds; equal lengths share a third."""
    if not lengths:
        return {}
    first, second = np.quantile(list(lengths.values()), (1 / 3, 2 / 3), method="inverted_cdf")
    names = (f"1 short: up to {first:,.0f}", f"2 middle: up to {second:,.0f}", f"3 long: over {second:,.0f}")
    return {unit: names[int(length > first) + int(length > second)] for unit, length in lengths.items()}
