"""Records of every session, compared where they are made: a golden, or a baseline policy's own record."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from evals.execute import each_file
from evals.gate.check import Failure, check
from evals.gate.golden import file_name, golden_name, parse
from evals.gate.record import TIERS, Record, Tier, record, recording_digest
from evals.kept.reading import read_counted
from evals.kept.store import Kept
from evals.metrics.base import Trial
from evals.trial import Settings, contained
from replay.engine import Session
from replay.errors import NotASession, ReadError
from replay.find import Found
from replay.policy.policy import Policy
from replay.tokens import TokenCounter, tokenizer
from replay.transcript import Transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What every session of a gate shares."""

    policy: Policy
    settings: Settings
    golden: Path | None = None
    """Golden folder to compare with; None: compare with `baseline`, or only record."""
    baseline: Policy | None = None
    tiers: Sequence[Tier] = TIERS
    compare: Sequence[Tier] = TIERS
    """Tiers that may be compared: what both sides have and whose versions are the same."""
    carry: bool = False
    """A golden's measurements hold for equal views: it was made by this version with the same tables."""
    only: frozenset[str] = frozenset()
    """Session ids; empty: all."""
    kept: Kept | None = None
    """Where sessions are kept that were read and counted before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one session."""

    name: str
    """Of its golden file."""
    path: str
    session: str
    steps: int
    record: Record | None = None
    """None where the policy failed."""
    golden: Record | None = None
    failures: tuple[Failure, ...] = ()


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """What came of one file."""

    path: str
    sessions: tuple[Outcome, ...] = ()
    unreadable: str | None = None


def run(files: Sequence[Found], job: Job, jobs: int | None = None) -> Iterator[FileOutcome]:
    """Outcomes in the order of the files. `jobs` None: all cores when the input is worth it."""
    return each_file(partial(run_file, job=job), files, min(jobs, os.cpu_count() or 1) if jobs else None)


def run_file(found: Found, job: Job) -> FileOutcome:
    """Every session of a file against its golden."""
    words = tokenizer(job.settings.tokenizer)
    try:
        transcripts = read_counted(found, job.settings.reader, words, job.kept)
    except ReadError as error:
        is_beside_the_point = isinstance(error, NotASession) and not found.named
        return FileOutcome(str(found.path), unreadable=None if is_beside_the_point else error.reason)
    counter: Any = TokenCounter(words)
    chosen = [t for t in transcripts if not job.only or t.session_id in job.only]
    outcomes = tuple(run_session(t, str(found.path), job, counter) for t in chosen)
    words.forget()
    return FileOutcome(str(found.path), outcomes)


def run_session(transcript: Transcript, path: str, job: Job, counter: Any) -> Outcome:
    """One session: replay, record, compare."""
    session = Session(transcript, counter)
    base, golden = _Base(session=session, path=path), _golden(session, job)
    made = contained(lambda: _record(session, job.policy, job, golden if job.carry else None))
    if isinstance(made, str):
        return base.failed("policy", f"the policy failed: {made}")
    if job.baseline is not None:
        other = job.baseline
        baseline = contained(lambda: _record(session, other, job, made))
        if isinstance(baseline, str):
            return base.failed("baseline", f"the baseline failed: {baseline}")
        golden = baseline
    failures = check(session.log, made, golden, path, job.compare) if golden else []
    return base.outcome(record=made, golden=golden, failures=tuple(failures), name=file_name(made))


@dataclass(frozen=True)
class _Base:
    """What is known of a session whatever comes of it."""

    session: Session
    path: str
    extra: dict[str, Any] = field(default_factory=dict)

    def outcome(self, **found: Any) -> Outcome:
        """An outcome of this session."""
        transcript = self.session.transcript
        return Outcome(path=self.path, session=transcript.session_id, steps=len(transcript.steps), **found)

    def failed(self, tier: str, what: str) -> Outcome:
        """A session without a record."""
        name = self.session.transcript.session_id
        return self.outcome(name=name, failures=(Failure(session=name, path=self.path, tier=tier, what=what),))


def _record(session: Session, policy: Policy, job: Job, known: Record | None) -> Record:
    """The record under a policy; what is known of the same views need not be measured again."""
    lane = session.replay(policy, job.settings.capacity, job.settings.summariser)
    trial = Trial(session=session, lane=lane, capacity=job.settings.capacity, pricing=job.settings.pricing)
    if "tolerance" not in job.tiers or known is None or "tolerance" not in known.tiers:
        return record(trial, job.tiers)
    exact = record(trial, [tier for tier in job.tiers if tier != "tolerance"])
    same = all(exact.tiers.get(tier, ()) == known.tiers.get(tier) for tier in ("views", "counts"))
    measured = known.tiers["tolerance"] if same else record(trial, ("tolerance",)).tiers["tolerance"]
    return Record(exact.session, exact.recording, {**exact.tiers, "tolerance": measured})


def _golden(session: Session, job: Job) -> Record | None:
    """The golden of a session; None where the folder does not hold it."""
    if job.golden is None:
        return None
    name = golden_name(session.transcript.session_id, recording_digest(session))
    path = job.golden / "sessions" / name
    return parse(path.read_text(encoding="utf-8"), str(path)) if path.is_file() else None
