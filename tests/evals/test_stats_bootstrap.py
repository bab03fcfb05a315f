"""Intervals: worked examples, exactness for few clusters, simulated coverage, and what must not change a result."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.stats_bootstrap import (
    DIRECT_UP_TO,
    Clustered,
    column_intervals,
    flip_interval,
    grouped,
    interval,
    joint_draws,
    mean_draws,
    method_for,
)

EXAMPLE = (-.12, -.05, .01, -.08, -.03, -.10, .02, -.06)
numbers = st.floats(-1e3, 1e3).map(lambda x: round(x, 3))


def test_worked_example_of_the_bootstrap() -> None:
    """Eight paired differences have the mean −0.0513 and a bootstrap interval of about −0.083 to −0.019."""
    found = interval(EXAMPLE, method="percentile")

    assert -0.05125 == pytest.approx(grouped(EXAMPLE).estimates[0])
    assert pytest.approx((-0.083, -0.019), abs=2e-3) == (found.low, found.high)


@pytest.mark.parametrize(("clusters", "method"), [(1, "sign-flip"), (11, "sign-flip"), (12, "percentile"),
                                                  (29, "percentile"), (30, "bca")])
def test_the_number_of_clusters_chooses_the_method(clusters: int, method: str) -> None:
    """Sign flips below twelve clusters, a percentile bootstrap up to 29, a corrected one from 30 on."""
    assert method == method_for(clusters)
    assert method == interval(np.arange(clusters, dtype=float)).method


def test_sign_flip_interval_inverts_the_test() -> None:
    """A value is inside exactly when the enumerated sign-flip test of the shifted differences does not reject it."""
    d = np.array(EXAMPLE)
    found = flip_interval(d, np.ones(8))
    signs = (np.arange(256)[:, None] >> np.arange(8) & 1) * 2 - 1
    for value in np.linspace(-0.12, 0.03, 301):
        totals = signs @ (d - value)
        smaller = min(np.mean(totals >= (d - value).sum() - 1e-12), np.mean(totals <= (d - value).sum() + 1e-12))
        if min(abs(value - found.low), abs(value - found.high)) > 1e-9:
            assert (found.low < value < found.high) == (smaller > 0.025)


@pytest.mark.parametrize(("n", "coverage"), [(2, 0.5), (3, 0.75), (5, 0.9375), (6, 0.96875)])
def test_few_clusters_say_what_they_cover(n: int, coverage: float) -> None:
    """Below six clusters the ends are the extremes and the coverage is what they cover, not 95 %."""
    found = interval(np.arange(n, dtype=float))

    assert (0.0, n - 1.0, coverage) == (found.low, found.high, found.coverage)


def test_one_cluster_covers_nothing() -> None:
    """A single value, or any number in a single cluster, has an interval of coverage 0."""
    assert 0.0 == interval([3.0]).coverage
    assert 0.0 == interval([3.0, 4.0, 5.0], clusters=["a", "a", "a"]).coverage


def test_no_value_is_an_error() -> None:
    """An interval of nothing is refused."""
    with pytest.raises(ValueError, match="at least one value"):
        interval([])


def test_clusters_are_resampled_whole() -> None:
    """Copies inside a cluster change nothing; taken for sessions of their own they would narrow the interval."""
    once = np.random.default_rng(3).normal(size=40)
    copied, names = np.repeat(once, 5), np.repeat(np.arange(40), 5).tolist()

    inside, alone = interval(copied, names), interval(copied)
    assert interval(once).low == pytest.approx(inside.low)
    assert interval(once).high == pytest.approx(inside.high)
    assert alone.high - alone.low < 0.6 * (inside.high - inside.low)


def test_missing_cells_are_left_out_of_their_column_only() -> None:
    """NaN is no zero: a column's mean is over what it has."""
    data = grouped(np.array([[1.0, 4.0], [3.0, np.nan], [5.0, 8.0]]))

    assert [3.0, 6.0] == data.estimates.tolist()
    assert [3.0, 2.0] == data.sizes.sum(axis=0).tolist()


def test_joint_draws_use_the_same_clusters() -> None:
    """A column that is twice another is so in every draw, in the same table or in another."""
    column = np.random.default_rng(5).normal(size=(300, 1))
    first, second = joint_draws([grouped(column), grouped(np.hstack([2 * column, -column]))])

    assert np.allclose(2 * first[:, 0], second[:, 0])
    assert np.allclose(-first[:, 0], second[:, 1])


def test_draws_do_not_depend_on_the_blocks_of_memory() -> None:
    """Cached small designs and streamed large ones follow the same random stream."""
    for count in (150, 450):
        cells = np.random.default_rng(0).integers(0, count, (10_000, count))
        values = np.arange(count, dtype=float)

        assert np.allclose(values[cells].mean(axis=1), mean_draws(grouped(values))[:, 0])


