"""What the parts of a policy are given, what they answer, and the protocols they follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from replay.errors import ConfigError
from replay.log import Log
from replay.transcript import Message
from replay.window import Inserted, Item, Mark, Rendering, Span, Window


def check(part: object, name: str, holds: bool, expected: str) -> None:
    """Refuse a setting of a part that cannot be meant. Raises ConfigError with the setting's name."""
    if not holds:
        raise ConfigError(type(part).__name__, name, f"expected {expected}, found {getattr(part, name)!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The model's context window and what of it an input may fill."""

    window: int
    """Tokens."""
    output_reserve: int = 0
    """Tokens kept free for the answer."""

    @property
    def usable(self) -> int:
        """Largest input that is accepted (inclusive)."""
        return self.window - self.output_reserve


class Told(NamedTuple):
    """What the provider would have reported to this lane about its calls."""

    input: int = 0
    """Input tokens of the last answered call, caches included; 0: none yet."""
    output: int = 0
    run_input: int = 0
    """Sum of input tokens over the calls since the last prompt."""
    calls: int = 0
    end: int = 0
    """Length of the log that the last answered call had seen."""
    stale: bool = False
    """The window was changed by a stage since that call."""

    def after_call(self, input: int, output: int, end: int) -> Told:
        """The report after one more answered call."""
        return Told(input, output, self.run_input + input, self.calls + 1, end)

    def new_run(self) -> Told:
        """The report when a new prompt starts a run: sums start again, the last call stays."""
        return self._replace(run_input=0)


class Moment(NamedTuple):
    """Everything that a part may look at when it decides. Nothing in it comes from the future."""

    log: Log
    window: Window
    capacity: Capacity
    told: Told = Told()
    pending_chars: int = 0
    """Characters of the prompt that started the current run."""
    floor: int = 0
    """Log index from which the harness still has history (after a clear); 0 from the start."""
    compactions: int = 0
    """Full compactions so far."""
    checkpoint: int | None = None
    """Length of the log at the last full compaction; None before the first."""
    step: int = 0


class Decision(NamedTuple):
    """Whether a stage fires now, with the numbers that decided."""

    stage: str
    fires: bool
    reason: str
    estimated_tokens: int | None = None
    threshold: int | None = None


class Refusal(NamedTuple):
    """A part did not act, and why (kebab or snake case, as the imitated harness says it)."""

    reason: str


class Remarked(NamedTuple):
    """All marks of a window, where a rule changes messages in the middle of others."""

    marks: tuple[Mark, ...]
    elided: tuple[int, ...]
    """Log indices that are changed now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Where a cut falls: log messages from `keep_from` stay, everything before goes."""

    keep_from: int
    """Log index; equal to the window's end when nothing stays."""
    base: str = "window"
    """`window`: what the window holds is summarised; `raw`: the log from the floor on."""
    start: int = 0
    """Of what goes, log messages below are in no summary's input: they are dropped."""
    read_until: int | None = None
    """Of what goes, log messages from here on are in no summary's input: they are dropped."""
    turn_start: int | None = None
    """Where the cut falls inside a turn: log index of the prompt that began it."""
    may_be_empty: bool = False
    """A summary is asked for even where nothing goes."""
    kept: tuple[Item, ...] = ()
    """What stays of what stands before `keep_from`, in view order: log ranges, and messages that were truncated."""


class Measure(Protocol):
    """How full is the window?"""

    def tokens(self, moment: Moment) -> int | None:
        """Tokens in use; None where the harness would not know yet."""


class Trigger(Protocol):
    """Is it time?"""

    def decide(self, stage: str, measured: int | None, moment: Moment) -> Decision:
        """Compare what was measured with the threshold."""


class CutRule(Protocol):
    """What goes?"""

    def cut(self, moment: Moment) -> Cut | Refusal:
        """Where to cut; never between a call and its result."""


class ToolResultRule(Protocol):
    """How do old tool results appear now?"""

    def marks(self, moment: Moment) -> tuple[Mark, ...] | Remarked | Refusal:
        """The marks to add to the window, or all of its marks."""


class Replacement(Protocol):
    """What stands in the place of what went?"""

    def message(self, summary: str) -> Message:
        """The message that carries a summary."""

    def place(self, summary: Inserted | None, kept: tuple[Item, ...], tail: tuple[Item, ...],
              moment: Moment) -> tuple[Item, ...]:
        """The items of the new window, in order; `kept` is what stays from before the cut, system messages first.

        `moment` is the one before the cut. `summary` is None where a stage drops without summarising.
        """


class Appendix(Protocol):
    """What does the harness write behind a summary by itself?"""

    @property
    def cumulative(self) -> bool:
        """Whether it speaks of what earlier summaries cover too."""

    def text(self, log: Log, covers: tuple[Span, ...]) -> str:
        """Text from the log ranges that the summary speaks for; empty where there is nothing to say."""


class Reinjection(Protocol):
    """What is put into every view besides?"""

    def messages(self, moment: Moment) -> tuple[Message, ...]:
        """Messages in front of the history, from what the log holds by now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """What a summariser is given."""

    log: Log
    spans: tuple[Span, ...]
    """Log ranges to summarise."""
    previous: tuple[Inserted, ...] = ()
    """Earlier summaries that are part of the input."""
    step: int = 0
    end: int = 0
    """Length of the log at this moment."""
    sections: tuple[str, ...] = ()
    """Section names of the imitated harness, in order."""
    form: Rendering | None = None
    """How the summariser sees messages; None: as they are."""
    marks: tuple[Mark, ...] = ()
    """How the window shows them."""

    @property
    def tokens(self) -> int:
        """Counted tokens of what the summariser reads: the log ranges in their form, and earlier summaries."""
        log = self.log
        marks = self.marks if self.form is None else (*self.marks, Mark(self.form, 0, self.end))
        read = sum(log.item_size(span, marks, log.tokens) for span in self.spans)
        return read + sum(log.inserted_size(item, log.tokens) for item in self.previous)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A summariser's answer."""

    text: str
    by: str
    """Name of the summariser that made it."""
    tokens: int | None = None
    """Size where only the size is modelled; None: the text's own size counts."""
    forgets: bool = False
    """Earlier summaries went into the request but are not in the text: what they spoke for is lost."""


class InputRule(Protocol):
    """What of a summary's input is read where there is a limit?"""

    @property
    def otherwise(self) -> str:
        """What stands for the summary where nothing is read."""

    def words(self) -> str:
        """The limit in words."""

    def limited(self, request: SummaryRequest, capacity: Capacity) -> SummaryRequest | Refusal | None:
        """The request with what is read; a refusal where none is made, None where nothing is left to read."""


class Summariser(Protocol):
    """Writes the summary of what went."""

    @property
    def name(self) -> str:
        """The name that results carry."""

    def summarise(self, request: SummaryRequest) -> Summary | None:
        """The summary; None where there is nothing to summarise (then nothing is cut)."""
