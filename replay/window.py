"""What is in context now, as ranges of the log and inserted messages: small, immutable, cheap to extend."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from replay.transcript import Message

InsertedKind = Literal["summary", "injected", "notice", "truncated"]


@dataclass(frozen=True, slots=True)
class Span:
    """The log's messages `[start, stop)`, verbatim but for the window's marks."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inserted:
    """A message of the window that is not in the log, or stands for one that is."""

    message: Message
    kind: InsertedKind
    covers: tuple[Span, ...] = ()
    """Log ranges that a summary speaks for, or the message that was truncated."""
    tokens: int | None = None
    """Size where the text itself is only modelled (summariser `length-model`)."""
    label: str | None = None
    """What made it, e.g. the summariser's name."""


Item = Span | Inserted


class Rendering(Protocol):
    """Shows a message in another form; it must leave calls and ids alone."""

    def render(self, message: Message) -> Message:
        """The message as the model sees it; the same object where nothing changes."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Log messages `[start, stop)` are shown through a rendering."""

    rendering: Rendering
    start: int
    stop: int
    only: frozenset[int] | None = None
    """The indices concerned; None: all of the range that the rendering changes."""


@dataclass(frozen=True, slots=True)
class Window:
    """What is in context: items in order and the marks that change how log messages are shown."""

    items: tuple[Item, ...] = ()
    marks: tuple[Mark, ...] = ()
    end: int = 0
    """Length of the log that the window has seen."""

    def extended(self, stop: int) -> Window:
        """The window after the log grew to `stop` messages."""
        if stop <= self.end:
            return self
        last = self.items[-1] if self.items else None
        if isinstance(last, Span) and last.stop == self.end:
            return Window((*self.items[:-1], Span(last.start, stop)), self.marks, stop)
        return Window((*self.items, Span(self.end, stop)), self.marks, stop)

    def with_items(self, items: tuple[Item, ...]) -> Window:
        """The same marks over other items; empty spans are dropped."""
        kept = tuple(i for i in items if not isinstance(i, Span) or i.stop > i.start)
        return Window(kept, self.marks, self.end)

    def with_mark(self, mark: Mark) -> Window:
        """With a mark added, or an equal one of the same rendering widened."""
        marks = list(self.marks)
        for position, old in enumerate(marks):
            if old.rendering == mark.rendering and old.only is None and mark.only is None:
                marks[position] = replace(old, start=min(old.start, mark.start), stop=max(old.stop, mark.stop))
                return Window(self.items, tuple(marks), self.end)
        return Window(self.items, (*marks, mark), self.end)

    def indices(self) -> Iterator[int]:
        """The log indices that are visible, in view order."""
        for item in self.items:
            if isinstance(item, Span):
                yield from range(item.start, item.stop)

    def message_count(self) -> int:
        """Messages in the window; an inserted one counts as one."""
        return sum(i.stop - i.start if isinstance(i, Span) else 1 for i in self.items)

    def summaries(self) -> tuple[Inserted, ...]:
        """The summaries in the window."""
        return tuple(i for i in self.items if isinstance(i, Inserted) and i.kind == "summary")


def spans_after(items: tuple[Item, ...], index: int) -> tuple[Item, ...]:
    """The part of the items whose log messages have an index of at least `index`; inserted items drop out."""
    return tuple(Span(max(i.start, index), i.stop) for i in items if isinstance(i, Span) and i.stop > index)


def spans_before(items: tuple[Item, ...], index: int) -> tuple[Span, ...]:
    """The log ranges of the items below `index`."""
    return tuple(Span(i.start, min(i.stop, index)) for i in items if isinstance(i, Span) and i.start < index)
