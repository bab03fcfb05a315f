"""Rules that go over observations by their place alone: the newest events, the newest observations in strides."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from replay.blocks import Block, ToolResult
from replay.policy.base import Moment, Refusal, check
from replay.policy.cuts_kept import EVENTS
from replay.policy.tool_results import Placeholder
from replay.transcript import Message
from replay.window import Mark, Rendering, Span


@dataclass(frozen=True, slots=True, kw_only=True)
class LineCount:
    """Shows a tool result as a sentence with the number of its lines, and of its images where it has some.

    Imitates SWE-agent. `{lines}` and `{images}` stand for the numbers.
    """

    text: str = "Old environment output: ({lines} lines omitted)"
    pictures: str = " ({images} images omitted)"
    except_tools: tuple[str, ...] = ()
    """Results of these tools stay, as those that SWE-agent tags `keep_output`."""

    def words(self) -> str:
        """The form in words."""
        return "as the number of its lines"

    def render(self, message: Message) -> Message:
        """The message with its results counted; the same object where nothing changes."""
        if not any(self._eligible(b) for b in message.blocks):
            return message
        return replace(message, blocks=tuple(self._block(b) for b in message.blocks))

    def _eligible(self, block: Block) -> bool:
        return isinstance(block, ToolResult) and (block.name or "") not in self.except_tools

    def _block(self, block: Block) -> Block:
        if not isinstance(block, ToolResult) or not self._eligible(block):
            return block
        text = self.text.replace("{lines}", str(len(block.text.splitlines())))
        if block.images:
            text += self.pictures.replace("{images}", str(len(block.images)))
        return replace(block, text=text, images=())


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepNewestObservations:
    """Elides all observations but the newest `n`, in strides of `polling`; the first observation always stays.

    Of k observations, the task itself being the first, those with the numbers 1 up to but not including
    floor(k / polling) × polling − n are elided (numbers from 0), so that between n and n + polling stay and a prompt
    cache breaks only once in `polling` steps. Imitates SWE-agent's last_n_observations.
    """

    n: int = 5
    polling: int = 1
    rendering: Rendering = field(default_factory=LineCount, metadata={"part": "rendering"})

    def __post_init__(self) -> None:
        """Refuse what the original refuses."""
        check(self, "n", self.n > 0, "a positive number of observations")
        check(self, "polling", self.polling > 0, "a positive number of steps")

    def words(self) -> str:
        """The rule in words."""
        strides = f", in strides of {self.polling}" if self.polling > 1 else ""
        return f"every tool result but the newest {self.n} is elided{strides}"

    def elided(self, observations: int) -> range:
        """Which of so many observations are elided, by their number from 0."""
        return range(1, max(1, observations // self.polling * self.polling - self.n))

    def marks(self, moment: Moment) -> tuple[Mark, ...] | Refusal:
        """A mark up to the first result that stays."""
        counts = moment.log.changed(self.rendering)
        before = counts[moment.floor]
        # The task is observation 0, so that the results are numbered from 1.
        gone = len(self.elided(counts[moment.window.end] - before + 1))
        if not gone:
            return Refusal("nothing_to_elide")
        return fresh_mark(moment, self.rendering, bisect_left(counts, before + gone))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepNewestEvents:
    """Blanks every tool result that is not among the newest `events` events, whatever those are.

    Imitates OpenHands' masking of observations, whose attention window counts calls and messages too.
    """

    events: int = 5
    placeholder: Placeholder = field(default_factory=Placeholder, metadata={"part": "rendering"})

    def __post_init__(self) -> None:
        """Refuse a negative number."""
        check(self, "events", self.events >= 0, "0 or more events")

    def words(self) -> str:
        """The rule in words."""
        return f"every tool result before the newest {self.events} events becomes “{self.placeholder.text}”"

    def marks(self, moment: Moment) -> tuple[Mark, ...] | Refusal:
        """A mark up to the newest events."""
        return fresh_mark(moment, self.placeholder, self._line(moment))

    def _line(self, moment: Moment) -> int:
        """Log index of the first message of which something is among the newest events."""
        sums, room = moment.log.sums(EVENTS), self.events
        for item in reversed(moment.window.items):
            if not isinstance(item, Span):
                room -= 1
            elif sums[item.stop] - sums[item.start] > room:
                return bisect_left(sums, sums[item.stop] - max(0, room), item.start, item.stop + 1)
            else:
                room -= sums[item.stop] - sums[item.start]
        return 0


def fresh_mark(moment: Moment, rendering: Rendering, stop: int) -> tuple[Mark, ...] | Refusal:
    """A mark over everything below `stop`, unless nothing new would change."""
    done, counts = moment.window.rendered_to(rendering), moment.log.changed(rendering)
    if stop <= done or counts[stop] == counts[done]:
        return Refusal("nothing_to_elide")
    return (Mark(rendering, 0, stop),)


OBSERVATION_RULES: Mapping[str, type] = {"newest-observations": KeepNewestObservations,
                                         "newest-events": KeepNewestEvents}
"""Names for `use = …` in a tool_results table."""
OBSERVATION_RENDERINGS: Mapping[str, type] = {"line-count": LineCount}
"""Names for `use = …` in a rendering table."""
