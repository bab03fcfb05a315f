"""Paired comparisons: intersection, tests by kind of outcome, clusters, costs, and invariances."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.stats import matched, paired, paired_by_unit
from evals.stats_binary import zero_event_upper
from evals.stats_power import mde_binary
from evals.stats_ratio import log_ratio, ratio_of_sums

EXAMPLE = (-.12, -.05, .01, -.08, -.03, -.10, .02, -.06)
numbers = st.integers(-50, 50)
tables = st.dictionaries(st.text("abcdefgh", min_size=1, max_size=4), st.tuples(numbers, numbers), min_size=2,
                         max_size=30)


def test_only_units_that_both_have_are_compared() -> None:
    """Units that one of them lacks are dropped and counted on the side that lacks them."""
    both = matched({"a": 1.0, "b": None, "c": 3.0, "e": 9.0}, {"a": 2.0, "b": 1.0, "c": 1.0, "d": 5.0, "e": nan})

    assert ("a", "c") == both.units
    assert (2, 1) == (both.dropped_by_values, both.dropped_by_reference)
    assert [1.0, 3.0] == both.values.tolist()


def test_worked_example() -> None:
    """The eight differences: mean −.0513, p .0391, an interval of exact sign flips, and what could have been found."""
    found = paired(EXAMPLE, [0.0] * 8)

    assert found is not None
    assert -0.05125 == pytest.approx(found.difference)
    assert 0.0391 == pytest.approx(found.p, abs=5e-5)
    assert ("sign-flip", "wilcoxon", 8) == (found.method, found.test, found.clusters)
    assert found.high < 0 < -found.low
    assert 2.80 * np.std(EXAMPLE, ddof=1) / np.sqrt(8) == pytest.approx(found.mde, rel=1e-3)


def test_no_pairs() -> None:
    """Without pairs there is no result, and no zero."""
    assert paired([], []) is None


def test_binary_outcomes_are_tested_exactly() -> None:
    """0/1 outcomes are McNemar's, with the detectable effect of their discordance."""
    found = paired([1] * 9 + [0] * 2 + [1] * 89, [0] * 9 + [1] * 2 + [1] * 89)

    assert found is not None
    assert "mcnemar" == found.test
    assert 0.0654 == pytest.approx(found.p, abs=5e-5)
    assert mde_binary(0.11, 100) == pytest.approx(found.mde)


def test_no_discordant_pair_is_not_perfect_power() -> None:
    """Where no pair differs, the detectable effect is that of what might have differed unseen, not zero."""
    found = paired([1] * 20, [1] * 20)

    assert found is not None
    assert mde_binary(zero_event_upper(20), 20) == pytest.approx(found.mde)
    assert 1.0 == found.p


def test_one_pair_shows_nothing() -> None:
    """A single pair: p is 1, nothing detectable, an interval that covers nothing."""
    found = paired([5.0], [2.0])

    assert found is not None
    assert (3.0, 1.0, 0.0, None) == (found.difference, found.p, found.coverage, found.mde)


def test_clusters_are_the_unit_of_test_and_interval() -> None:
    """Ten copies in each of six repositories are six observations."""
    d = np.repeat([1.0, 2.0, -0.5, 1.5, 0.7, 2.2], 10)
    found = paired(d, np.zeros(60), clusters=np.repeat(list("abcdef"), 10).tolist())
    alone = paired(d[::10], np.zeros(6))

    assert found is not None
    assert alone is not None
    assert (6, 60) == (found.clusters, found.n)
    assert (alone.low, alone.high, alone.p) == pytest.approx((found.low, found.high, found.p))
    assert alone.mde == pytest.approx(found.mde)


@settings(max_examples=50, deadline=None)
@given(tables, st.randoms())
def test_the_order_of_sessions_changes_nothing(rows: dict[str, tuple[int, int]], random: object) -> None:
    """Named units give the same result in any order."""
    names = list(rows)
    random.shuffle(names)  # type: ignore[attr-defined]

    assert paired_by_unit({u: rows[u][0] for u in rows}, {u: rows[u][1] for u in rows})[0] == paired_by_unit(
        {u: rows[u][0] for u in names}, {u: rows[u][1] for u in reversed(names)})[0]


