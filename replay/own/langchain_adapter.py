"""LangChain middleware (1.x) for one session."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import orjson

from replay.own.base import Native, Turn

_PROMPTS = ("system", "developer")


def langchain_edit(found: Any) -> Callable[[Turn], list[Native]]:
    """One session under a middleware, or under what a function makes. Raises ImportError without LangChain."""
    # Its tracing would send messages of sessions away.
    os.environ |= {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false"}
    from langchain.agents.middleware import AgentMiddleware

    middleware = found() if not isinstance(found, AgentMiddleware) else found
    session = _Session(middleware, type(middleware).wrap_model_call is not AgentMiddleware.wrap_model_call)
    return session.edit


class _Session:
    """The agent's state as LangGraph keeps it: messages with ids, changed by what the middleware returns."""

    def __init__(self, middleware: Any, wraps: bool) -> None:
        self._middleware, self._wraps = middleware, wraps
        self._messages: list[Any] = []
        self._taken = 0
        self._given: dict[str, tuple[Native, Any]] = {}
        """Each of our messages by the id that it bears there, with what it was made into."""

    def edit(self, turn: Turn) -> list[Native]:
        """The request's messages."""
        from langgraph.graph.message import add_messages

        if len(turn.messages) < self._taken:
            self._messages, self._taken = [], 0
        # An agent keeps its system prompt beside its messages.
        prompts = [native for native in turn.messages if native["role"] in _PROMPTS]
        fresh = [self._made(n) for n in turn.messages[self._taken:] if n["role"] not in _PROMPTS]
        self._messages = list(add_messages(self._messages, fresh))
        self._taken = len(turn.messages)
        changed = self._middleware.before_model({"messages": list(self._messages)}, None)
        if isinstance(changed, Mapping) and "messages" in changed:
            self._messages = list(add_messages(self._messages, changed["messages"]))
        shown = self._wrapped() if self._wraps else self._messages
        return [*prompts, *(self._native(message) for message in shown)]

    def _made(self, native: Native) -> Any:
        """A message of ours as LangChain's, with an id by which it is known again."""
        from langchain_core.messages import convert_to_messages

        name = f"rewindow-{len(self._given)}"
        made = convert_to_messages([_readable(native)])[0].model_copy(update={"id": name})
        self._given[name] = native, made
        return made

    def _native(self, message: Any) -> Native:
        """A message of LangChain's as ours: the very one that it was made from, where nothing of it was changed."""
        from langchain_core.messages import convert_to_openai_messages

        native, made = self._given.get(message.id or "", ({}, None))
        if made is not None and message == made:
            return native
        changed: Native = convert_to_openai_messages([message])[0]
        return {name: value for name, value in changed.items() if name != "name"}

    def _wrapped(self) -> list[Any]:
        """What the middleware hands on to the model."""
        from langchain.agents.middleware import ModelRequest
        from langchain_core.messages import AIMessage

        given: list[Any] = []

        def model(request: Any) -> Any:
            given[:] = request.messages
            return AIMessage("")

        blank: dict[str, Any] = {f.name: None for f in fields(ModelRequest) if f.name != "system_prompt"} | {
            "messages": list(self._messages), "tools": [], "state": {"messages": self._messages}, "model_settings": {}}
        self._middleware.wrap_model_call(ModelRequest(**blank), model)
        return given


def _readable(native: Native) -> Native:
    """A message whose calls have arguments that LangChain can read: raw ones become one named `input`."""
    calls = native.get("tool_calls")
    kept = {name: value for name, value in native.items() if name != "reasoning_content"}
    if not calls:
        return kept
    return kept | {"tool_calls": [c | {"function": c["function"] | {"arguments": _object(c["function"]["arguments"])}}
                                  for c in calls]}


def _object(text: str) -> str:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        value = text
    return text if isinstance(value, dict) else orjson.dumps({"input": value}).decode()
