"""Tool-result rules: old results shown as a fixed text, calls and inputs untouched."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from replay.blocks import Block, ToolResult
from replay.policy.base import Moment, Refusal, check
from replay.policy.cuts import KeepTokens
from replay.transcript import Message
from replay.window import Mark


@dataclass(frozen=True, slots=True, kw_only=True)
class Placeholder:
    """Shows every tool result as a fixed text; images go, ids and errors stay."""

    text: str = "[tool output elided]"
    tools: tuple[str, ...] = ()
    """Only results of these tools; empty: of all."""
    except_tools: tuple[str, ...] = ()

    def render(self, message: Message) -> Message:
        """The message with its eligible results replaced; the same object where nothing changes."""
        if not any(self._eligible(b) for b in message.blocks):
            return message
        return replace(message, blocks=tuple(self._block(b) for b in message.blocks))

    def _eligible(self, block: Block) -> bool:
        if not isinstance(block, ToolResult) or (block.text == self.text and not block.images):
            return False
        named = block.name or ""
        return (not self.tools or named in self.tools) and named not in self.except_tools

    def _block(self, block: Block) -> Block:
        if isinstance(block, ToolResult) and self._eligible(block):
            return replace(block, text=self.text, images=())
        return block


@dataclass(frozen=True, slots=True, kw_only=True)
class ElideBeforeTail:
    """Blanks every tool result before the same boundary that a cut would fall on.

    Imitates Decode's micro tier: no allow-list, no minimum gain, idempotent, even where the placeholder is
    longer than what it replaces.
    """

    cut: KeepTokens = field(default_factory=KeepTokens, metadata={"part": "cut"})
    placeholder: Placeholder = field(default_factory=Placeholder, metadata={"part": "rendering"})

    def marks(self, moment: Moment) -> tuple[Mark, ...] | Refusal:
        """A mark up to the boundary, or why there is nothing to blank."""
        found = self.cut.cut(moment)
        if isinstance(found, Refusal):
            return found
        return _fresh_mark(moment, self.placeholder, found.keep_from)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepNewestResults:
    """Blanks every tool result but the newest `keep` messages that carry one (observation masking)."""

    keep: int = 10
    placeholder: Placeholder = field(default_factory=Placeholder, metadata={"part": "rendering"})

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        check(self, "keep", self.keep >= 0, "0 or more")

    def marks(self, moment: Moment) -> tuple[Mark, ...] | Refusal:
        """A mark up to the oldest kept result."""
        counts = moment.log.changed(self.placeholder)
        seen = counts[moment.window.end]
        if seen <= self.keep:
            return Refusal("nothing_to_elide")
        # The index of the (seen - keep + 1)-th result is where the kept ones begin.
        begin = bisect_left(counts, seen - self.keep + 1) - 1 if self.keep else moment.window.end
        return _fresh_mark(moment, self.placeholder, begin)


def _fresh_mark(moment: Moment, placeholder: Placeholder, stop: int) -> tuple[Mark, ...] | Refusal:
    """A mark over everything visible below `stop`, unless nothing new would change."""
    done = moment.window.rendered_to(placeholder)
    counts = moment.log.changed(placeholder)
    if stop <= done or counts[stop] == counts[done]:
        return Refusal("nothing_to_elide")
    return (Mark(placeholder, 0, stop),)


TOOL_RESULT_RULES: Mapping[str, type] = {"elide-before-tail": ElideBeforeTail, "keep-newest": KeepNewestResults}
"""Names for `use = …` in a tool_results table."""
RENDERINGS: Mapping[str, type] = {"placeholder": Placeholder}
