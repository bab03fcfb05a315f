"""Which preset replays a capture of a Python framework, with the settings that the run had."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from replay.policy.base import Capacity
from replay.policy.capture_run import Run
from replay.readers.common import whole
from replay.readers.native import mapping

UNLIMITED = Capacity(window=1_000_000)
"""Of runs whose framework was told no window."""
_SAVED_TO = re.compile(r"has been saved to (\S+) should")


def deepagents(config: Mapping[str, Any]) -> Run:
    """Deep Agents: with the profile of a model its window, without one fixed numbers; the history's file per run."""
    texts = (part.text for sent in config.get("sent") or () for part in sent.parts if part.role == "user")
    path = next((found[1] for text in texts if (found := _SAVED_TO.search(text))), "")
    settings: dict[str, Any] = {"measure.reports": False, **({"replacement.path": path} if path else {})}
    if mapping(config.get("stub")).get("profile"):
        return Run(preset="deepagents", capacity=Capacity(window=whole(config.get("window"))), settings=settings)
    fixed = {"full.trigger.at": 0.0, "full.trigger.tokens": 170_000, "full.cut.share": 0.0, "full.cut.messages": 6,
             "arguments.trigger.at": 0.0, "arguments.trigger.messages": 20, "tool_results.share": 0.0}
    return Run(preset="deepagents", capacity=UNLIMITED, settings=settings | fixed)


def pydantic(config: Mapping[str, Any]) -> Run:
    """summarization-pydantic-ai: its sliding window, or its summaries, with trigger and tail."""
    given = mapping(mapping(config.get("stub")).get("proc"))
    slides = str(config.get("framework")).endswith("slide")
    settings: dict[str, Any] = {"trigger.tokens": 0, "trigger.messages": 0}
    for table, (kind, value) in (("trigger", given.get("trigger") or ("messages", 100)),
                                 ("cut", given.get("keep") or ("messages", 20))):
        settings[f"{table}.{kind}"] = value
    return Run(preset="summarization-pydantic-ai" + ("-sliding" if slides else ""), capacity=UNLIMITED,
               settings=settings)


def langchain(config: Mapping[str, Any]) -> Run | None:
    """LangChain: trigger and tail of the middleware, or of the clearing edit."""
    stub = mapping(config.get("stub"))
    if "clear" in stub:
        given = mapping(stub["clear"])
        return Run(preset="langchain-context-editing", capacity=UNLIMITED,
                   settings={"trigger.tokens": given.get("trigger"), "keep": given.get("keep")})
    given = mapping(stub.get("summ"))
    # The captured runs' own chat model names no provider in its responses.
    settings: dict[str, Any] = {"trigger.at": 0.0, "measure.reports": False}
    for table, (kind, value) in (("trigger", given.get("trigger") or ("at", 0.85)),
                                 ("cut", given.get("keep") or ("messages", 20))):
        settings[f"{table}.{kind}"] = value
    return Run(preset="langchain-summarization", capacity=UNLIMITED, settings=settings)


FRAMEWORK_RUNS: Mapping[str, Callable[[Mapping[str, Any]], Run | None]] = {
    "langchain": langchain, "deepagents": deepagents, "pydantic-ai-2.68.0+summarization": pydantic}
"""A capture's framework, as its config.json names it, to what replays it."""
