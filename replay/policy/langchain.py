"""Parts that LangChain's middlewares are made of: a scaled estimate, clauses, a suffix, clearing oldest first."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from replay.policy.base import Cut, Decision, Moment, Refusal, check
from replay.policy.estimators import Characters
from replay.policy.renderings import ShortArguments
from replay.policy.requests_kept import REQUEST_CUTS, REQUESTS
from replay.policy.tails import backwards
from replay.policy.tool_results import Placeholder
from replay.transcript import Message
from replay.window import Inserted, Mark, Rendering, Span, Window

_ESTIMATOR = {"part": "estimator"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled:
    """An estimate scaled by how far the last response's reported total exceeds the estimate up to that response.

    Imitates LangChain's approximate counter in SummarizationMiddleware (1.5.2): the factor lies between 1 and
    `most`, and the reported total itself counts where it is larger. A report stays with its response, so it is
    used even where the window has been cut since; where that response is gone, nothing is scaled.
    """

    most: float = 1.25
    reports: bool = True
    """Responses name their provider; False: neither is the estimate scaled, nor does the reported total count."""
    beyond: int = 0
    """Tokens of what stands in front of the history and is measured too: system prompt, tool schemas."""
    estimator: Characters = field(default_factory=Characters, metadata=_ESTIMATOR)

    def words(self) -> str:
        """The measure in words."""
        return (f"characters divided by {self.estimator.divisor}, scaled up to {self.most:g} × by the last reported "
                "total, or that total,")

    def tokens(self, moment: Moment) -> int:
        """Tokens of the window, at least what the last response reported."""
        told = moment.told
        return max(self.estimated(moment), told.input + told.output if self._since(moment) is not None else 0)

    def estimated(self, moment: Moment) -> int:
        """The scaled estimate alone."""
        estimated = self.estimator.tokens(moment.log, moment.window, self.beyond * self.estimator.divisor)
        since = self._since(moment)
        if since is None or estimated <= since or moment.window.message_count() < 2:
            return estimated
        factor = (moment.told.input + moment.told.output) / (estimated - since)
        return math.ceil(estimated * min(self.most, max(1.0, factor)))

    def _since(self, moment: Moment) -> int | None:
        """Estimated tokens behind the last response; None where there is none in the window."""
        last = moment.window.items[-1] if moment.window.items and self.reports else None
        if not moment.told.calls or not isinstance(last, Span) or not last.start <= moment.told.end < last.stop:
            return None
        return moment.log.item_size(Span(moment.told.end + 1, last.stop), moment.window.marks, self.estimator)


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """The estimator's size of all that came in, unedited: what a harness measures that edits a copy per request."""

    estimator: Characters = field(default_factory=Characters, metadata=_ESTIMATOR)

    def words(self) -> str:
        """The measure in words."""
        return f"characters of the whole history divided by {self.estimator.divisor}"

    def tokens(self, moment: Moment) -> int:
        """Estimated tokens of the window without its marks."""
        return self.estimator.tokens(moment.log, Window(moment.window.items, (), moment.window.end))


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause:
    """Fires when all limits of the clause that are set are reached; with none set it never does.

    Imitates a trigger clause of LangChain: messages (summaries count), tokens, a fraction of the window.
    """

    messages: int = 0
    tokens: int = 0
    at: float = 0.0
    """Fraction of the window, rounded down."""
    unit: Literal["message", "request"] = "message"
    """`request`: what stands between two responses is one message, as pydantic-ai keeps it."""

    def __post_init__(self) -> None:
        """Refuse negative limits."""
        check(self, "messages", self.messages >= 0, "0 (not set) or more messages")
        check(self, "tokens", self.tokens >= 0, "0 (not set) or more tokens")
        check(self, "at", 0 <= self.at <= 1, "0 (not set) to 1")

    def words(self) -> str:
        """The rule in words."""
        limits = [f"{self.messages} messages"] if self.messages else []
        limits += [f"{self.tokens:,} tokens"] if self.tokens else []
        limits += [f"{self.at:.0%} of the window"] if self.at else []
        return f"when the window reaches {' and '.join(limits)}" if limits else "never"

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Whether every limit that is set is reached; the level shown is the highest one in tokens."""
        levels = [self.tokens] if self.tokens else []
        levels += [max(1, math.floor(moment.capacity.window * self.at))] if self.at else []
        enough = not self.messages or self._count(moment) >= self.messages
        fires = bool(levels or self.messages) and enough and all((measured or 0) >= level for level in levels)
        reason = "threshold_exceeded" if fires else "below_threshold" if enough else "messages_not_enough"
        return Decision(stage=stage, fires=fires, reason=reason, estimated_tokens=measured,
                        threshold=max(levels, default=None))


    def _count(self, moment: Moment) -> int:
        window = moment.window
        return window.message_count() if self.unit == "message" else moment.log.size(window, REQUESTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepSuffix:
    """Keeps the newest messages, by number or by tokens, and moves back to the call of a result that stands first.

    Imitates LangChain: `share` of the window wins over `tokens`, `tokens` over `messages`; a summary is a message
    like any other and may alone be what goes; by tokens at least one message stays.
    """

    messages: int = 20
    tokens: int = 0
    share: float = 0.0
    estimator: Characters = field(default_factory=Characters, metadata=_ESTIMATOR)
    measure: Scaled = field(default_factory=Scaled, metadata={"part": "measure"})
    """Where the whole window is no larger than the tail by this measure everything stays."""

    def __post_init__(self) -> None:
        """Refuse what cannot be kept."""
        check(self, "messages", self.messages >= 0, "0 or more messages")
        check(self, "tokens", self.tokens >= 0, "0 (not set) or more tokens")
        check(self, "share", 0 <= self.share <= 1, "0 (not set) to 1")

    def words(self) -> str:
        """The rule in words."""
        tail = f"{self.messages} messages" if not self.tokens else f"{self.tokens:,} tokens"
        tail = f"{self.share:.0%} of the window" if self.share else tail
        return f"the newest {tail} stay, cut back to the call of a result"

    def cut(self, moment: Moment) -> Cut | Refusal:
        """The first message that stays, or `everything_fits`."""
        place = self._by_tokens(moment) if self.tokens or self.share else _by_messages(moment, self.messages)
        if place is None:
            return Refusal("everything_fits")
        index = moment.log.joints[place]
        first = moment.window.items[0]
        if isinstance(first, Span) and index <= first.start:
            return Refusal("everything_fits")
        return Cut(keep_from=index)

    def _by_tokens(self, moment: Moment) -> int | None:
        room = max(1, math.floor(moment.capacity.window * self.share) if self.share else self.tokens)
        if self.measure.estimated(moment) <= room:
            return None
        return min(_oldest_fitting(moment, self.estimator, room), moment.window.end - 1)


def _oldest_fitting(moment: Moment, estimator: Characters, room: int) -> int:
    """Log index of the first of the newest messages that fit; the window's end where none does."""
    place = moment.window.end
    for found in backwards(moment, estimator):
        if found.sums is None:
            break
        low = bisect_left(found.sums, found.sums[found.stop] - room, found.start, found.stop)
        place = min(place, low)
        room -= found.size
        if low > found.start:
            break
    return place


