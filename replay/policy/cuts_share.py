"""The cut rule that weighs the history by the characters of its JSON."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal
from weakref import WeakKeyDictionary

from replay.log import Log
from replay.policy.base import Cut, Moment, Refusal, check
from replay.policy.estimators_json import JsonCharacters
from replay.window import Inserted, Item, Span, Window

_USERS: WeakKeyDictionary[Log, list[int]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepShareOfText:
    """Cuts at the first message of the user behind so much of the history's characters.

    The request that is about to be sent stays and is not weighed (`pending`). Where no message of the user stands so
    far behind, everything is summarised if the history ends with a response without calls; else `otherwise` says:
    `last-prompt` cuts at the last message of the user (Gemini CLI), `rounds` keeps the call at work and the newest
    rounds of calls and results before it (Qwen Code 0.15).
    """

    share: float = 0.3
    """Share of the characters that stays at most."""
    otherwise: Literal["last-prompt", "rounds"] = "last-prompt"
    rounds: int = 2
    pending: bool = True
    """False: what was about to be sent is part of the history already (after a refused request)."""
    minimum_share: float = 0.0
    """Less of the characters than this is not worth a summary."""
    estimator: JsonCharacters = field(default_factory=lambda: JsonCharacters(rounding="floor-total"),
                                      metadata={"part": "estimator"})

    def __post_init__(self) -> None:
        """Refuse shares outside of 0 to 1."""
        check(self, "share", 0 < self.share < 1, "a fraction above 0 and below 1")
        check(self, "minimum_share", 0 <= self.minimum_share < 1, "a fraction below 1")
        check(self, "rounds", self.rounds >= 0, "0 or more")

    def words(self) -> str:
        """The rule in words."""
        else_ = ("the last message of the user" if self.otherwise == "last-prompt"
                 else f"the newest {self.rounds} rounds of calls")
        return f"at most {self.share:.0%} of the characters stay from a message of the user on, else {else_}"

    def cut(self, moment: Moment) -> Cut | Refusal:
        """Where what stays begins, or why nothing goes."""
        stop = self._history_end(moment)
        history = _clipped(moment.window, stop)
        total = sum(self._size(moment, item) for item in history)
        found = self._split(moment, history, total, stop)
        if found is None or found[1] <= total * self.minimum_share:
            return Refusal("nothing_to_compress")
        return Cut(keep_from=found[0])

    def _history_end(self, moment: Moment) -> int:
        """Log index behind the history: what is about to be sent is not in it yet."""
        end = moment.window.end
        if not self.pending or not end or moment.log.messages[end - 1].role == "assistant":
            return end
        return moment.log.requests[end - 1]

    def _size(self, moment: Moment, item: Item) -> int:
        return moment.log.item_size(item, moment.window.marks, self.estimator)

    def _split(self, moment: Moment, history: tuple[Item, ...], total: int, stop: int) -> tuple[int, int] | None:
        """The log index that stays first and the characters before it; None where nothing goes."""
        last = None
        for index, before in self._users(moment, history):
            last = (index, before)
            if before >= total * (1 - self.share):
                return last
        newest = moment.log.messages[stop - 1] if stop else None
        if newest is None or (newest.role == "assistant" and not newest.calls):
            return stop, total
        if self.otherwise == "last-prompt":
            return last
        return self._rounds(moment, history, total, stop)

    def _users(self, moment: Moment, history: tuple[Item, ...]) -> Iterator[tuple[int, int]]:
        """Each message of the user in the history with the characters before it; the very first is none."""
        before = 0
        for item in history:
            if isinstance(item, Span):
                for index in _users_in(moment.log, item):
                    ahead = before + self._size(moment, Span(item.start, index))
                    if ahead:
                        yield index, ahead
            before += self._size(moment, item)

    def _rounds(self, moment: Moment, history: tuple[Item, ...], total: int, stop: int) -> tuple[int, int] | None:
        """The call at work and the complete rounds right before it; all goes where the results are in already."""
        messages, requests = moment.log.messages, moment.log.requests
        if messages[stop - 1].role != "assistant":
            return (stop, total) if messages[stop - 1].results else None
        first = next((i.start for i in history if isinstance(i, Span)), stop)
        index = stop - 1
        for _ in range(self.rounds):
            call = requests[index - 1] - 1 if index - 1 > first else -1
            if call < first or not messages[index - 1].results or not messages[call].calls:
                break
            index = call
        tail = sum(self._size(moment, s) for s in _after(history, index))
        return index, total - tail


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepLastCall:
    """Keeps what is about to be sent and, where that is results, the response that called for them.

    Imitates Qwen Code 0.24, which has no tail otherwise.
    """

    def words(self) -> str:
        """The rule in words."""
        return "the prompt or the results that are about to be sent stay, with the calls that they answer"

    def cut(self, moment: Moment) -> Cut | Refusal:
        """Where the newest request begins, or its calls."""
        end = moment.window.end
        if not end or moment.window.message_count() < MINIMUM:
            return Refusal("no_messages_to_compact")
        if moment.log.messages[end - 1].role == "assistant":
            return Cut(keep_from=end)
        return Cut(keep_from=moment.log.joints[moment.log.requests[end - 1]])


MINIMUM = 2
"""Messages without which there is nothing to summarise: a prompt and a response."""


def _clipped(window: Window, stop: int) -> tuple[Item, ...]:
    """The window's items up to a log index."""
    return tuple(Span(i.start, min(i.stop, stop)) if isinstance(i, Span) else i for i in window.items
                 if isinstance(i, Inserted) or i.start < stop)


def _after(items: tuple[Item, ...], index: int) -> Iterator[Span]:
    return (Span(max(i.start, index), i.stop) for i in items if isinstance(i, Span) and i.stop > index)


def _users_in(log: Log, span: Span) -> list[int]:
    """Log indices of the messages of the user in a range that answer no call and part no pair."""
    if log not in _USERS:
        _USERS[log] = [m.index for m in log.messages
                       if m.role == "user" and not m.results and log.joints[m.index] == m.index]
    users = _USERS[log]
    return users[bisect_left(users, span.start):bisect_left(users, span.stop)]


SHARE_CUTS: Mapping[str, type] = {"share-of-text": KeepShareOfText, "last-call": KeepLastCall}
"""Names for `use = …` in a cut table."""
