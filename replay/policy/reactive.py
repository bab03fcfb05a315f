"""Reactive rules: what happens after a request was refused because the view does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from replay.policy.base import check
from replay.window import Rendering


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """The run ends with the first refusal."""

    attempts: int = 0
    scope: Literal["step", "run", "session"] = "session"
    stage: str = ""
    identical_retries: int = 0
    tail: Rendering | None = field(default=None, metadata={"part": "rendering"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ForceStage:
    """Runs a stage's action whatever its trigger says, then sends again.

    Imitates MyCodeAgent f670268 with `attempts = 1`, `scope = "run"`, `identical_retries = 2`: the same
    request goes out three times in all before the one reactive compaction of a run.
    """

    attempts: int = 1
    """Forced compactions allowed within the scope."""
    scope: Literal["step", "run", "session"] = "run"
    stage: str = ""
    """Name of the stage to force; empty: the first that compacts."""
    tail: Rendering | None = field(default=None, metadata={"part": "rendering"})
    """Form in which the results at the very end of the refused request are shown from then on."""
    identical_retries: int = 0
    """Times the refused request is sent again unchanged before anything else."""

    def __post_init__(self) -> None:
        """Refuse negative numbers."""
        check(self, "attempts", self.attempts >= 0, "0 or more")
        check(self, "identical_retries", self.identical_retries >= 0, "0 or more")


REACTIVE_RULES: Mapping[str, type] = {"give-up": GiveUp, "force-stage": ForceStage}
"""Names for `use = …` in a reactive table."""
