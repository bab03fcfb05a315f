"""Forms that cap what a message brings in: results by lines and bytes, diagnostics, images; several forms at once."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from replay.blocks import Block, Image, Text, ToolResult
from replay.policy.base import Moment, Refusal, check
from replay.transcript import Message
from replay.window import Mark, Rendering


def _with(message: Message, blocks: tuple[Block, ...]) -> Message:
    """The message with these blocks; the same object where each is the old one."""
    same = len(blocks) == len(message.blocks) and all(a is b for a, b in zip(blocks, message.blocks, strict=True))
    return message if same else replace(message, blocks=blocks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capped:
    """Cuts a tool result to so many lines and bytes (UTF-8), whichever comes first; whole lines stay.

    `keeps` says what stays: the head, the tail, or both in halves. `mark` stands where something is missing: `{lines}`
    and `{bytes}` are how much, `{id}` is the call, so that it can name the file that the whole result was written to.
    """

    lines: int = 0
    """Most lines; 0: no cap."""
    bytes: int = 0
    """Most bytes; 0: no cap. A first line that is longer is cut itself."""
    keeps: Literal["head", "tail", "both"] = "head"
    mark: str = "[{lines} lines omitted]"
    tools: tuple[str, ...] = ()
    """Only results of these tools; empty: of all."""
    except_tools: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse negative numbers."""
        check(self, "lines", self.lines >= 0, "0 (no cap) or more lines")
        check(self, "bytes", self.bytes >= 0, "0 (no cap) or more bytes")

    def words(self) -> str:
        """The form in words."""
        caps = [f"{self.lines:,} lines" if self.lines else "", f"{self.bytes:,} bytes" if self.bytes else ""]
        ends = {"head": "beginning", "tail": "end", "both": "beginning and end"}[self.keeps]
        of = f" of {', '.join(self.tools)}" if self.tools else ""
        return f"with tool results{of} of more than {' or '.join(filter(None, caps)) or 'any size'} as their {ends}"

    def render(self, message: Message) -> Message:
        """The message with its long results cut; the same object where none is."""
        return _with(message, tuple(map(self._block, message.blocks)))

    def _block(self, block: Block) -> Block:
        if not isinstance(block, ToolResult) or block.name in self.except_tools:
            return block
        if self.tools and block.name not in self.tools:
            return block
        lines = block.text.splitlines(keepends=True)
        whole = len(block.text.encode("utf-8", "replace"))
        if (not self.lines or len(lines) <= self.lines) and (not self.bytes or whole <= self.bytes):
            return block
        head, tail = self._kept(lines)
        kept = len("".join([*head, *tail]).encode("utf-8", "replace"))
        mark = (self.mark.replace("{lines}", str(max(0, len(lines) - len(head) - len(tail))))
                .replace("{bytes}", str(whole - kept)).replace("{id}", block.call_id))
        return replace(block, text=_joined("".join(head), mark, "".join(tail)))

    def _kept(self, lines: list[str]) -> tuple[list[str], list[str]]:
        """The lines that stay at each end."""
        if self.keeps == "head":
            return _fitting(lines, self.lines, self.bytes), []
        if self.keeps == "tail":
            return [], _fitting(lines[::-1], self.lines, self.bytes, tail=True)[::-1]
        head = _fitting(lines, -(-self.lines // 2), -(-self.bytes // 2))
        rest = lines[len(head):]
        if not rest or (self.lines == 1) or (self.bytes == 1):
            return head, []
        return head, _fitting(rest[::-1], self.lines // 2, self.bytes // 2, tail=True)[::-1]


def _fitting(lines: list[str], most: int, size: int, tail: bool = False) -> list[str]:
    """The first lines that fit a number of lines and bytes (0: no cap); of a first line that does not a part."""
    kept: list[str] = []
    room = size
    for line in lines[:most] if most else lines:
        data = line.encode("utf-8", "replace")
        if size and len(data) > room:
            part = data[max(0, len(data) - room):] if tail else data[:room]
            return kept or [part.decode("utf-8", "ignore")]
        room -= len(data)
        kept.append(line)
    return kept


def _joined(head: str, mark: str, tail: str) -> str:
    """The pieces on lines of their own."""
    if not mark:
        return head + tail
    before = "" if not head or head.endswith("\n") or mark.startswith("\n") else "\n"
    return f"{head}{before}{mark}{chr(10) if tail else ''}{tail}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CappedDiagnostics:
    """Keeps the first diagnostics that a tool appends to its result, line by line, and says how many more there were.

    Imitates Decode, whose editing tools append at most ten errors. A line with one of the `signs` is a diagnostic.
    """

    most: int = 10
    signs: tuple[str, ...] = ("error:", "warning:", "ERROR [", "WARN [")
    tools: tuple[str, ...] = ("Edit", "MultiEdit", "Write", "edit", "edit_file", "write", "write_file", "replace",
                              "apply_patch")
    """Results of these tools alone; empty: of all."""
    mark: str = "… {more} more"

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        check(self, "most", self.most >= 0, "0 or more diagnostics")

    def words(self) -> str:
        """The form in words."""
        return f"with at most {self.most} diagnostics in the results of editing tools"

    def render(self, message: Message) -> Message:
        """The message with fewer diagnostics; the same object where there are few."""
        return _with(message, tuple(map(self._block, message.blocks)))

    def _block(self, block: Block) -> Block:
        if not isinstance(block, ToolResult) or (self.tools and block.name not in self.tools):
            return block
        lines = block.text.splitlines(keepends=True)
        found = [i for i, line in enumerate(lines) if any(sign in line for sign in self.signs)]
        more = found[self.most:]
        if not more:
            return block
        gone = frozenset(more)
        ending = "\n" if lines[more[0]].endswith("\n") else ""
        mark = self.mark.replace("{more}", str(len(more))) + ending
        shown = (mark if i == more[0] else line for i, line in enumerate(lines) if i == more[0] or i not in gone)
        return replace(block, text="".join(shown))


@dataclass(frozen=True, slots=True, kw_only=True)
class NoImages:
    """Shows a text in the place of each image, in results and elsewhere."""

    text: str = "[image]"

    def words(self) -> str:
        """The form in words."""
        return f"with “{self.text}” in the place of images"

    def render(self, message: Message) -> Message:
        """The message without images; the same object where it has none."""
        return _with(message, tuple(map(self._block, message.blocks)))

    def _block(self, block: Block) -> Block:
        if isinstance(block, Image):
            return Text(text=self.text)
        if isinstance(block, ToolResult) and block.images:
            lines = [*([block.text] if block.text else []), *[self.text] * len(block.images)]
            return replace(block, text="\n".join(lines), images=())
        return block


@dataclass(frozen=True, slots=True, kw_only=True)
class EachOf:
    """Shows a message through several forms, one after the other."""

    forms: tuple[Rendering, ...] = field(default=(), metadata={"parts": "rendering"})

    def words(self) -> str:
        """The forms in words."""
        said = (getattr(form, "words", None) for form in self.forms)
        return " and ".join(str(words()) for words in said if callable(words))

    def render(self, message: Message) -> Message:
        """The message after all of them."""
        for form in self.forms:
            message = form.render(message)
        return message


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepImages:
    """Shows a text in the place of every image but the newest `keep`."""

    keep: int = 1
    form: NoImages = field(default_factory=NoImages, metadata={"part": "rendering"})

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        check(self, "keep", self.keep >= 0, "0 or more images")

    def words(self) -> str:
        """The rule in words."""
        return f"images but the newest {self.keep} become “{self.form.text}”"

    def marks(self, moment: Moment) -> tuple[Mark, ...] | Refusal:
        """A mark up to the message with the oldest image that stays."""
        counts, end = moment.log.sums(IMAGES), moment.window.end
        seen, done = counts[end], moment.window.rendered_to(self.form)
        stop = end if not self.keep else bisect_left(counts, seen - self.keep + 1) - 1 if seen > self.keep else 0
        if stop <= done or counts[stop] == counts[done]:
            return Refusal("nothing_to_elide")
        return (Mark(self.form, 0, stop),)


@dataclass(frozen=True, slots=True)
class Images:
    """Weighs a message by its images."""

    def weights(self, messages: Sequence[Message]) -> list[int]:
        """Images of each message."""
        return [sum(isinstance(b, Image) for b in m.blocks) + sum(len(r.images) for r in m.results) for m in messages]


IMAGES = Images()
IMAGE_RULES: Mapping[str, type] = {"newest-images": KeepImages}
CAPS: Mapping[str, type] = {"capped": Capped, "diagnostics": CappedDiagnostics, "no-images": NoImages,
                            "each-of": EachOf}
"""Names for `use = …` in the tables of these kinds."""
