"""Putting sentences into a recorded session, and making it longer: a changed transcript, the original stays as it is.

A sentence goes into the prompt of a person near its place. Where none is near it becomes a prompt of its own, behind a
finished request, so that no call is parted from its result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from replay.blocks import Block, Text, ToolCall, ToolResult
from replay.transcript import Message, RecordedCompaction, Step, Thread, Transcript

NEAR = 0.05
"""A prompt is near within this share of the log's length."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a sentence goes in the original log."""

    index: int
    """A prompt that takes it up, or the message in front of which it becomes one."""
    own: bool
    """It becomes a prompt of its own."""


def place(thread: Thread, depth: float) -> Place:
    """The place at a depth from 0 (the first message) to 1 (the last step's request)."""
    last = thread.steps[-1].start if thread.steps else len(thread.messages)
    target = round(depth * (last - 1)) if last else 0
    prompts = [m.index for m in thread.messages[:last] if m.origin == "human" and m.role == "user"]
    nearest = min(prompts, key=lambda i: abs(i - target), default=None)
    if nearest is not None and (abs(nearest - target) <= max(1, NEAR * last)):
        return Place(nearest, own=False)
    requests = [s.start for s in thread.steps]
    return Place(min(requests, key=lambda i: abs(i - target), default=0), own=True)


def planted(transcript: Transcript, sentences: Mapping[Place, Sequence[str]]) -> tuple[Transcript, dict[Place, int]]:
    """The transcript with the sentences in it, and the log index at which those of each place stand.

    Recorded compactions keep their places, but what they inserted knows nothing of the sentences.
    """
    thread = transcript.main
    messages: list[Message] = []
    moved: list[int] = []
    stands: dict[Place, int] = {}
    for message in (*thread.messages, None):
        index = len(moved)
        own = Place(index, own=True)
        if own in sentences:
            stands[own] = len(messages)
            messages.append(_prompt(len(messages), sentences[own], thread.messages[index - 1] if index else None))
        moved.append(len(messages))
        if message is not None:
            inside = Place(index, own=False)
            more = sentences.get(inside, ())
            stands |= {inside: len(messages)} if more else {}
            blocks = (*message.blocks, *(Text(text=s) for s in more))
            messages.append(replace(message, index=len(messages), blocks=blocks))
    steps = tuple(_moved_step(s, moved) for s in thread.steps)
    compactions = tuple(_moved_compaction(c, moved) for c in thread.compactions)
    main = replace(thread, messages=tuple(messages), steps=steps, compactions=compactions)
    return replace(transcript, main=main), stands


def _prompt(index: int, sentences: Sequence[str], before: Message | None) -> Message:
    return Message(index=index, role="user", origin="human", blocks=tuple(Text(text=s) for s in sentences),
                   time=before.time if before else None)


def _moved_step(step: Step, moved: Sequence[int]) -> Step:
    """A request that ended in front of a new prompt takes it in."""
    response = None if step.response is None else moved[step.response]
    return replace(step, start=moved[step.start], response=response)


def _moved_compaction(made: RecordedCompaction, moved: Sequence[int]) -> RecordedCompaction:
    window = tuple(moved[p] if isinstance(p, int) else p for p in made.window)
    return replace(made, position=moved[made.position], window=window, elided=tuple(moved[i] for i in made.elided))


def longer(transcript: Transcript, start: int, times: int) -> Transcript:
    """The session with everything from log index `start` on once more, `times` times: work that states nothing new.

    Call ids are made distinct; usage is left out of the repeats, where the recorded sizes would be wrong.
    """
    thread = transcript.main
    messages, steps = list(thread.messages), list(thread.steps)
    start = next((s.start for s in thread.steps if s.start >= start), len(thread.messages))
    length = len(thread.messages) - start
    again = [s for s in thread.steps if s.start >= start]
    for turn in range(1, times + 1):
        shift = turn * length
        messages += [_repeat(m, shift, turn) for m in thread.messages[start:]]
        steps += [replace(s, number=len(steps) + n, start=s.start + shift, usage=None,
                          response=None if s.response is None else s.response + shift) for n, s in enumerate(again, 1)]
    return replace(transcript, main=replace(thread, messages=tuple(messages), steps=tuple(steps)))


def _repeat(message: Message, shift: int, turn: int) -> Message:
    return replace(message, index=message.index + shift, blocks=tuple(_renamed(b, turn) for b in message.blocks))


def _renamed(block: Block, turn: int) -> Block:
    if isinstance(block, ToolCall):
        return replace(block, id=f"{block.id}~{turn}")
    return replace(block, call_id=f"{block.call_id}~{turn}") if isinstance(block, ToolResult) else block
