"""One pass over a lane: the fate of every need, whether every edit could be typed, and what would have to be read again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from evals.metrics.base import Trial
from evals.needs import Evidence, evidence
from evals.rereading import Repair, Repairs
from evals.visibility import Sight
from replay.engine import Lane, Session

Fate = Literal["verbatim", "summary", "recoverable", "lost"]
FATES: tuple[Fate, ...] = ("verbatim", "summary", "recoverable", "lost")
VERBATIM, SUMMARY, RECOVERABLE, LOST = range(4)
Verdict = Literal["exact", "lines", "unsafe", "unseen"]


@dataclass(slots=True)
class Watched:
    """What a pass over a lane found."""

    fates: bytearray
    """For each need the position of its fate in `FATES`."""
    verdicts: list[Verdict]
    """For each edit attempt of the session, in order; `unseen`: its old text stands nowhere in the log before it."""
    copies: list[bool]
    """For each read of the session that has an earlier copy: whether the view still showed that."""
    repairs: list[Repair] = field(default_factory=list)
    irrecoverable: int = 0
    """Lost needs of content whose every source is a person's or the assistant's words."""


def watched(trial: Trial) -> Watched:
    """The pass over a trial's lane, made once."""
    kept = vars(trial)
    if "_watched" not in kept:
        kept["_watched"] = _watch(evidence(trial.session), trial.lane, censored(trial.session))
    found: Watched = kept["_watched"]
    return found


def recorded(session: Session) -> Watched:
    """The pass over what the harness itself sent, made once a session."""
    made = evidence(session)
    if made.recorded is None:
        made.recorded = _watch(made, session.recorded, bytes(len(made.needs)))
    found: Watched = made.recorded
    return found


def censored(session: Session) -> bytes:
    """For each need 1 where the recorded view did not hold it: the agent had it from elsewhere, no policy is to blame."""
    return bytes(fate >= RECOVERABLE for fate in recorded(session).fates)


def _watch(made: Evidence, lane: Lane, unseen: bytes) -> Watched:
    sight, needs = Sight(made), made.needs
    found = Watched(fates=bytearray(len(needs)), verdicts=["unseen"] * len(made.files.edits),
                    copies=[False] * len(made.reads))
    repairs = Repairs(made, sight)
    for step, view in enumerate(lane.views):
        if sight.follow(view.window):
            repairs.evict(step)
        rows = needs.bounds.get(step)
        if rows:
            _decide(made, sight, rows, found.fates)
            repairs.take(step, [i for i in rows if found.fates[i] >= RECOVERABLE and not unseen[i]])
        for number in made.edits_at.get(step, ()):
            found.verdicts[number] = made.plans[number].verdict(sight)
        for number in made.reads_at.get(step, ()):
            found.copies[number] = sight.shows(made.reads[number].copy)
    repairs.end(len(lane.views))
    found.repairs, found.irrecoverable = repairs.made, repairs.irrecoverable
    return found


def _decide(made: Evidence, sight: Sight, rows: range, fates: bytearray) -> None:
    """Fates of the needs of one action."""
    span, latest, fresh = made.needs.span, made.needs.latest, sight.fresh
    for i in rows:
        if latest[i] >= fresh or sight.verbatim[span[i]]:
            continue
        if sight.inserted[span[i]]:
            fates[i] = SUMMARY
        else:
            fates[i] = RECOVERABLE if any(map(sight.shows, made.handles(i))) else LOST
