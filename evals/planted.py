"""Planted facts: does a policy keep what a person said once, over one compaction after the other?

Facts of five kinds are put into a real session and followed through the compactions that a policy makes. Counted is
presence in the view, level L0: a fact that stands there may still be overlooked by a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evals.log_search import Ask
from evals.mentions import SENSE, Mentions, Pieces
from evals.phrases import Phrase
from evals.planted_facts import KINDS, Fact, Kind, Value, facts, former, statement
from evals.planting import Place, longer, place, planted
from evals.presence import presence
from replay.engine import Lane, Session
from replay.errors import ConfigError
from replay.policy.base import Capacity
from replay.policy.policy import Policy
from replay.tokens.counter import MessageCounter
from replay.transcript import Transcript

Status = Literal["kept", "superseded", "value alone", "lost"]
DEPTHS = (0.05, 0.35, 0.65)
MOST_REPEATS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How facts are planted and how long they are followed."""

    depths: tuple[float, ...] = DEPTHS
    """From 0 (first message) to 1 (last request); each takes one fact of each kind."""
    rounds: int = 5
    """Compactions that a fact is followed through."""
    seed: int = 1
    summariser: str = "extractive"

    def __post_init__(self) -> None:
        """Raises ConfigError for what cannot be meant."""
        if not self.depths or not all(0 <= d <= 1 for d in self.depths):
            raise ConfigError("--depth", "", "expected one or more numbers from 0 to 1")
        if self.summariser == "recorded":
            raise ConfigError("--summariser", "recorded", "recorded summaries cannot hold what was planted later")


@dataclass(frozen=True, slots=True)
class Planted:
    """A fact with its place in the session."""

    fact: Fact
    depth: float
    message: int
    """Log index of the sentence that holds now, in the session with all facts."""
    own: bool
    """It is a prompt of its own; False: part of a recorded prompt."""


@dataclass(frozen=True, slots=True)
class Followed:
    """A planted fact after each compaction that came after it."""

    planted: Planted
    after: tuple[Status, ...]
    """Round by round: `kept`; `superseded` (the former value is there, not this one); `value alone`; `lost`."""
    steps: tuple[int, ...]
    """The step whose view each round was judged by."""

    @property
    def first_lost(self) -> int | None:
        """The first round after which it was not kept; None: it was kept through all."""
        return next((n for n, s in enumerate(self.after, 1) if s != "kept"), None)


@dataclass(frozen=True, slots=True)
class Survival:
    """Facts of a kind that were kept through a round, of those that were followed so far."""

    kind: Kind
    round: int
    kept: int
    followed: int

    @property
    def share(self) -> float:
        """Kept ÷ followed."""
        return self.kept / self.followed


@dataclass(frozen=True, slots=True)
class PolicyResult:
    """What one policy did with the facts."""

    policy: str
    compactions: int
    repeats: int
    """How often the end of the session was repeated to get that far."""
    followed: tuple[Followed, ...]
    ended: int | None = None
    """Step at which a request stayed refused; compactions behind it would never have happened and do not count."""

    def survival(self) -> list[Survival]:
        """For each kind and round, while at least one fact was followed that far."""
        return [made for kind in KINDS for made in _survival(kind, self.followed)]

    def collapse(self) -> dict[Kind, int | None]:
        """For each kind the first round after which fewer than half of its facts are kept; None: there is none."""
        found: dict[Kind, int | None] = dict.fromkeys(KINDS)
        for row in reversed(self.survival()):
            if 2 * row.kept < row.followed:
                found[row.kind] = row.round
        return found


def _survival(kind: Kind, followed: Sequence[Followed]) -> list[Survival]:
    mine = [f for f in followed if f.planted.fact.kind == kind]
    rounds = range(1, 1 + max((len(f.after) for f in mine), default=0))
    seen = [[f.after[n - 1] for f in mine if len(f.after) >= n] for n in rounds]
    return [Survival(kind, n, statuses.count("kept"), len(statuses)) for n, statuses in zip(rounds, seen, strict=True)]


def run_planted(transcript: Transcript, policies: Sequence[Policy], capacity: Capacity, counter: MessageCounter,
                plan: Plan) -> list[PolicyResult]:
    """Plant the facts of a plan in a session and follow them under each policy. ConfigError for the recorded lane."""
    if any(p.name == "recorded" for p in policies):
        raise ConfigError("--policy", "recorded", "what the harness sent was sent before the facts were planted")
    changed, found = plant(transcript, plan)
    return [_follow(changed, found, policy, capacity, counter, plan) for policy in policies]


