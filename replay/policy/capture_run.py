"""A preset with the settings that a captured run had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from replay.policy.base import Capacity


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A preset with a run's settings."""

    preset: str
    capacity: Capacity
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Overrides of the preset, by the end of their dotted path."""

    @property
    def policy_name(self) -> str:
        """The preset with its overrides, as `replay.policy.load.policy` takes it."""
        given = ",".join(f"{key}={_literal(value)}" for key, value in self.settings.items())
        return f"{self.preset}:{given}" if given else self.preset


def _literal(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
