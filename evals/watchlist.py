"""What retention metrics look for in a session's views: constraints, open tasks, files, failures; found once.

A lane is then followed once, for all metrics together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar
from weakref import WeakKeyDictionary, ref

from evals.actions import Action, actions
from evals.artifacts import Artifact, artifacts, bare_names, distinct
from evals.constraints import Constraint, constraints
from evals.failures import Failure, Retry, failure, retries
from evals.log_search import Ask
from evals.mentions import LETTER, NO_PIECES, SENSE, Mentions, Pieces, asked_per_view
from evals.needs import evidence
from evals.phrase_kinds import FilePath, Task
from evals.phrases import Phrase
from evals.plans import Plan, plans
from evals.presence import IntArray, Presence, arrivals, presence
from replay.engine import Lane, Session

T = TypeVar("T")
Asked = tuple[int, int]
"""Positions `[first, stop)` of the views that a phrase matters in."""


@dataclass(frozen=True, slots=True)
class Section:
    """The phrases of one kind: their numbers in the watchlist and the views that ask for them."""

    first: int
    asked: tuple[Asked, ...]

    @property
    def stop(self) -> int:
        """One past the last number."""
        return self.first + len(self.asked)


@dataclass(frozen=True, slots=True)
class OpenTask:
    """An item of a plan and the views between its first open state and the state that closed it."""

    text: str
    message: int
    """Log index of the plan that opened it."""
    asked: Asked
    closed: int | None = None
    """Log index of the plan that closed it; None: it is open at the end."""


class Watchlist:
    """A session's phrases with their places in its log."""

    def __init__(self, session: Session) -> None:
        """Nothing is searched before it is asked for."""
        self._log, self._transcript = session.log, session.transcript
        self._session = ref(session)
        self._followed: tuple[Lane, Presence] | None = None
        self._pieces: dict[tuple[int, int], Pieces] = {}
        self._asked: dict[str, Any] = {}
        self.notes: dict[str, Any] = {}
        """What metrics worked out for the session and want to find again, by a name of their own."""

    @cached_property
    def views(self) -> int:
        """Number of views of any lane."""
        return len(self._log.steps)

    @cached_property
    def arrival(self) -> IntArray:
        """For each message the position of the first view that could show it."""
        return arrivals(self._log)

    @cached_property
    def positions(self) -> dict[int, int]:
        """For each response its log index and the position of the view that it answered."""
        return {s.response: n for n, s in enumerate(self._log.steps) if s.response is not None}

    def position(self, message: int) -> int:
        """The position of the view that a message of the model answered."""
        return self.positions.get(message, min(int(self.arrival[message]), self.views) - 1)

    @cached_property
    def actions(self) -> list[Action]:
        """Every call with its result."""
        return actions(self._log)

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """Standing constraints."""
        return constraints(self._transcript, self._log)

    @cached_property
    def plans(self) -> list[Plan]:
        """States of the plan."""
        return plans(self.actions)

    @cached_property
    def tasks(self) -> list[OpenTask]:
        """Items of the plan while they are open."""
        return list(_open_tasks(self.plans, self.until))

    @cached_property
    def files(self) -> dict[str, Artifact]:
        """Files by each of their names."""
        return artifacts(self.actions, self._transcript.cwd)

    @cached_property
    def retries(self) -> list[Retry]:
        """Calls that try again what had failed."""
        found = ((r, self.position(r.before.message), self.position(r.action.message)) for r in retries(self.actions))
        return [r for r, before, now in found if not any(before < c <= now for c in self.clears)]

    @cached_property
    def modified(self) -> list[Artifact]:
        """Files that were changed, each once."""
        return [a for a in distinct(self.files) if a.modified is not None]

    @cached_property
    def read(self) -> list[Artifact]:
        """Files that were read, each once."""
        return [a for a in distinct(self.files) if a.read is not None]

    @cached_property
    def sections(self) -> dict[str, Section]:
        """Where each kind of phrase stands: `constraints`, `tasks`, `modified`, `read`, `failures`."""
        return self._layout[0]

    @cached_property
    def mentions(self) -> Mentions:
        """The places of all phrases in the log."""
        session = self._session()
        return Mentions(self._log, self._layout[1], evidence(session).index if session else None)

    @cached_property
    def _layout(self) -> tuple[dict[str, Section], list[Ask]]:
        sections: dict[str, Section] = {}
        asks: list[Ask] = []
        for name, rows in self._rows():
            sections[name] = Section(len(asks), tuple((a.first, a.stop) for a in rows))
            asks += rows
        return sections, asks

    def _rows(self) -> Iterator[tuple[str, list[Ask]]]:
        yield "constraints", [self._ask(c.rule, c.message, c.until) for c in self.constraints]
        yield "tasks", [Ask(phrase=Task(t.text), first=t.asked[0], stop=t.asked[1], source=t.message, since=t.message,
                            until=t.closed) for t in self.tasks]
        bare = bare_names(distinct(self.files))
        yield "modified", [self._ask(_named(a, bare), a.modified or 0, None, 0) for a in self.modified]
        yield "read", [self._ask(_named(a, bare), a.read or 0, None, 0) for a in self.read]
        yield "failures", [self._retried(r) for r in self.retries]

    def _ask(self, phrase: Phrase, message: int, stop: int | None, since: int | None = None) -> Ask:
        first, last = self.until(message, stop)
        return Ask(phrase=phrase, first=first, stop=last, source=message, until=stop,
                   since=message if since is None else since)

    def _retried(self, retry: Retry) -> Ask:
        at = self.position(retry.action.message)
        return Ask(phrase=failure(retry), first=at, stop=at + 1, since=retry.before.message, until=retry.action.message)

    def until(self, start: int | None, stop: int | None) -> Asked:
        """The views between two messages; a person who clears the window starts anew."""
        first = int(self.arrival[start or 0])
        last = self.views if stop is None else int(self.arrival[stop])
        return first, next((c for c in self.clears if first < c < last), last)

    @cached_property
    def clears(self) -> list[int]:
        """Positions of the first views after the person had cleared the window."""
        starts = [s.start for s in self._log.steps]
        return [bisect_left(starts, c.position) for c in self._transcript.compactions if c.kind == "clear"]

    def asked(self, section: str) -> Any:
        """For each view how many phrases of a section matter in it."""
        if section not in self._asked:
            self._asked[section] = asked_per_view(self.sections[section].asked, self.views)
        return self._asked[section]

    def presence(self, lane: Lane) -> Presence:
        """What a lane showed when; the latest lane is remembered."""
        if self._followed is None or self._followed[0] is not lane:
            self._followed = lane, presence(lane.views, self._log)
            self._pieces = {}
        return self._followed[1]

    def pieces(self, lane: Lane, section: str, grade: int = SENSE) -> Pieces:
        """When each phrase of a section was visible in a lane with at least a grade."""
        shown, where = self.presence(lane), self.sections[section]
        if not where.asked:
            return NO_PIECES
        # To the letter only constraints are asked for, which come first.
        below = where.stop if grade == LETTER else len(self.mentions)
        if (grade, below) not in self._pieces:
            pinned = [n for n, c in enumerate(self.constraints) if c.pinned]
            self._pieces[grade, below] = self.mentions.pieces(shown, grade, pinned, below)
        return self._pieces[grade, below].of(where.first, where.stop)

    def once(self, lane: Lane, name: str, make: Callable[[], T]) -> T:
        """What `make` gives; made once for all lanes that showed everything, since it must be the same for them."""
        if not self.presence(lane).whole:
            return make()
        if name not in self.notes:
            self.notes[name] = make()
        made: T = self.notes[name]
        return made


