"""A stored sweep as a surface: which settings are told from the best one, and on what evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from evals.sweep.surface import BEST, UNKNOWN, WITHIN, WORSE, Surface, surface

METRIC = "mean_view_tokens"


def stored(folder: Path, values: dict[tuple[int, int], list[float]], chosen: tuple[int, int] | None = None) -> Surface:
    """A sweep of two parameters, stored with the values of each setting in the sessions, each of its own repository."""
    means = {s: sum(v) / len(v) for s, v in values.items()}
    rows = [{"session": f"s{n}", "policy": f"p:a={a},b={b}", "ok": True, "ended": None, METRIC: v}
            for (a, b), of in values.items() for n, v in enumerate(of)]
    pd.DataFrame(rows).to_parquet(folder / "trials.parquet")
    points = [{"policy": f"p:a={a},b={b}", "values": {"a": a, "b": b}, "value": means[a, b], "low": None, "high": None,
               "ended": 0} for a, b in values]
    best: dict[str, Any] = {"policy": chosen and f"p:a={chosen[0]},b={chosen[1]}", "difference": None, "why": "a reason"}
    summary = {"sessions": [{"session": f"s{n}"} for n in range(20)], "sweep": {
        "policy": "p", "objective": METRIC, "better": "low", "n": len(next(iter(values.values()))), "points": points,
        "parameters": [{"name": "a", "values": [9, 1, 5]}, {"name": "b", "values": [2, 1]}], "best": best,
        "sensitivity": [{"parameter": "b", "rows": []}, {"parameter": "a", "rows": []}]}}
    found = surface(folder, summary)
    assert found is not None
    return found


@pytest.fixture
def wide(tmp_path: Path) -> Surface:
    """Twelve sessions: a=1 and a=5 differ by noise, a=9 is always 50 tokens worse, b adds nothing."""
    noise = [3.0, -4.0, 2.0, -1.0, 5.0, -6.0, 1.0, -2.0, 4.0, -3.0, 6.0, -4.5]
    base = [1000.0 + 100 * n for n in range(12)]
    return stored(tmp_path, {(a, b): [v + shift + k * d for v, d in zip(base, noise, strict=True)]
                             for a, shift, k in ((1, 0, 0), (5, 0.1, 1), (9, 50, 1)) for b in (1, 2)})


def test_a_setting_that_is_always_worse_is_told_from_the_best(wide: Surface) -> None:
    """Pairing finds a steady 50 tokens although the sessions themselves differ by a thousand."""
    assert {1: {BEST, WITHIN}, 5: {WITHIN}, 9: {WORSE}} == {
        a: {p.stands for p in wide.points if p.values["a"] == a} for a in (1, 5, 9)}
    assert 0.95 == wide.coverage


def test_the_region_holds_what_is_not_told_from_the_best(wide: Surface) -> None:
    """The best setting comes first; those that are worse are not in it."""
    region = wide.region()

    assert BEST == region[0].stands
    assert {(1, 1), (1, 2), (5, 1), (5, 2)} == {(p.values["a"], p.values["b"]) for p in region}


def test_a_slice_holds_the_other_parameters_at_the_best(wide: Surface) -> None:
    """Along one parameter there is a setting for each of its values, the other as in the best one."""
    assert wide.best is not None
    assert [(1, wide.best.values["b"]), (5, wide.best.values["b"]), (9, wide.best.values["b"])] == [
        (p.values["a"], p.values["b"]) for p in wide.slice("a", None)]
    assert 6 == len(wide.slice("a", "b"))


def test_numbers_stand_in_order_and_the_widest_effect_first(wide: Surface) -> None:
    """Axes run upwards whatever order the values were given in."""
    assert [("b", (1, 2)), ("a", (1, 5, 9))] == list(wide.parameters.items())


def test_few_repositories_tell_nothing(tmp_path: Path) -> None:
    """Below six repositories no 95 % interval exists, and a steady difference cannot be told."""
    found = stored(tmp_path, {(1, 1): [10.0, 20.0, 30.0], (5, 1): [15.0, 26.0, 37.0]})

    assert [BEST, UNKNOWN] == [p.stands for p in found.points]
    assert 0.95 > found.coverage


def test_what_is_chosen_stays_the_anchor(tmp_path: Path) -> None:
    """The setting that the sweep chose is the best one, whatever the mean over all sessions says."""
    found = stored(tmp_path, {(1, 1): [10.0, 20.0, 30.0], (5, 1): [15.0, 26.0, 37.0]}, chosen=(5, 1))

    assert found.best is not None
    assert (5, True) == (found.best.values["a"], found.chosen)


def test_another_run_has_no_surface(tmp_path: Path) -> None:
    """A run that swept nothing gives none."""
    assert None is surface(tmp_path, {"sessions": []})
