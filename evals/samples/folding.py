"""When each harness compacts by itself, and what it keeps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from evals.samples.recording import Entry

PROMPT_TOKENS = 20_000
KEEP_ROUNDS = 10


class Keeper(Protocol):
    """A harness's habit."""

    @property
    def when(self) -> Literal["request", "turn"]:
        """Whether it looks before every request, or only when a turn has ended."""

    def window(self, view: Sequence[Entry], summary: Entry, tokens: int) -> tuple[Entry, ...] | None:
        """The window after a compaction of a view, with a tail of about `tokens`; None where it refuses."""


def characters(entry: Entry) -> int:
    """Characters of an entry: text, thinking, names and arguments of calls."""
    return len(entry.text) + len(entry.thinking) + sum(len(call.name) + len(call.text) for call in entry.calls)


@dataclass(frozen=True)
class KeepNothing:
    """Claude Code: the summary stands alone."""

    when: Literal["request", "turn"] = "request"

    def window(self, view: Sequence[Entry], summary: Entry, tokens: int) -> tuple[Entry, ...] | None:
        """The summary."""
        return (summary,)


@dataclass(frozen=True)
class KeepPrompts:
    """Codex: what the person said, the newest 20,000 tokens of it, then the summary; injected text in front
    of the last prompt."""

    when: Literal["request", "turn"] = "request"

    def window(self, view: Sequence[Entry], summary: Entry, tokens: int) -> tuple[Entry, ...] | None:
        """Prompts in order with the summary last."""
        prompts = [entry for entry in view if entry.kind == "prompt"]
        injected = [entry for entry in view if entry.kind == "injected"]
        kept: list[Entry] = []
        for entry in reversed(prompts):
            if sum(map(characters, [*kept, entry])) // 4 > PROMPT_TOKENS:
                break
            kept.insert(0, entry)
        return (*kept[:-1], *injected, *kept[-1:], summary)


@dataclass(frozen=True)
class KeepTail:
    """Pi and Decode: the summary, then the newest messages, cut where no result is parted from its call."""

    when: Literal["request", "turn"]
    forward: bool
    """Whether the cut moves on to the next allowed place (Pi) or back to the one before (Decode)."""

    def window(self, view: Sequence[Entry], summary: Entry, tokens: int) -> tuple[Entry, ...] | None:
        """Summary and tail; None where everything fits into the tail."""
        cut = self._cut(view, tokens)
        return (summary, *view[cut:]) if cut else None

    def _cut(self, view: Sequence[Entry], tokens: int) -> int:
        total, place = 0, len(view)
        while place and total < tokens:
            place -= 1
            total += -(-characters(view[place]) // 4)
        step = 1 if self.forward else -1
        while 0 < place < len(view) and view[place].kind == "result":
            place += step
        return max(0, place)


@dataclass(frozen=True)
class KeepRounds:
    """MyCodeAgent: the summary, then the last ten rounds; it refuses while there are no more than ten."""

    when: Literal["request", "turn"] = "request"

    def window(self, view: Sequence[Entry], summary: Entry, tokens: int) -> tuple[Entry, ...] | None:
        """Summary and rounds."""
        starts = [place for place, entry in enumerate(view) if entry.kind == "prompt"]
        if len(starts) <= KEEP_ROUNDS:
            return None
        return (summary, *view[starts[-KEEP_ROUNDS]:])


KEEPERS: Mapping[str, Keeper] = {
    "claude-code": KeepNothing(),
    "codex": KeepPrompts(),
    "pi": KeepTail("request", forward=True),
    "decode": KeepTail("turn", forward=False),
    "mycodeagent": KeepRounds(),
}
"""Format name to its harness's habit; harnesses that never compact are not listed."""
