"""V1's units: what each recorded compaction, and each step that only could have been one, did to the files known."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evals.needs import weight
from evals.validity_files import KnownFile, injected_texts, known_files, reads_again
from evals.visibility import Sight
from evals.watch import Study, study
from replay.engine import Session, View
from replay.transcript import RecordedCompaction
from replay.window import Inserted

HORIZONS = (5, 20)
"""Steps after an event within which a file counts as read again."""
TAILS = (0, 5, 10, 20, 50, 100)
"""Kept messages of the dose-response table."""
PLACEBOS = 5
"""Steps without a compaction that are compared with each event, at most."""
APART = 20
"""Steps between any compaction and such a step, at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A file at an event: whether its content was lost, and whether it was read again."""

    session: str
    event: int
    """Position of the step whose view came right after."""
    placebo: bool
    lost: bool
    """Nothing of its content is in the view; for a placebo: would be, by the rule of the event that it stands for."""
    score: float
    """Share of the weight of its needed spans that the view lost, 0 where it is not lost."""
    age: int
    """Steps since it was read or changed."""
    uses: int
    """Reads and changes so far."""
    edited_age: int | None
    distance: int
    """Log messages behind its newest content."""
    again: tuple[bool, ...]
    """For each horizon whether it was read again, unchanged."""
    again_unforced: tuple[bool, ...]
    """The same without reads right before an edit, which a harness may demand."""


@dataclass(frozen=True, slots=True)
class _Event:
    step: int
    compaction: RecordedCompaction
    since: int
    """Log index of the compaction before it, 0 without one."""


def units(session: Session) -> tuple[Unit, ...]:
    """The units of all full compactions of a session and of their placebos."""
    events = list(_events(session))
    if not events:
        return ()
    own, sight = study(session), Sight(study(session).evidence)
    views, wanted = session.recorded.views, {e.step: e for e in events}
    found: list[Unit] = []
    for step, view in enumerate(views):
        sight.follow(view.window)
        if step in wanted:
            found += _real(session, own, sight, view, wanted[step], events)
    return tuple(found)


def _events(session: Session) -> Iterator[_Event]:
    starts, since = [s.start for s in session.log.steps], 0
    for compaction in session.transcript.compactions:
        if compaction.kind == "micro":
            continue
        step = bisect_left(starts, compaction.position)
        if compaction.kind == "full" and step < len(starts):
            yield _Event(step, compaction, since)
        since = compaction.position


def _real(session: Session, own: Study, sight: Sight, view: View, event: _Event,
          events: Sequence[_Event]) -> Iterator[Unit]:
    made = own.evidence
    first, stop = made.index.first_unit[event.since], made.index.first_unit[event.compaction.position]
    files = known_files(own, first, stop)
    texts = [*injected_texts(own, event.compaction.position, session.log.steps[event.step].start),
             *(i.message.text for i in view.window.items if isinstance(i, Inserted) and i.kind != "summary")]
    restored = 0
    for known in files:
        back = any(known.path in text for text in texts)
        restored += back
        lost = not back and not any(map(sight.shows, known.blocks))
        score = _score(own, sight, known, event.step, stop) if lost else 0.0
        yield _unit(session, own, known, event.step, lost=lost, score=score, placebo=False)
    kept = sum(isinstance(item, int) for item in event.compaction.window)
    for step in _placebos(session, event, events):
        yield from _would_be(session, own, step, kept, restored, events)


def _score(own: Study, sight: Sight, known: KnownFile, step: int, before: int) -> float:
    """Share of the weight of the file's spans, of those that an action before the event needed, that is not in view."""
    made = own.evidence
    needs = made.needs
    needed = set(needs.span[:bisect_left(needs.steps, step)])
    spans = {n for block in known.blocks for n in made.unit_spans[block]} & needed
    total = gone = 0.0
    for number in spans:
        own_weight = weight(bisect_left(made.places[number], before), before)
        total += own_weight
        gone += own_weight if not sight.verbatim[number] and not sight.inserted[number] else 0.0
    return gone / total if total else 1.0


def _unit(session: Session, own: Study, known: KnownFile, step: int, *, lost: bool, score: float,
          placebo: bool) -> Unit:
    again = [list(reads_again(own, known, step, within)) for within in HORIZONS]
    newest = own.evidence.index.units[known.blocks[-1]].message
    return Unit(session=session.transcript.session_id, event=step, placebo=placebo, lost=lost, score=score,
                age=step - known.steps[-1], uses=len(known.steps),
                edited_age=None if known.edited is None else step - known.edited,
                distance=session.log.steps[step].start - newest, again=tuple(bool(found) for found in again),
                again_unforced=tuple(any(not forced for _, forced in found) for found in again))


def _placebos(session: Session, event: _Event, events: Sequence[_Event]) -> list[int]:
    """Steps far from any compaction whose views are nearest in size to the one before the event."""
    views, at = session.recorded.views, [e.step for e in events]
    size = views[event.step - 1].figure.tokens if event.step else 0
    steps = [s for s in range(APART, len(views) - APART) if _is_apart(s, at)]
    nearest = sorted(steps, key=lambda s: (abs(views[s].figure.tokens - size), s))
    chosen: list[int] = []
    for step in nearest:
        if len(chosen) < PLACEBOS and all(abs(step - other) >= APART for other in chosen):
            chosen.append(step)
    return chosen


def _is_apart(step: int, events: Sequence[int]) -> bool:
    place = bisect_right(events, step)
    return all(abs(step - other) >= APART for other in events[max(0, place - 1):place + 1])


def _would_be(session: Session, own: Study, step: int, kept: int, restored: int,
              events: Sequence[_Event]) -> Iterator[Unit]:
    """The files known at a placebo; lost where the event's rule (a tail of messages, the newest files) drops them."""
    first = own.evidence.index.first_unit
    since = max((e.compaction.position for e in events if e.step <= step), default=0)
    files = known_files(own, first[since], own.evidence.start_of(step))
    newest = {id(f) for f in sorted(files, key=lambda f: -f.blocks[-1])[:restored]}
    for known in files:
        message = own.evidence.index.units[known.blocks[-1]].message
        lost = id(known) not in newest and message < session.log.steps[step].start - kept
        yield _unit(session, own, known, step, lost=lost, score=float(lost), placebo=True)
