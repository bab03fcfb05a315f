"""One pass over a lane: the fate of every need, whether every edit could be typed, what would have to be read again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from evals.acquisition import Acquisitions
from evals.edits import EditPlan, Verdict, plans
from evals.needs import evidence
from evals.rereading import Repair, Repairs, Reread, classified
from evals.spans_calls import Deed
from evals.spans_files import Act
from evals.tally import LOST, RECOVERABLE, SUMMARY, Scale
from evals.visibility import Sight
from replay.engine import Lane, Session

if TYPE_CHECKING:
    from evals.metrics.base import Trial

Fate = Literal["verbatim", "summary", "recoverable", "lost"]
FATES: tuple[Fate, ...] = ("verbatim", "summary", "recoverable", "lost")


@dataclass(slots=True)
class Watched:
    """What a pass over a lane found."""

    fates: bytearray
    """For each need the position of its fate in `FATES`."""
    verdicts: list[Verdict]
    """For each edit attempt of the session, in order."""
    copies: list[bool]
    """For each recorded read whether the view still showed an earlier copy of the same."""
    repairs: list[Repair] = field(default_factory=list)
    irrecoverable: int = 0
    """Lost needs of content whose every source is a person's or the assistant's words."""


class Study:
    """What the lanes of a session are judged by; nothing here depends on a policy."""

    def __init__(self, session: Session) -> None:
        """Nothing is computed yet."""
        self.evidence = evidence(session)
        self._lane = session.recorded
        self._step_of = {s.response: n for n, s in enumerate(session.log.steps) if s.response is not None}

    @cached_property
    def acquisitions(self) -> Acquisitions:
        """How the session came to know what it knows."""
        return Acquisitions(self.evidence)

    def step_of(self, act: Act) -> int | None:
        """Position of the step that made a call; None where no step of this thread did, as in an inherited history."""
        return self._step_of.get(self.evidence.index.units[act.call].message)

    @cached_property
    def plans(self) -> list[EditPlan]:
        """The edits that a step of the session made, in order."""
        return [p for p in plans(self.evidence) if self.step_of(p.attempt.act) is not None]

    @cached_property
    def edits_at(self) -> dict[int, list[int]]:
        """Positions of steps to the numbers of their edits."""
        return self._by_step(p.attempt.act for p in self.plans)

    @cached_property
    def reads(self) -> list[Reread]:
        """The recorded reads of files that a step of the session made, in order."""
        return [r for r in classified(self.evidence) if self.step_of(r.act) is not None]

    @cached_property
    def reads_at(self) -> dict[int, list[int]]:
        """Positions of steps to the numbers of their reads."""
        return self._by_step(r.act for r in self.reads)

    def _by_step(self, acts: Iterable[Act]) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for number, act in enumerate(acts):
            found.setdefault(self._step_of[self.evidence.index.units[act.call].message], []).append(number)
        return found

    @cached_property
    def deeds(self) -> list[Deed]:
        """What the calls of the session's steps did, in order."""
        return [a.deed for a in self.evidence.files.acts if self.step_of(a) is not None]

    @cached_property
    def recorded(self) -> Watched:
        """The pass over what the harness itself sent; what it did not hold the agent had from elsewhere: no repairs."""
        return self.watch(self._lane, b"\1" * len(self.evidence.needs))

    @cached_property
    def censored(self) -> bytes:
        """For each need 1 where the recorded view did not hold it: the agent had it from elsewhere."""
        return bytes(fate >= RECOVERABLE for fate in self.recorded.fates)

    @cached_property
    def scale(self) -> Scale:
        """The needs that count, ready to be summed."""
        return Scale(self.evidence.needs, self.censored)

    def watch(self, lane: Lane, ignored: bytes) -> Watched:
        """Follow a lane from view to view. `ignored`: needs that cause no repair."""
        made, sight = self.evidence, Sight(self.evidence)
        found = Watched(bytearray(len(made.needs)), ["unseen"] * len(self.plans), [False] * len(self.reads))
        repairs = Repairs(made, self.acquisitions, sight)
        for step, view in enumerate(lane.views):
            if sight.follow(view.window):
                repairs.evict(step)
            self._decide(step, sight, found)
            lost = [i for i in made.needs.bounds.get(step, ()) if found.fates[i] >= RECOVERABLE and not ignored[i]]
            repairs.take(step, lost)
        repairs.end(len(lane.views))
        found.repairs, found.irrecoverable = repairs.made, repairs.irrecoverable
        return found

    def _decide(self, step: int, sight: Sight, found: Watched) -> None:
        """What one view means for the action that followed it."""
        self._decide_needs(self.evidence.needs.bounds.get(step), sight, found.fates)
        for number in self.edits_at.get(step, ()):
            found.verdicts[number] = self.plans[number].verdict(self.evidence, sight)
        for number in self.reads_at.get(step, ()):
            copy = self.reads[number].copy
            found.copies[number] = copy is not None and sight.shows(copy)

    def _decide_needs(self, rows: range | None, sight: Sight, fates: bytearray) -> None:
        span, latest, fresh = self.evidence.needs.span, self.evidence.needs.latest, sight.fresh
        for i in rows or ():
            if latest[i] >= fresh or sight.verbatim[span[i]]:
                continue
            if sight.inserted[span[i]]:
                fates[i] = SUMMARY
            else:
                fates[i] = RECOVERABLE if any(map(sight.shows, self.acquisitions.handles(i))) else LOST


def study(session: Session) -> Study:
    """The study of a session, made once and kept with it."""
    kept = vars(session)
    found: Study | None = kept.get("_study")
    if found is None or found.evidence is not evidence(session):
        found = kept["_study"] = Study(session)
    return found


def watched(trial: Trial) -> Watched:
    """The pass over a trial's lane, made once and kept with it."""
    kept = vars(trial)
    if "_watched" not in kept:
        own = study(trial.session)
        kept["_watched"] = own.recorded if trial.lane is trial.session.recorded else own.watch(trial.lane, own.censored)
    found: Watched = kept["_watched"]
    return found
