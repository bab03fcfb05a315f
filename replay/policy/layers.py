"""What stands in front of the history in every view: system prompt, tool schemas, memory files, skills."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from replay.blocks import Text
from replay.policy.base import Capacity, check
from replay.transcript import Message
from replay.window import Inserted

CHARS_PER_TOKEN = 4
"""Of a text that is cut to a share of the window."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """Something in front of the history that is the same in every view: by text, or by size alone.

    Caps cut a text after so many lines, bytes (UTF-8) and a share of the window, and a size to that share. A layer in a
    policy file may name a `file` beside it instead of a text.
    """

    name: str
    text: str = ""
    tokens: int | None = None
    """Counted size; None: the text is counted."""
    lines: int = 0
    """Most lines; 0: no cap. The same for the other caps."""
    bytes: int = 0
    window_share: float = 0.0
    keeps: Literal["head", "tail"] = "head"
    """What of a text stays that is too long."""
    mark: str = ""
    """Stands where a text was cut."""

    def __post_init__(self) -> None:
        """Refuse negative numbers."""
        check(self, "tokens", self.tokens is None or self.tokens >= 0, "0 or more tokens")
        check(self, "lines", self.lines >= 0, "0 (no cap) or more lines")
        check(self, "bytes", self.bytes >= 0, "0 (no cap) or more bytes")
        check(self, "window_share", 0 <= self.window_share <= 1, "a fraction of the window, from 0 to 1")

    def words(self) -> str:
        """The layer in words."""
        size = "its text" if self.tokens is None else f"{self.tokens:,} tokens"
        caps = [f"{self.lines:,} lines" if self.lines else "", f"{self.bytes:,} bytes" if self.bytes else "",
                f"{self.window_share:.0%} of the window" if self.window_share else ""]
        cap = " and ".join(filter(None, caps))
        return f"{self.name} ({size}{f', at most {cap}' if cap else ''})"

    def inserted(self, capacity: Capacity) -> Inserted:
        """The layer as a message of a view for this window."""
        most = int(capacity.window * self.window_share) if self.window_share else None
        tokens = self.tokens if self.tokens is None or most is None else min(self.tokens, most)
        text = self._cut(self.text, most) or f"[{self.name}: {tokens or 0} tokens, text not modelled]"
        return Inserted(kind="injected", tokens=tokens, label=self.name, message=Message(
            index=-1, role="system", origin="injected", detail=self.name, blocks=(Text(text=text),)))

    def _cut(self, text: str, tokens: int | None) -> str:
        whole, head = text, self.keeps == "head"
        if self.lines:
            lines = text.splitlines(keepends=True)
            text = "".join(lines[:self.lines] if head else lines[-self.lines:])
        sizes = [n for n in (self.bytes, None if tokens is None else tokens * CHARS_PER_TOKEN) if n]
        if sizes:
            data = text.encode("utf-8", "replace")
            data = data[:min(sizes)] if head else data[max(0, len(data) - min(sizes)):]
            text = data.decode("utf-8", "ignore")
        if len(text) == len(whole):
            return text
        return text + self.mark if head else self.mark + text
