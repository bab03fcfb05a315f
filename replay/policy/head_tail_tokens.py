"""Parts of a policy that keeps a head and a tail by tokens: cut, trigger, summary, short results.

They imitate Hermes Agent.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal

from replay.blocks import Block, Text, ToolResult
from replay.policy.base import Cut, Decision, Moment, Refusal, check
from replay.policy.estimators import Characters
from replay.transcript import Message
from replay.window import Inserted, Item, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class StepwiseShare:
    """Fires at a share of the window; smaller windows have a larger share, and none a level below a floor.

    Where the floor does not fit the window `at_floor` of the window is the level.
    """

    at: float = 0.5
    small_window: int = 512_000
    """Tokens; windows below have `at_small`."""
    at_small: float = 0.75
    floor: int = 64_000
    at_floor: float = 0.85

    def __post_init__(self) -> None:
        """Refuse shares outside of the window."""
        for name in ("at", "at_small", "at_floor"):
            check(self, name, 0 < getattr(self, name) <= 1, "a fraction of the window, above 0 and at most 1")

    def words(self) -> str:
        """The rule in words."""
        small = f"{self.at_small:.0%} below {self.small_window:,} tokens"
        return f"when the measure reaches {self.at:.0%} of the window ({small}), at least {self.floor:,} tokens"

    def level(self, window: int) -> int:
        """The level in tokens."""
        share = int(window * (self.at_small if window < self.small_window else self.at))
        level = max(share, self.floor)
        return level if level < window else int(window * self.at_floor)

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Whether the level is reached."""
        level = self.level(moment.capacity.window)
        fires = measured is not None and measured >= level
        reason = "threshold_exceeded" if fires else "usage_unknown" if measured is None else "below_threshold"
        return Decision(stage=stage, fires=fires, reason=reason, estimated_tokens=measured, threshold=level)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepHeadAndTokens:
    """Keeps the first messages and the newest that fit a budget; what stands between them is summarised.

    The budget is a share of the trigger's level. The walk from the end goes on up to `ceiling` times the budget, and
    over it while fewer than `messages` stay; the last prompt behind the head always stays.
    """

    head: int = 3
    share: float = 0.2
    ceiling: float = 1.5
    messages: int = 8
    level: StepwiseShare = field(default_factory=StepwiseShare, metadata={"part": "trigger"})
    estimator: Characters = field(default_factory=Characters, metadata={"part": "estimator"})

    def __post_init__(self) -> None:
        """Refuse negative numbers."""
        check(self, "head", self.head >= 0, "0 or more")
        check(self, "messages", self.messages >= 0, "0 or more")
        check(self, "ceiling", self.ceiling >= 1, "1 or more")

    def words(self) -> str:
        """The rule in words."""
        return (f"the first {self.head} messages stay and the newest within {self.share:.0%} of the level, at least "
                f"{self.messages}, with the last prompt")

    def cut(self, moment: Moment) -> Cut | Refusal:
        """Head and tail, or `nothing_between`."""
        head = list(islice(_forward(moment), self.head))
        begin = moment.log.joints[head[-1] + 1] if head else 0
        while head and head[-1] >= begin:
            head.pop()
        keep_from = self._tail(moment, begin)
        gone = next((i for i in _forward(moment) if i >= begin), moment.window.end)
        if keep_from <= gone:
            return Refusal("nothing_between")
        return Cut(keep_from=keep_from, kept=tuple(Span(i, i + 1) for i in head))

    def _tail(self, moment: Moment, begin: int) -> int:
        """Where the tail begins, at or behind the head's end."""
        room = int(self.level.level(moment.capacity.window) * self.share * self.ceiling)
        cut, used = moment.window.end, 0
        for count, (index, size) in enumerate(self._backwards(moment), 1):
            if index < begin or (used + size > room and count > self.messages):
                break
            used, cut = used + size, index
        last = _last_prompt(moment)
        return moment.log.joints[min(cut, last) if last is not None and last >= begin else cut]

    def _backwards(self, moment: Moment) -> Iterator[tuple[int, int]]:
        for item in reversed(moment.window.items):
            if isinstance(item, Span):
                for index in range(item.stop - 1, item.start - 1, -1):
                    yield index, moment.log.item_size(Span(index, index + 1), moment.window.marks, self.estimator)


