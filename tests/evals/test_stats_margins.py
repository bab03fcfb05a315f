"""Non-inferiority and equivalence: the bound decides, never a p value, and margins stand before the data."""

from __future__ import annotations

import numpy as np
import pytest

from evals.stats_margins import GATE_MARGINS, MARGINS, Margin, equivalent, noninferior

HIGH, COST = Margin(0.03, "high"), Margin(1.03, "low", "ratio")


def test_default_margins() -> None:
    """1 point of evidence, 2 of edit safety, 3 of pass@1, 3 % of cost; the gate's own are tighter."""
    assert {"needed-evidence retention": 0.01, "edit-safety rate": 0.02, "pass@1": 0.03, "cost": 1.03} == {
        name: m.size for name, m in MARGINS.items()}
    assert [0.01, 0.01, 0.0, 1.02, 1.02, 1.05] == [m.size for m in GATE_MARGINS.values()]


def test_a_tight_result_is_noninferior() -> None:
    """A hundred sessions a point lower on average, hardly varying, are within three points."""
    d = np.random.default_rng(1).normal(-0.01, 0.03, 100)
    found = noninferior(0.9 + d, np.full(100, 0.9), HIGH)

    assert "non-inferior" == found.kind
    assert -0.03 == found.limit < found.bound < found.estimate


def test_not_significant_is_not_equal() -> None:
    """Twelve noisy sessions around zero show neither harm nor safety."""
    d = np.random.default_rng(2).normal(0, 0.3, 12)

    assert "undecided" == noninferior(d, np.zeros(12), HIGH).kind
    assert not equivalent(d, np.zeros(12), HIGH)


def test_harm_beyond_the_margin_is_inferior() -> None:
    """Sessions that are ten points lower throughout are worse by more than the margin."""
    d = np.random.default_rng(3).normal(-0.1, 0.05, 60)

    assert "inferior" == noninferior(d, np.zeros(60), HIGH).kind


def test_significant_and_noninferior_at_once() -> None:
    """A difference may be real and still too small to matter: equivalent, though not zero."""
    d = np.random.default_rng(4).normal(-0.01, 0.01, 200)
    bound = noninferior(d, np.zeros(200), HIGH)

    assert "non-inferior" == bound.kind
    assert equivalent(d, np.zeros(200), HIGH)


def test_costs_are_judged_by_the_ratio_of_sums() -> None:
    """1 % dearer is inside 1.03, 10 % dearer outside, 10 % cheaper non-inferior but not equivalent."""
    bills = np.random.default_rng(5).lognormal(size=80)
    kinds = [noninferior(bills * f, bills, COST).kind for f in (1.01, 1.10, 0.9)]

    assert ["non-inferior", "inferior", "non-inferior"] == kinds
    assert equivalent(bills * 1.01, bills, COST)
    assert not equivalent(bills * 0.9, bills, COST)


def test_a_ratio_needs_a_reference() -> None:
    """Against a bill of zero there is no ratio."""
    with pytest.raises(ValueError, match="sums to zero"):
        noninferior([1.0], [0.0], COST)


def test_no_change_at_all_passes_with_any_number() -> None:
    """Byte-equal results are no worse, even with two sessions and a margin of zero."""
    assert "non-inferior" == noninferior([1.0, 1.0], [1.0, 1.0], Margin(0.0, "low")).kind
    assert "non-inferior" == noninferior([3.0, 5.0], [3.0, 5.0], COST).kind


def test_few_sessions_prove_nothing_else() -> None:
    """Three sessions that all improved a little do not bound what the next may lose."""
    assert "undecided" == noninferior([0.91, 0.92, 0.93], [0.9, 0.9, 0.9], HIGH).kind


def test_simulated_error_at_the_margin() -> None:
    """With the true difference on the margin, about 5 in 100 studies claim non-inferiority."""
    random = np.random.default_rng(6)
    claims = [noninferior(random.normal(-0.03, 0.1, 40), np.zeros(40), HIGH).kind == "non-inferior" for _ in range(400)]

    assert 0.02 <= np.mean(claims) <= 0.09
