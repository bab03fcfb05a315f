"""Clearing of tool uses as a provider does it: results, and calls' inputs where asked for, with a minimum gain."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from replay.blocks import ToolCall
from replay.policy.base import Decision, Moment, Refusal, check
from replay.policy.tool_results import Placeholder
from replay.transcript import Message
from replay.window import Mark, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class NoInputs:
    """Shows a call without its arguments; results stay."""

    tools: tuple[str, ...] = ()
    """Only calls of these tools; empty: of all."""
    except_tools: tuple[str, ...] = ()

    def words(self) -> str:
        """The form in words."""
        return "with empty inputs of calls"

    def render(self, message: Message) -> Message:
        """The message with its calls' arguments gone; the same object where it has none."""
        if not any(self._eligible(call) for call in message.calls):
            return message
        blocks = (replace(b, arguments="{}") if isinstance(b, ToolCall) and self._eligible(b) else b
                  for b in message.blocks)
        return replace(message, blocks=tuple(blocks))

    def _eligible(self, call: ToolCall) -> bool:
        named = not self.tools or call.name in self.tools
        return named and call.name not in self.except_tools and call.arguments not in ("", "{}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearToolUses:
    """Clears every tool use but the newest `keep`, if that saves at least `clear_at_least` tokens.

    Imitates Anthropic's clear_tool_uses_20250919. The edit is made anew for each request, from the start of the history
    that the client keeps whole, so what is cleared stays cleared and the gain is that of all of it. `inputs` says in
    which form calls are shown whose results are cleared; None: as they were.
    """

    keep: int = 3
    clear_at_least: int = 0
    """Counted tokens."""
    placeholder: Placeholder = field(default_factory=Placeholder, metadata={"part": "rendering"})
    inputs: NoInputs | None = field(default=None, metadata={"part": "rendering"})

    def __post_init__(self) -> None:
        """Refuse negative numbers."""
        check(self, "keep", self.keep >= 0, "0 or more")
        check(self, "clear_at_least", self.clear_at_least >= 0, "0 or more tokens")

    def words(self) -> str:
        """The rule in words."""
        least = f", if that saves at least {self.clear_at_least:,} tokens" if self.clear_at_least else ""
        inputs = " and its call's input goes" if self.inputs is not None else ""
        return f"every tool result but the newest {self.keep} becomes “{self.placeholder.text}”{inputs}{least}"

    def marks(self, moment: Moment) -> tuple[Mark, ...] | Refusal:
        """Marks over what is cleared, or why nothing is."""
        results = moment.log.sums(RESULTS)
        seen = results[moment.window.end]
        if seen <= self.keep:
            return Refusal("nothing_to_elide")
        stop = bisect_left(results, seen - self.keep + 1) - 1 if self.keep else moment.window.end
        found = [Mark(self.placeholder, 0, stop)]
        if self.inputs is not None:
            # A call whose result stays keeps its input, and so do those before it in the same response.
            found.append(Mark(self.inputs, 0, moment.log.joints[stop]))
        if not any(_is_new(moment, mark) for mark in found):
            return Refusal("nothing_to_elide")
        if self.clear_at_least and _gain(moment, found) < self.clear_at_least:
            return Refusal("gain_too_small")
        return tuple(found)


def _is_new(moment: Moment, mark: Mark) -> bool:
    """Whether a mark changes what the window does not show so already."""
    done, counts = moment.window.rendered_to(mark.rendering), moment.log.changed(mark.rendering)
    return mark.stop > done and counts[mark.stop] > counts[done]


def _gain(moment: Moment, marks: Sequence[Mark]) -> int:
    """Counted tokens that the marks save in what the window holds."""
    log, plain, saved = moment.log, moment.log.sums(moment.log.tokens), 0
    for mark in marks:
        shown = log.sums(log.tokens, mark.rendering)
        for item in moment.window.items:
            if isinstance(item, Span):
                low, high = item.start, max(item.start, min(item.stop, mark.stop))
                saved += plain[high] - plain[low] - (shown[high] - shown[low])
    return saved


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUses:
    """Fires when the history holds more than `more_than` tool uses."""

    more_than: int = 10

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        check(self, "more_than", self.more_than >= 0, "0 or more")

    def words(self) -> str:
        """The rule in words."""
        return f"when the history holds more than {self.more_than} tool uses"

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Whether there are more results than that."""
        fires = moment.log.size(moment.window, RESULTS) > self.more_than
        reason = "uses_exceeded" if fires else "below_threshold"
        return Decision(stage=stage, fires=fires, reason=reason, estimated_tokens=measured)


@dataclass(frozen=True, slots=True)
class Results:
    """Weighs a message by its tool results."""

    def weights(self, messages: Sequence[Message]) -> list[int]:
        """Results of each message."""
        return [len(m.results) for m in messages]


RESULTS = Results()
CLEARING_RULES: Mapping[str, type] = {"clear-tool-uses": ClearToolUses}
CLEARING_TRIGGERS: Mapping[str, type] = {"tool-uses": ToolUses}
CLEARING_RENDERINGS: Mapping[str, type] = {"no-inputs": NoInputs}
"""Names for `use = …` in the tables of these kinds."""
