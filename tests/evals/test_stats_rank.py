"""Order with its uncertainty: ranks, the best and those not worse, the Pareto front, weights."""

from __future__ import annotations

import numpy as np
import pytest

from evals.stats_rank import Rank, dominates, not_worse_than_best, pareto_front, ranks, winning_weights


def test_a_clear_order() -> None:
    """Policies far apart keep their rank in every draw."""
    base = np.random.default_rng(1).normal(size=30)
    found = ranks({"a": base, "b": base + 10, "c": base + 20}, smaller_is_better=True)

    assert [Rank(low=1, high=1, p_best=1.0), Rank(low=2, high=2, p_best=0.0), Rank(low=3, high=3, p_best=0.0)] == [
        found["a"], found["b"], found["c"]]
    assert 1.0 == ranks({"a": base, "b": base + 10}, smaller_is_better=False)["b"].p_best


def test_ties_share() -> None:
    """Equal policies share the better rank and the chance to be best."""
    found = ranks({"a": [1.0, 2.0, 3.0] * 5, "b": [1.0, 2.0, 3.0] * 5, "c": [2.0, 3.0, 4.0] * 5}, True)

    assert (1, 1, 0.5) == (found["a"].low, found["a"].high, found["b"].p_best)
    assert 3 == found["c"].low


def test_chances_to_be_best_add_up() -> None:
    """Over all policies they are one."""
    random = np.random.default_rng(2)
    found = ranks({n: random.normal(size=20).tolist() for n in "abcde"}, True)

    assert 1.0 == pytest.approx(sum(r.p_best for r in found.values()))
    assert all(1 <= r.low <= r.high <= 5 for r in found.values())


def test_one_session_has_no_order() -> None:
    """One session, or sessions of one repository, rank nothing."""
    assert {} == ranks({"a": [1.0], "b": [2.0]}, True)
    assert {} == ranks({"a": [1.0, 1.5], "b": [2.0, 2.5]}, True, clusters=["r", "r"])
    assert {} == ranks({}, True)


def test_those_not_worse_than_the_best() -> None:
    """A policy that loses everywhere is out; one that differs by noise stays in."""
    random = np.random.default_rng(3)
    base = random.normal(size=25)
    values = {"best": base, "noise": base + random.normal(0.01, 0.5, 25), "worse": base + random.normal(1.0, 0.3, 25)}

    assert {"best", "noise"} == not_worse_than_best(values, True)
    assert set() == not_worse_than_best({}, True)


def test_dominance_needs_nearly_every_draw() -> None:
    """Better in 95 of 100 draws dominates, in 94 it does not."""
    theirs = np.zeros((100, 2))
    ours = np.full((100, 2), -1.0)
    ours[:5] = 1.0
    assert dominates(ours, theirs)
    ours[5] = 1.0
    assert not dominates(ours, theirs)


def test_equal_policies_do_not_dominate() -> None:
    """No worse is not enough: something must be better."""
    same = np.ones((100, 2))

    assert {"a", "b"} == pareto_front({"a": same, "b": same.copy()})


def test_a_trade_off_stays_on_the_front() -> None:
    """Cheap and lossy, dear and safe: both stay; dear and lossy goes."""
    noise = np.random.default_rng(4).normal(0, 0.01, (1000, 2))
    draws = {"cheap": np.array([1, 2]) + noise, "safe": np.array([2, 1]) + noise, "neither": 2.5 + noise}

    assert {"cheap", "safe"} == pareto_front(draws)


def test_regions_of_weights() -> None:
    """Each trade-off wins where its axis weighs most; the dominated one wins nowhere."""
    found = winning_weights({"cheap": (0.0, 1.0), "safe": (1.0, 0.0), "neither": (1.0, 1.0)}, steps=10)

    assert (0.5, 1.0) == found["cheap"].ranges[0]
    assert (0.0, 0.5) == found["safe"].ranges[0]
    assert (0.0, ()) == (found["neither"].share, found["neither"].ranges)
