"""Policies that misbehave: one never ends, one ends its process, one wants all memory, at messages of their own."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

from replay.policy.base import Decision, Moment
from replay.policy.load import policy
from replay.policy.policy import Policy
from replay.policy.triggers import Threshold

_BASE = policy("decode-adr18")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endless(Threshold):
    """Never decides."""

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Goes round and round."""
        while True:
            pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashing(Threshold):
    """Ends the process where a session has more than 30 messages."""

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """As a native crash would."""
        if len(moment.log) > 30:
            os._exit(134)
        return Threshold.decide(self, stage, measured, moment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hungry(Threshold):
    """Asks for more memory than there is."""

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """As a session that is too large would."""
        bytearray(1 << 40)
        return Threshold.decide(self, stage, measured, moment)


def _with(name: str, trigger: Any) -> Policy:
    return replace(_BASE, name=name, stages=tuple(replace(s, trigger=trigger) for s in _BASE.stages))


ENDLESS = _with("endless", Endless(at=0.8))
CRASHING = _with("crashing", Crashing(at=0.8))
HUNGRY = _with("hungry", Hungry(at=0.8))
