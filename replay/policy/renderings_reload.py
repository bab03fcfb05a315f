"""What becomes of tool results when a new process of a harness loads a session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from replay.blocks import ToolResult
from replay.transcript import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubled:
    """Shows every tool result twice. Imitates what Gemini CLI 0.61 sends after it has loaded a session."""

    def words(self) -> str:
        """The form in words."""
        return "with every tool result twice"

    def render(self, message: Message) -> Message:
        """The message with its results' text twice; the same object where it has none."""
        if not message.results:
            return message
        return replace(message, blocks=tuple(replace(b, text=f"{b.text}\n{b.text}") if isinstance(b, ToolResult) else b
                                             for b in message.blocks))


@dataclass(frozen=True, slots=True, kw_only=True)
class LostResult:
    """Shows a tool result as lost. Imitates what Qwen Code 0.24 makes of one that a compaction found pending."""

    text: str = "[lost]"

    def words(self) -> str:
        """The form in words."""
        return "as results that were lost"

    def render(self, message: Message) -> Message:
        """The message with the text in each result's place; the same object where it has none."""
        if not message.results or all(r.text == self.text for r in message.results):
            return message
        return replace(message, blocks=tuple(replace(b, text=self.text, images=()) if isinstance(b, ToolResult) else b
                                             for b in message.blocks))


RELOADED: Mapping[str, type] = {"doubled": Doubled, "lost-result": LostResult}
"""Names for `use = …` in a rendering table."""
