"""How one message fared in a lane: when it came into view, when it was blanked, summarised or dropped, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evals.presence import intact
from replay.engine import Lane, View
from replay.events import Event
from replay.log import Log
from replay.window import Inserted, Span, Window

State = Literal["verbatim", "altered", "summarised", "absent"]


@dataclass(frozen=True, slots=True)
class Passage:
    """A message changes its state in a lane."""

    step: int
    """The first step whose view shows it so."""
    state: State
    """`verbatim`; `altered`: there, but blanked or cut; `summarised`: gone, a summary speaks for it; `absent`:
    gone, and in no summary in view."""
    event: Event | None
    """What made it so; None for its arrival, and where no event names it."""

    @property
    def left(self) -> bool:
        """Whether the view no longer shows the message itself."""
        return self.state in ("summarised", "absent")


def passages(log: Log, lane: Lane, index: int) -> list[Passage]:
    """Every change of a log message's state, in order, from the first view after its arrival."""
    found: list[Passage] = []
    before: Window | None = None
    for view in lane.views:
        if log.steps[view.step - 1].start <= index or (before is not None and _alike(before, view.window)):
            continue
        before = view.window
        state = _state(log, view, index)
        if not found or found[-1].state != state:
            found.append(Passage(view.step, state, _reason(view, index) if found or state != "verbatim" else None))
    return found


def exit_of(found: Sequence[Passage]) -> Passage | None:
    """Where a message first left the view or was altered; None where it stays as it is."""
    return next((p for p in found if p.state != "verbatim"), None)


def _alike(before: Window, after: Window) -> bool:
    """Whether a view only grew at its end."""
    return (before.marks is after.marks and len(before.items) == len(after.items) > 0
            and before.items[:-1] == after.items[:-1] and isinstance(after.items[-1], Span)
            and isinstance(before.items[-1], Span) and before.items[-1].start == after.items[-1].start)


def _state(log: Log, view: View, index: int) -> State:
    if intact(view, index, log):
        return "verbatim"
    items = view.window.items
    if any(isinstance(i, Span) and i.start <= index < i.stop for i in items):
        return "altered"
    holders = [i for i in items if isinstance(i, Inserted) and any(c.start <= index < c.stop for c in i.covers)]
    if any(i.kind == "truncated" for i in holders):
        return "altered"
    return "summarised" if holders else "absent"


def _reason(view: View, index: int) -> Event | None:
    """The event of a view that names the message; else any change that it brought."""
    named = (e for e in view.events if index in e.dropped or index in e.summarised or index in e.elided)
    changes = (e for e in view.events if e.kind in ("full", "micro", "clear"))
    return next(named, next(changes, None))
