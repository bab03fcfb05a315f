"""Which preset replays a capture, with the settings that the run had."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from replay.policy.base import Capacity
from replay.policy.capture_run import Run
from replay.policy.captures_frameworks import FRAMEWORK_RUNS
from replay.policy.captures_more import MORE_RUNS
from replay.readers.common import whole
from replay.readers.native import mapping, string


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


RUNS: Mapping[str, Callable[[Mapping[str, Any]], Run | None]] = {"pi": pi, "mycodeagent": mycodeagent, **MORE_RUNS,
                                                                  **FRAMEWORK_RUNS}
"""A capture's harness, as its config.json names it, to what replays it; None where no preset covers the run."""


def run_of(harness: str, config: Mapping[str, Any]) -> Run | None:
    """The preset and settings for a capture; None for a harness without a preset. A policy that it names wins."""
    named = string(config.get("policy"))
    if named is not None:
        return Run(preset=named, capacity=Capacity(window=whole(config.get("window"))))
    made = RUNS.get(harness)
    return made(config) if made is not None else None