def _forward(moment: Moment) -> Iterator[int]:
    """Visible messages in order, without system messages: those stay anyway."""
    return (i for i in moment.window.indices() if moment.log.messages[i].origin != "system")


def _last_prompt(moment: Moment) -> int | None:
    """The newest message that starts a round, where the window holds it."""
    rounds = moment.log.rounds
    place = bisect_left(rounds, moment.window.end) - 1
    index = rounds[place] if place >= 0 else None
    held = index is not None and any(isinstance(i, Span) and i.start <= index < i.stop for i in moment.window.items)
    return index if held else None


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternatingSummary:
    """A summary between head and tail, in the role that does not repeat that of its neighbours.

    The head's last message decides first: behind a prompt the summary is the model's, else the user's; where that
    repeats the tail's first message the other role stands, unless that repeats the head's.
    """

    frame: str = ""
    end: str = ""

    def words(self) -> str:
        """How the summary stands."""
        return "it stands in the role that its neighbours do not have"

    def message(self, summary: str) -> Message:
        """The framed summary as a message that is in no log."""
        return Message(index=-1, role="user", blocks=(Text(text=self.frame + summary + self.end),), origin="summary")

    def place(self, summary: Inserted | None, kept: tuple[Item, ...], tail: tuple[Item, ...],
              moment: Moment) -> tuple[Item, ...]:
        """Head, summary, tail."""
        if summary is None:
            return (*kept, *tail)
        before = _role(kept[-1], moment, -1) if kept else "system"
        after = _role(tail[0], moment, 0) if tail else "system"
        role: Literal["user", "assistant"] = "assistant" if before == "user" else "user"
        other: Literal["user", "assistant"] = "user" if role == "assistant" else "assistant"
        role = other if role == after and other != before else role
        return (*kept, replace(summary, message=replace(summary.message, role=role)), *tail)


def _role(item: Item, moment: Moment, place: int) -> str:
    if isinstance(item, Inserted):
        return item.message.role
    return moment.log.messages[item.stop - 1 if place < 0 else item.start].role


@dataclass(frozen=True, slots=True, kw_only=True)
class OneLine:
    """Shows a longer tool result as one line with the tool's name and the sizes of what it said."""

    chars: int = 200
    """Longest result that is left alone."""
    text: str = "[{tool}] executed ({lines} lines, {chars} chars)"

    def words(self) -> str:
        """The form in words."""
        return f"with tool results of more than {self.chars:,} characters as one line"

    def render(self, message: Message) -> Message:
        """The message with its longer results as a line; the same object where none is."""
        if not any(isinstance(b, ToolResult) and len(b.text) > self.chars for b in message.blocks):
            return message
        return replace(message, blocks=tuple(self._block(b) for b in message.blocks))

    def _block(self, block: Block) -> Block:
        if not isinstance(block, ToolResult) or len(block.text) <= self.chars:
            return block
        said = {"tool": block.name or "tool", "lines": str(block.text.count("\n") + 1), "chars": f"{len(block.text):,}"}
        text = self.text
        for name, value in said.items():
            text = text.replace(f"{{{name}}}", value)
        return replace(block, text=text[:self.chars], images=())


HEAD_TAIL_TRIGGERS: Mapping[str, type] = {"stepwise-share": StepwiseShare}
HEAD_TAIL_CUTS: Mapping[str, type] = {"head-and-tokens": KeepHeadAndTokens}
HEAD_TAIL_REPLACEMENTS: Mapping[str, type] = {"alternating": AlternatingSummary}
HEAD_TAIL_RENDERINGS: Mapping[str, type] = {"one-line": OneLine}