def _named(artifact: Artifact, bare: frozenset[str]) -> FilePath:
    paths = tuple(dict.fromkeys(artifact.paths))
    return FilePath(paths, unique=any(p.rpartition("/")[2] in bare for p in paths))


def _open_tasks(states: Sequence[Plan], until: Callable[[int, int | None], Asked]) -> Iterator[OpenTask]:
    since: dict[str, Plan] = {}
    for plan in states:
        now = until(plan.message, None)[0]
        for text, first in list(since.items()):
            asked = until(first.message, plan.message)
            # Closed by this plan, or by a person who cleared the window before it.
            if text not in plan.open or asked[1] < now:
                yield OpenTask(text, since.pop(text).message, asked, plan.message)
        for text in plan.open:
            since.setdefault(text, plan)
    yield from (OpenTask(t, p.message, until(p.message, None)) for t, p in since.items())


# A watchlist holds the log and not the session, so that it goes when the session goes.
_KNOWN: WeakKeyDictionary[Session, Watchlist] = WeakKeyDictionary()


def watchlist(session: Session) -> Watchlist:
    """The watchlist of a session; it lives as long as the session."""
    if session not in _KNOWN:
        _KNOWN[session] = Watchlist(session)
    return _KNOWN[session]


__all__ = ["LETTER", "SENSE", "Failure", "OpenTask", "Section", "Watchlist", "watchlist"]
