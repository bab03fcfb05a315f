"""What the gate keeps of one session under one policy: a few lines of text for each tier, all of them integers.

`views`: for each step the fingerprint of the view and what changed since the step before, the events, and broken pairs.
`counts`: tokens and decisions. `costs`: the bill. `tolerance`: headline metrics that may move within margins.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evals.gate.entries import entries, ranges, written
from evals.metrics.base import Measurement, Trial
from evals.metrics.integrity import view_violations
from evals.metrics.load import measure_all
from replay.canonical import CHAIN_START, chain_of
from replay.engine import Session, View
from replay.events import Event
from replay.log import Log
from replay.window import Window

Tier = Literal["views", "counts", "costs", "tolerance"]
TIERS: tuple[Tier, ...] = ("views", "counts", "costs", "tolerance")
PRINT_LENGTH = 12
"""Hex digits of a step's fingerprint; each covers the whole view, so that the steps vouch for one another."""
SCALE = 1_000_000
"""Golden files hold integers: shares are kept in parts per million, money in millionths."""
COSTS = ("input_cost_units", "output_tokens", "summary_input_tokens", "summary_output_tokens", "cost_usd",
         "cache_breaks", "cache_breaks_unpaid")
HEADLINE: Mapping[str, str] = {
    "needed-evidence retention": "evidence_retention",
    "edit-safety rate": "edit_safety",
    "permanent instruction losses": "instruction_permanent_losses",
    "repair-adjusted cost": "repair_adjusted_cost",
    "peak view tokens": "peak_view_tokens",
    "re-reads per 100 steps": "rereads_per_100_steps",
}
"""Name of a margin to the measurement that it bounds."""


@dataclass(frozen=True, slots=True)
class Record:
    """The lines of one session, tier by tier."""

    session: str
    recording: str
    """Digest of what was recorded: messages, steps and usage."""
    tiers: Mapping[Tier, tuple[str, ...]]

    @property
    def text(self) -> str:
        """The golden file: a header, and a section for each tier."""
        lines = [f"session {self.session}", f"recording {self.recording}"]
        for tier in TIERS:
            if tier in self.tiers:
                lines += ["", f"[{tier}]", *self.tiers[tier]]
        return "\n".join(lines) + "\n"

    @property
    def hash(self) -> str:
        """First 16 hex digits of the SHA-256 of the golden file."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def recording_digest(session: Session) -> str:
    """12 hex digits of a digest over messages, steps and their usage.

    Of what a harness sent to `rewindow serve`: that of the session that answered, so that two runs are compared.
    """
    served = session.transcript.extra.get("served")
    if served:
        return str(served.get("digest"))[:12]
    taken = hashlib.sha256(chain_of(session.log.digests, CHAIN_START))
    for step in session.log.steps:
        usage = (step.usage.input_total, step.usage.output) if step.usage else None
        taken.update(repr((step.number, step.start, step.response, usage)).encode())
    return taken.hexdigest()[:12]


def record(trial: Trial, tiers: Sequence[Tier] = TIERS) -> Record:
    """What the gate keeps of a trial."""
    losses = "tolerance" in tiers
    found = {m.name: m for m in measure_all(trial, (), losses)} if losses or "costs" in tiers else {}
    makers = {"views": lambda: _views(trial), "counts": lambda: _counts(trial),
              "costs": lambda: _numbers(found, COSTS), "tolerance": lambda: _numbers(found, HEADLINE.values())}
    return Record(one_line(trial.session.transcript.session_id), recording_digest(trial.session),
                  {tier: tuple(makers[tier]()) for tier in TIERS if tier in tiers})


def one_line(text: str) -> str:
    """Text of a session that can stand in a line of a golden file."""
    return "".join(c if c.isprintable() else "?" for c in text).strip() or "unnamed"


def _numbers(found: Mapping[str, Measurement], names: Iterable[str]) -> Iterator[str]:
    for name in names:
        value = found[name].value if name in found else None
        yield f"{name} {'none' if value is None else round(value * SCALE)}"


def _views(trial: Trial) -> Iterator[str]:
    transcript, log, head = trial.session.transcript, trial.session.log, len(trial.lane.head)
    calls = sum(len(m.calls) for m in log.messages)
    # What a harness sent decides what `rewindow serve` reports as usage: no sign of another recording.
    usage = "" if transcript.extra.get("served") else f" usage {transcript.main.usage.total}"
    yield f"parsed messages {len(log)} steps {len(log.steps)} calls {calls}{usage}"
    count = 0
    for view in trial.lane.views:
        yield from (_event(e) for e in view.events)
        yield _view(log, view, head, count)
        count = view.print.messages - head
    yield from _broken_pairs(trial)


def _view(log: Log, view: View, head: int, before: int) -> str:
    window = Window(view.window.items[head:], view.window.marks, view.window.end)
    back = "" if view.print.kept == before else f" ={view.print.kept}"
    added = written(entries(log, window, view.print.kept))
    status = "" if view.status == "sent" else f" {view.status}"
    return f"{view.step} {view.fingerprint[:PRINT_LENGTH]}{status}{back}{f' +{added}' if added else ''}"


def _event(event: Event) -> str:
    words = [f"{event.step} event {event.kind} {event.stage or '-'} {event.reason}"]
    words += ["reactive"] if event.reactive else []
    for name in ("dropped", "summarised", "elided"):
        indices = getattr(event, name)
        words += [f"{name} {','.join(ranges(indices))}"] if indices else []
    return " ".join(words)


def _broken_pairs(trial: Trial) -> Iterator[str]:
    """The pairs that a view breaks and the log does not, each with the first step that does."""
    log, windows = trial.session.log, [v.window for v in trial.lane.views]
    whole = Window().extended(len(log))
    known = {(v.fault, v.call_id) for v in view_violations(log, [whole])}
    if not {(v.fault, v.call_id) for v in view_violations(log, windows)} - known:
        yield "pairing 0"
        return
    count = 0
    for view in trial.lane.views:
        fresh = {(v.fault, v.call_id) for v in view_violations(log, [view.window])} - known
        known |= fresh
        count += len(fresh)
        yield from (f"{view.step} pairing {fault} {one_line(call)}" for fault, call in sorted(fresh))
    yield f"pairing {count}"


def _counts(trial: Trial) -> Iterator[str]:
    said: tuple[int | None, str] | None = None
    overflow = 0
    for view in trial.lane.views:
        decided = view.decision
        yield from (f"{e.step} event {e.kind} {_sizes(e)}" for e in view.events)
        if decided is not None and said != (decided.threshold, decided.reason):
            said = decided.threshold, decided.reason
            yield f"{view.step} threshold {_whole(decided.threshold)} {decided.reason}"
        estimate = f" estimate {_whole(decided.estimated_tokens)}" if decided is not None else ""
        yield f"{view.step} {view.figure.tokens}{estimate}"
        overflow += view.figure.tokens > trial.capacity.usable
    yield f"overflow {overflow}"


def _sizes(event: Event) -> str:
    return " ".join(_whole(n) for n in (event.estimated_tokens, event.threshold, event.tokens_before,
                                        event.tokens_after, event.summary_input_tokens))


def _whole(value: float | None) -> str:
    return "-" if value is None else str(round(value))
