"""The leaderboard: shared sessions, intervals, ranks, families, front, clusters and advice."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from evals import leaderboard
from evals.leaderboard_front import QUALITY_AXES, axes, front
from evals.leaderboard_strata import strata_of, stratified
from evals.metrics.base import Measurement
from evals.trial import SessionRow, TrialRow

Rows = dict[str, dict[str, float | None]]
Data = dict[str, Rows]


def _row(session: str, trials: Rows, cwd: str | None = None, **changes: Any) -> SessionRow:
    made = tuple(TrialRow(policy=p, ok=True, measurements=tuple(Measurement(name=n, value=v) for n, v in m.items()))
                 for p, m in trials.items())
    given: dict[str, Any] = {
        "session": session, "path": f"{session}.jsonl", "format": "codex", "position": 0, "harness_version": None,
        "model": None, "steps": 10, "messages": 30, "notes": (), "recorded_compactions": 0, "calibration_factor": 1.0,
        "calibration_overhead": None, "calibration_error": None, "cwd": cwd, "trials": made} | changes
    return SessionRow(**given)


def _data(sessions: int = 37, policies: int = 4, seed: int = 0, losses: bool = False) -> Data:
    """Policies that need ever smaller views on the same sessions, by default without measurements of losses."""
    random = np.random.default_rng(seed)
    size = random.lognormal(10, 0.5, sessions)
    made: Data = {}
    for k in range(policies):
        made[f"p{k}"] = {f"s{i:02}": {h.metric: float(size[i] * (1 - k / 10) * random.normal(1, 0.02))
                                      for h in leaderboard.HEADLINES if losses or h.metric not in leaderboard.LOSSES}
                           for i in range(sessions)}
        for values in made[f"p{k}"].values():
            values.update(run_ended=0.0, pairing_violations=0.0)
    return made


def _of(rows: list[dict[str, Any]], policy: str, metric: str) -> dict[str, Any]:
    return next(r for r in rows if (r["policy"], r["metric"]) == (policy, metric))


def test_a_row_for_each_policy_and_metric() -> None:
    """Every headline but those of losses has a row for every policy, measured or not."""
    data = _data(sessions=3)
    rows = leaderboard.leaderboard(data)

    assert 4 * (len(leaderboard.HEADLINES) - len(leaderboard.LOSSES)) == len(rows)
    keys = {"policy", "metric", "value", "low", "high", "n", "rank_low", "rank_high", "p_best", "pareto"}
    assert keys <= rows[0].keys()


def test_only_sessions_that_all_policies_have() -> None:
    """A session that one policy could not be measured on is in nobody's mean."""
    data = _data(sessions=20)
    data["p0"]["s03"]["mean_view_tokens"] = None
    del data["p1"]["s04"]
    row = _of(leaderboard.leaderboard(data), "p2", "mean_view_tokens")

    assert 18 == row["n"]
    kept = [v["mean_view_tokens"] for s, v in data["p2"].items() if s not in ("s03", "s04")]
    assert np.mean([v for v in kept if v is not None]) == pytest.approx(row["value"])


def test_what_was_not_measured_is_missing() -> None:
    """A metric without any value has no number, interval or rank."""
    data: Data = {"p": {"s": {"mean_view_tokens": None}}, "q": {"s": {"mean_view_tokens": 3.0}}}
    row = _of(leaderboard.leaderboard(data), "p", "mean_view_tokens")

    assert (None, None, None, None, 0) == tuple(row[k] for k in ("value", "low", "high", "rank_low", "n"))


def test_ranks_and_the_set_not_worse() -> None:
    """Smaller views rank first; only the best is not worse than the best when all differ."""
    rows = leaderboard.leaderboard(_data())
    order = [_of(rows, f"p{k}", "mean_view_tokens") for k in range(4)]

    assert [4, 3, 2, 1] == [r["rank_low"] for r in order]
    assert [False, False, False, True] == [r["not_worse"] for r in order]
    assert 1.0 == order[3]["p_best"]
    assert None is _of(rows, "p0", "compactions")["rank_low"]


