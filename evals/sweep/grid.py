"""From `part.field=a,b,c` and `part.field=lo:hi:step` to the settings of a policy that are tried."""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from evals.sweep.where import Constraint
from replay.errors import ConfigError

MOST_POINTS = 5_000
"""A grid beyond this is taken for a slip of the pen."""
Setting = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A setting of a policy and the values that it is given."""

    name: str
    values: tuple[Any, ...]


def parameter(text: str) -> Parameter:
    """`part.field=a,b,c` (any values) or `part.field=lo:hi:step` (numbers, `hi` included). Raises ConfigError."""
    name, equals, given = text.partition("=")
    name = name.strip()
    if not equals or not name or not given.strip():
        raise ConfigError("--set", text, "expected part.field=a,b,c or part.field=lo:hi:step")
    pieces = given.split(":")
    values = _range(text, pieces) if len(pieces) == 3 else tuple(_literal(v.strip()) for v in given.split(","))
    if len(set(map(repr, values))) < len(values):
        raise ConfigError("--set", text, "names a value twice")
    return Parameter(name, values)


def _range(text: str, pieces: Sequence[str]) -> tuple[Any, ...]:
    try:
        low, high, step = (Decimal(p.strip()) for p in pieces)
        count = int((high - low) / step) + 1
    except (InvalidOperation, ArithmeticError):
        raise ConfigError("--set", text, "expected three numbers lo:hi:step") from None
    if step <= 0 or high < low:
        raise ConfigError("--set", text, "expected lo ≤ hi and a step above 0")
    if count > MOST_POINTS:
        raise ConfigError("--set", text, f"gives {count:,} values; at most {MOST_POINTS:,} are taken")
    whole = all(p == p.to_integral_value() for p in (low, high, step))
    found = (low + step * n for n in range(count))
    return tuple(int(v) if whole else float(v) for v in found)


def _literal(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def grid(parameters: Sequence[Parameter], constraints: Sequence[Constraint] = ()) -> list[Setting]:
    """Every combination of the values that all constraints allow, the last parameter changing fastest.

    Raises ConfigError where a parameter is named twice, where there are too many combinations, and where none is left.
    """
    names = [p.name for p in parameters]
    if len(set(names)) < len(names):
        raise ConfigError("--set", "", f"a parameter is named twice: {', '.join(names)}")
    count = math.prod(len(p.values) for p in parameters)
    if count > MOST_POINTS:
        raise ConfigError("--set", "", f"{count:,} combinations; at most {MOST_POINTS:,} are tried. --trials N "
                                       "searches larger spaces")
    points: list[Setting] = [dict(zip(names, values, strict=True))
                             for values in itertools.product(*(p.values for p in parameters))]
    allowed = [p for p in points if all(c.holds(p) for c in constraints)]
    if not allowed:
        raise ConfigError("--where", "", f"none of the {count:,} combinations is allowed")
    return allowed


def policy_name(base: str, setting: Setting) -> str:
    """The policy's name with a setting as overrides, as every command takes it."""
    inner = ",".join(f"{name}={_text(value)}" for name, value in setting.items())
    return f"{base},{inner}" if _has_overrides(base) else f"{base}:{inner}"


def _has_overrides(base: str) -> bool:
    return "=" in base


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
