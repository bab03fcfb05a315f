"""Replacements: the message that carries a summary, and where it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from replay.blocks import Text
from replay.policy.base import Moment
from replay.transcript import Message
from replay.window import Inserted, Item


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryMessage:
    """One message with the summary behind a fixed frame."""

    role: Literal["system", "user", "assistant"] = "user"
    frame: str = ""
    """Text in front of the summary."""
    end: str = ""
    """Text behind it."""
    path: str = ""
    """Stands for `{path}` in the frame: the file to which the harness wrote what went."""
    position: Literal["head", "last"] = "head"
    """`head`: after pinned system messages, before the tail. `last`: behind everything."""

    def message(self, summary: str) -> Message:
        """The framed summary as a message that is in no log."""
        text = self.frame.replace("{path}", self.path) + summary + self.end
        return Message(index=-1, role=self.role, blocks=(Text(text=text),), origin="summary")

    def place(self, summary: Inserted | None, kept: tuple[Item, ...], tail: tuple[Item, ...],
              moment: Moment) -> tuple[Item, ...]:
        """What stays from before the cut, then summary and tail in the stated order."""
        made = () if summary is None else (summary,)
        return (*kept, *made, *tail) if self.position == "head" else (*kept, *tail, *made)


REPLACEMENTS: Mapping[str, type] = {"summary-message": SummaryMessage}
"""Names for `use = …` in a replacement table."""