def test_no_refusal_still_allows_some() -> None:
    """No refused session among 37 leaves up to 7.8 %; one of them has Wilson's interval."""
    data = _data()
    data["p1"]["s05"]["run_ended"] = 1.0
    rows = leaderboard.leaderboard(data)
    none, one = _of(rows, "p0", "run_ended"), _of(rows, "p1", "run_ended")

    assert pytest.approx((0.0, 0.0778), abs=1e-3) == (none["low"], none["high"])
    assert 0 < one["low"] < one["value"] < one["high"]


def test_one_session_ranks_nothing() -> None:
    """A single session has values, but no interval and no order."""
    row = _of(leaderboard.leaderboard(_data(sessions=1)), "p3", "mean_view_tokens")

    assert (None, None, None, 1) == (row["low"], row["rank_low"], row["p_best"], row["n"])


def test_the_order_of_sessions_changes_nothing() -> None:
    """Sessions in reverse give the same leaderboard and the same pairs."""
    data = _data()
    turned: Data = {p: dict(reversed(rows.items())) for p, rows in data.items()}

    assert leaderboard.leaderboard(data) == leaderboard.leaderboard(turned)
    assert leaderboard.pairs(data, "p0") == leaderboard.pairs(turned, "p0")


def test_pairs_are_corrected_within_their_family() -> None:
    """Holm runs over all policies and metrics of the headline family, apart from the exploratory ones."""
    rows = leaderboard.pairs(_data(policies=2, losses=True), "p0")
    headline = [r for r in rows if r["family"] == "headline"]
    smallest = min(headline, key=lambda r: float(r["p"]))

    assert {"run_ended", "mean_view_tokens", "input_cost_units", "evidence_retention", "edit_safety",
            "instruction_retention", "repair_adjusted_cost"} == {r["metric"] for r in headline}
    assert min(1.0, 7 * smallest["p"]) == pytest.approx(smallest["p_adjusted"])
    assert all(r["p"] <= r["p_adjusted"] <= 1 for r in rows)


def test_pairs_say_who_was_dropped() -> None:
    """Sessions that the policy or the baseline lacks are counted on their side."""
    data = _data(sessions=15)
    data["p0"]["s01"]["mean_view_tokens"] = None
    data["p1"]["s02"]["mean_view_tokens"] = None
    data["p1"]["s03"]["mean_view_tokens"] = None
    row = next(r for r in leaderboard.pairs(data, "p0") if (r["policy"], r["metric"]) == ("p1", "mean_view_tokens"))

    assert (12, 2, 1) == (row["n"], row["dropped_policy"], row["dropped_baseline"])


def test_totals_are_compared_as_ratios_of_sums() -> None:
    """Input tokens add up over sessions, so their whole bill is compared; means of views do not."""
    data = _data()
    rows = leaderboard.pairs(data, "p0")
    total = next(r for r in rows if (r["policy"], r["metric"]) == ("p1", "input_tokens"))
    sums = [sum(v["input_tokens"] or 0 for v in data[p].values()) for p in ("p1", "p0")]

    assert sums[0] / sums[1] == pytest.approx(total["ratio"])
    assert total["ratio_low"] < total["ratio"] < total["ratio_high"]
    assert None is next(r for r in rows if r["metric"] == "mean_view_tokens")["ratio"]


def test_refusals_are_tested_exactly() -> None:
    """Ended runs are paired outcomes: McNemar, and a detectable effect even when none ended."""
    row = next(r for r in leaderboard.pairs(_data(), "p0") if r["metric"] == "run_ended")

    assert ("mcnemar", 1.0) == (row["test"], row["p"])
    assert row["mde"] > 0.1


