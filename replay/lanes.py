"""The recorded lane: what the harness sent, rebuilt from the transcript's own compaction records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from replay.events import Event
from replay.log import Log
from replay.policy.tool_results import Placeholder
from replay.transcript import Message, RecordedCompaction, Step, Thread
from replay.window import Inserted, Item, Mark, Span, Window


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
        mark = Mark(Placeholder(text=compaction.placeholder), 0, compaction.position, frozenset(compaction.elided))
        return Window(window.items, (*window.marks, mark), window.end)
    covers = tuple(Span(i.start, i.stop) for i in window.items if isinstance(i, Span))
    items = tuple(_items(compaction.window, covers))
    return Window(items, window.marks if items else (), compaction.position)


def _items(parts: Sequence[int | Message], covers: tuple[Span, ...]) -> Iterator[Item]:
    """Ranges for runs of log indices, inserted messages for the rest."""
    run: Span | None = None
    for part in parts:
        if isinstance(part, int):
            if run is not None and run.stop == part:
                run = Span(run.start, part + 1)
                continue
            if run is not None:
                yield run
            run = Span(part, part + 1)
            continue
        if run is not None:
            yield run
            run = None
        is_summary = part.origin == "summary"
        yield Inserted(message=part, kind="summary" if is_summary else "injected",
                       covers=covers if is_summary else (), label="recorded")
    if run is not None:
        yield run


def _event(step: int, compaction: RecordedCompaction, before: Window, after: Window, log: Log) -> Event:
    gone = _gone(before, after)
    summary = next(iter(after.summaries()), None)
    sizes = log.size(before), log.size(after)
    return Event(kind=compaction.kind, step=step, stage="recorded", reason=f"recorded_{compaction.trigger or 'compaction'}",
                 estimated_tokens=compaction.counter_before, tokens_before=sizes[0], tokens_after=sizes[1],
                 summarised=gone if summary else (), dropped=() if summary else gone, elided=compaction.elided,
                 added=summary if compaction.kind == "full" else None,
                 summariser="recorded" if summary else None, futile=sizes[1] >= sizes[0],
                 checkpoint=f"recorded-{step}" if compaction.kind == "full" else None)


def _gone(before: Window, after: Window) -> tuple[int, ...]:
    kept = set(after.indices())
    return tuple(i for i in before.indices() if i not in kept)
