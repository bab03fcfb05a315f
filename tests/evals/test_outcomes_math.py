"""Arithmetic of outcomes, by worked examples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.outcomes_math import (
    Bounds,
    cost_per_solved,
    effective_samples,
    effectiveness,
    label_bounds,
    mean_over_tasks,
    outcome_bounds,
    pass_at_k,
    pass_hat_k,
    reweighted_mean,
    solve_rates,
)


def test_worked_example_of_trials() -> None:
    """Four of five trials pass: pass^2 = .6, pass^3 = .4, pass@2 = 1, pass@1 = .8."""
    assert 0.6 == pytest.approx(pass_hat_k(5, 4, 2))
    assert 0.4 == pytest.approx(pass_hat_k(5, 4, 3))
    assert 1.0 == pass_at_k(5, 4, 2)
    assert 0.8 == pytest.approx(pass_at_k(5, 4, 1))


def test_too_few_trials_have_no_value() -> None:
    """Fewer trials than k: missing, not zero, and a mean over tasks says how many lack one."""
    assert None is pass_at_k(2, 1, 3)
    assert None is pass_hat_k(2, 2, 3)
    assert (0.5, 1) == mean_over_tasks([0.25, None, 0.75])
    assert (None, 1) == mean_over_tasks([None])


@pytest.mark.parametrize("call", [(2, 3, 1), (2, -1, 1), (2, 1, 0)])
def test_impossible_trials_are_refused(call: tuple[int, int, int]) -> None:
    """More passes than trials, or k below one, is a mistake of the caller."""
    with pytest.raises(ValueError, match="expected 0 ≤ passed ≤ trials"):
        pass_at_k(*call)


@given(st.integers(1, 30), st.data())
def test_pass_rates_are_ordered(trials: int, data: st.DataObject) -> None:
    """pass^k ≤ pass@1 ≤ pass@k for every k, and all agree at k = 1."""
    passed, k = data.draw(st.integers(0, trials)), data.draw(st.integers(1, trials))
    every, first, some = pass_hat_k(trials, passed, k), pass_at_k(trials, passed, 1), pass_at_k(trials, passed, k)

    assert every is not None
    assert some is not None
    assert every - 1e-12 <= passed / trials <= some + 1e-12
    assert passed / trials == pytest.approx(first)


def test_worked_example_of_effectiveness() -> None:
    """Solved at .2 and .5 of a budget of 1, one failure: .433."""
    assert 1.3 / 3 == pytest.approx(effectiveness([1, 1, 0], [0.2, 0.5, 0.4], 1.0))


def test_effectiveness_is_the_area_under_the_solve_rate() -> None:
    """The closed form equals the area that it stands for; costs beyond the budget count nothing."""
    costs, outcomes = [0.2, 0.5, 0.9, 3.0], [1, 1, 0, 1]
    budgets = np.linspace(0, 2, 20_001)
    area = np.mean(solve_rates(outcomes, costs, budgets.tolist()))

    assert area == pytest.approx(effectiveness(outcomes, costs, 2.0), abs=1e-3)
    assert None is effectiveness([], [], 1.0)
    assert [] == solve_rates([], [], [1.0])
    with pytest.raises(ValueError, match="above zero"):
        effectiveness([1], [1], 0)


def test_cost_per_solved_counts_failures() -> None:
    """All trials are paid for, only solved tasks divide; nothing solved has no price."""
    assert 3.0 == cost_per_solved([1.0, 2.0, 3.0], 2)
    assert None is cost_per_solved([1.0], 0)


def test_worked_example_of_bounds() -> None:
    """Ten sessions, four undiverged, three of them pass: between .3 and .9."""
    passed = [1, 1, 1, 0] + [1] * 6
    found = outcome_bounds(passed, [True] * 4 + [False] * 6)

    assert Bounds(0.3, 0.9) == found
    assert found is not None
    assert 0.6 == pytest.approx(found.width)
    assert None is outcome_bounds([], [])


def test_unknown_labels_widen_the_bounds() -> None:
    """A label that nobody knows may be either."""
    assert Bounds(0.25, 0.75) == label_bounds([True, False, None, None])
    assert Bounds(0.5, 1.0) == outcome_bounds([1, None], [True, True])


def test_worked_example_of_reweighting() -> None:
    """Weights of 8, 1, .5 and .5 are worth 1.53 sessions: refused."""
    assert 1.53 == pytest.approx(effective_samples([8, 1, 0.5, 0.5]), abs=5e-3)
    value, reason = reweighted_mean([1, 0, 1, 0], [8, 1, 0.5, 0.5])
    assert None is value
    assert "refused: effective sample size 1.53 of 4 sessions; at least 10 and 10% are needed" == reason


def test_even_weights_are_accepted() -> None:
    """Twenty equal weights are twenty sessions."""
    value, words = reweighted_mean([1.0] * 5 + [0.0] * 15, [2.0] * 20)

    assert 0.25 == value
    assert "effective sample size 20.00 of 20 sessions" == words
    assert 0.0 == effective_samples([0.0])
