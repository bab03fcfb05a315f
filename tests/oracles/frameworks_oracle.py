"""What LangChain's middlewares, Deep Agents and summarization-pydantic-ai do with the histories; needs their packages.

`python tests/oracles/frameworks_oracle.py golden` writes the golden data of the seeds; `… golden NAME < FILE` that of
other histories (`thought`, `sessions`). `… show ORACLE SEED` prints one outcome.
"""

from __future__ import annotations

import asyncio
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from deepagents.backends import StateBackend
from deepagents.middleware.summarization import SummarizationMiddleware as DeepSummarization
from histories import SEEDS, digest, history, requests, stored
from langchain.agents.middleware.context_editing import ClearToolUsesEdit
from langchain.agents.middleware.summarization import SummarizationMiddleware
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai_summarization import SummarizationProcessor

FOLDER = Path(__file__).parent


class Recording(SummarizationMiddleware):
    """The middleware with a summary of fixed size; keeps which messages its model was given."""

    given: list[list[str]]

    def _create_summary(self, messages_to_summarize: list[AnyMessage]) -> str:
        trimmed = self._trim_messages_for_summary(messages_to_summarize)
        self.given.append([name(m) for m in trimmed])
        return "s" * 80 if trimmed else "Previous conversation was too long to summarize."


def name(message: AnyMessage) -> str:
    """The message's place in the history; a summary as `S`."""
    return "S" if message.additional_kwargs.get("lc_source") else str(message.id)


def message(index: int, made: dict[str, Any]) -> AnyMessage:
    """A message of a history in LangChain's form."""
    if made["role"] == "user":
        return HumanMessage(made["text"], id=str(index))
    if made["role"] == "tool":
        return ToolMessage(made["text"], tool_call_id=made["call"], name="run", id=str(index))
    calls = [{"name": "run", "args": {"n": 1}, "id": call} for call in made["calls"]]
    return AIMessage(made["text"], tool_calls=calls, id=str(index))


def outcome(made: dict[str, Any]) -> list[Any]:
    """For each request the messages that are left, and what each summary was made from."""
    settings = made["settings"]
    oracle = Recording(FakeListChatModel(responses=["s"]), trigger=tuple(settings["trigger"]),
                       keep=tuple(settings["keep"]), trim_tokens_to_summarize=settings["trim"])
    oracle.given = []
    state: list[AnyMessage] = []
    views, taken = [], 0
    for stop in requests(made["messages"]):
        state += [message(i, made["messages"][i]) for i in range(taken, stop)]
        taken = stop
        changed = oracle.before_model({"messages": state}, None)
        if changed:
            state = [m for m in changed["messages"] if not isinstance(m, RemoveMessage)]
        views.append([name(m) for m in state])
    return [views, oracle.given]


def edited(made: dict[str, Any]) -> list[Any]:
    """For each request the results that ContextEditingMiddleware's edit has cleared by then."""
    level, tail = made["settings"]["trim"], made["settings"]["every"] - 2
    edit = ClearToolUsesEdit(trigger=level, keep=tail, clear_at_least=made["settings"]["tail"] if made["seed"] % 2 else 0)
    views = []
    for stop in requests(made["messages"]):
        state = [message(i, m) for i, m in enumerate(made["messages"][:stop])]
        edit.apply(state, count_tokens=count_tokens_approximately)
        views.append([str(m.id) for m in state if m.response_metadata.get("context_editing")])
    return views


def deep(made: dict[str, Any]) -> list[Any]:
    """Where Deep Agents cuts each request's history, and below which message it would shorten arguments."""
    settings = made["settings"]
    middle = DeepSummarization(FakeListChatModel(responses=["s"]), backend=StateBackend(),
                               trigger=tuple(settings["trigger"]), keep=tuple(settings["keep"]),
                               truncate_args_settings={"trigger": ("messages", 1), "keep": tuple(settings["keep"])})
    views = []
    for stop in requests(made["messages"]):
        state = [message(i, m) for i, m in enumerate(made["messages"][:stop])]
        total = middle._count_tokens(state, None, [])
        due = middle._should_summarize(state, total)
        views.append([middle._determine_cutoff_index(state) if due else 0,
                      middle._determine_truncate_cutoff_index(state)])
    return views


def pydantic(made: dict[str, Any]) -> list[Any]:
    """For each request how many messages of the history SummarizationProcessor cuts; 0 where it does not."""
    settings = made["settings"]
    (kind, value) = settings["keep"]
    processor = SummarizationProcessor(model="test", trigger=tuple(settings["trigger"]), keep=(kind, value))
    views = []
    for stop in requests(made["messages"]):
        plan = asyncio.run(processor.plan_compression(_model_messages(made["messages"][:stop])))
        views.append(0 if plan is None else plan.cutoff_index)
    return views


def _model_messages(messages: list[dict[str, Any]]) -> list[ModelRequest | ModelResponse]:
    """A history in pydantic-ai's form: what stands between two responses is one request."""
    found: list[ModelRequest | ModelResponse] = []
    for made in messages:
        if made["role"] == "assistant":
            calls = [ToolCallPart("run", '{"n":1}', tool_call_id=c) for c in made["calls"]]
            found.append(ModelResponse(parts=[TextPart(made["text"]), *calls]))
            continue
        part = (UserPromptPart(made["text"]) if made["role"] == "user"
                else ToolReturnPart("run", made["text"], tool_call_id=made["call"]))
        if found and isinstance(found[-1], ModelRequest):
            found[-1] = ModelRequest(parts=[*found[-1].parts, part])
        else:
            found.append(ModelRequest(parts=[part]))
    return found


ORACLES = {"langchain": (outcome, "langchain"), "langchain-editing": (edited, "langchain"),
           "deepagents": (deep, "deepagents"), "pydantic-ai": (pydantic, "summarization-pydantic-ai")}


def golden(name: str, histories: list[dict[str, Any]]) -> None:
    """Write what every oracle does with these histories."""
    for title, (run, package) in ORACLES.items():
        found = stored(package, version(package), [digest(run(made)) for made in histories], name)
        (FOLDER / f"{title}{'' if name == 'histories' else f'-{name}'}.txt").write_text(found)


if __name__ == "__main__":
    if sys.argv[1] == "show":
        shown = history(int(sys.argv[3]))
        sys.stdout.write(f"{shown}\n{ORACLES[sys.argv[2]][0](shown)}\n")
    elif len(sys.argv) > 2:
        golden(sys.argv[2], json.load(sys.stdin))
    else:
        golden("histories", [history(seed) for seed in range(SEEDS)])
