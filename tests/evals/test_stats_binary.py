"""Yes-or-no outcomes: exact tests, shares, zero events and power, by worked examples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.stats_binary import (
    is_binary,
    label_permutation,
    mcnemar,
    mcnemar_of,
    paired_share_interval,
    share_interval,
    zero_event_upper,
)
from evals.stats_power import mde_binary, mde_continuous, units_for, units_for_binary


def test_worked_example_of_mcnemar() -> None:
    """Nine units against two give p = .0654, and both counts are kept."""
    found = mcnemar(9, 2)

    assert (9, 2) == (found.b, found.c)
    assert 0.0654 == pytest.approx(found.p, abs=5e-5)


def test_no_discordant_pair() -> None:
    """Nothing differs: p is 1."""
    assert 1.0 == mcnemar(0, 0).p


def test_even_counts_do_not_exceed_one() -> None:
    """Five against five would be more than certain without the cap."""
    assert 1.0 == mcnemar(5, 5).p


def test_negative_counts_are_refused() -> None:
    """A count below zero is a mistake of the caller."""
    with pytest.raises(ValueError, match="cannot be negative"):
        mcnemar(-1, 2)


@settings(deadline=None)
@given(st.integers(0, 3000), st.integers(0, 3000))
def test_mcnemar_is_the_binomial_test(b: int, c: int) -> None:
    """The p is scipy's binomial test of b among b + c."""
    from scipy import stats

    expected = stats.binomtest(b, b + c).pvalue if b + c else 1.0
    assert expected == pytest.approx(mcnemar(b, c).p, rel=1e-9, abs=1e-15)


def test_counts_come_from_paired_outcomes() -> None:
    """b counts what only the reference solved, c what only the other solved."""
    found = mcnemar_of([1, 1, 0, 0, 1], [1, 0, 1, 0, 0])

    assert (1, 2) == (found.b, found.c)


def test_is_binary() -> None:
    """Shares and scores are no yes-or-no outcomes."""
    assert is_binary([0, 1, 1], [0.0])
    assert not is_binary([0, 0.5])


@pytest.mark.parametrize(("n", "upper"), [(60, 0.049), (1, 0.95), (10, 0.2589), (0, 1.0)])
def test_zero_events_still_allow_some(n: int, upper: float) -> None:
    """0 of 60 allows up to 4.9 %."""
    assert upper == pytest.approx(zero_event_upper(n), abs=5e-4)


def test_worked_examples_of_the_detectable_effect() -> None:
    """A fifth discordant in 100 pairs: 12.5 points; 5 points at .15 need 471 tasks; 2.80·sd/√n otherwise."""
    assert 0.125 == pytest.approx(mde_binary(0.2, 100), abs=5e-4)
    assert 471 == units_for_binary(0.05, 0.15)
    assert 2.80 == pytest.approx(mde_continuous(1.0, 1), abs=2e-3)
    assert 0.28 == pytest.approx(mde_continuous(1.0, 100), abs=2e-4)


def test_no_study_finds_nothing() -> None:
    """An effect of zero has no sample size."""
    with pytest.raises(ValueError, match="effect of zero"):
        units_for(0.0, 1.0)


def test_detectable_effects_are_found_four_times_in_five() -> None:
    """Simulated studies of 200 pairs with an effect of the detectable size reject in about 80 of 100."""
    random, n, discordance = np.random.default_rng(5), 200, 0.2
    effect = mde_binary(discordance, n)
    ups = random.binomial(n, (discordance + effect) / 2, 2000)
    downs = random.binomial(n - ups, (discordance - effect) / 2 / (1 - (discordance + effect) / 2))
    found = np.mean([mcnemar(int(b), int(c)).p <= 0.05 for b, c in zip(ups, downs, strict=True)])

    # The exact test is a little more careful than the normal approximation behind the formula.
    assert 0.72 <= found <= 0.86


def test_share_intervals() -> None:
    """Wilson inside, the bound of zero events at the edges, clusters counted as one."""
    inside = share_interval([1] * 3 + [0] * 7)
    assert pytest.approx((0.108, 0.603), abs=1e-3) == (inside.low, inside.high)
    none = share_interval([0] * 60)
    assert pytest.approx((0.0, 0.049), abs=5e-4) == (none.low, none.high)
    everything = share_interval([1] * 60)
    assert pytest.approx((0.951, 1.0), abs=5e-4) == (everything.low, everything.high)
    assert zero_event_upper(3) == pytest.approx(share_interval([0] * 60, list("abc") * 20).high)


def test_labels_are_permuted_within_tasks() -> None:
    """Two tasks with opposite, equal effects show none; ten tasks with the same effect show one."""
    assert 1.0 == pytest.approx(label_permutation([5, 0], [5, 5], [0, 5], [5, 5]), abs=0.02)
    assert 0.001 >= label_permutation([5] * 10, [5] * 10, [1] * 10, [5] * 10)


def test_one_trial_each_is_mcnemar() -> None:
    """With a single trial a task, permuting labels is the sign test of the discordant ones."""
    ours, theirs = [1] * 9 + [0] * 2 + [1] * 5, [0] * 9 + [1] * 2 + [1] * 5
    ones = [1] * 16

    assert mcnemar(9, 2).p == pytest.approx(label_permutation(ours, ones, theirs, ones), abs=0.01)


def test_paired_shares_have_newcombes_interval() -> None:
    """Hand-computed: seven of seven against none, equal outcomes, and a table of 36, 12, 2 and 0 pairs."""
    def pairs(both: int, ours: int, theirs: int, neither: int) -> tuple[list[float], list[float]]:
        return ([1.0] * (both + ours) + [0.0] * (theirs + neither), [1.0] * both + [0.0] * ours + [1.0] * theirs + [0.0] * neither)

    found = paired_share_interval([0.0] * 7, [1.0] * 7)
    assert (-1.0, pytest.approx(-0.4989, abs=1e-4)) == (found.low, found.high)
    same = paired_share_interval(*pairs(5, 0, 0, 5))
    assert same.low == pytest.approx(-same.high)
    apart = paired_share_interval(*pairs(36, 12, 2, 0))
    assert (0.0569, 0.3404) == (pytest.approx(apart.low, abs=1e-3), pytest.approx(apart.high, abs=1e-3))
    with pytest.raises(ValueError, match="no units"):
        paired_share_interval([], [])


def test_newcombes_interval_covers_the_true_difference() -> None:
    """In simulated studies of twelve tasks the interval holds the true difference at least 93 times in a hundred."""
    chance, inside = np.random.default_rng(3), 0
    for _ in range(2000):
        theirs = chance.random(12) < 0.7
        ours = np.where(chance.random(12) < 0.6, theirs, chance.random(12) < 0.4)
        found = paired_share_interval(ours.astype(float), theirs.astype(float))
        inside += found.low <= (0.6 * 0.7 + 0.4 * 0.4) - 0.7 <= found.high

    assert 0.93 <= inside / 2000
