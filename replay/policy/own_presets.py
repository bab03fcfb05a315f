"""The preset that imitates the harness of a session."""

from __future__ import annotations

import re
from functools import cache

from replay.policy.base import Capacity
from replay.policy.load import policy, preset_names
from replay.policy.policy import Policy
from replay.transcript import Transcript

ASSUMED_WINDOW = 200_000
"""Tokens; where neither the session nor the preset names a window."""


@cache
def _presets() -> tuple[Policy, ...]:
    return tuple(policy(name) for name in preset_names())


def own_preset(transcript: Transcript) -> Policy | None:
    """The newest preset of the session's harness that is no newer than the session; the oldest where all are.

    A session without a version, or presets without numbers, get the last preset by name.
    """
    found = [p for p in _presets() if p.harness == transcript.format]
    if not found:
        return None
    version = _numbers(transcript.harness_version or "")
    dated = sorted((p for p in found if _numbers(p.version)), key=lambda p: _numbers(p.version))
    if not version or not dated:
        return found[-1]
    return next((p for p in reversed(dated) if _numbers(p.version)[:2] <= version), dated[0])


def own_capacity(transcript: Transcript, chosen: Policy) -> Capacity:
    """The window that the session records, else the preset's own, else a common one."""
    return Capacity(window=transcript.window or chosen.window or ASSUMED_WINDOW, output_reserve=chosen.output_reserve)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version))) if re.fullmatch(r"v?\d+(\.\d+)*.*", version) else ()
