"""Studies: questions about the views of recorded steps, asked together, and what they measure (level L2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

from evals.metrics.base import Measurement
from evals.model.asks import Ask, Reply
from evals.model.client import Client
from evals.model.written import Loaded
from evals.trial import Settings
from replay.engine import Lane, Session, divergence
from replay.errors import SummaryMissing
from replay.policy.base import Capacity
from replay.policy.load import policy as load_policy
from replay.policy.policy import Policy

NO_LIMIT = Capacity(window=1_000_000_000)
Place = tuple[str, int, str]
"""A trial: the file, which of its sessions, and the policy."""


@dataclass(frozen=True)
class Subject:
    """A session with the lanes that are asked about."""

    session: Session
    path: str
    position: int
    lanes: Mapping[str, Lane]
    failed: Mapping[str, str] = field(default_factory=dict)
    """Policies without a lane, with the reason."""

    @cached_property
    def full(self) -> Lane:
        """The whole history at every step, whatever the window: the reference."""
        return self.session.replay(load_policy("full-history"), NO_LIMIT)

    def differs_from(self, policy: str) -> int | None:
        """The first step whose view is not the whole history; None where there is none."""
        return divergence(self.lanes[policy], self.full)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One question of a study."""

    study: str
    policy: str
    step: int
    role: str
    """What the answer stands for, such as `view`, or a reference: `full`, `self`, `none`."""
    ask: Ask
    gold: Any = None
    """What the answer is judged by; plain data."""
    group: str = ""
    """A stratum or family."""
    number: int = 0
    """Which question of the step."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An item with its reply and its score."""

    item: Item
    reply: Reply
    score: float | None
    """None where there is no usable answer."""


class Study(Protocol):
    """Asks about a session and turns answers into measurements."""

    @property
    def name(self) -> str:
        """The study's name."""

    def items(self, subject: Subject) -> Iterable[Item]:
        """The questions about a session, those of each policy by themselves."""

    def score(self, item: Item, reply: Reply) -> float | None:
        """What an answer is worth; None where it is none."""

    def measure(self, answered: Sequence[Answered]) -> Iterable[Measurement]:
        """The measurements of one trial; `answered` may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A study's questions of one trial, before they are answered."""

    study: Study
    place: Place
    session: str
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What came of studies."""

    measured: Mapping[Place, tuple[Measurement, ...]]
    rows: tuple[dict[str, Any], ...]
    """One for each question: what was asked, the request's fingerprint, the answer and its score."""
    answered: tuple[Answered, ...] = ()


def prepare(loaded: Loaded, policies: Sequence[Policy], settings: Settings, studies: Sequence[Study]) -> list[Asked]:
    """All questions of the studies, session by session."""
    subjects = (subject(session, str(found.path), position, policies, settings)
                for found, sessions in loaded for position, session in enumerate(sessions))
    return [asked for made in subjects for asked in _of_session(made, studies, policies)]


def subject(session: Session, path: str, position: int, policies: Sequence[Policy], settings: Settings) -> Subject:
    """A session replayed under the policies."""
    lanes, failed = {}, {}
    for policy in policies:
        try:
            lanes[policy.name] = session.replay(policy, settings.capacity,
                                                settings.writer(session.transcript.session_id))
        except SummaryMissing as error:
            failed[policy.name] = str(error)
    return Subject(session, path, position, lanes, failed)


def _of_session(made: Subject, studies: Sequence[Study], policies: Sequence[Policy]) -> Iterable[Asked]:
    for study in studies:
        items = list(study.items(made)) if made.session.transcript.steps else []
        for policy in policies:
            yield Asked(study=study, place=(made.path, made.position, policy.name),
                        session=made.session.transcript.session_id,
                        items=tuple(i for i in items if i.policy == policy.name))


def answer(asked: Sequence[Asked], client: Client) -> Findings:
    """Ask everything that is asked, and measure."""
    replies = iter(client.ask_all([i.ask for a in asked for i in a.items]))
    measured: dict[Place, tuple[Measurement, ...]] = {}
    rows, answered = [], []
    for a in asked:
        mine = [Answered(i, reply, a.study.score(i, reply)) for i, reply in zip(a.items, replies, strict=False)]
        measured[a.place] = (*measured.get(a.place, ()), *a.study.measure(mine))
        rows += [_row(a, found, client.fingerprint) for found in mine]
        answered += mine
    return Findings(measured=measured, rows=tuple(rows), answered=tuple(answered))


def _row(asked: Asked, found: Answered, fingerprint: Callable[[Ask], str]) -> dict[str, Any]:
    item, reply = found.item, found.reply
    return {"study": item.study, "session": asked.session, "policy": item.policy, "step": item.step, "role": item.role,
            "group": item.group, "number": item.number, "model": item.ask.model, "replicate": item.ask.replicate,
            "temperature": item.ask.temperature, "request": fingerprint(item.ask), "gold": item.gold,
            "answer": reply.text, "problem": reply.problem, "score": found.score}


def mean(scores: Iterable[float | None]) -> float | None:
    """The mean of what is there; None for nothing."""
    found = [s for s in scores if s is not None]
    return sum(found) / len(found) if found else None


def measurement(name: str, value: float | None, reason: str) -> Measurement:
    """A number at level L2, or why there is none."""
    return Measurement(name=name, value=value, level="L2", reason=None if value is not None else reason)
