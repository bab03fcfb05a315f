"""A Python function `(messages, state) -> messages` as a policy."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from replay.errors import ConfigError
from replay.own.base import Edit, Native, NativeShape, OwnCodeError, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonFunction:
    """Calls `package.module:function` at every step; what the function needs from step to step goes into `state`."""

    target: str
    shape: NativeShape = "openai"
    persists: bool = True
    """What it gives is the history from then on (False: every step it is given the full history)."""

    @contextmanager
    def session(self, name: str) -> Iterator[Edit]:
        """The function, loaded. Raises ConfigError where there is none, and OwnCodeError for what it raises."""
        from replay.config import load_object

        function = load_object(self.target, self.target)
        if not callable(function):
            raise ConfigError(self.target, "", "is no function")
        yield lambda turn: called(lambda: function(turn.messages, turn.state), self.target, turn)


def called(call: Callable[[], Any], who: str, turn: Turn) -> list[Native]:
    """What own code gives. Whatever it raises becomes an OwnCodeError that names the step."""
    try:
        found: list[Native] = call()
    except Exception as error:
        words = " ".join(str(error).split())
        raise OwnCodeError(f"{who}: step {turn.state.get('step')}: {type(error).__name__}: {words}") from error
    return found


def takes_messages(found: Any) -> bool:
    """Whether an object is such a function: it must be given two things, messages and state."""
    if not callable(found) or isinstance(found, type):
        return False
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(needed) == 2
