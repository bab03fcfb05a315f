"""What a captured request showed, told in terms of the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from replay.transcript import NOTHING, Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One piece of a request: a log message, verbatim or in another form, or something that is in no log."""

    role: Role
    text: str
    kind: Literal["log", "changed", "summary", "inserted", "layer"]
    """`changed`: a log message whose text differs from the log's; `layer`: a system prompt and its kin in front."""
    index: int | None = None
    """Log index of a `log` or `changed` part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One request of a capture."""

    number: int
    """Its number in the capture, from 1."""
    kind: Literal["step", "summary", "other"]
    step: int
    """The step that it asked for, or before which it came (summaries); from 1."""
    accepted: bool
    parts: tuple[Part, ...] = ()
    """Empty for summary requests, whose messages are in the thread `summary-<number>`."""
    named: frozenset[int] = frozenset()
    """Scripted steps (`Step N: …`) whose response stands in the request; where a recorded session answered, steps."""
    findable: frozenset[int] | None = None
    """Steps that `named` could name; None: every scripted one."""
    earlier: frozenset[int] = frozenset()
    """Numbers of the summaries (`STUB SUMMARY NUMBER n`) that stand in the request."""
    answer: str = ""
    """Text of the response."""
    tokens: int = 0
    """Prompt tokens as the endpoint reported them; of a refused request as it would have."""
    native: Mapping[str, Any] = field(default_factory=lambda: NOTHING, compare=False, repr=False)
    """Tools, parameters, size and instructions as the capture has them."""

    @property
    def history(self) -> tuple[Part, ...]:
        """The parts behind the layers."""
        return tuple(p for p in self.parts if p.kind != "layer")