def test_very_many_clusters_use_the_normal_limit() -> None:
    """Above the direct limit the spread of the draws is the standard error."""
    values = np.random.default_rng(11).exponential(size=DIRECT_UP_TO + 1)
    draws = mean_draws(grouped(values))[:, 0]

    assert values.mean() == pytest.approx(draws.mean(), abs=5e-4)
    assert values.std() / np.sqrt(values.size) == pytest.approx(draws.std(), rel=0.03)


def test_bca_moves_towards_the_long_tail() -> None:
    """For skewed values the corrected interval reaches further up than the percentile one."""
    values = np.random.default_rng(2).lognormal(sigma=1.2, size=60)

    assert interval(values).high > interval(values, method="percentile").high
    assert interval(values).low > interval(values, method="percentile").low


def test_bca_agrees_with_scipy() -> None:
    """The corrected interval is scipy's up to the noise of resampling."""
    from scipy import stats

    values = np.random.default_rng(4).lognormal(size=80)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, rng=np.random.default_rng(1)).confidence_interval
    ours = interval(values)

    assert theirs.low == pytest.approx(ours.low, rel=0.02)
    assert theirs.high == pytest.approx(ours.high, rel=0.02)


def test_equal_values_have_an_interval_without_width() -> None:
    """No spread, no width, by every method."""
    for n in (5, 20, 50):
        found = interval([2.5] * n)
        assert (2.5, 2.5) == (found.low, found.high)


@pytest.mark.parametrize("n", [6, 9, 11, 20, 40])
def test_simulated_coverage(n: int) -> None:
    """About 95 in 100 intervals of normal differences hold the true mean; the exact ones at least that."""
    samples = np.random.default_rng(n).normal(0.3, 1, (n, 1500))
    found = column_intervals(grouped(samples))
    covered = float(np.mean([i.low <= 0.3 <= i.high for i in found]))

    assert covered >= (0.92 if n >= 12 else 0.935)


def test_simulated_coverage_with_clusters() -> None:
    """Strongly clustered values: resampling clusters keeps its promise, resampling units does not."""
    random = np.random.default_rng(8)
    whole = np.repeat(random.normal(size=(25, 400)), 8, axis=0) + 0.3 * random.normal(size=(200, 400))
    names = np.repeat(np.arange(25), 8).tolist()
    honest = column_intervals(grouped(whole, names))
    naive = column_intervals(grouped(whole))

    assert np.mean([i.low <= 0 <= i.high for i in honest]) >= 0.9
    assert np.mean([i.low <= 0 <= i.high for i in naive]) <= 0.7


@settings(max_examples=40, deadline=None)
@given(st.lists(numbers, min_size=2, max_size=35), st.floats(-100, 100).map(lambda x: round(x, 2)))
def test_shifting_all_values_shifts_the_interval(values: list[float], shift: float) -> None:
    """The interval of values plus a constant is the interval plus the constant."""
    before, after = interval(values), interval(np.array(values) + shift)

    assert before.low + shift == pytest.approx(after.low, abs=1e-6)
    assert before.high + shift == pytest.approx(after.high, abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(st.lists(numbers, min_size=2, max_size=35))
def test_turning_the_sign_turns_the_interval(values: list[float]) -> None:
    """Swapping the arms swaps the ends and their signs."""
    before, after = interval(values), interval(-np.array(values))

    assert pytest.approx((before.low, before.high), abs=1e-6) == (-after.high, -after.low)


@settings(max_examples=40, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=11), st.randoms())
def test_exact_intervals_do_not_depend_on_order(values: list[float], random: object) -> None:
    """Sign flips see a set of differences, not a sequence."""
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    before, after = interval(values), interval(shuffled)
    assert pytest.approx((before.low, before.high), abs=1e-9) == (after.low, after.high)


def test_ratio_columns_divide_by_what_was_drawn() -> None:
    """A ratio of sums is resampled as a ratio of sums: proportional columns have no width at all."""
    sizes = np.random.default_rng(6).exponential(size=(50, 1))
    found = column_intervals(Clustered(0.4 * sizes, sizes))[0]

    assert pytest.approx((0.4, 0.4)) == (found.low, found.high)


def test_corrections_that_cannot_be_made_are_not() -> None:
    """One giant among many, or a column that one cluster alone holds, falls back to the plain interval."""
    giant = interval(np.array([0.0] * 59 + [1e9]))
    alone = np.full((40, 1), np.nan)
    alone[7] = 3.0
    only = column_intervals(grouped(alone), method="bca")[0]

    assert 0 <= giant.low <= giant.high
    assert (3.0, 3.0) == (only.low, only.high)
