"""Every error that Rewindow raises on purpose.

RewindowError
    ReadError        an input could not be read at all (file, line)
        NotASession  an input holds no session of a known format
    ConfigError      a policy, setting or call is wrong (file, key)
        UnknownName  a name that no registry holds (kind, name, choices)
    InvariantError   a view breaks a rule that every view obeys (session, step)
    Interrupted      the work was stopped; says what of it is kept
    SummaryMissing   the chosen summariser has no text for this step
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass


class RewindowError(Exception):
    """Base of all errors that carry one clear line for the user."""


@dataclass
class ReadError(RewindowError):
    """An input could not be read at all; a damaged line is a note, not this."""

    path: str
    reason: str
    line: int | None = None

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.reason}"


class NotASession(ReadError):
    """An input that is intact as far as can be told, but holds no session of a known format."""


@dataclass
class ConfigError(RewindowError):
    """A policy file, an override or a call says something that cannot be meant."""

    where: str
    key: str
    reason: str

    def __str__(self) -> str:
        return f"{self.where}: {self.key}: {self.reason}" if self.key else f"{self.where}: {self.reason}"


class UnknownName(ConfigError):
    """A name that is in no registry; the message lists what would be right."""

    def __init__(self, kind: str, name: str, choices: Iterable[str], where: str = "") -> None:
        known = sorted(choices)
        near = difflib.get_close_matches(name, known, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(known)}"
        super().__init__(where or kind, "", f"no {kind} called {name!r}; {hint}")


@dataclass
class InvariantError(RewindowError):
    """A view breaks a rule that every view obeys."""

    session: str
    step: int
    reason: str

    def __str__(self) -> str:
        return f"session {self.session}, step {self.step}: {self.reason}"


class Interrupted(RewindowError):
    """The work was stopped from outside; the message says what of it is kept."""


@dataclass
class SummaryMissing(RewindowError):
    """The chosen summariser has no text for this step."""

    step: int
    reason: str

    def __str__(self) -> str:
        return f"step {self.step}: {self.reason}"
