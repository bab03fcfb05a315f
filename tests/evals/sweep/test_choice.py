"""The choice of a setting on one half of the sessions, and its test on the other."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.sweep.choice import Objective, choose, halves
from evals.sweep.grid import Parameter
from evals.sweep.search import search
from evals.sweep.where import Constraint

COST = Objective("cost", "low")


@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(0, 9), max_size=30))
def test_halves_share_no_repository(where: dict[str, int]) -> None:
    """Every session is in one half, all of a repository in the same, and neither half is far larger."""
    repositories = {s: f"repo {n}" for s, n in where.items()}
    first, second = halves(list(where), repositories)

    assert sorted(where) == sorted(first + second)
    assert set() == {repositories[s] for s in first} & {repositories[s] for s in second}
    largest = max((list(repositories.values()).count(r) for r in repositories.values()), default=0)
    assert abs(len(first) - len(second)) <= largest


def study(effect: float, seed: int, sessions: int = 40, settings: int = 30) -> dict[str, object]:
    """A sweep in which one setting differs from the unchanged policy by an effect and all others by noise alone."""
    draw = random.Random(seed)
    names = [f"s{n}" for n in range(sessions)]
    data = {p: {s: {"cost": draw.gauss(100, 10)} for s in names} for p in ["base", *(f"p{n}" for n in range(settings))]}
    data["p7"] = {s: {"cost": v["cost"] + effect} for s, v in data["p7"].items()}
    return choose(data, [f"p{n}" for n in range(settings)], "base", COST, {})


def test_a_real_effect_is_confirmed() -> None:
    """A setting that really costs less is chosen, and the sessions that did not choose it confirm it."""
    found = study(-25, 1)

    assert ("p7", True, "p7", 20, 20) == tuple(
        found[k] for k in ("policy", "confirmed", "other_half", "chosen_on", "confirmed_on"))
    assert -35 < found["low"] < found["difference"] < found["high"] < -15  # type: ignore[operator]


def test_noise_is_not_sold() -> None:
    """Of thirty settings without any effect the best one is rarely confirmed: about 1 in 40, one-sided."""
    confirmed = sum(bool(study(0, seed)["confirmed"]) for seed in range(60))

    assert confirmed <= 6


def test_settings_that_do_not_get_through_are_not_chosen() -> None:
    """The cheapest setting is not chosen where a session ends in a refused request under it."""
    names = [f"s{n}" for n in range(20)]
    data = {"base": {s: {"cost": 3.0 + n} for n, s in enumerate(names)}, "good": {s: {"cost": 2.0 + n / 9} for n, s in enumerate(names)},
            "cheap": {s: {"cost": 1.0, "run_ended": 1.0} for s in names}}

    assert "good" == choose(data, ["good", "cheap"], "base", COST, {})["policy"]
    assert None is choose(data, ["cheap"], "base", COST, {})["policy"]


def test_one_repository_cannot_confirm() -> None:
    """Where all sessions come from one repository nothing is chosen, and it is said why."""
    data = {p: {s: {"cost": 1.0} for s in ("a", "b")} for p in ("base", "p")}
    found = choose(data, ["p"], "base", COST, {"a": "r", "b": "r"})

    assert (None, True) == (found["policy"], "one repository" in found["why"])


class TestSearch:
    """A search through a larger space."""

    AXES = (Parameter("x", tuple(range(40))), Parameter("y", tuple(range(40))))

    def tried(self, trials: int) -> list[tuple[int, ...]]:
        """The settings that a search for (30, 10) tries."""
        pytest.importorskip("optuna", reason="the extra `search` is not installed")
        found = search(self.AXES, [Constraint("x > y")], COST, trials,
                       lambda s: float((s["x"] - 30) ** 2 + (s["y"] - 10) ** 2))
        return [tuple(s.values()) for s in found]

    def test_it_finds_the_region(self) -> None:
        """Of 1,600 settings sixty are tried, all different and allowed, and one is near the best."""
        found = self.tried(60)

        assert 60 == len(set(found))
        assert all(x > y for x, y in found)
        assert min((x - 30) ** 2 + (y - 10) ** 2 for x, y in found) <= 10

    def test_it_is_the_same_again(self) -> None:
        """The seed is fixed: the same search tries the same settings."""
        assert self.tried(15) == self.tried(15)

    def test_it_ends(self) -> None:
        """A space smaller than the number of trials is tried once, as far as suggestions reach it."""
        found = search([Parameter("x", (1, 2, 3))], [], COST, 50, lambda s: float(s["x"]))

        assert [1, 2, 3] == sorted(s["x"] for s in found)
