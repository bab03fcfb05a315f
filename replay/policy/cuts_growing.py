"""Cuts whose tail is found by trying: shares that grow until the rest fits, halves of a level, minima of two kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from replay.blocks import Text
from replay.log import Log
from replay.policy.base import Cut, Moment, Refusal, check
from replay.policy.estimators import Characters
from replay.policy.levels import ClampedShare
from replay.policy.tails import filling
from replay.transcript import Message
from replay.window import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictShare:
    """Takes a share of the messages from the front, a tenth more each time, until the rest fits its own share.

    The first share is `share` and a tenth; the cut moves back to a response; what stays must be below (1 - `share`) of
    the window. Where no share does, everything goes. Imitates Letta's sliding window.
    """

    share: float = 0.3
    step: float = 0.1

    def __post_init__(self) -> None:
        """Refuse shares outside of 0 to 1."""
        check(self, "share", 0 < self.share < 1, "a fraction above 0 and below 1")
        check(self, "step", 0 < self.step <= 1, "a fraction above 0, at most 1")

    def words(self) -> str:
        """The rule in words."""
        return (f"{self.share + self.step:.0%} of the messages go, {self.step:.0%} more until the rest is below "
                f"{1 - self.share:.0%} of the window, cut back to a response; if that is never so, all go")

    def cut(self, moment: Moment) -> Cut | Refusal:
        """The first response of the smallest rest that fits."""
        seen = _visible(moment)
        if not seen:
            return Refusal("no_messages_to_compact")
        inserted = moment.window.message_count() - len(seen)
        # The original counts the system prompt as the first message, which is in no log.
        first = 1 + inserted
        pinned = sum(moment.log.item_size(Span(i, i + 1), moment.window.marks, moment.log.tokens)
                     for i in moment.log.pinned if i < moment.window.end)
        share, goal = self.share, (1 - self.share) * moment.capacity.window
        while share < 1:
            share += self.step
            place = _response(moment.log, seen, round(share * (len(seen) + first)) - first)
            if place is None or share >= 1 or place >= len(seen) - 1:
                continue
            if pinned + _tokens_from(moment, seen[place]) < goal:
                return Cut(keep_from=seen[place])
        return Cut(keep_from=moment.window.end)


def _visible(moment: Moment) -> list[int]:
    return [i for i in moment.window.indices() if moment.log.messages[i].origin != "system"]


def _response(log: Log, seen: Sequence[int], place: int) -> int | None:
    """The nearest place at or before one that a response stands at; None where there is none."""
    places = range(min(place, len(seen) - 1), -1, -1)
    return next((p for p in places if log.messages[seen[p]].role == "assistant"), None)


def _tokens_from(moment: Moment, index: int) -> int:
    """Counted tokens of what the window holds from a log index on."""
    total = 0
    for item in moment.window.items:
        if isinstance(item, Span) and item.stop > index:
            span = Span(max(item.start, index), item.stop)
            total += moment.log.item_size(span, moment.window.marks, moment.log.tokens)
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class HalfOfLevel:
    """Keeps the newest messages that stay below half of a level; what goes ends with a response and its results.

    Where no more than `least` messages would go, everything goes. Imitates Aider, whose log has no tool results.
    """

    level: ClampedShare = field(default_factory=ClampedShare, metadata={"part": "trigger"})
    least: int = 4

    def words(self) -> str:
        """The rule in words."""
        return (f"the newest messages below half of that level stay, behind a response; where no more than "
                f"{self.least} messages would go, nothing stays")

    def cut(self, moment: Moment) -> Cut | Refusal:
        """The first kept message, or the window's end."""
        end = moment.window.end
        place = self._tail(moment)
        while place > moment.floor and not _ends_round(moment.log, place):
            place -= 1
        before = sum(i < place for i in _visible(moment)) + len(moment.window.summaries())
        if before <= self.least:
            place = end
        return Cut(keep_from=place) if moment.window.items else Refusal("no_messages_to_compact")

    def _tail(self, moment: Moment) -> int:
        """Log index of the first of the newest messages that weigh less than half of the level."""
        half = self.level.level(moment.capacity.window) // 2
        found = filling(moment, moment.log.tokens, half)
        first = next((i.start for i in moment.window.items if isinstance(i, Span)), moment.window.end)
        return first if found is None else found + 1


def _ends_round(log: Log, place: int) -> bool:
    """Whether a response with all of its results ends right before a log index."""
    before = log.messages[place - 1]
    return before.role in ("assistant", "tool") and log.joints[place] == place


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldMessages:
    """Keeps nothing, but only while there is a message besides summaries: a summary alone is not summarised again."""

    def words(self) -> str:
        """The rule in words."""
        return "where messages are left nothing stays but the summary"

    def cut(self, moment: Moment) -> Cut | Refusal:
        """The end of the window."""
        end = moment.window.end
        # A call whose results are still to come stays, with everything behind it.
        goes = any(i < moment.log.joints[end] for i in _visible(moment))
        return Cut(keep_from=end) if goes else Refusal("no_messages_to_compact")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAtLeast:
    """Keeps the newest messages until they hold so many tokens and so many texts, or have reached `most` tokens.

    Imitates Claude Code's compaction by session memory, as far as write-ups tell.
    """

    tokens: int = 10_000
    texts: int = 5
    """Messages of the person or the model that have text."""
    most: int = 40_000
    estimator: Characters = field(default_factory=Characters, metadata={"part": "estimator"})

    def __post_init__(self) -> None:
        """Refuse bounds that exclude each other."""
        check(self, "texts", self.texts >= 0, "0 or more messages")
        check(self, "most", 0 <= self.tokens <= self.most, "at least the lower number of tokens")
        whole = self.estimator.rounding != "floor-total"
        check(self.estimator, "rounding", whole, "a rounding for each message")

    def words(self) -> str:
        """The rule in words."""
        return (f"the newest messages stay that hold {self.tokens:,} tokens and {self.texts} messages with text, "
                f"or {self.most:,} tokens")

    def cut(self, moment: Moment) -> Cut | Refusal:
        """The first kept message, or `everything_fits`."""
        wanted = [filling(moment, ruler, least) for ruler, least in ((self.estimator, self.tokens), (TEXTS, self.texts))
                  if least]
        most = filling(moment, self.estimator, self.most)
        place = min((p for p in wanted if p is not None), default=moment.window.end) if None not in wanted else None
        if most is not None:
            place = most if place is None else max(place, most)
        first = next((i.start for i in moment.window.items if isinstance(i, Span)), moment.window.end)
        return Refusal("everything_fits") if place is None or place <= first else Cut(keep_from=place)


@dataclass(frozen=True, slots=True)
class Texts:
    """Weighs a message of the person or the model by whether it has text."""

    def weights(self, messages: Sequence[Message]) -> list[int]:
        """One for each message with text."""
        return [int(m.role in ("user", "assistant") and any(isinstance(b, Text) and b.text for b in m.blocks))
                for m in messages]


TEXTS = Texts()
GROWING_CUTS: Mapping[str, type] = {"evict-share": EvictShare, "half-of-level": HalfOfLevel,
                               "fold-messages": FoldMessages, "at-least": KeepAtLeast}
"""Names for `use = …` in a cut table."""
