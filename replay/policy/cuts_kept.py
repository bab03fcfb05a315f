"""Cut rules that keep something of what stands before the tail: a head, a share of the middle, what the person said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from replay.blocks import Text
from replay.log import Log
from replay.policy.base import Cut, Moment, Refusal, check
from replay.policy.estimators import Characters
from replay.transcript import Message
from replay.window import Inserted, Item, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepHeadAndTail:
    """Keeps the first and the newest events; both borders move forward to a place that parts no call from its result.

    Imitates OpenHands' condensers: a response without calls, each call, each result and each other message is an
    event. System messages stand outside of the count.
    """

    head: int = 2
    tail: int = 117
    """Newest events that stay; OpenHands: half of its maximum, less the head, less one."""
    halves: bool = False
    """No more of them stay than half of the events that there are, less the head, less one."""

    def __post_init__(self) -> None:
        """Refuse negative numbers."""
        check(self, "head", self.head >= 0, "0 or more")
        check(self, "tail", self.tail >= 0, "0 or more")

    def words(self) -> str:
        """The rule in words."""
        bound = ", of which at most half of all" if self.halves else ""
        head = f"the first {self.head} and " if self.head else ""
        return f"{head}the newest {self.tail} events stay{bound}"

    def cut(self, moment: Moment) -> Cut | Refusal:
        """Head and tail, or `everything_fits`."""
        seen = _visible(moment)
        sums = moment.log.sums(EVENTS)
        sizes = [sums[i + 1] - sums[i] for i in seen]
        tail = min(self.tail, max(0, sum(sizes) // 2 - self.head - 1)) if self.halves else self.tail
        if sum(sizes) <= self.head + tail:
            return Refusal("everything_fits")
        begin = _forward(moment, _after(seen, sizes, self.head, moment.window.end))
        keep_from = _forward(moment, _after(seen, sizes, sum(sizes) - tail, moment.window.end))
        if begin >= keep_from:
            return Refusal("no_boundary")
        return Cut(keep_from=keep_from, kept=_spans_below(moment, begin))


@dataclass(frozen=True, slots=True)
class Events:
    """Weighs a message by its events; system messages weigh nothing."""

    def weights(self, messages: Sequence[Message]) -> list[int]:
        """Events of each message."""
        return [max(1, len(m.calls) + len(m.results)) if m.origin != "system" else 0 for m in messages]


EVENTS = Events()


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveShare:
    """Takes a share of the messages behind the head away, an even number of them, and keeps the rest.

    Imitates Roo Code (`head = 1`, `counted = "rest"`: half of what is behind the first message, rounded down and
    made even) and Cline's older extension (`head = 2`, pairs: a quarter of the pairs is a half of the messages).
    What stands between two responses is one message there.
    """

    head: int = 1
    share: float = 0.5

    def __post_init__(self) -> None:
        """Refuse a share outside of 0 to 1."""
        check(self, "share", 0 < self.share < 1, "a fraction above 0 and below 1")
        check(self, "head", self.head >= 0, "0 or more")

    def words(self) -> str:
        """The rule in words."""
        return f"of what follows on the first {self.head} messages {self.share:.0%} go, an even number, oldest first"

    def removed(self, messages: int) -> int:
        """How many of so many messages go."""
        return int(max(0, messages - self.head) * self.share) // 2 * 2

    def cut(self, moment: Moment) -> Cut | Refusal:
        """The kept head and the first message behind what goes."""
        units = units_of(moment)
        gone = self.removed(len(units))
        if not gone:
            return Refusal("too_few_messages")
        # Where the original parts a call from its result the result stays with the call here.
        begin = _forward(moment, units[self.head])
        keep_from = units[self.head + gone] if self.head + gone < len(units) else moment.window.end
        keep_from = moment.log.joints[keep_from]
        if keep_from <= begin:
            return Refusal("no_boundary")
        return Cut(keep_from=keep_from, kept=_spans_below(moment, begin))


def units_of(moment: Moment) -> list[int]:
    """Where each message begins that is visible, as a harness counts that joins what stands between two responses."""
    seen = _visible(moment)
    requests = moment.log.requests
    return [i for place, i in enumerate(seen) if not place or requests[seen[place - 1]] != requests[i]]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepPrompts:
    """Keeps only what the person said, the newest that fit a number of tokens; the one that does not fit is cut.

    Imitates Codex: responses, calls, results and injected messages all go. `{removed}` in `mark` is the number of
    tokens that were cut from the middle of the message.
    """

    tokens: int = 20_000
    mark: str = "…{removed} tokens truncated…"
    context: bool = False
    """What the program injected in front of the first prompt stays too and takes none of the tokens."""
    estimator: Characters = field(default_factory=Characters, metadata={"part": "estimator"})

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        check(self, "tokens", self.tokens >= 0, "0 or more tokens")

    def words(self) -> str:
        """The rule in words."""
        rest = "with the context in front of the first" if self.context else "nothing else"
        return f"of the person's messages the newest {self.tokens:,} tokens stay, {rest}"

    def cut(self, moment: Moment) -> Cut | Refusal:
        """Nothing but prompts stays."""
        if not any(moment.window.indices()) and not moment.window.message_count():
            return Refusal("no_messages_to_compact")
        context = _context(moment) if self.context else ()
        return Cut(keep_from=moment.window.end, kept=(*context, *reversed(list(self._kept(moment)))))

    def _kept(self, moment: Moment) -> list[Item]:
        """The newest prompts, newest first."""
        room, kept = self.tokens, list[Item]()
        for item in _prompts(moment):
            size = _size(moment.log, item, self.estimator)
            if size > room:
                if room > 0:
                    kept.append(self._truncated(moment.log, item, room, size))
                break
            kept.append(item)
            room -= size
        return kept

    def _truncated(self, log: Log, item: Item, room: int, size: int) -> Inserted:
        """A prompt without its middle."""
        message = item.message if isinstance(item, Inserted) else log.messages[item.start]
        half = room * self.estimator.divisor // 2
        text = message.text
        cut = text[:half] + self.mark.format(removed=size - room) + text[len(text) - half:]
        covers = item.covers if isinstance(item, Inserted) else (item,)
        return Inserted(message=replace(message, index=-1, blocks=(Text(text=cut),)), kind="truncated", covers=covers)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepSpoken:
    """Keeps the newest messages of the person and the model; results ride along with their calls.

    Imitates Kimi CLI.
    """

    messages: int = 2

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        check(self, "messages", self.messages >= 0, "0 or more")

    def words(self) -> str:
        """The rule in words."""
        return f"the newest {self.messages} messages of person and model stay, with the results that belong to them"

    def cut(self, moment: Moment) -> Cut | Refusal:
        """The oldest of the kept messages, or `everything_fits`."""
        spoken = [i for i in _visible(moment) if moment.log.messages[i].role in ("user", "assistant")]
        if len(spoken) <= self.messages:
            return Refusal("everything_fits")
        return Cut(keep_from=spoken[-self.messages] if self.messages else moment.window.end)


def _prompts(moment: Moment) -> list[Item]:
    """What the person said and the window holds, newest first, one message an item."""
    found: list[Item] = []
    for item in reversed(moment.window.items):
        if isinstance(item, Inserted):
            found += [item] if item.kind == "truncated" else []
            continue
        rounds = (i for i in reversed(range(item.start, item.stop)) if _is_prompt(moment.log.messages[i]))
        found += [Span(i, i + 1) for i in rounds]
    return found


def _context(moment: Moment) -> tuple[Span, ...]:
    """What the program injected in front of the first prompt, as far as the window holds it."""
    first = next((i for i in moment.log.rounds if i >= moment.floor), moment.window.end)
    messages = moment.log.messages
    return tuple(Span(i, i + 1) for i in sorted(moment.window.indices()) if i < first
                 and messages[i].origin == "injected")


def _is_prompt(message: Message) -> bool:
    return message.role == "user" and message.origin in ("human", "nudge") and not message.results


def _size(log: Log, item: Item, estimator: Characters) -> int:
    return log.item_size(item, (), estimator)


def _visible(moment: Moment) -> list[int]:
    return [i for i in moment.window.indices() if moment.log.messages[i].origin != "system"]


def _after(seen: list[int], sizes: list[int], count: int, end: int) -> int:
    """The log index behind the first `count` events."""
    total = 0
    for index, size in zip(seen, sizes, strict=True):
        if total >= count:
            return index
        total += size
    return end


def _forward(moment: Moment, index: int) -> int:
    """The nearest place at or behind an index that parts no call from its result."""
    joints = moment.log.joints
    while index < moment.window.end and joints[index] != index:
        index += 1
    return index


def _spans_below(moment: Moment, index: int) -> tuple[Span, ...]:
    """The visible log ranges below an index, without system messages: those stay anyway."""
    return tuple(Span(i, i + 1) for i in _visible(moment) if i < index)


KEPT_CUTS: Mapping[str, type] = {"head-and-tail": KeepHeadAndTail, "share": RemoveShare, "prompts": KeepPrompts,
                              "spoken": KeepSpoken}
"""Names for `use = …` in a cut table."""