def plant(transcript: Transcript, plan: Plan) -> tuple[Transcript, list[Planted]]:
    """The session with all facts in it. A former value stands half as deep as the one that replaced it."""
    made = facts(len(plan.depths), plan.seed)
    rows = [(made[k * len(plan.depths) + n], depth) for k in range(len(KINDS)) for n, depth in enumerate(plan.depths)]
    sentences: dict[Place, list[str]] = {}
    places = []
    for fact, depth in rows:
        if fact.former_text:
            sentences.setdefault(place(transcript.main, depth / 2), []).append(fact.former_text)
    for fact, depth in rows:
        places.append(place(transcript.main, depth))
        sentences.setdefault(places[-1], []).append(fact.text)
    changed, stands = planted(transcript, sentences)
    return changed, [Planted(f, d, stands[p], p.own) for (f, d), p in zip(rows, places, strict=True)]


def _follow(transcript: Transcript, found: Sequence[Planted], policy: Policy, capacity: Capacity,
            counter: MessageCounter, plan: Plan) -> PolicyResult:
    """Repeat the end of the session until the last fact has been through enough compactions, or that leads nowhere."""
    last, times = max(p.message for p in found), 0
    cuts = any(stage.cut for stage in policy.stages)
    while True:
        session = Session(longer(transcript, last + 1, times), counter)
        lane = session.replay(policy, capacity, plan.summariser)
        rounds = _rounds(lane)
        late = sum(session.log.steps[n].start > last for n in rounds)
        if late >= plan.rounds or times >= MOST_REPEATS or lane.ended is not None or not cuts:
            break
        times = max(1, 2 * times)
    judged = _judged(session, lane, rounds, found, plan.rounds)
    return PolicyResult(policy.name, len(rounds), times, judged, lane.ended)


def _rounds(lane: Lane) -> list[int]:
    """Positions of the views right after a full compaction."""
    return [n for n, view in enumerate(lane.views)
            if view.status == "sent" and any(e.kind == "full" for e in view.events)]


def _judged(session: Session, lane: Lane, rounds: Sequence[int], found: Sequence[Planted],
            most: int) -> tuple[Followed, ...]:
    """The status of every fact after every compaction behind it, from one search of the log."""
    phrases: list[Phrase] = []
    for p in found:
        phrases += [statement(p.fact), former(p.fact) or statement(p.fact), Value(p.fact.value or p.fact.text)]
    views = len(lane.views)
    mentions = Mentions(session.log, [Ask(phrase=p, first=0, stop=views) for p in phrases])
    pieces = mentions.pieces(presence(lane.views, session.log), SENSE)
    made = []
    for number, p in enumerate(found):
        mine = [n for n in rounds if session.log.steps[n].start > p.message][:most]
        seen = [[_visible(pieces, 3 * number + k, n) for k in range(3)] for n in mine]
        made.append(Followed(p, tuple(_status(p.fact, *s) for s in seen), tuple(lane.views[n].step for n in mine)))
    return tuple(made)


def _visible(pieces: Pieces, phrase: int, position: int) -> bool:
    mine = pieces.phrase == phrase
    return bool(((pieces.start[mine] <= position) & (position < pieces.stop[mine])).any())


def _status(fact: Fact, now: bool, before: bool, value: bool) -> Status:
    if now:
        return "kept"
    if before and fact.former_value:
        return "superseded"
    return "value alone" if value and fact.value else "lost"


def to_json(transcript: Transcript, results: Sequence[PolicyResult], plan: Plan) -> dict[str, Any]:
    """The results as plain data."""
    return {"session": transcript.session_id, "path": transcript.path, "depths": list(plan.depths), "seed": plan.seed,
            "rounds": plan.rounds, "summariser": plan.summariser, "level": "L0",
            "policies": [_policy_json(r) for r in results]}


def _policy_json(result: PolicyResult) -> dict[str, Any]:
    survival = [{"kind": s.kind, "round": s.round, "kept": s.kept, "followed": s.followed, "share": s.share}
                for s in result.survival()]
    return {"policy": result.policy, "compactions": result.compactions, "repeats": result.repeats,
            "ended": result.ended, "survival": survival, "collapse": result.collapse(),
            "facts": [_fact_json(f) for f in result.followed]}


def _fact_json(followed: Followed) -> dict[str, Any]:
    fact = followed.planted.fact
    return {"kind": fact.kind, "text": fact.text, "value": fact.value, "former_value": fact.former_value,
            "depth": followed.planted.depth, "message": followed.planted.message,
            "placed": "own prompt" if followed.planted.own else "recorded prompt", "after": list(followed.after),
            "steps": list(followed.steps), "first_lost_round": followed.first_lost}
