"""The growing log of one Claude Code thread: results at once, everything else when the model is about to speak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from replay.blocks import Block
from replay.readers.claude_code_blocks import UNKNOWN_BLOCK, Complain
from replay.readers.claude_code_lines import Line
from replay.readers.claude_code_speakers import Speaker
from replay.readers.common import ThreadBuilder, seconds
from replay.readers.odd_types import OddTypes
from replay.transcript import Message, ReadNote, Role

_MODELLED = ("type", "message", "uuid", "parentUuid", "timestamp", "isSidechain", "requestId")


class _Held(NamedTuple):
    """A message that waits until the tool results of its turn are in the log."""

    line: Line
    blocks: list[Block]
    speaker: Speaker
    is_queued: bool


@dataclass
class ThreadLog:
    """Adds messages to a thread and remembers where each record went.

    Between two responses the service wants the tool results first, so other messages of the user's side are
    held until the next response.
    """

    thread: ThreadBuilder
    notes: list[ReadNote]
    odd: OddTypes = field(default_factory=lambda: OddTypes("content block", fate="kept as an opaque block"))
    places: dict[str, int] = field(default_factory=dict)
    """Log index of each uuid."""
    _held: list[_Held] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.thread.messages)

    def add(self, line: Line, role: Role, blocks: Sequence[Block], speaker: Speaker) -> None:
        """Append a message that one line holds."""
        message = message_of(line, role, blocks, speaker, len(self))
        self.thread.messages.append(message)
        self.placed([line], message.index)

    def placed(self, lines: Sequence[Line], index: int) -> None:
        """Remember that these lines are the message at `index`."""
        for line in lines:
            if line.uuid:
                self.places.setdefault(line.uuid, index)

    def hold(self, line: Line, blocks: list[Block], speaker: Speaker, is_queued: bool = False) -> None:
        """Take a message of the user's side that follows the tool results of its turn.

        `is_queued`: its line only tells the time at which it was sent, not its place.
        """
        self._held.append(_Held(line, blocks, speaker, is_queued))

    def release(self, stamp: str = "") -> None:
        """The model speaks next (at `stamp`, where known): append what was held."""
        held, self._held = self._held, []
        for waiting in held:
            if waiting.is_queued and stamp and waiting.line.stamp > stamp:
                self._held.append(waiting)
            else:
                self.add(waiting.line, "user", waiting.blocks, waiting.speaker)

    def complaint(self, line: Line) -> Complain:
        """A function that notes something odd about a line."""
        def complain(code: str, text: str) -> None:
            if code == UNKNOWN_BLOCK:
                self.odd.add(text, line.number, line.byte)
                return
            self.notes.append(ReadNote(code=code, text=text, line=line.number, byte=line.byte))
        return complain


def message_of(line: Line, role: Role, blocks: Sequence[Block], speaker: Speaker, index: int = -1) -> Message:
    """The message that a line holds."""
    origin, detail = speaker
    return Message(index=index, role=role, blocks=tuple(blocks), origin=origin, id=line.uuid,
                   time=seconds(line.value.get("timestamp")), line=line.number, detail=detail,
                   extra=MappingProxyType(rest_of(line.value)))


def rest_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a record that the model has no place for."""
    rest = dict(value)
    for key in _MODELLED:
        rest.pop(key, None)
    return rest
