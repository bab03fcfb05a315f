"""Objects with the interface of MyCodeAgent's `ContextEngine` (f670268) for one session."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from replay.own.base import Native, Turn


@dataclass
class EngineMessage:
    """A message as that engine's history holds it."""

    role: str
    content: str
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass
class EngineHistory:
    """The history that the engine is given: it grows, and the engine never changes it."""

    messages: list[EngineMessage] = field(default_factory=list)

    def get_messages(self) -> list[EngineMessage]:
        """All messages, oldest first."""
        return list(self.messages)

    def get_message_count(self) -> int:
        """How many there are."""
        return len(self.messages)


def engine_edit(found: Any) -> Callable[[Turn], list[Native]]:
    """One session under an engine: usage is reported, a compaction offered, and the view taken, as its loop does."""
    engine = found() if isinstance(found, type) or not hasattr(found, "build_model_view") else found
    if hasattr(engine, "reset"):
        engine.reset()

    def edit(turn: Turn) -> list[Native]:
        history = EngineHistory(_messages(turn.messages))
        given = {"history_manager": history, "pending_input": _pending(turn.messages), "step": turn.state["step"]}
        if turn.state.get("refused"):
            engine.reactive_compact(**given)
        else:
            if turn.state.get("tokens"):
                engine.record_usage(turn.state["tokens"])
            engine.compact_if_needed(**given)
        shown: list[Native] = list(engine.build_model_view(**given).messages)
        return shown

    return edit


def _pending(messages: list[Native]) -> str:
    """The prompt of the run, which the engine's loop hands over with every step."""
    return next((str(m["content"]) for m in reversed(messages) if m["role"] == "user"), "")


def _messages(natives: list[Native]) -> list[EngineMessage]:
    names = {c["id"]: c["function"]["name"] for n in natives for c in n.get("tool_calls", ())}
    return [_message(native, names) for native in natives]


def _message(native: Native, names: dict[str, str]) -> EngineMessage:
    content = str(native.get("content") or "")
    if native["role"] == "tool":
        call = native["tool_call_id"]
        return EngineMessage("tool", content, {"tool_call_id": call, "tool_name": names.get(call, "unknown")})
    calls = native.get("tool_calls")
    if not calls:
        return EngineMessage(native["role"], content)
    return EngineMessage("assistant", content, {"action_type": "tool_call", "tool_calls": [
        {"id": c["id"], "name": c["function"]["name"], "arguments": _arguments(c["function"]["arguments"])}
        for c in calls]})


def _arguments(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