def _by_messages(moment: Moment, count: int) -> int | None:
    """Log index of the first of the newest messages, a summary counted; None where there are no more."""
    if moment.window.message_count() <= count:
        return None
    place = moment.window.end
    for item in reversed(moment.window.items):
        if not count or isinstance(item, Inserted):
            break
        taken = min(count, item.stop - item.start)
        place, count = item.stop - taken, count - taken
    return place


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearOldest:
    """Blanks results oldest first, all but the newest `keep`, and stops once `at_least` tokens are saved.

    Imitates LangChain's ClearToolUsesEdit: with 0 every candidate is cleared; results of spared tools count among
    the newest. The original edits a copy for each request from the start, so what is cleared stays cleared.
    """

    keep: int = 3
    at_least: int = 0
    placeholder: Placeholder = field(default_factory=lambda: Placeholder(text="[cleared]"),
                                     metadata={"part": "rendering"})
    estimator: Characters = field(default_factory=Characters, metadata=_ESTIMATOR)

    def __post_init__(self) -> None:
        """Refuse negative numbers."""
        check(self, "keep", self.keep >= 0, "0 or more")
        check(self, "at_least", self.at_least >= 0, "0 (all) or more tokens")

    def words(self) -> str:
        """The rule in words."""
        until = f" until {self.at_least:,} tokens are saved" if self.at_least else ""
        return f"oldest first every tool result but the newest {self.keep} becomes “{self.placeholder.text}”{until}"

    def marks(self, moment: Moment) -> tuple[Mark, ...] | Refusal:
        """A mark over what is cleared."""
        results = moment.log.sums(_RESULTS)
        seen = results[moment.window.end]
        if seen <= self.keep:
            return Refusal("nothing_to_elide")
        stop = bisect_left(results, seen - self.keep + 1) - 1 if self.keep else moment.window.end
        done, counts = moment.window.rendered_to(self.placeholder), moment.log.changed(self.placeholder)
        stop = self._until_saved(moment, done, stop) if self.at_least else stop
        if stop <= done or counts[stop] == counts[done]:
            return Refusal("nothing_to_elide")
        return (Mark(self.placeholder, 0, stop),)

    def _until_saved(self, moment: Moment, done: int, stop: int) -> int:
        plain, shown = moment.log.sums(self.estimator), moment.log.sums(self.estimator, self.placeholder)
        return next((i for i in range(done, stop) if plain[i] - shown[i] >= self.at_least), stop)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeSuffix:
    """Shows what stands before the newest messages in another form: by number, or by a share of the window.

    Imitates deepagents' shortening of long arguments in older calls.
    """

    messages: int = 20
    tokens: int = 0
    share: float = 0.0
    rendering: Rendering = field(default_factory=ShortArguments, metadata={"part": "rendering"})
    estimator: Characters = field(default_factory=Characters, metadata=_ESTIMATOR)

    def words(self) -> str:
        """The rule in words."""
        tail = f"{self.tokens:,} tokens" if self.tokens else f"{self.messages} messages"
        tail = f"{self.share:.0%} of the window" if self.share else tail
        return f"long arguments of calls before the newest {tail} are shortened"

    def place(self, moment: Moment) -> int:
        """Log index below which messages are shown in the other form."""
        if not self.share and not self.tokens:
            found = _by_messages(moment, self.messages)
            return moment.window.end if found is None else found
        room = math.floor(moment.capacity.window * self.share) if self.share else self.tokens
        return _oldest_fitting(moment, self.estimator, max(1, room))

    def marks(self, moment: Moment) -> tuple[Mark, ...] | Refusal:
        """A mark up to the newest messages."""
        place = self.place(moment) if self.place(moment) < moment.window.end else 0
        counts, done = moment.log.changed(self.rendering), moment.window.rendered_to(self.rendering)
        if place <= done or counts[place] == counts[done]:
            return Refusal("nothing_to_elide")
        return (Mark(self.rendering, 0, place),)


@dataclass(frozen=True, slots=True)
class Results:
    """Weighs a message by whether it carries a result."""

    def weights(self, messages: Sequence[Message]) -> list[int]:
        """One for each message with a result."""
        return [int(bool(m.results)) for m in messages]


_RESULTS = Results()

LANGCHAIN_MEASURES: Mapping[str, type] = {"scaled": Scaled, "received": Received}
LANGCHAIN_TRIGGERS: Mapping[str, type] = {"clause": Clause}
LANGCHAIN_CUTS: Mapping[str, type] = {"suffix": KeepSuffix, **REQUEST_CUTS}
LANGCHAIN_TOOL_RULES: Mapping[str, type] = {"clear-oldest": ClearOldest, "before-suffix": BeforeSuffix}
"""Names for `use = …` in the tables of these kinds."""
