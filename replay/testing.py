"""Public test support: build transcripts in a line each, and count with fixed sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from replay.blocks import Text, ToolCall, ToolResult
from replay.readers.common import ThreadBuilder
from replay.transcript import Message, RecordedCompaction, Transcript, Usage


@dataclass
class Script:
    """Builds a transcript move by move: `Script().user("hi").call("Read", "{}").result("…").say("done")`."""

    format: str = "test"
    session_id: str = "session"
    thread: ThreadBuilder = field(default_factory=lambda: ThreadBuilder(id="main"))
    clock: float = 0.0
    _calls: int = 0

    def user(self, text: str, nudge: bool = False) -> Script:
        """A human prompt, or one that the program writes in a person's place."""
        self.thread.add("user", [Text(text=text)], "nudge" if nudge else "human", time=self._tick())
        return self

    def system(self, text: str) -> Script:
        """A system message in the log."""
        self.thread.add("system", [Text(text=text)], "system", time=self._tick())
        return self

    def call(self, name: str, arguments: str = "{}", text: str = "", usage: Usage | None = None,
             count: int = 1) -> Script:
        """A response that calls a tool (`count` times)."""
        made = [self._call(name, arguments) for _ in range(count)]
        self.thread.respond([*([Text(text=text)] if text else []), *made], usage, time=self._tick())
        return self

    def result(self, text: str, call: int = -1, is_error: bool = False) -> Script:
        """The result of a call of the latest response (`call`: its position in that response)."""
        response = next(m for m in reversed(self.thread.messages) if m.role == "assistant")
        made = response.calls[call]
        block = ToolResult(call_id=made.id, name=made.name, text=text, is_error=is_error)
        self.thread.add("tool", [block], "tool", time=self._tick())
        return self

    def say(self, text: str, usage: Usage | None = None) -> Script:
        """A response without a tool call."""
        self.thread.respond([Text(text=text)], usage, time=self._tick())
        return self

    def compacted(self, *window: int | Message, kind: str = "full", summary: str | None = None) -> Script:
        """A recorded compaction at this place."""
        self.thread.compactions.append(RecordedCompaction(
            position=len(self.thread.messages), kind=kind, window=window, summary=summary,  # type: ignore[arg-type]
            summary_readable=summary is not None))
        return self

    def build(self) -> Transcript:
        """The transcript."""
        thread = self.thread.build()
        return Transcript(format=self.format, session_id=self.session_id, path="<script>", main=thread,
                          message_count=len(thread.messages))

    def _call(self, name: str, arguments: str) -> ToolCall:
        self._calls += 1
        return ToolCall(id=f"call-{self._calls}", name=name, arguments=arguments)

    def _tick(self) -> float:
        self.clock += 1.0
        return self.clock


def summary_message(text: str, role: str = "user") -> Message:
    """A summary as a recorded compaction inserts it."""
    return Message(index=-1, role=role, blocks=(Text(text=text),), origin="summary")  # type: ignore[arg-type]


@dataclass(frozen=True)
class FixedCounter:
    """Counts log messages by a table of sizes, and everything else by its number of characters."""

    sizes: Sequence[int]
    stubs: Mapping[str, int] = field(default_factory=dict, hash=False)
    """Text of a blanked result to its size."""
    name: str = "fixed"

    def tokens(self, messages: Sequence[Message]) -> list[int]:
        """The table's size of each message."""
        return [self._size(m) for m in messages]

    def _size(self, message: Message) -> int:
        if message.text in self.stubs:
            return self.stubs[message.text]
        return self.sizes[message.index] if 0 <= message.index < len(self.sizes) else len(message.text)
