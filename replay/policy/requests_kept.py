"""Messages as pydantic-ai counts them: what stands between two responses is one request."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replay.log import same_request
from replay.policy.base import Cut, Moment, Refusal, check
from replay.transcript import Message
from replay.window import Inserted, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepRequests:
    """Keeps the newest messages as pydantic-ai counts them: what stands between two responses is one request.

    Imitates summarization-pydantic-ai: a cut that would part a call from its result moves back. The original looks
    for the pair within five messages to both sides, which is enough where results follow on their calls.
    """

    messages: int = 20

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        check(self, "messages", self.messages >= 0, "0 or more messages")

    def words(self) -> str:
        """The rule in words."""
        return f"the newest {self.messages} requests and responses stay, cut back to the call of a result"

    def cut(self, moment: Moment) -> Cut | Refusal:
        """The first kept request or response, or `everything_fits`."""
        log, left = moment.log, self.messages
        if log.size(moment.window, REQUESTS) <= left:
            return Refusal("everything_fits")
        sums, place = log.sums(REQUESTS), moment.window.end
        for item in reversed(moment.window.items):
            if not left or isinstance(item, Inserted):
                break
            taken = min(left, sums[item.stop] - sums[item.start])
            place = bisect_left(sums, sums[item.stop] - taken + 1, item.start, item.stop + 1) - 1
            left -= taken
        index, first = log.joints[place], moment.window.items[0]
        if isinstance(first, Span) and index <= first.start:
            return Refusal("everything_fits")
        return Cut(keep_from=index)


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
