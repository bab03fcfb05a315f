"""An endpoint for a session, from plain settings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from replay.canonical import CHAIN_START, chain_of
from replay.errors import ConfigError, ReadError
from replay.log import Log
from replay.policy.load import policy
from replay.policy.policy import Policy
from replay.serving.endpoint import Endpoint, OnDivergence, Rules
from replay.serving.kinds import SUMMARY_WORDS, Kinds
from replay.serving.recording import Recording
from replay.serving.requests import Items
from replay.serving.script import line_of
from replay.serving.summaries import Rule, Summaries
from replay.serving.usage import Meter, UsageRule
from replay.tokens import TokenCounter, tokenizer
from replay.transcript import Transcript

DEFAULT_WINDOW = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What `rewindow serve` was told."""

    record: Path | None = None
    policy: str | None = None
    """Preset of the harness with its settings: what `rewindow policies verify` compares the recording with."""
    window: int | None = None
    """Of the model that the harness believes in; default: the session's."""
    usage: UsageRule = "counted"
    summaries: Rule = "recorded"
    summary_words: str = SUMMARY_WORDS
    on_divergence: OnDivergence = "stop"
    strict_results: bool = True
    limit: int | None = None
    refuse: Mapping[int, int] = field(default_factory=dict)
    tools: frozenset[str] | None = None
    tokenizer: str = "o200k_base"


def build(transcript: Transcript, settings: Settings, tell: Callable[[str], None] = lambda _: None) -> Endpoint:
    """The endpoint of a session; makes the folder of the recording. Raises ConfigError or ReadError."""
    if not any(s.response is not None for s in transcript.steps):
        raise ReadError(transcript.path, "no response of a model is recorded in it, so there is nothing to answer with")
    log = Log(transcript.main, TokenCounter(tokenizer(settings.tokenizer)))
    items, window = Items(), settings.window or transcript.window or DEFAULT_WINDOW
    named = policy(settings.policy) if settings.policy else None
    recording = None
    if settings.record is not None:
        recording = Recording(settings.record, _config(transcript, log, settings, named, window))
        recording.start()
    rules = Rules(on_divergence=settings.on_divergence, limit=settings.limit, refuse=settings.refuse,
                  tools=settings.tools, window=window)
    return Endpoint(transcript, rules, Meter(settings.usage, items.table, TokenCounter(tokenizer(settings.tokenizer))),
                    items, Summaries(transcript, log, settings.summaries), strict=settings.strict_results,
                    kinds=_kinds(settings.summary_words), recording=recording, tell=tell)


def _kinds(words: str) -> Kinds:
    try:
        return Kinds(words)
    except re.error as error:
        raise ConfigError("--summary-words", "", f"no regular expression: {error}") from error


def _config(transcript: Transcript, log: Log, settings: Settings, named: Policy | None,
            window: int) -> dict[str, Any]:
    """What the recording says about itself, in the layout of a capture."""
    served = {"session_id": transcript.session_id, "format": transcript.format, "steps": len(transcript.steps),
              "digest": chain_of(log.digests, CHAIN_START).hex()[:12]}
    return {"harness": named.harness if named and named.harness else "unknown", "window": window,
            "version": named.version if named else "", "scenario": transcript.session_id, "policy": settings.policy,
            "served": served, "usage_rule": settings.usage, "summaries": settings.summaries,
            "on_divergence": settings.on_divergence, "framework": None}


def recorded_calls(transcript: Transcript) -> Counter[str]:
    """How often each tool is called in what may be served."""
    return Counter(c.name for t in (transcript.main, *transcript.subagents) for c in t.tool_calls())


def prompts_of(transcript: Transcript) -> list[str]:
    """What a person typed to begin each turn of the main thread, in order.

    Several prompts in front of one response are one. What came while the model was at work cannot be typed again.
    """
    human = {m.text.strip() for m in transcript.messages if m.role == "user" and m.origin == "human"}
    turns = line_of(transcript.main).turns
    begun = [turn for before, turn in pairwise((None, *turns)) if turn and not (before and before.message.calls)]
    said = [[p for p in turn.prompts if p in human] for turn in begun]
    return ["\n\n".join(prompts) for prompts in said if prompts]
