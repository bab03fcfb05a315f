"""What may be compared, curves over size, and plans that are fixed before looking."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evals.stats_comparable import area_between, comparable, require_comparable
from evals.stats_plan import Plan, load_plan, plan_hash
from replay.errors import ConfigError, ReadError


def _run(**changes: Any) -> dict[str, Any]:
    return {"schema": 1, "window": 200_000, "output_reserve": 0, "tokenizer": "o200k_base", "prices": None,
            "cache_model": None, "summariser": "extractive",
            "sessions": [{"session": "a", "steps": 3, "messages": 9}, {"session": "b", "steps": 5, "messages": 20}],
            } | changes


def test_equal_settings_and_sessions_may_be_compared() -> None:
    """The same cohort at the same settings has no reason against it."""
    assert [] == comparable(_run(), _run(policies=["other"]))


@pytest.mark.parametrize(("key", "value", "words"), [
    ("window", 100_000, "different context windows: 200000 and 100000"),
    ("output_reserve", 8_000, "different output reserves: 0 and 8000"),
    ("tokenizer", "cl100k_base", "different tokenizers: o200k_base and cl100k_base"),
    ("prices", "gpt-5", "different price tables: none and gpt-5"),
    ("cache_model", "none", "different cache models: none and none"),
    ("summariser", "empty", "different summarisers: extractive and empty"),
    ("schema", 2, "different schema versions: 1 and 2"),
])
def test_other_settings_may_not(key: str, value: Any, words: str) -> None:
    """Each setting that changes the numbers is a reason."""
    assert [words] == comparable(_run(), _run(**{key: value}))


def test_other_cohorts_may_not() -> None:
    """Sessions that only one run holds, and sessions that changed, are named."""
    other = [{"session": "a", "steps": 4, "messages": 9}, {"session": "c", "steps": 1, "messages": 2}]

    assert ["different cohorts: 1 sessions in both, 1 only in the first (b), 1 only in the second (c)",
            "different content of 1 sessions of the same id (a)"] == comparable(_run(), _run(sessions=other))


def test_refusal_unless_told_to() -> None:
    """Without consent it is an error that says why; with it the reasons come back as warnings."""
    with pytest.raises(ConfigError, match="different context windows: 200000 and 1"):
        require_comparable(_run(), _run(window=1))

    assert 1 == len(require_comparable(_run(), _run(window=1), anyway=True))
    assert [] == require_comparable(_run(), _run())


def test_area_between_curves() -> None:
    """The mean height over the shared stretch: (0.5 + 0.3) / 2 between 10 and 20."""
    ours, theirs = [(0, 1.0), (20, 1.0)], [(10, 0.5), (20, 0.7), (30, 0.9)]

    assert 0.4 == pytest.approx(area_between(ours, theirs))
    assert -0.4 == pytest.approx(area_between(theirs, ours))
    assert 0.0 == area_between(ours, ours)


def test_curves_that_do_not_overlap() -> None:
    """No shared stretch, no number."""
    assert None is area_between([(0, 1.0), (1, 1.0)], [(2, 1.0), (3, 1.0)])
    assert None is area_between([], [(2, 1.0)])


def test_plan_hash_is_of_its_meaning() -> None:
    """The order of lists does not change it, every value does."""
    plan = Plan(primary="edit_safety", better="high", margin=0.02, exclusions=("no steps", "other model"))
    turned = Plan(primary="edit_safety", better="high", margin=0.02, exclusions=("other model", "no steps"))

    assert plan_hash(plan) == plan_hash(turned)
    assert 64 == len(plan_hash(plan))
    assert plan_hash(plan) != plan_hash(Plan(primary="edit_safety", better="high", margin=0.03))


def test_families() -> None:
    """What was not declared is exploratory."""
    plan = Plan(primary="a", better="low", margin=0.0, headline=("b",))

    assert ["headline", "headline", "exploratory"] == [plan.family(m) for m in "abc"]


def test_plan_from_a_file(tmp_path: Path) -> None:
    """A TOML file is a plan; unknown keys, impossible margins and missing files are one clear line."""
    good = tmp_path / "plan.toml"
    good.write_text('primary = "cost"\nbetter = "low"\nmargin = 1.03\nscale = "ratio"\nexclusions = ["no steps"]\n')
    assert Plan(primary="cost", better="low", margin=1.03, scale="ratio", exclusions=("no steps",)) == load_plan(good)

    bad = tmp_path / "bad.toml"
    bad.write_text('primary = "cost"\nbetter = "low"\nmargin = 0.5\nscale = "ratio"\n')
    with pytest.raises(ConfigError, match="margin: a difference is at least 0, a ratio at least 1"):
        load_plan(bad)
    bad.write_text('primary = "cost"\nmargins = 1\n')
    with pytest.raises(ConfigError, match="did you mean margin"):
        load_plan(bad)
    bad.write_text("primary = ")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load_plan(bad)
    with pytest.raises(ReadError, match="No such file"):
        load_plan(tmp_path / "none.toml")
