"""Renderings: other forms in which a message is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from replay.blocks import Block, Reasoning, ToolCall, ToolResult
from replay.policy.base import check
from replay.transcript import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadAndTail:
    """Shows a tool result that is too long as its beginning and its end with a mark between them.

    `{removed}` in `mark` is the number of characters that are missing. `tail_share` is the share of the limit that
    the end gets; 0 keeps the beginning alone.
    """

    chars: int = 10_000
    """Longest result that is shown whole."""
    tail_share: float = 0.5
    mark: str = "\n[… {removed} characters omitted …]\n"
    whole_lines: bool = False
    """The beginning ends with a line."""
    except_tools: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be kept."""
        check(self, "chars", self.chars >= 0, "0 or more characters")
        check(self, "tail_share", 0 <= self.tail_share <= 1, "a fraction from 0 to 1")

    def words(self) -> str:
        """The form in words."""
        return f"with tool results of more than {self.chars:,} characters as beginning and end"

    def render(self, message: Message) -> Message:
        """The message with its long results cut; the same object where none is."""
        if not any(self._is_long(b) for b in message.blocks):
            return message
        return replace(message, blocks=tuple(self._block(b) for b in message.blocks))

    def _is_long(self, block: Block) -> bool:
        return isinstance(block, ToolResult) and len(block.text) > self.chars and block.name not in self.except_tools

    def _block(self, block: Block) -> Block:
        if not isinstance(block, ToolResult) or not self._is_long(block):
            return block
        tail = int(self.chars * self.tail_share)
        head = block.text[:self.chars - tail]
        if self.whole_lines and "\n" in head:
            head = head[:head.rindex("\n") + 1]
        end = block.text[len(block.text) - tail:] if tail else ""
        mark = self.mark.format(removed=len(block.text) - len(head) - len(end))
        return replace(block, text=head + mark + end)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortArguments:
    """Shows a call's arguments that are too long as their beginning and a mark; results stay."""

    chars: int = 2_000
    kept: int = 20
    mark: str = "...(argument truncated)"
    tools: tuple[str, ...] = ()
    """Only calls of these tools; empty: of all."""

    def render(self, message: Message) -> Message:
        """The message with long texts in its calls cut; the same object where none is."""
        blocks = tuple(self._block(b) if isinstance(b, ToolCall) else b for b in message.blocks)
        return replace(message, blocks=blocks) if blocks != message.blocks else message

    def _block(self, call: ToolCall) -> ToolCall:
        if (self.tools and call.name not in self.tools) or len(call.arguments) <= self.chars:
            return call
        from replay.readers.common import json_text

        shown = {k: v[:self.kept] + self.mark if isinstance(v, str) and len(v) > self.chars else v
                 for k, v in call.mapping.items()}
        return replace(call, arguments=json_text(shown))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoReasoning:
    """Shows a response without its reasoning."""

    def render(self, message: Message) -> Message:
        """The message without reasoning; the same object where it has none."""
        rest = tuple(b for b in message.blocks if not isinstance(b, Reasoning))
        return replace(message, blocks=rest) if len(rest) < len(message.blocks) else message


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedToFile:
    """Shows a tool result as a note that it lies in a file, with its first and last lines numbered.

    In `frame` stand `{id}` for the call, `{note}` for `whole` or, where lines are missing, for `parts`, and `{lines}`.
    Imitates deepagents' moving of large results.
    """

    frame: str = "The result was saved to a file. {note}\n\n{lines}\n"
    whole: str = ""
    parts: str = ""
    lines: int = 5
    """Lines that are shown at each end."""
    line_chars: int = 1_000

    def words(self) -> str:
        """The form in words."""
        return f"as a note that names a file and shows {self.lines} lines of each end"

    def render(self, message: Message) -> Message:
        """The message with its results as notes; the same object where it has none."""
        if not message.results or any(b.text.startswith(self.frame.split("{")[0]) for b in message.results):
            return message
        return replace(message, blocks=tuple(self._block(b) for b in message.blocks))

    def _block(self, block: Block) -> Block:
        if not isinstance(block, ToolResult):
            return block
        lines = [line[:self.line_chars] for line in block.text.splitlines()]
        missing = len(lines) - 2 * self.lines
        if missing > 0:
            shown = "\n".join([_numbered(lines[:self.lines], 1), f"... [{missing} lines truncated] ...",
                               _numbered(lines[-self.lines:], len(lines) - self.lines + 1)])
        else:
            shown = _numbered(lines, 1)
        note = self.parts if missing > 0 else self.whole
        return replace(block, images=(), text=self.frame.replace("{id}", block.call_id).replace("{note}", note)
                       .replace("{lines}", shown))


def _numbered(lines: Sequence[str], first: int) -> str:
    width = len(str(first + len(lines) - 1))
    return "\n".join(f"{first + i:>{width}}  {line}" for i, line in enumerate(lines))


MORE_RENDERINGS: Mapping[str, type] = {"head-and-tail": HeadAndTail, "short-arguments": ShortArguments,
                                       "no-reasoning": NoReasoning, "saved-to-file": SavedToFile}
"""Names for `use = …` in a rendering table."""
