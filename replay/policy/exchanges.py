"""Replacements of several messages: a summary with an opening, an acknowledgement, a continuation, the last prompt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from replay.blocks import Text
from replay.policy.base import Moment
from replay.transcript import Message, Role
from replay.window import Inserted, Item, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryExchange:
    """A summary among messages that the program writes around it; every text that is empty is left out.

    In order: what stays from before the cut, `opening` (user), the summary, `answer` (assistant), the tail, a copy
    of the last prompt, `continuation` (user). `answer_in_loop` stands for the answer where a tool was at work.
    Imitates Goose (answer and copied prompt), OpenCode (opening and continuation), Aider and Qwen (answer).
    """

    role: Literal["system", "user", "assistant"] = "user"
    frame: str = ""
    """Text in front of the summary."""
    end: str = ""
    """Text behind it."""
    opening: str = ""
    answer: str = ""
    answer_in_loop: str = ""
    bridge: str = ""
    """Stands between the answer and a tail that begins with a response (user)."""
    continuation: str = ""
    only_in_loop: bool = False
    """The continuation is left out where a turn has just ended."""
    kept_behind: bool = False
    """What a cut keeps of what stands before it follows on the summary instead of preceding it."""
    continues_without_kept: bool = False
    """The continuation is left out where a cut keeps something of what stands before it."""
    copies_prompt: bool = False
    """The text of the person's last prompt stands behind the rest once more."""
    prompt_frame: str = "{prompt}"
    """What stands for the copy; `{prompt}` is its text."""

    def words(self) -> str:
        """What stands around the summary, in words."""
        around = [name for name, there in (("an opening", self.opening), ("an answer in the model's name", self.answer),
                                           ("a copy of the last prompt", self.copies_prompt),
                                           ("a request to continue", self.continuation)) if there]
        return f"it stands with {' and '.join(around)}" if around else ""

    def message(self, summary: str) -> Message:
        """The framed summary as a message that is in no log."""
        return Message(index=-1, role=self.role, blocks=(Text(text=self.frame + summary + self.end),), origin="summary")

    def place(self, summary: Inserted | None, kept: tuple[Item, ...], tail: tuple[Item, ...],
              moment: Moment) -> tuple[Item, ...]:
        """The exchange around the tail."""
        in_loop = moment.window.end > 0 and moment.log.messages[moment.window.end - 1].role == "tool"
        opening = _written("user", self.opening)
        answer = _written("assistant", self.answer_in_loop if in_loop and self.answer_in_loop else self.answer)
        pinned = tuple(i for i in kept if isinstance(i, Span) and moment.log.messages[i.start].origin == "system")
        behind = tuple(i for i in kept if i not in pinned) if self.kept_behind else ()
        continues = (in_loop or not self.only_in_loop) and not (self.continues_without_kept and behind)
        ending = _written("user", self.continuation if continues else "")
        made = () if summary is None else (summary,)
        kept, tail = (pinned, (*behind, *tail)) if self.kept_behind else (kept, tail)
        return (*kept, *opening, *made, *answer, *self._bridge(tail, moment), *tail, *self._copy(moment), *ending)

    def _bridge(self, tail: tuple[Item, ...], moment: Moment) -> tuple[Inserted, ...]:
        first = tail[0] if tail else None
        begins = isinstance(first, Span) and moment.log.messages[first.start].role == "assistant"
        return _written("user", self.bridge if begins else "")

    def _copy(self, moment: Moment) -> Iterator[Inserted]:
        prompts = [i for i in moment.log.prompts if moment.floor <= i < moment.window.end] if self.copies_prompt else []
        texts = [b.text for b in moment.log.messages[prompts[-1]].blocks if isinstance(b, Text)] if prompts else []
        if texts:
            yield from _written("user", self.prompt_frame.replace("{prompt}", "\n".join(texts)))


def _written(role: Role, text: str) -> tuple[Inserted, ...]:
    """A message that the program writes; none without text."""
    if not text:
        return ()
    message = Message(index=-1, role=role, blocks=(Text(text=text),), origin="injected")
    return (Inserted(message=message, kind="injected", label="exchange"),)


EXCHANGES: Mapping[str, type] = {"exchange": SummaryExchange}
"""Names for `use = …` in a replacement table."""
