"""The replacement of a hand-off: what the person said, the session's context among it, the summary last."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from replay.blocks import Text
from replay.policy.base import Moment
from replay.transcript import Message
from replay.window import Inserted, Item, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOff:
    """Prompts in their order, then the summary; the context that the program gave stands before the last prompt.

    Imitates Codex: inside of a turn the context goes in front of the turn's prompt, between turns in front of all.
    """

    role: Literal["system", "user", "assistant"] = "user"
    frame: str = ""
    """Text in front of the summary."""

    def words(self) -> str:
        """Where the summary stands."""
        return "it stands last, behind the prompts and the context that the program gave"

    def message(self, summary: str) -> Message:
        """The framed summary as a message that is in no log."""
        return Message(index=-1, role=self.role, blocks=(Text(text=self.frame + summary),), origin="summary")

    def place(self, summary: Inserted | None, kept: tuple[Item, ...], tail: tuple[Item, ...],
              moment: Moment) -> tuple[Item, ...]:
        """Pinned messages, older prompts, context, the last prompt, summary."""
        made = () if summary is None else (summary,)
        pinned = tuple(i for i in kept if _origin(i, moment) == "system")
        context = tuple(i for i in kept if _origin(i, moment) == "injected")
        prompts = tuple(i for i in kept if i not in pinned and i not in context)
        last = len(prompts) - 1 if prompts and _in_turn(moment) else 0
        return (*pinned, *prompts[:last], *context, *prompts[last:], *tail, *made)


def _origin(item: Item, moment: Moment) -> str:
    return moment.log.messages[item.start].origin if isinstance(item, Span) else item.message.origin


def _in_turn(moment: Moment) -> bool:
    """Whether the model is at work: the newest message is a tool's."""
    return moment.window.end > 0 and moment.log.messages[moment.window.end - 1].role == "tool"


HAND_OFFS: Mapping[str, type] = {"hand-off": HandOff}
"""Names for `use = …` in a replacement table."""
