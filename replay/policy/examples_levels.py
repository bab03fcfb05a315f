"""Worked examples of the levels of Crush and Hermes Agent."""

from __future__ import annotations

from replay.policy.example_tools import of_kind, stage
from replay.policy.examples import Example
from replay.policy.head_tail_tokens import StepwiseShare
from replay.policy.triggers_asked import Remaining


def _crush(window: int) -> int:
    return of_kind(stage("crush").trigger, Remaining).level(window)


def _hermes(window: int) -> int:
    return of_kind(stage("hermes").trigger, StepwiseShare).level(window)


EXAMPLES = (
    Example(number=2, presets=("crush",),
            says="Crush leaves a fifth of a window of 200,000 tokens and 20,000 of one above",
            expected=[160_000, 180_001], found=lambda: [_crush(200_000), _crush(200_001)]),
    Example(number=2, presets=("hermes",),
            says="Hermes: three quarters below 512,000 tokens, half from there, never below 64,000, and 85 % "
            "where that does not fit", expected=[27_200, 54_400, 75_000, 256_000],
            found=lambda: [_hermes(w) for w in (32_000, 64_000, 100_000, 512_000)]),
)
