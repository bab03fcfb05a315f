"""Messages as pydantic-ai counts them: what stands between two responses is one request."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from replay.log import same_request
from replay.policy.base import Cut, Moment, Refusal, check
from replay.policy.estimators import Characters
from replay.policy.tails import fitting
from replay.transcript import Message
from replay.window import Inserted, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepRequests:
    """Keeps the newest messages as pydantic-ai counts them: what stands between two responses is one request.

    Imitates summarization-pydantic-ai: a cut that would part a call from its result moves back. The original looks
    for the pair within five messages to both sides, which is enough where results follow on their calls.
    """

    messages: int = 20
    tokens: int = 0
    """Newest estimated tokens that stay, in the place of a number; at least one request or response does."""
    estimator: Characters = field(default_factory=lambda: Characters(rounding="floor-total"),
                                  metadata={"part": "estimator"})

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        check(self, "messages", self.messages >= 0, "0 or more messages")

    def words(self) -> str:
        """The rule in words."""
        tail = f"{self.tokens:,} tokens of" if self.tokens else f"{self.messages}"
        return f"the newest {tail} requests and responses stay, cut back to the call of a result"

    def cut(self, moment: Moment) -> Cut | Refusal:
        """The first kept request or response, or `everything_fits`."""
        place = self._by_tokens(moment) if self.tokens else self._by_number(moment)
        if place is None:
            return Refusal("everything_fits")
        index, first = moment.log.joints[place], moment.window.items[0]
        if isinstance(first, Span) and index <= first.start:
            return Refusal("everything_fits")
        return Cut(keep_from=index)

    def _by_number(self, moment: Moment) -> int | None:
        """Where the newest ones begin; None where there are no more."""
        log, left, place = moment.log, self.messages, moment.window.end
        if log.size(moment.window, REQUESTS) <= left:
            return None
        sums = log.sums(REQUESTS)
        for item in reversed(moment.window.items):
            if not left or isinstance(item, Inserted):
                break
            taken = min(left, sums[item.stop] - sums[item.start])
            place = bisect_left(sums, sums[item.stop] - taken + 1, item.start, item.stop + 1) - 1
            left -= taken
        return place

    def _by_tokens(self, moment: Moment) -> int | None:
        """Where the newest ones begin that fit; None where everything does. The total is rounded down once."""
        place = fitting(moment, self.estimator, (self.tokens + 1) * self.estimator.divisor - 1)
        return None if place is None else min(place, moment.log.requests[moment.window.end - 1])


@dataclass(frozen=True, slots=True)
class Requests:
    """Weighs a message by whether a request or a response begins with it; system messages belong to what follows."""

    def weights(self, messages: Sequence[Message]) -> list[int]:
        """One for each message that begins something."""
        spoken = [m for m in messages if m.origin != "system"]
        begins = {id(m) for i, m in enumerate(spoken) if not i or not same_request(spoken[i - 1], m)}
        return [int(id(m) in begins) for m in messages]


REQUESTS = Requests()

REQUEST_CUTS: Mapping[str, type] = {"requests": KeepRequests}
"""Names for `use = …` in a cut table."""
