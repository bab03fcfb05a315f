"""Worked examples: small cases with exact numbers that tell one harness's rules from another's."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

MODULES = ("replay.policy.examples_measure", "replay.policy.examples_cut", "replay.policy.examples_frameworks",
           "replay.policy.examples_levels", "replay.policy.examples_providers", "replay.policy.examples_condensers",
           "replay.policy.examples_sources", "replay.policy.examples_edges")
"""Modules with a tuple `EXAMPLES`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One behaviour of one or more presets, with the answer that is right."""

    number: int
    """Number of the distinguishing behaviour, from 1."""
    presets: tuple[str, ...]
    """Presets that it holds for or tells apart."""
    says: str
    """The behaviour in a sentence."""
    expected: Any
    found: Callable[[], Any]

    def failure(self) -> str | None:
        """Why the example does not hold; None where it does."""
        found = self.found()
        if found == self.expected:
            return None
        return f"{self.number}. {self.says}: expected {self.expected!r}, found {found!r}"


def examples() -> tuple[Example, ...]:
    """Every worked example, by number."""
    found = [e for name in MODULES for e in importlib.import_module(name).EXAMPLES]
    return tuple(sorted(found, key=lambda e: e.number))


def run_examples() -> tuple[list[str], int]:
    """The failures in words, and how many examples were run."""
    every = examples()
    return [f for e in every if (f := e.failure()) is not None], len(every)
