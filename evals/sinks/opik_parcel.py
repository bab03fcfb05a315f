"""Everything that a push is going to send, written to a file first: so its size is known before anything leaves."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

import orjson

from evals.browse import OpenSession, open_session
from evals.sinks.opik_ids import milliseconds_of
from evals.sinks.opik_rows import Key, Row, Run, score_rows, trace_row, unscored
from evals.sinks.opik_spans import iso, learn, recording, step_rows, times
from replay.errors import ReadError
from replay.policy.load import RECORDED
from replay.redact import Redactor
from replay.writers.json_lines import json_bytes


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What of a run is pushed."""

    traces: bool = False
    """The steps with their views, and the recordings; else numbers only."""
    view_bytes: int = 1_000_000
    """Most bytes of a view; texts of a larger one are cut. 0: no bound."""
    redact: bool = False


@dataclass
class Parcel:
    """Rows in the order in which they are sent, one JSON line each, and their counts."""

    run: Run
    file: IO[bytes]
    counts: Counter[str] = field(default_factory=Counter)
    """Rows by kind: item, experiment, trace, span, score, entry."""
    bytes: int = 0
    remarks: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    """What was redacted, in words."""

    def add(self, kind: str, key: Key, row: Row, **more: Any) -> None:
        """Put a row in."""
        line = json_bytes({"kind": kind, "key": key, "row": row, **more})
        self.file.write(line + b"\n")
        self.counts[kind] += 1
        self.bytes += len(line)

    def rows(self) -> Iterator[dict[str, Any]]:
        """The rows again, from the start."""
        self.file.seek(0)
        return map(orjson.loads, self.file)


def pack(run: Run, file: IO[bytes], choices: Choices, done: Callable[[str], None] = lambda _: None) -> Parcel:
    """Everything of a run that is to be sent. Raises ReadError where the folder holds no run."""
    parcel = Parcel(run, file)
    redactor = Redactor() if choices.redact else None
    _Packer(parcel, choices, redactor, done).pack()
    large = unscored(run.summary)
    if large:
        parcel.remarks.append(f"too large for a score of Opik, so in the traces only: {', '.join(large)}")
    parcel.replaced = redactor.report() if redactor else []
    return parcel


@dataclass
class _Packer:
    parcel: Parcel
    choices: Choices
    redactor: Redactor | None
    done: Callable[[str], None]

    def pack(self) -> None:
        run = self.parcel.run
        self._learn()
        for key, row in run.items():
            self._add("item", key, row)
        for key, row in run.experiments():
            self._add("experiment", key, row)
        opened: tuple[str, OpenSession | None] = ("", None)
        for session, policy, trial in run.trials():
            name = session["session"]
            if self.choices.traces and opened[0] != name:
                opened = name, self._opened(name)
                if opened[1] is not None:
                    self._recording(session, opened[1])
            self._trial(session, policy, trial, opened[1])
            self.done(f"{name} {policy['name']}")

    def _learn(self) -> None:
        """Tell the redactor which names occur anywhere, before anything is written."""
        if self.redactor is None:
            return
        self.redactor.learn([s["path"] for s in self.parcel.run.summary["sessions"]])
        for session in self.parcel.run.summary["sessions"] if self.choices.traces else ():
            with contextlib.suppress(ReadError):
                learn(self.redactor, open_session(self.parcel.run.folder, session["session"]).session.transcript)

    def _add(self, kind: str, key: Key, row: Row, **more: Any) -> None:
        self.parcel.add(kind, key, self.redactor.value(row) if self.redactor else row, **more)

    def _opened(self, session: str) -> OpenSession | None:
        try:
            return open_session(self.parcel.run.folder, session)
        except ReadError as error:
            self.parcel.remarks.append(f"{session}: no steps, numbers only: {error}")
            return None

    @property
    def _start(self) -> float:
        """For what has no time of its own: when the run was stored."""
        return self.parcel.run.made_at / 1000

    def _recording(self, session: Mapping[str, Any], opened: OpenSession) -> None:
        """The session as its harness sent it: a trace that belongs to no experiment."""
        run, name = self.parcel.run, session["session"]
        key: Key = ("recording", run.cohort, name)
        parts, whole = recording(opened.session.transcript, self.redactor)
        row: Row = {"name": name, "source": "sdk", "tags": ["rewindow", "recording"],
                    "input": {n: session.get(n) for n in ("session", "format", "model", "steps", "messages")},
                    "metadata": {"rewindow": {"session": name, "lane": "recorded", "recording": whole}}}
        spanned = _spanned(opened, self._start)
        self._add("trace", key, row | spanned, of=None)
        for number, part in enumerate(parts, 1):
            self.parcel.add("span", (*key, "part", number), part | spanned, of=None, trace=key)
        self._steps(opened, RECORDED.name, key, None)

    def _trial(self, session: Mapping[str, Any], policy: Mapping[str, Any], trial: Mapping[str, Any],
               opened: OpenSession | None) -> None:
        run, name = self.parcel.run, session["session"]
        experiment = run.experiment_key(policy)
        key: Key = (*experiment, "trace", name)
        row = trace_row(session, trial)
        self._add("trace", key, row | (_spanned(opened, self._start) if opened else {}), of=experiment)
        if opened is not None and trial["ok"]:
            self._steps(opened, policy["name"], key, experiment)
        for score in score_rows(session, trial):
            self._add("score", key, score, of=experiment)
        self.parcel.add("entry", (*key, "entry"), {}, of=experiment, trace=key, item=run.item_key(name))

    def _steps(self, opened: OpenSession, policy: str, trace: Key, experiment: Key | None) -> None:
        rows = step_rows(opened.session, opened.lane(policy).views, policy, policy == RECORDED.name, self._start,
                         self.choices.view_bytes)
        for number, row in enumerate(rows, 1):
            self._add("span", (*trace, "step", number), row, of=experiment, trace=trace)


def _spanned(opened: OpenSession, start: float) -> Row:
    """When a session began and ended."""
    found = list(times(opened.session.transcript.steps, start))
    return {"start_time": found[0][0], "end_time": found[-1][1]} if found else {}


def moment(known: str) -> Row:
    """Begin and end of what has no duration: the time in its identifier."""
    at = iso(milliseconds_of(known) / 1000)
    return {"start_time": at, "end_time": at}
