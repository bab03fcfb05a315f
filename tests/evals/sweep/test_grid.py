"""Parameters, constraints and grids of a sweep."""

from __future__ import annotations

from typing import Any

import pytest

from evals.sweep.grid import Parameter, grid, parameter, policy_name
from evals.sweep.where import Constraint
from replay.errors import ConfigError
from replay.policy.load import policy


@pytest.mark.parametrize(("text", "name", "values"), [
    ("trigger.at=0.5,0.7,0.9", "trigger.at", (0.5, 0.7, 0.9)), ("tail_tokens=4000:8000:2000", "tail_tokens", (4000, 6000, 8000)),
    ("a=0.1:0.3:0.1", "a", (0.1, 0.2, 0.3)), ("a=1:2:3", "a", (1,)), ("a=true,false", "a", (True, False)),
    ("scope=after-turn,before-step", "scope", ("after-turn", "before-step"))])
def test_parameters(text: str, name: str, values: tuple[Any, ...]) -> None:
    """Lists are taken as they stand; ranges hold their upper end and no error of binary fractions."""
    assert Parameter(name, values) == parameter(text)


@pytest.mark.parametrize("text", ["a", "a=", "=1", "a=1,1", "a=2:1:1", "a=1:2:0", "a=x:2:1", "a=1:2:-1", "a=0:1e9:1"])
def test_what_is_no_parameter(text: str) -> None:
    """A --set that cannot be meant is one clear error."""
    with pytest.raises(ConfigError, match="--set"):
        parameter(text)


def test_every_allowed_combination_once() -> None:
    """A grid is the product of the values that the constraints allow."""
    axes = [Parameter("tail", (1, 2)), Parameter("trigger.tokens", (1, 2, 3))]

    assert 6 == len(grid(axes))
    assert [(1, 2), (1, 3), (2, 3)] == [tuple(p.values()) for p in grid(axes, [Constraint("tail < trigger.tokens")])]
    assert [(2, 3)] == [tuple(p.values()) for p in grid(axes, [Constraint("2 * tail - 1 >= trigger.tokens > 2")])]


@pytest.mark.parametrize("text", ["a < ", "a", "__import__('os').system('x') < 1", "[1] < a", "a and b", "b < 1", "a < 'x'",
                                  "a / 0 < 1"])
def test_constraints_run_nothing(text: str) -> None:
    """What is no comparison of swept parameters and numbers is refused; nothing is executed."""
    with pytest.raises(ConfigError, match="--where"):
        grid([Parameter("a", (1, 2))], [Constraint(text)])


@pytest.mark.parametrize(("axes", "constraints"), [
    ([Parameter("a", (1,)), Parameter("a", (2,))], []), ([Parameter("a", (1,))], [Constraint("a > 1")]),
    ([Parameter("a", tuple(range(100))), Parameter("b", tuple(range(100)))], [])])
def test_grids_that_cannot_be_meant(axes: list[Parameter], constraints: list[Constraint]) -> None:
    """A parameter named twice, no allowed combination and far too many combinations are errors."""
    with pytest.raises(ConfigError):
        grid(axes, constraints)


@pytest.mark.parametrize(("base", "setting", "name"), [
    ("decode-adr18", {"trigger.at": 0.7, "tail_tokens": 8000}, "decode-adr18:trigger.at=0.7,tail_tokens=8000"),
    ("decode-adr18:tail_tokens=9000", {"trigger.at": 0.7}, "decode-adr18:tail_tokens=9000,trigger.at=0.7")])
def test_settings_are_overrides(base: str, setting: dict[str, Any], name: str) -> None:
    """A setting is a policy that every other command takes by the same name."""
    assert (name, name) == (policy_name(base, setting), policy(policy_name(base, setting)).name)