def test_repositories_are_resampled_when_there_are_enough() -> None:
    """From six repositories on with shared ones, they are the units; intervals grow accordingly."""
    rows = [_row(f"s{i:02}", {}, cwd=f"/repo{i % 8}") for i in range(37)]
    clusters = leaderboard.repositories(rows)
    data = _data()
    for policy, shift in (("p0", 0.0), ("p1", 1.0)):
        for i, values in enumerate(data[policy].values()):
            values["mean_view_tokens"] = 100.0 + shift * (i % 8)
    alone, whole = leaderboard.pairs(data, "p0"), leaderboard.pairs(data, "p0", clusters)
    first = [_of(rows, "p1", "mean_view_tokens") for rows in (alone, whole)]

    assert clusters is not None
    assert [37, 8] == [r["clusters"] for r in first]
    assert first[1]["high"] - first[1]["low"] > first[0]["high"] - first[0]["low"]
    assert first[1]["p"] > first[0]["p"]


def test_few_repositories_limit_what_intervals_speak_of() -> None:
    """With two repositories the sessions stay the units, and a sentence says so; sessions apart need none."""
    rows = [_row(f"s{i}", {}, cwd=f"/repo{i % 2}") for i in range(9)]

    assert None is leaderboard.repositories(rows)
    assert ("9 sessions come from 2 repositories: intervals speak of further sessions there, not of other "
            "repositories") == leaderboard.scope(rows)
    assert None is leaderboard.scope([_row("a", {}), _row("b", {})])
    assert None is leaderboard.repositories([_row(f"s{i}", {}, cwd=f"/r{i}") for i in range(9)])


def _quality(cost: float, safety: float, kept: float, seed: int, sessions: int = 20) -> Rows:
    noise = np.random.default_rng(seed).normal(0, 0.01, (sessions, 3))
    return {f"s{i:02}": {"run_ended": 0.0, "pairing_violations": 0.0, "repair_adjusted_cost": cost + float(noise[i, 0]),
                         "edit_safety": safety + float(noise[i, 1]), "instruction_retention": kept + float(noise[i, 2])}
            for i in range(sessions)}


def test_the_front_prefers_losses_over_sizes() -> None:
    """Where cost, edit safety and instructions were measured, they are the axes; else sizes are."""
    data: Data = {"a": _quality(1, 0.9, 0.9, 1), "b": _quality(2, 0.99, 0.99, 2), "c": _quality(3, 0.8, 0.8, 3)}

    assert QUALITY_AXES == axes(data)
    assert {"a", "b"} == front(data)
    assert {"p3"} == front(_data())
    assert set() == front({"p": {"s": {}}})


def test_axes_count_the_sessions_that_have_them() -> None:
    """A session without an edit still counts for cost; below six with all axes nothing is decided."""
    data: Data = {"a": _quality(1, 0.99, 0.99, 1), "b": _quality(2, 0.9, 0.9, 2)}
    for rows in data.values():
        for session in list(rows)[:12]:
            rows[session]["edit_safety"] = None
    assert {"a"} == front(data)
    assert "a" == leaderboard.recommend(data, 20)["policy"]

    for rows in data.values():
        for session in list(rows)[:17]:
            rows[session]["edit_safety"] = None
    advice = leaderboard.recommend(data, 20)
    assert None is advice["policy"]
    assert "only 3 of 20 have all of repair-adjusted cost, edit safety, instruction retention" in str(advice["why"])


def test_a_recommendation_with_its_uncertainty() -> None:
    """One policy that beats the rest on all axes is recommended; what is unsure and what would change it is said."""
    data: Data = {"a": _quality(1, 0.99, 0.99, 1), "b": _quality(2, 0.9, 0.9, 2)}
    advice = leaderboard.recommend(data, 20)

    assert "a" == advice["policy"]
    assert "No failure in 20 sessions still allows up to 13.9% of failures" in str(advice["why"])
    assert advice["would_change"]


def test_sessions_that_cannot_decide() -> None:
    """A trade-off between two policies is no recommendation."""
    data: Data = {"a": _quality(1, 0.9, 0.9, 1), "b": _quality(2, 0.99, 0.99, 2)}
    advice = leaderboard.recommend(data, 20)

    assert None is advice["policy"]
    assert "these sessions cannot decide: none of a, b is beaten" in str(advice["why"])


