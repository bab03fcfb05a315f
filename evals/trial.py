"""One session under several policies: the containment boundary, and rows for the store.

A trial that fails is a row with its error; a broken machine is an exception.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from evals.costing import Pricing
from evals.metrics.base import Measurement, Trial
from evals.metrics.load import built_in, measure_all
from evals.metrics.retention import Loss, losses, losses_by_step
from evals.model.written import Written
from evals.outcome_files import sidecar_label
from evals.outcomes import Label, transcript_label
from evals.plain_lanes import plain_key
from evals.runs.limits import time_limit
from evals.watchlist import watchlist
from replay.engine import Lane, Session, View
from replay.errors import ConfigError
from replay.log import CLASSES
from replay.policy.base import Capacity, Summariser
from replay.policy.policy import Policy
from replay.transcript import Transcript

T = TypeVar("T")
WORST_LOSSES = 10
"""Heaviest losses of a trial that are kept with its measurements."""
STEP_COLUMNS = ("step", "tokens", "how", "counted", "status", "mode", "checkpoint", "estimated_tokens", "threshold",
                "reason", "common_tokens", "messages", "events", "fingerprint",
                "cache_read_tokens", "cost_units", "needs_lost", "edits_unsafe",
                *(f"{name}_tokens" for name in CLASSES))
EVENT_COLUMNS = ("kind", "step", "stage", "reason", "reactive", "estimated_tokens", "threshold", "tokens_before",
                 "tokens_after", "gain", "summariser", "checkpoint", "futile", "attempts", "dropped", "summarised",
                 "elided", "summary")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What every trial of a run shares."""

    capacity: Capacity
    tokenizer: str
    summariser: str
    pricing: Pricing = field(default_factory=Pricing)
    metrics: tuple[str, ...] = ()
    """Own metrics as `package.module:Class`, besides the built-in and installed ones."""
    rows: bool = True
    """Keep a row for each step and event (False: only a trial's measurements, where nothing is stored)."""
    losses: bool = False
    """Measure also what was lost that the agent later used (`evals.metrics.LOSSES`)."""
    time_limit: float | None = 600.0
    """Seconds that a trial may take; None: any."""
    reader: str | None = None
    """Reader of all files, as `replay.readers.read` takes it; None: each file's format is told from its content."""
    written: Written | None = None
    """The summaries that a model wrote before, where `summariser` is `llm:MODEL`."""

    def writer(self, session: str) -> str | Summariser:
        """What writes the summaries of a session: a summariser's name, or what gives those of a model."""
        return self.written.summariser(session) if self.written else self.summariser


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """The result of one policy on one session."""

    policy: str
    ok: bool
    error: str | None = None
    kind: str = "alternative"
    measurements: Sequence[Measurement] = ()
    steps: tuple[tuple[Any, ...], ...] = ()
    """Rows of `STEP_COLUMNS`."""
    events: tuple[tuple[Any, ...], ...] = ()
    """Rows of `EVENT_COLUMNS`."""
    ended: int | None = None
    worst: tuple[Loss, ...] = ()
    """The heaviest losses, where they were measured; keys and passwords in their texts are blanked."""

    def value(self, name: str) -> float | None:
        """A measurement's value by name; None where it is missing."""
        return next((m.value for m in self.measurements if m.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """What is kept of one session, with its trials."""

    session: str
    path: str
    format: str
    position: int
    """Which session of its file, from 0."""
    harness_version: str | None
    model: str | None
    steps: int
    messages: int
    notes: tuple[str, ...]
    recorded_compactions: int
    calibration_factor: float
    calibration_overhead: float | None
    calibration_error: float | None
    cwd: str | None = None
    outcome: Label | None = None
    """How the session ended, by a sidecar file or by the transcript itself."""
    recorded: TrialRow | None = None
    trials: tuple[TrialRow, ...] = field(default_factory=tuple)


@dataclass(frozen=True, slots=True)
class FileResult:
    """What came of one file: its sessions, or the reason why it could not be read."""

    path: str
    sessions: tuple[SessionRow, ...] = ()
    unreadable: str | None = None


class Attempt(Protocol):
    """Watches over a trial: of the session at a position in its file, under a policy."""

    def __call__(self, position: int, policy: Policy, make: Callable[[], TrialRow]) -> TrialRow:
        """The row that `make` gives, or another in its place."""


def run_session(transcript: Transcript, position: int, policies: Sequence[Policy], settings: Settings,
                counter: Any, attempt: Attempt | None = None) -> SessionRow:
    """Replay one session under every policy and measure each lane."""
    from replay.policy.load import RECORDED

    session = Session(transcript, counter)
    known: dict[bytes, _Measured] = {}

    def row(policy: Policy) -> TrialRow:
        def make() -> TrialRow:
            return run_trial(session, policy, settings, known)

        return attempt(position, policy, make) if attempt else make()

    trials = tuple(map(row, policies))
    calibration = session.calibration
    return SessionRow(
        session=transcript.session_id, path=transcript.path, format=transcript.format, position=position,
        harness_version=transcript.harness_version, model=transcript.model, steps=len(transcript.steps),
        messages=transcript.message_count, notes=tuple(_note(n.code, n.line) for n in transcript.notes),
        recorded_compactions=sum(c.kind != "micro" for c in transcript.compactions),
        calibration_factor=calibration.factor, calibration_overhead=calibration.overhead,
        calibration_error=calibration.error, cwd=transcript.cwd, outcome=_outcome(session, settings.losses),
        recorded=row(RECORDED), trials=trials)


def _outcome(session: Session, look: bool) -> Label:
    """How the session ended: by a file beside it, else (when asked to look) by its last tests and exit codes."""
    transcript = session.transcript
    try:
        beside = sidecar_label(transcript.path, transcript.session_id)
    except ConfigError as error:
        beside = Label(value="unknown", source="sidecar", confidence=0.0, detail=str(error))
    if beside is not None:
        return beside
    if not look:
        return Label(value="unknown", source="transcript", confidence=0.0, detail="not looked for without --losses")
    return transcript_label(transcript, watchlist(session).actions)


def run_trial(session: Session, policy: Policy, settings: Settings,
              known: dict[bytes, _Measured] | None = None) -> TrialRow:
    """One trial; whatever goes wrong inside it, endless work too, becomes a failed row.

    `known` holds what was measured of the session's plain lanes, and is added to.

    This, a single metric (`evals.metrics.load.measured`) and the command line are the only places where every
    Exception is caught.
    """
    def work() -> TrialRow:
        with time_limit(settings.time_limit, "the trial"):
            writer = settings.writer(session.transcript.session_id)
            return _row(session, session.replay(policy, settings.capacity, writer), settings,
                        {} if known is None else known)

    done = contained(work)
    return done if isinstance(done, TrialRow) else TrialRow(policy=policy.name, ok=False, error=done)


def contained(work: Callable[[], T]) -> T | str:
    """What the work gives, or the error that it ended in, as text."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - the containment boundary: a failed trial is a row
        return f"{type(error).__name__}: {error}"


@dataclass(frozen=True, slots=True)
class _Measured:
    """What is measured of a lane but for what the policy said."""

    measurements: Mapping[str, Measurement]
    worst: tuple[Loss, ...]
    steps: tuple[tuple[Any, ...], ...]
    """The columns of each step's row behind the decision's."""


def _row(session: Session, lane: Lane, settings: Settings, known: dict[bytes, _Measured]) -> TrialRow:
    trial = Trial(session=session, lane=lane, capacity=settings.capacity, pricing=settings.pricing)
    key = plain_key(lane)
    found = known.get(key) if key is not None else None
    if found is None:
        found = _measured(trial, settings)
        if key is not None:
            known[key] = found
    return TrialRow(policy=lane.policy.name, ok=True, kind=lane.kind, worst=found.worst, ended=lane.ended,
                    measurements=measure_all(trial, settings.metrics, settings.losses, found.measurements),
                    steps=tuple(map(_step, lane.views, found.steps)) if settings.rows else (),
                    events=tuple(map(_event, lane.events)) if settings.rows else ())


def _measured(trial: Trial, settings: Settings) -> _Measured:
    return _Measured(measurements=built_in(trial, settings.losses),
                     worst=tuple(losses(trial, WORST_LOSSES)) if settings.losses else (),
                     steps=tuple(_behind_decision(trial, settings.losses)) if settings.rows else ())


def _step(view: View, rest: tuple[Any, ...]) -> tuple[Any, ...]:
    decided = view.decision
    numbers = (decided.estimated_tokens, decided.threshold, decided.reason) if decided else (None, None, None)
    return (view.step, view.figure.tokens, view.figure.how, view.counted, view.status, view.mode, view.checkpoint,
            *numbers, *rest)


def _behind_decision(trial: Trial, losses: bool) -> Iterator[tuple[Any, ...]]:
    cost = trial.cost
    lost = losses_by_step(trial) if losses else [(None, None)] * len(trial.lane.views)
    for view, served, counts in zip(trial.lane.views, cost.served, lost, strict=True):
        yield (view.print.common_tokens, view.print.messages, len(view.events), view.print.fingerprint.hex()[:16],
               round(served.read), round(served.units(cost.model)), *counts,
               *trial.session.log.by_class(view.window).values())


def _event(event: Any) -> tuple[Any, ...]:
    plain = event.to_json()
    text = event.added.message.text if event.added is not None else None
    return tuple(plain[name] if name != "summary" else text for name in EVENT_COLUMNS)


def _note(code: str, line: int | None) -> str:
    return f"{code}@{line}" if line else code
