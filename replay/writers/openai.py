"""A session as OpenAI chat messages: the log of its main thread, with nothing compacted."""

from __future__ import annotations

from typing import Any

from replay.transcript import Transcript
from replay.view import openai_messages


def chat(transcript: Transcript) -> dict[str, Any]:
    """One document `{messages}`, with the model's name and the system prompt that stands outside the log."""
    document: dict[str, Any] = {"session_id": transcript.session_id}
    if transcript.model:
        document["model"] = transcript.model
    if transcript.system_prompt:
        document["instructions"] = transcript.system_prompt
    return document | {"messages": [m for message in transcript.messages for m in openai_messages(message)]}


def chat_losses(transcript: Transcript) -> list[str]:
    """What a session holds that chat messages cannot say."""
    main = transcript.main
    return [f"{count} {what}" for count, what in (
        (len(transcript.subagents), "sub-agent threads"), (len(transcript.abandoned), "abandoned branches"),
        (len(main.compactions), "recorded compactions with their summaries"),
        (sum(s.usage is not None for s in main.steps), "counts of tokens"),
        (sum(s.response is None for s in main.steps), "failed requests")) if count]