def test_sizes_alone_decide_nothing() -> None:
    """Smaller is not better until losses are known."""
    advice = leaderboard.recommend(_data(), 37)

    assert None is advice["policy"]
    assert "sizes alone do not say" in str(advice["why"])


def test_the_only_policy_that_gets_through() -> None:
    """Refused requests rule a policy out; how far that could be chance is said."""
    data = _data(policies=2)
    for session in list(data["p0"])[:9]:
        data["p0"][session]["run_ended"] = 1.0
    advice = leaderboard.recommend(data, 37)

    assert "p1" == advice["policy"]
    assert "p0: 9 of 37 sessions end in a refused request" in str(advice["why"])
    assert "against p0, which fails 9, exact p 0.004" in str(advice["uncertainty"])


def test_no_policy_gets_through() -> None:
    """Nothing is recommended when all fail, or nothing was measured."""
    data = _data(policies=1)
    data["p0"]["s00"]["pairing_violations"] = 2.0

    assert "broken pairs in 1 sessions" in str(leaderboard.recommend(data, 37)["why"])
    assert "no session could be measured" == leaderboard.recommend({}, 0)["why"]


def test_a_failed_trial_rules_a_policy_out() -> None:
    """A policy whose trial failed did not get through."""
    data = _data(policies=2)
    data["p0"]["s00"] = {"run_ended": None}

    assert "p1" == leaderboard.recommend(data, 37)["policy"]


def test_values_of_a_trial() -> None:
    """Planned and reactive compactions add up; a failed trial has no outcome."""
    row = _row("s", {"p": {"compactions_planned": 2.0, "compactions_reactive": 1.0}})
    failed = TrialRow(policy="p", ok=False, error="x")

    assert (3.0, 0.0) == tuple(leaderboard.values(row.trials[0])[k] for k in ("compactions", "run_ended"))
    assert (None, None) == tuple(leaderboard.values(failed)[k] for k in ("compactions", "run_ended"))
    assert {"p": {"s": leaderboard.values(row.trials[0])}} == leaderboard.table([row], ["p"])


def test_strata_of_sessions() -> None:
    """Sessions are divided by length, harness and recorded compactions, where they differ in them."""
    rows = [_row(f"s{i}", {}, steps=10 * i, recorded_compactions=i) for i in range(6)]
    found = strata_of(rows)

    assert {"length in steps", "recorded compactions"} == found.keys()
    assert ["0", "1", "2 or more"] == sorted(set(found["recorded compactions"].values()))


def test_pooled_beside_standardised() -> None:
    """Each policy and headline has its effect pooled and with fixed weights, and says when they disagree."""
    rows = [_row(f"s{i}", {p: {"mean_view_tokens": v} for p, v in (("a", 100.0), ("b", 90.0 if i < 12 else 130.0))},
                 format="codex" if i < 12 else "pi") for i in range(16)]
    data = leaderboard.table(rows, ["a", "b"])
    found = next(r for r in stratified(data, rows, "a") if (r["metric"], r["by"]) == ("mean_view_tokens", "harness"))

    assert (0.0, 0.0, 10.0) == (found["pooled"], found["session_weighted"], found["equal_weighted"])
    assert [("codex", 12, -10.0), ("pi", 4, 30.0)] == [(s["name"], s["n"], s["effect"]) for s in found["strata"]]


def test_statistics_of_a_usual_run_take_half_a_second() -> None:
    """Thirty-seven sessions under four policies, in processor time, which other programs do not stretch."""
    data, took = _data(), []
    for _ in range(3):
        started = time.process_time()
        leaderboard.leaderboard(data)
        leaderboard.pairs(data, "p0")
        leaderboard.recommend(data, 37)
        took.append(time.process_time() - started)

    assert min(took) < 0.5


def test_a_run_without_losses_has_no_rows_of_losses() -> None:
    """What was not measured at all is no line of dashes."""
    with_losses = {r["metric"] for r in leaderboard.leaderboard(_data(policies=2, losses=True))}

    assert set() == {r["metric"] for r in leaderboard.leaderboard(_data(policies=2))} & leaderboard.LOSSES
    assert leaderboard.LOSSES <= with_losses
