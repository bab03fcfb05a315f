"""A recorded session as an immutable log: messages, steps, usage, recorded compactions, notes.

A transcript holds one main thread, the threads of its sub-agents, and branches that were abandoned.
The log of a thread holds what the harness told the model or the model said, in order. Summaries that
the recorded harness made are not in the log: they belong to its `RecordedCompaction`s, so that every
other policy starts from the same history.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

from replay.blocks import Block, Image, Opaque, Reasoning, Text, ToolCall, ToolResult

Role = Literal["system", "developer", "user", "assistant", "tool"]
Origin = Literal["human", "nudge", "injected", "model", "tool", "system", "summary"]
"""Who wrote a message: a person; the program in a person's place (starts a round of its own);
the program beside a person (reminders, environment, attachments); the model; a tool; the system
prompt and its kin (pinned: no policy drops it); a compaction."""

NOTHING: Mapping[str, Any] = MappingProxyType({})


def _nothing() -> Mapping[str, Any]:
    return NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadNote:
    """Something odd in a file: where, what kind, and in words."""

    code: str
    """Kebab-case kind, such as `bad-json`, `cut-tail`, `duplicate`, `unknown-type`."""
    text: str
    line: int | None = None
    """1-based."""
    byte: int | None = None
    """Offset of the line's first byte in the decompressed file, 0-based."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a thread's log."""

    index: int
    """Position in the thread's log, from 0; -1 for a message that is in no log."""
    role: Role
    blocks: tuple[Block, ...]
    origin: Origin
    id: str | None = None
    time: float | None = None
    """Seconds since the epoch."""
    line: int | None = None
    detail: str | None = None
    """What injected it or what kind it is, e.g. `environment_context`, `hook`."""
    extra: Mapping[str, Any] = field(default_factory=_nothing, compare=False, repr=False)
    """Native fields that are not modelled, as they stood."""

    @property
    def text(self) -> str:
        """All text and tool-result text, joined by newlines."""
        return "\n".join(b.text for b in self.blocks if isinstance(b, (Text, ToolResult)))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the message."""
        return tuple(b for b in self.blocks if isinstance(b, ToolCall))

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results of the message."""
        return tuple(b for b in self.blocks if isinstance(b, ToolResult))


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one response, as billed; parts do not overlap."""

    input_uncached: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0
    """Includes reasoning."""
    reasoning: int = 0
    side: Usage | None = None
    """Billed in the same call but not part of the window, e.g. a server-side compaction pass."""

    @property
    def input_total(self) -> int:
        """Tokens that the request sent: uncached + cache reads + cache writes."""
        return self.input_uncached + self.cache_read + self.cache_write_5m + self.cache_write_1h

    @property
    def total(self) -> int:
        """Input and output together."""
        return self.input_total + self.output

    def __add__(self, other: Usage) -> Usage:
        side = self.side + other.side if self.side and other.side else self.side or other.side
        return Usage(
            input_uncached=self.input_uncached + other.input_uncached,
            cache_read=self.cache_read + other.cache_read,
            cache_write_5m=self.cache_write_5m + other.cache_write_5m,
            cache_write_1h=self.cache_write_1h + other.cache_write_1h,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
            side=side,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One model call of a thread."""

    number: int
    """From 1, in the order of the thread's calls."""
    start: int
    """Exclusive end of the log that existed when the request was made: `messages[:start]`."""
    response: int | None
    """Index of the assistant message it produced (then equal to `start`); None: nothing usable came."""
    usage: Usage | None = None
    """None where nothing was recorded, and for rows that report zero tokens (errors, aborts)."""
    model: str | None = None
    time: float | None = None
    """When the response ended, seconds since the epoch."""
    request_id: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCompaction:
    """A change of the window that the recorded harness made itself."""

    position: int
    """It took effect once `messages[:position]` existed: for steps with `start >= position`."""
    kind: Literal["full", "micro", "clear"]
    window: tuple[int | Message, ...] = ()
    """kind full: the window right after it, in order; a number is a log index kept verbatim,
    a Message is what the harness put there. kind clear: empty. kind micro: not used."""
    elided: tuple[int, ...] = ()
    """kind micro: log indices whose tool results were blanked."""
    placeholder: str = "[Old tool result content cleared]"
    """kind micro: what the model saw instead."""
    trigger: str | None = None
    """`auto` or `manual`, where the harness says so."""
    counter_before: int | None = None
    """Tokens before, as the harness itself wrote them."""
    counter_after: int | None = None
    summary: str | None = None
    """Text of the summary; None where there is none or it cannot be read."""
    summary_readable: bool = False
    line: int | None = None
    extra: Mapping[str, Any] = field(default_factory=_nothing, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thread:
    """One conversation with the model: the main one, a sub-agent's, or an abandoned branch."""

    id: str
    messages: tuple[Message, ...] = ()
    steps: tuple[Step, ...] = ()
    compactions: tuple[RecordedCompaction, ...] = ()
    """In order of position."""
    parent_call: str | None = None
    """Id of the main thread's tool call that started a sub-agent, where known."""

    @property
    def usage(self) -> Usage:
        """Sum of the steps' usage."""
        return sum((s.usage for s in self.steps if s.usage), Usage())

    def tool_calls(self) -> Iterator[ToolCall]:
        """Every tool call of the thread, in order."""
        return (call for message in self.messages for call in message.calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a session ended, with where that was read."""

    value: Literal["pass", "fail", "partial", "unknown"]
    source: str
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """One recorded session."""

    format: str
    session_id: str
    path: str
    main: Thread
    subagents: tuple[Thread, ...] = ()
    abandoned: tuple[Thread, ...] = ()
    """Branches that are not in the active view but were billed."""
    notes: tuple[ReadNote, ...] = ()
    parent_session: str | None = None
    harness_version: str | None = None
    model: str | None = None
    window: int | None = None
    """The model's context window, where the file records it."""
    cwd: str | None = None
    system_prompt: str | None = None
    """Only where the file stores it outside the log."""
    outcome: Outcome | None = None
    message_count: int = 0
    """Distinct messages of the active main thread, counted as the format counts them."""
    extra: Mapping[str, Any] = field(default_factory=_nothing, compare=False, repr=False)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The log of the main thread."""
        return self.main.messages

    @property
    def steps(self) -> tuple[Step, ...]:
        """The model calls of the main thread."""
        return self.main.steps

    @property
    def compactions(self) -> tuple[RecordedCompaction, ...]:
        """The recorded compactions of the main thread."""
        return self.main.compactions

    @property
    def threads(self) -> tuple[Thread, ...]:
        """Main thread, sub-agents and abandoned branches."""
        return (self.main, *self.subagents, *self.abandoned)

    @property
    def usage(self) -> Usage:
        """What the whole file was billed, each response once."""
        return sum((t.usage for t in self.threads), Usage())

    def with_notes(self, *notes: ReadNote) -> Transcript:
        """The same transcript with more notes."""
        return replace(self, notes=self.notes + notes)


__all__ = [
    "NOTHING", "Block", "Image", "Message", "Opaque", "Origin", "Outcome", "ReadNote", "Reasoning",
    "RecordedCompaction", "Role", "Step", "Text", "Thread", "ToolCall", "ToolResult", "Transcript", "Usage",
]
