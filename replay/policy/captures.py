"""Which preset replays a capture, with the settings that the run had."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from replay.policy.base import Capacity
from replay.readers.common import whole
from replay.readers.native import mapping


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


def pi(config: Mapping[str, Any]) -> Run:
    """Pi: reserve and tail of its settings file; versions by their compaction code."""
    files = mapping(config.get("harness_config_files"))
    settings = mapping(mapping(files.get(".pi/agent/settings.json")).get("compaction"))
    named = {"reserveTokens": "reserve", "keepRecentTokens": "tail_tokens"}
    given = {ours: settings[theirs] for theirs, ours in named.items() if theirs in settings}
    version = str(config.get("version") or "").rpartition(".")[0]
    return Run(preset=f"pi-{version}", capacity=Capacity(window=whole(config.get("window"))), settings=given)


def mycodeagent(config: Mapping[str, Any]) -> Run:
    """MyCodeAgent: the number of kept rounds comes from the environment."""
    rounds = str(mapping(config.get("env")).get("MIN_RETAIN_ROUNDS"))
    return Run(preset="mycodeagent", capacity=Capacity(window=whole(config.get("window"))),
               settings={"rounds": int(rounds)} if rounds.isdigit() else {})


RUNS: Mapping[str, Callable[[Mapping[str, Any]], Run | None]] = {"pi": pi, "mycodeagent": mycodeagent}
"""A capture's harness, as its config.json names it, to what replays it; None where no preset covers the run."""


def run_of(harness: str, config: Mapping[str, Any]) -> Run | None:
    """The preset and settings for a capture; None for a harness without a preset."""
    made = RUNS.get(harness)
    return made(config) if made is not None else None
