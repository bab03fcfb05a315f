"""A replacement whose window always ends with a response: where none stands last, one is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from replay.blocks import Text
from replay.policy.base import Moment
from replay.policy.replacements import SummaryMessage
from replay.transcript import Message
from replay.window import Inserted, Item


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(SummaryMessage):
    """A summary at the head; where the last message is none of the model's an answer follows. Imitates Aider."""

    answer: str = "Ok."

    def words(self) -> str:
        """What stands around the summary, in words."""
        return "an answer in the model's name ends what is left, where no response does"

    def place(self, summary: Inserted | None, kept: tuple[Item, ...], tail: tuple[Item, ...],
              moment: Moment) -> tuple[Item, ...]:
        """What stays, the summary, the tail, and the answer."""
        items = SummaryMessage.place(self, summary, kept, tail, moment)
        last = items[-1] if items else None
        if last is None or _role(last, moment) == "assistant":
            return items
        message = Message(index=-1, role="assistant", blocks=(Text(text=self.answer),), origin="injected")
        return (*items, Inserted(message=message, kind="injected", label="answer"))


def _role(item: Item, moment: Moment) -> str:
    return item.message.role if isinstance(item, Inserted) else moment.log.messages[item.stop - 1].role


ANSWERED: Mapping[str, type] = {"answered": Answered}
"""Names for `use = …` in a replacement table."""
