"""The recorded lane: what the harness sent, rebuilt from the transcript's own compaction records."""

from __future__ import annotations

from collections.abc import Iterator

from replay.events import Event
from replay.log import Log
from replay.policy.tool_results import Placeholder
from replay.transcript import Message, RecordedCompaction, Step, Thread
from replay.window import Chosen, Inserted, Item, Mark, Span, Window, joined, spoken_for, without


def recorded_windows(thread: Thread, log: Log) -> Iterator[tuple[Step, Window, tuple[Event, ...]]]:
    """For each step the window that the harness sent, with the recorded compactions since the step before."""
    window = Window()
    pending = list(thread.compactions)
    for step in thread.steps:
        events: list[Event] = []
        while pending and pending[0].position <= step.start:
            compaction = pending.pop(0)
            before = window.extended(compaction.position)
            window = applied(before, compaction)
            events.append(_event(step.number, compaction, before, window, log))
        window = window.extended(step.start)
        yield step, window, tuple(events)


def applied(window: Window, compaction: RecordedCompaction) -> Window:
    """The window right after a recorded compaction."""
    if compaction.kind == "micro":
        blanked = Chosen(Placeholder(text=compaction.placeholder), frozenset(compaction.elided))
        return window.with_mark(Mark(blanked, 0, compaction.position))
    if compaction.kind == "clear" and compaction.elided:
        return window.with_items(without(window.items, frozenset(compaction.elided)))
    covers = spoken_for(window)
    items = joined(_item(part, covers) for part in compaction.window)
    return Window(items, window.marks if items else (), compaction.position)


def _item(part: int | Message, covers: tuple[Span, ...]) -> Item:
    if isinstance(part, int):
        return Span(part, part + 1)
    if part.origin == "summary":
        return Inserted(message=part, kind="summary", covers=covers, label="recorded")
    return Inserted(message=part, kind="injected", label="recorded")


def _event(step: int, compaction: RecordedCompaction, before: Window, after: Window, log: Log) -> Event:
    is_full = compaction.kind == "full"
    gone = _gone(before, after)
    summary = next(iter(after.summaries()), None) if is_full else None
    sizes = log.size(before), log.size(after)
    return Event(kind=compaction.kind, step=step, stage="recorded",
                 reason=f"recorded_{compaction.trigger or compaction.kind}", estimated_tokens=compaction.counter_before,
                 tokens_before=sizes[0], tokens_after=sizes[1], summarised=gone if summary else (),
                 dropped=() if summary else gone, added=summary,
                 elided=compaction.elided if compaction.kind == "micro" else (),
                 summariser="recorded" if summary else None,
                 summary_input_tokens=sizes[0] if summary else None, futile=sizes[1] >= sizes[0],
                 checkpoint=f"recorded-{step}" if is_full else None)


def _gone(before: Window, after: Window) -> tuple[int, ...]:
    kept = set(after.indices())
    return tuple(i for i in before.indices() if i not in kept)
