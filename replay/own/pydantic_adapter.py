"""Pydantic AI history processors (1.x) for one session."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from replay.own.base import Native, Turn


def pydantic_edit(found: Any) -> Callable[[Turn], list[Native]]:
    """One session under a processor. Raises ImportError without Pydantic AI.

    As in Pydantic AI itself what a processor returns is the history from then on.
    """
    import pydantic_ai.messages  # noqa: F401 - whether it is there is told before the session

    return _Session(found).edit


class _Session:
    def __init__(self, processor: Any) -> None:
        self._processor = processor
        self._history: list[Any] = []
        self._taken = 0
        self._given: dict[int, tuple[Any, Native]] = {}
        """Each part and response that was made of a message of ours, by its identity."""

    def edit(self, turn: Turn) -> list[Native]:
        """The request's messages."""
        if len(turn.messages) < self._taken:
            self._history, self._taken = [], 0
        for native in turn.messages[self._taken:]:
            made = _append(self._history, native)
            self._given[id(made)] = made, native
        self._taken = len(turn.messages)
        given = self._processor(list(self._history))
        self._history = list(asyncio.run(given) if inspect.iscoroutine(given) else given)
        return [native for message in self._history for native in self._natives(message)]

    def _natives(self, message: Any) -> Iterator[Native]:
        """What a message is in our shape: the very message of ours, where nothing was changed."""
        from pydantic_ai.messages import ModelResponse

        for part in [message] if isinstance(message, ModelResponse) else message.parts:
            known = self._given.get(id(part))
            yield known[1] if known else _native(part)


def _append(history: list[Any], native: Native) -> Any:
    """Put a message behind the history, and give what was made of it: requests hold all between two responses."""
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart

    if native["role"] == "assistant":
        calls = [ToolCallPart(c["function"]["name"], c["function"]["arguments"], tool_call_id=c["id"])
                 for c in native.get("tool_calls", ())]
        text = [TextPart(native["content"])] if native["content"] or not calls else []
        history.append(ModelResponse(parts=[*text, *calls]))
        return history[-1]
    part = _request_part(native, history)
    if history and isinstance(history[-1], ModelRequest):
        history[-1] = ModelRequest(parts=[*history[-1].parts, part])
    else:
        history.append(ModelRequest(parts=[part]))
    return part


def _request_part(native: Native, history: list[Any]) -> Any:
    from pydantic_ai.messages import SystemPromptPart, ToolReturnPart, UserPromptPart

    if native["role"] == "tool":
        call = native["tool_call_id"]
        names = (p.tool_name for m in reversed(history) for p in m.parts if getattr(p, "tool_call_id", None) == call)
        return ToolReturnPart(next(names, "unknown"), native["content"], tool_call_id=call)
    return (UserPromptPart if native["role"] == "user" else SystemPromptPart)(native["content"])


def _native(part: Any) -> Native:
    """A response, or a part of a request, that a processor made."""
    from pydantic_ai.messages import ModelResponse, SystemPromptPart, TextPart, ToolCallPart, ToolReturnPart

    if isinstance(part, ModelResponse):
        text = "\n".join(p.content for p in part.parts if isinstance(p, TextPart))
        calls = [{"id": p.tool_call_id, "type": "function",
                  "function": {"name": p.tool_name, "arguments": p.args_as_json_str()}}
                 for p in part.parts if isinstance(p, ToolCallPart)]
        return {"role": "assistant", "content": text} | ({"tool_calls": calls} if calls else {})
    if isinstance(part, ToolReturnPart):
        return {"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response_str()}
    return {"role": "system" if isinstance(part, SystemPromptPart) else "user", "content": str(part.content)}
