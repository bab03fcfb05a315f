"""Objects of frameworks as policies: LangChain middleware, Pydantic AI history processors, MyCodeAgent's engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from replay.errors import ConfigError
from replay.own.base import Edit, Native, NativeShape, Turn
from replay.own.engine_adapter import engine_edit
from replay.own.function import called
from replay.own.langchain_adapter import langchain_edit
from replay.own.pydantic_adapter import pydantic_edit

Adapter = Callable[[Any], Callable[[Turn], list[Native]]]
"""From a framework's object to one session's edit."""


class _Framework:
    """An object, or a function without arguments that makes one; sessions never share what a function makes."""

    target: str
    adapter: ClassVar[Adapter]
    shape: ClassVar[NativeShape] = "openai"
    persists: ClassVar[bool] = False
    """The adapters keep the framework's own history themselves."""

    @contextmanager
    def session(self, name: str) -> Iterator[Edit]:
        """The object for one session. Raises ConfigError where there is none, and OwnCodeError for what it raises."""
        from replay.config import load_object

        found = load_object(self.target, self.target)
        try:
            edit = type(self).adapter(found)
        except ImportError as error:
            raise ConfigError(self.target, "", f"its framework is not installed: {error}") from error
        yield lambda turn: called(lambda: edit(turn), self.target, turn)


@dataclass(frozen=True, kw_only=True)
class LangChain(_Framework):
    """LangChain 1.x middleware: `before_model` changes the history, `wrap_model_call` only the request."""

    target: str
    adapter: ClassVar[Adapter] = staticmethod(langchain_edit)


@dataclass(frozen=True, kw_only=True)
class PydanticAi(_Framework):
    """A Pydantic AI 1.x history processor: a function, also an asynchronous one, from messages to messages."""

    target: str
    adapter: ClassVar[Adapter] = staticmethod(pydantic_edit)


@dataclass(frozen=True, kw_only=True)
class ContextEngine(_Framework):
    """An object with the interface of MyCodeAgent's `ContextEngine` (f670268), or a function that makes one."""

    target: str
    adapter: ClassVar[Adapter] = staticmethod(engine_edit)


FRAMEWORKS: Mapping[str, type] = {"langchain": LangChain, "pydantic-ai": PydanticAi, "context-engine": ContextEngine}
