"""What context code of one's own is to the replay."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from replay.errors import RewindowError

Native = dict[str, Any]
"""One message as a provider's dictionary."""
NativeShape = Literal["openai", "anthropic"]


class OwnCodeError(RewindowError):
    """Own code raised, ended, was too slow, or gave what is no list of messages."""


@dataclass
class Turn:
    """A step's request as it is offered to own code."""

    messages: list[Native]
    """What came out at the step before, with what has arrived since; the code's own to change."""
    state: Native = field(default_factory=dict)
    """Kept for the code from step to step of one session; `step`, `window` and `session` are set before each."""


Edit = Callable[[Turn], list[Native]]
"""One session's code: the messages that the model is to see."""


class OwnCode(Protocol):
    """Context code of one's own, for any number of sessions."""

    @property
    def shape(self) -> NativeShape:
        """Whose dictionaries it takes."""

    @property
    def persists(self) -> bool:
        """What it gives is the history from then on (False: every step it is given the full history)."""

    def session(self, name: str) -> AbstractContextManager[Edit]:
        """The code for one session. Raises OwnCodeError, here and in its steps."""


def checked(found: Any, who: str, step: int) -> list[Native]:
    """The messages that own code gave. Raises OwnCodeError for anything else."""
    if not isinstance(found, (list, tuple)):
        raise OwnCodeError(f"{who}: step {step}: gave {type(found).__name__} and not a list of messages")
    for number, message in enumerate(found):
        if not (isinstance(message, dict) and isinstance(message.get("role"), str)):
            raise OwnCodeError(f"{who}: step {step}: message {number} is no dictionary with a role")
    return list(found)