@settings(max_examples=50, deadline=None)
@given(tables)
def test_swapping_arms_turns_the_sign(rows: dict[str, tuple[int, int]]) -> None:
    """The difference and its interval change their sign; p and the detectable effect stay."""
    ours, theirs = {u: r[0] for u, r in rows.items()}, {u: r[1] for u, r in rows.items()}
    forth, back = paired_by_unit(ours, theirs)[0], paired_by_unit(theirs, ours)[0]

    assert forth is not None
    assert back is not None
    ends = (forth.difference, forth.low, forth.high)
    assert (-back.difference, -back.high, -back.low) == pytest.approx(ends, abs=1e-7)
    assert (back.p, back.mde) == pytest.approx((forth.p, forth.mde))


@settings(max_examples=50, deadline=None)
@given(tables, st.integers(-1000, 1000))
def test_shifting_both_arms_changes_nothing(rows: dict[str, tuple[int, int]], shift: int) -> None:
    """What both have in common cancels."""
    ours, theirs = [r[0] + 2000.0 for r in rows.values()], [r[1] + 2000.0 for r in rows.values()]
    before, after = paired(ours, theirs), paired([x + shift for x in ours], [x + shift for x in theirs])

    assert before == after


@settings(max_examples=30, deadline=None)
@given(tables)
def test_unrelated_units_change_nothing(rows: dict[str, tuple[int, int]]) -> None:
    """Units that only one arm was measured on do not move the result."""
    ours, theirs = {u: float(r[0]) for u, r in rows.items()}, {u: float(r[1]) for u, r in rows.items()}

    assert paired_by_unit(ours, theirs)[0] == paired_by_unit(ours | {"zz": 1e6}, theirs | {"yy": -1e6})[0]


def test_costs_are_compared_as_ratios_of_sums() -> None:
    """The bill of (1 + 30) over (2 + 20), not the mean of the ratios 0.5 and 1.5."""
    found = ratio_of_sums([1.0, 30.0], [2.0, 20.0])

    assert found is not None
    assert 31 / 22 == pytest.approx(found.ratio)


def test_cheap_sessions_do_not_decide_a_ratio_of_costs() -> None:
    """Sessions of 1 and 9 that come to cost 0.9 and 4.5: 0.54 of the bill, where the mean of their ratios says 0.70."""
    found = ratio_of_sums([0.9, 4.5], [1.0, 9.0])

    assert found is not None
    assert 0.54 == pytest.approx(found.ratio)
    assert 0.70 == pytest.approx((0.9 / 1.0 + 4.5 / 9.0) / 2)


def test_ratio_of_sums_needs_a_reference() -> None:
    """Nothing paid, no ratio."""
    assert ratio_of_sums([1.0, 2.0], [0.0, 0.0]) is None
    assert ratio_of_sums([], []) is None


def test_ratio_of_sums_resamples_clusters() -> None:
    """Copies in a cluster leave the interval as it is."""
    random = np.random.default_rng(3)
    ours, theirs = random.lognormal(size=40), random.lognormal(size=40)
    once = ratio_of_sums(ours, theirs)
    copied = ratio_of_sums(np.repeat(ours, 3), np.repeat(theirs, 3), np.repeat(np.arange(40), 3).tolist())

    assert once is not None
    assert copied is not None
    assert (once.ratio, once.low, once.high) == pytest.approx((copied.ratio, copied.low, copied.high))


def test_log_ratios_tame_heavy_tails() -> None:
    """One giant bill decides a mean but not the geometric mean of ratios; pairs at zero are dropped and counted."""
    ours, theirs = [1.0] * 11 + [500.0, 0.0], [2.0] * 11 + [1.0, 3.0]
    found = log_ratio(ours, theirs)

    assert found is not None
    assert (12, 1) == (found.n, found.dropped)
    assert (0.5 ** 11 * 500) ** (1 / 12) == pytest.approx(found.ratio)
    assert found.p is not None
    assert found.p < 0.05
    assert log_ratio([0.0], [1.0]) is None


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=20))
def test_log_ratio_swapped_is_its_inverse(costs: list[float]) -> None:
    """Swapping arms inverts the ratio and its ends."""
    ones = [1.0] * len(costs)
    forth, back = log_ratio(costs, ones), log_ratio(ones, costs)

    assert forth is not None
    assert back is not None
    assert (1 / back.ratio, 1 / back.high, 1 / back.low) == pytest.approx((forth.ratio, forth.low, forth.high))
