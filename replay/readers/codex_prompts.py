"""Telling what a person typed from what Codex put into the conversation in a user's or developer's name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from replay.blocks import Block, Image, Text
from replay.readers.codex_records import Item
from replay.transcript import Origin

_CONTEXT = frozenset({
    "environment_context", "user_instructions", "permissions", "collaboration_mode", "apps_instructions",
    "skills_instructions", "plugins_instructions", "app-context", "turn_aborted", "subagent_notification", "skill",
    "user_shell_command", "environments_instructions", "model_switch", "personality_spec", "user_action"})
"""Tags that open a text which Codex wrote itself."""
_NUDGES = frozenset({"hook_prompt", "goal_context"})
_RULES = "# AGENTS.md instructions"
_NOT_TYPED = frozenset({"user_instructions", "environment_context"})


@dataclass(frozen=True)
class Prompts:
    """What a person typed in a session, as its UI events say."""

    texts: frozenset[str]
    with_images: bool
    """Some prompt came with images, whose texts can be empty."""

    def origin(self, role: str, content: Sequence[Block], started: bool) -> tuple[Origin, str | None]:
        """Who wrote a message that is not the model's, and what opened it.

        Developer and system messages are the system prompt's kin until the conversation has started.
        """
        texts = [block.text for block in content if isinstance(block, Text)]
        detail = opening(texts[0]) if texts else None
        if role != "user":
            return ("injected" if started else "system"), detail
        if self._typed(texts, content):
            return "human", None
        if detail in _NUDGES:
            return "nudge", detail
        is_context = bool(self.texts) or detail in _CONTEXT or detail == "agents_md"
        return ("injected", detail) if is_context else ("human", None)

    def _typed(self, texts: list[str], content: Sequence[Block]) -> bool:
        if any(text in self.texts or text.strip() in self.texts for text in texts):
            return True
        return self.with_images and any(isinstance(block, Image) for block in content)


def opening(text: str) -> str | None:
    """The tag that opens a text, `agents_md` for a rule file; None for plain text."""
    start = text[:80].lstrip()
    if start.startswith(_RULES):
        return "agents_md"
    if not start.startswith("<"):
        return None
    name = start[1:].partition(">")[0].split()
    return name[0].lower() if name and name[0].replace("_", "").replace("-", "").isalnum() else None


def prompts(events: Iterable[Item]) -> Prompts:
    """Collect the prompts of a session from its UI events."""
    texts: set[str] = set()
    with_images = False
    for item in events:
        if item.type not in ("user_message", "item_completed"):
            continue
        text, images = _typed_text(item.payload)
        if text is not None:
            texts.update((text, text.strip()))
            with_images = with_images or bool(images)
    texts.discard("")
    return Prompts(frozenset(texts), with_images)


def _typed_text(payload: dict[str, Any]) -> tuple[str | None, Any]:
    if payload.get("type") == "user_message":
        text = payload.get("message")
        typed = isinstance(text, str) and payload.get("kind") not in _NOT_TYPED
        return (text if typed else None), payload.get("images") or payload.get("local_images")
    native = payload.get("item")
    if payload.get("type") != "item_completed" or not isinstance(native, dict) or native.get("type") != "UserMessage":
        return None, None
    content = native.get("content")
    parts = [p for p in content if isinstance(p, dict)] if isinstance(content, list) else []
    joined = "\n".join(str(p["text"]) for p in parts if isinstance(p.get("text"), str))
    return joined, any("image" in str(p.get("type")) for p in parts)
