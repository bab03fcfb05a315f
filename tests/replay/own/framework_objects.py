"""Objects of LangChain and Pydantic AI, and an engine with MyCodeAgent's interface, without a real model."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

Native = dict[str, Any]


def summarization() -> Any:
    """LangChain's summarisation at 6,000 tokens, keeping twelve messages."""
    from langchain.agents.middleware import SummarizationMiddleware
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    answers = (AIMessage(f"Summary number {n}.") for n in itertools.count(1))
    return SummarizationMiddleware(GenericFakeChatModel(messages=answers), trigger=("tokens", 6_000), keep=("messages", 12))


def editing() -> Any:
    """LangChain's clearing of tool uses at 6,000 tokens, keeping three."""
    from langchain.agents.middleware import ClearToolUsesEdit, ContextEditingMiddleware

    return ContextEditingMiddleware(edits=[ClearToolUsesEdit(trigger=6_000, keep=3)])


def last_four(messages: list[Any]) -> list[Any]:
    """A Pydantic AI history processor: the last four messages, from a response on."""
    return messages[-4:] if len(messages) > 4 else messages


async def last_four_later(messages: list[Any]) -> list[Any]:
    """The same, asynchronously."""
    return last_four(messages)


@dataclass
class View:
    """What an engine builds."""

    messages: list[Native]


class Engine:
    """An engine that keeps the newest two rounds behind a summary once the window is four fifths full."""

    def __init__(self) -> None:
        self.cut, self.tokens = 0, 0

    def reset(self) -> None:
        """A new session."""
        self.cut, self.tokens = 0, 0

    def record_usage(self, total_tokens: int | None) -> None:
        """What the last call used."""
        self.tokens = total_tokens or 0

    def compact_if_needed(self, *, history_manager: Any, pending_input: str, step: int = 0, **_: Any) -> dict[str, Any]:
        """Cut where the last call came near the limit."""
        return self.reactive_compact(history_manager=history_manager) if self.tokens > 1_600 else {"compacted": False}

    def reactive_compact(self, *, history_manager: Any, **_: Any) -> dict[str, Any]:
        """Cut in any case."""
        prompts = [i for i, m in enumerate(history_manager.get_messages()) if m.role == "user"]
        self.cut = prompts[-2] if len(prompts) > 2 else self.cut
        return {"compacted": True}

    def build_model_view(self, *, history_manager: Any, **_: Any) -> View:
        """The view of a step."""
        kept = history_manager.get_messages()[self.cut:]
        summary = [{"role": "system", "content": f"Archived: {self.cut} messages."}] if self.cut else []
        return View([*summary, *map(_native, kept)])


def _native(message: Any) -> Native:
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.metadata["tool_call_id"], "content": message.content}
    calls = [{"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": _text(c["arguments"])}}
             for c in message.metadata.get("tool_calls", ())]
    return {"role": message.role, "content": message.content} | ({"tool_calls": calls} if calls else {})


def _text(arguments: Any) -> str:
    import json

    return arguments if isinstance(arguments, str) else json.dumps(arguments, separators=(",", ":"), ensure_ascii=False)
