"""Tests of differences: worked examples, exactness with ties and zeros, and families."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.stats_significance import (
    bootstrap_p,
    holm,
    holm_by_family,
    settled,
    sign_flip_p,
    signed_rank,
    wilcoxon,
)

EXAMPLE = (-.12, -.05, .01, -.08, -.03, -.10, .02, -.06)
small = st.lists(st.integers(-4, 4), min_size=1, max_size=10)


def test_worked_example_of_the_signed_rank_test() -> None:
    """The eight differences give W = 3 and p = .0391, exactly."""
    found = signed_rank(EXAMPLE)

    assert (3.0, True) == (found.statistic, found.exact)
    assert 0.0391 == pytest.approx(found.p, abs=5e-5)


def test_worked_example_of_holm() -> None:
    """p of .01, .04 and .03 become .03, .06 and .06."""
    assert [0.03, 0.06, 0.06] == pytest.approx(holm([0.01, 0.04, 0.03]))


def test_no_change_at_all_is_no_evidence() -> None:
    """All differences zero: p is 1 and nothing fails."""
    assert 1.0 == wilcoxon([0.0] * 7)
    assert 1.0 == sign_flip_p([0.0] * 7)


def _enumerated(differences: list[int]) -> float:
    """The signed-rank p by brute force, zeros ranked and set aside."""
    sizes = np.abs(differences)
    ranks = np.array([(sizes < s).sum() + ((sizes == s).sum() + 1) / 2 for s in sizes])
    moved, signs = ranks[sizes > 0], np.sign([d for d in differences if d])
    total = moved.sum()
    observed = abs((moved * (signs > 0)).sum() - total / 2)
    every = [abs((moved * np.array(c)).sum() - total / 2) for c in product((0, 1), repeat=len(moved))]
    return float(np.mean([e >= observed - 1e-9 for e in every]))


@settings(max_examples=60, deadline=None)
@given(small)
def test_exact_p_with_ties_and_zeros(differences: list[int]) -> None:
    """Up to 25 differences the p counts every choice of signs, ties and zeros included."""
    assert _enumerated(differences) == pytest.approx(wilcoxon(differences))


@pytest.mark.parametrize("n", [10, 25, 26, 80])
def test_agrees_with_scipy(n: int) -> None:
    """Without ties the p is scipy's, exact up to 25 and the normal approximation above."""
    from scipy import stats

    d = np.random.default_rng(n).normal(0.3, 1, n)
    theirs = stats.wilcoxon(d, zero_method="pratt", method="exact" if n <= 25 else "approx")

    assert theirs.pvalue == pytest.approx(wilcoxon(d))
    assert theirs.statistic == pytest.approx(signed_rank(d).statistic)


def test_rounding_noise_does_not_break_ties() -> None:
    """0.3 − 0.2 and 0.2 − 0.1 are the same difference."""
    d = np.array([0.3 - 0.2, 0.2 - 0.1, 0.1 - 0.2, 0.7 - 0.7])

    assert 2 == len(np.unique(np.abs(settled(d))))
    assert wilcoxon([0.1, 0.1, -0.1, 0.0]) == wilcoxon(d)


@settings(max_examples=40, deadline=None)
@given(small)
def test_p_is_a_probability_and_blind_to_arms(differences: list[int]) -> None:
    """p lies in (0, 1], is the same with the arms swapped, and does not depend on the unit of measure."""
    p = wilcoxon(differences)

    assert 0 < p <= 1
    assert p == pytest.approx(wilcoxon([-d for d in differences]))
    assert p == pytest.approx(wilcoxon([d * 0.001 for d in differences]))


def test_sign_flips_are_exact_for_few_clusters() -> None:
    """Five differences of one sign: 2 of 32 sign choices are as extreme."""
    assert 2 / 32 == sign_flip_p([1.0, 2.0, 3.0, 4.0, 5.0])


def test_sign_flips_of_many_clusters_are_drawn() -> None:
    """Above sixteen clusters p comes from draws, is never 0, and the same each time."""
    d = np.random.default_rng(1).normal(1.0, 1.0, 40)

    assert 1 / 10_001 <= sign_flip_p(d) < 0.001
    assert sign_flip_p(d) == sign_flip_p(d)


def test_bootstrap_p_never_exceeds_one() -> None:
    """Draws that are mostly ties at zero count on both sides, and are still no more than certain."""
    assert 1.0 == bootstrap_p(np.zeros(1000))
    assert 1.0 == bootstrap_p(np.array([-0.1, *[0.0] * 98, 0.1]))


def test_bootstrap_p_is_never_zero() -> None:
    """A thousand draws above zero show p < .002, not p = 0."""
    assert 2 / 1001 == pytest.approx(bootstrap_p(np.ones(1000)))


def test_families_are_corrected_apart() -> None:
    """Exploratory tests cost the headline nothing."""
    assert [0.02, 0.5, 0.04, 0.9] == pytest.approx(
        holm_by_family([0.01, 0.25, 0.04, 0.9], ["headline", "exploratory", "headline", "exploratory"]))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_order_and_never_helps(p_values: list[float]) -> None:
    """Adjusted p are at least the raw ones, at most 1, and in the same order."""
    adjusted = holm(p_values)

    assert all(p <= a <= 1 for p, a in zip(p_values, adjusted, strict=True))
    pairs = sorted(zip(p_values, adjusted, strict=True))
    assert [a for _, a in pairs] == sorted(a for _, a in pairs)


def test_false_alarms_stay_at_five_per_cent() -> None:
    """Under no effect about 5 in 100 exact tests reject."""
    random = np.random.default_rng(12)
    rejected = np.mean([wilcoxon(random.normal(size=15)) <= 0.05 for _ in range(1500)])

    assert 0.035 <= rejected <= 0.06
