"""Strata: true reversals and weights, by the worked examples."""

from __future__ import annotations

import numpy as np
import pytest

from evals.stats import Values
from evals.stats_strata import standardised, terciles, weighted


def _sessions(prefix: str, n: int, rate: float) -> dict[str, float | None]:
    """n sessions of a stratum that pass at the given rate."""
    return {f"{prefix}{i}": rate for i in range(n)}


def test_worked_example_of_a_reversal() -> None:
    """Pooled .55 against .74 although better by .05 in both strata: unequal exclusions turn the sign."""
    reference = _sessions("short", 90, 0.80) | _sessions("long", 10, 0.20)
    policy = _sessions("short", 50, 0.85) | _sessions("long", 50, 0.25)
    strata = {u: u.rstrip("0123456789") for u in reference | policy}
    found = standardised(policy, reference, strata, on="valid")

    assert 0.55 - 0.74 == pytest.approx(found.pooled)
    assert 0.05 == pytest.approx(found.session_weighted)
    assert 0.05 == pytest.approx(found.equal_weighted)
    assert found.reversed


def test_worked_example_of_weights() -> None:
    """+.02 in 90 and −.10 in 10 sessions: +.008 weighted by session, −.04 by stratum, and both are given."""
    policy: Values = {f"a{i}": 0.02 for i in range(90)} | {f"b{i}": -0.10 for i in range(10)}
    reference: Values = dict.fromkeys(policy, 0.0)
    found = standardised(policy, reference, {u: u[0] for u in policy})

    assert 0.008 == pytest.approx(found.session_weighted)
    assert -0.04 == pytest.approx(found.equal_weighted)
    assert 0.008 == pytest.approx(found.pooled)
    assert found.reversed
    assert [("a", 90, 90), ("b", 10, 10)] == [(s.name, s.units, s.n) for s in found.strata]


def test_weights_are_of_the_cohort_not_of_what_was_measured() -> None:
    """Sessions that could not be measured keep their weight in the standardised effect."""
    policy: Values = {"a1": 1.0, "a2": None, "a3": None, "b1": 0.0}
    found = standardised(policy, dict.fromkeys(policy, 0.0), {u: u[0] for u in policy})

    assert 0.5 == found.pooled
    assert 0.75 == found.session_weighted


def test_an_empty_stratum_is_missing_not_zero() -> None:
    """A stratum without any pair has no effect, and nothing is standardised over it."""
    found = standardised({"a": 1.0, "b": None}, {"a": 0.0, "b": 0.0}, {"a": "x", "b": "y"})

    assert None is found.session_weighted
    assert [1.0, None] == [s.effect for s in found.strata]
    assert None is weighted([], [])


def test_standardised_effects_have_intervals() -> None:
    """With enough sessions in each stratum the interval surrounds the effect; with few there is none."""
    random = np.random.default_rng(1)
    policy: Values = {f"a{i}": float(random.normal(1, 0.2)) for i in range(20)} | {
        f"b{i}": float(random.normal(2, 0.2)) for i in range(20)}
    found = standardised(policy, dict.fromkeys(policy, 0.0), {u: u[0] for u in policy})

    assert found.low is not None
    assert found.high is not None
    assert found.session_weighted is not None
    assert found.low < found.session_weighted < found.high
    few = standardised({"a": 1.0}, {"a": 0.0}, {"a": "x"})
    assert (None, None) == (few.low, few.high)


def test_terciles() -> None:
    """Sessions are cut into thirds by length; equal lengths stay together."""
    found = terciles({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 600})

    assert ["1 short: up to 2"] * 2 + ["2 middle: up to 4"] * 2 + ["3 long: over 4"] * 2 == list(found.values())
    assert 1 == len(set(terciles(dict.fromkeys("abc", 7.0)).values()))
    assert {} == terciles({})
