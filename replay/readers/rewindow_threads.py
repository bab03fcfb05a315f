"""Threads of Rewindow's own format: records that may have lost some of their neighbours, put in order."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from typing import Literal

from replay.transcript import Message, ReadNote, RecordedCompaction, Step, Thread


@dataclass
class ThreadDraft:
    """One thread while its records are read."""

    kind: Literal["subagent", "abandoned"] = "subagent"
    id: str | None = None
    parent_call: str | None = None
    messages: dict[int, Message] = field(default_factory=dict)
    """By the index that the file gives them."""
    steps: list[Step] = field(default_factory=list)
    compactions: list[RecordedCompaction] = field(default_factory=list)

    def built(self, number: int, notes: list[ReadNote]) -> Thread:
        """The finished thread; `number` is its place in the session, notes take what is missing."""
        name = self.id if self.id is not None else "main" if number == 0 else f"thread-{number}"
        kept = sorted(self.messages)
        missing = (kept[-1] + 1 if kept else 0) - len(kept)
        if missing:
            text = f"{missing} messages of thread {name} are not in the file"
            notes.append(ReadNote(code="missing-message", text=text))
        messages = tuple(_at(self.messages[index], place) for place, index in enumerate(kept))
        steps = sorted(self.steps, key=lambda step: (step.start, step.number))
        compactions = sorted(self.compactions, key=lambda compaction: compaction.position)
        return Thread(id=name, messages=messages, parent_call=self.parent_call,
                      steps=tuple(_step(step, place, kept) for place, step in enumerate(steps, 1)),
                      compactions=tuple(_compaction(c, kept) for c in compactions))


def _at(message: Message, place: int) -> Message:
    return message if message.index == place else replace(message, index=place)


def _step(step: Step, number: int, kept: list[int]) -> Step:
    start = bisect_left(kept, step.start)
    response = start if step.response == step.start and kept[start:start + 1] == [step.start] else None
    if (number, start, response) == (step.number, step.start, step.response):
        return step
    return replace(step, number=number, start=start, response=response)


def _compaction(compaction: RecordedCompaction, kept: list[int]) -> RecordedCompaction:
    position = bisect_left(kept, compaction.position)
    window = tuple(part if isinstance(part, Message) else place for part in compaction.window
                   if (place := _place(part, kept)) is not None)
    elided = tuple(place for index in compaction.elided if (place := _place(index, kept)) is not None)
    if (position, window, elided) == (compaction.position, compaction.window, compaction.elided):
        return compaction
    return replace(compaction, position=position, window=window, elided=elided)


def _place(part: int | Message, kept: list[int]) -> int | None:
    """Where a message stands now; -1 for one that is in no log, None for one that is gone."""
    if isinstance(part, Message):
        return -1
    at = bisect_left(kept, part)
    return at if kept[at:at + 1] == [part] else None
