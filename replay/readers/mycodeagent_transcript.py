"""MyCodeAgent transcripts: append-only events of one session, or of several in one file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from replay.readers.common import ThreadBuilder, not_an_object, seconds
from replay.readers.mycodeagent_history import History, mapping, outcome, plain
from replay.readers.mycodeagent_recovery import Lifecycles, lifecycles, observation, unfinished
from replay.readers.odd_types import OddTypes
from replay.readers.source import Record, Source
from replay.transcript import Outcome, ReadNote, Transcript

FORMAT = "mycodeagent"
_LOST_RESPONSES = frozenset({"model_recovery_failed", "model_empty_retry", "model_empty_failed",
                             "token_budget_exceeded"})
"""Reasons of a state change that stand for a model call which left nothing in the history."""


def read_transcripts(source: Source) -> tuple[Transcript, ...]:
    """Every session of a transcript file, in the order of first sight."""
    notes: list[ReadNote] = []
    sessions = _by_session(source, notes)
    if not sessions:
        sessions = {Path(source.path).stem: []}
    read = [_Session(name, records).read(source.path) for name, records in sessions.items()]
    read[0] = read[0].with_notes(*notes)
    return tuple(read)


def _by_session(source: Source, notes: list[ReadNote]) -> dict[str, list[Record]]:
    sessions: dict[str, list[Record]] = {}
    name = ""
    for record in events(source, notes):
        name = record.value.get("session_id") or name
        rows = sessions.get(name if isinstance(name, str) else (name := plain(name)))
        if rows is None:
            rows = sessions[name] = []
        rows.append(record)
    return sessions


def events(source: Source, notes: list[ReadNote]) -> Iterator[Record]:
    """The event objects of a file; what is not an object, or is an event again, is noted."""
    seen: set[str] = set()
    for record in _flat(source):
        if not isinstance(record.value, dict):
            notes.append(not_an_object(record.line, record.byte, record.value))
            continue
        event_id = record.value.get("event_id")
        if isinstance(event_id, str):
            if event_id in seen:
                notes.append(ReadNote(code="duplicate", text=f"event {event_id} is written again; read once",
                                      line=record.line, byte=record.byte))
                continue
            seen.add(event_id)
        yield record


def _flat(source: Source) -> Iterable[Record]:
    if not isinstance(source.document, list):
        return source.records
    return [Record(1, 0, value) for value in source.document]


@dataclass
class _Session:
    """Reads the events of one session."""

    name: str
    records: list[Record]
    notes: list[ReadNote] = field(default_factory=list)
    odd: OddTypes = field(default_factory=lambda: OddTypes("event type"))
    extra: dict[str, Any] = field(default_factory=dict)
    outcome: Outcome | None = None
    run: str = ""
    """Run of the latest assistant message."""

    def __post_init__(self) -> None:
        self.history = History(ThreadBuilder(id=self.name))
        self.states: Lifecycles = lifecycles(record.value for record in self.records)
        self.answered = _answered(self.records)

    def read(self, path: str) -> Transcript:
        """The session as a transcript."""
        for record in self.records:
            self._event(record)
        self._recover()
        self._close()
        thread = self.history.thread.build()
        return Transcript(format=FORMAT, session_id=self.name, path=path, main=thread, outcome=self.outcome,
                          notes=tuple(self.notes + self.odd.notes()), message_count=len(self.history.recorded),
                          extra=MappingProxyType(self.extra))

    def _event(self, record: Record) -> None:
        event, payload = record.value, record.value.get("payload")
        kind = plain(event.get("event_type"))
        handler = _EVENTS.get(kind)
        if handler is None:
            self.odd.add(kind or "(none)", record.line, record.byte)
        elif isinstance(payload, dict):
            handler(self, payload, event, record)
        else:
            self._note("bad-payload", f"a {kind} event without a payload object; kept out", record)

    def _tool_lifecycle(self, payload: Mapping[str, Any], event: Mapping[str, Any], record: Record) -> None:
        """Nothing to do: the states of all calls were gathered before."""

    def _message(self, payload: Mapping[str, Any], event: Mapping[str, Any], record: Record) -> None:
        role, metadata, run = plain(payload.get("role")), mapping(payload.get("metadata")), plain(event.get("run_id"))
        if role != "tool":
            self._recover()
        failed = role == "tool" and self._failed(run, plain(metadata.get("tool_call_id")))
        known = self.history.add(
            role, payload.get("content"), metadata, run, failed, id=plain(event.get("event_id")) or None,
            time=seconds(event.get("timestamp")), line=record.line,
            extra={"run_id": event.get("run_id"), "step": event.get("step")})
        if not known:
            self._note("unknown-role", f"a message of role {role!r}; the history has no such role, kept out", record)
        if role == "assistant":
            self.run = run

    def _failed(self, run: str, call_id: str) -> bool:
        state = self.states.get((run, call_id))
        return state is not None and state.state == "failed"

    def _state_transition(self, payload: Mapping[str, Any], event: Mapping[str, Any], record: Record) -> None:
        reason, details = plain(payload.get("reason")), mapping(payload.get("details"))
        thread = self.history.thread
        if reason in _LOST_RESPONSES:
            thread.fail(plain(details.get("error_kind")) or reason, time=seconds(event.get("timestamp")))
        made = details.get("checkpoint_id")
        if made and thread.compactions and thread.compactions[-1].extra.get("checkpoint_id") == made:
            thread.compactions[-1] = replace(thread.compactions[-1], trigger="auto")

    def _checkpoint(self, payload: Mapping[str, Any], event: Mapping[str, Any], record: Record) -> None:
        state = payload.get("runtime_state")
        if isinstance(state, dict):
            self.extra["runtime_state"] = {**self.extra.get("runtime_state", {}), **state}
        if is_compaction(payload):
            self.history.checkpoint(payload, record.line)

    def _terminal(self, payload: Mapping[str, Any], event: Mapping[str, Any], record: Record) -> None:
        run = plain(event.get("run_id"))
        self.extra.setdefault("terminals", {})[run] = payload.get("reason")
        self.outcome = outcome(payload.get("reason"), run, record.line)

    def _recover(self) -> None:
        """Put in the observations of interrupted calls, as a resume of the session does."""
        for call in list(self.history.open_calls.values()):
            native = self.history.ids.renamed.get(call.id, call.id)
            if (self.run, native) in self.answered:
                continue
            state = self.states.get((self.run, native))
            words = state.state if state else "unknown"
            self.notes.append(ReadNote(code="interrupted-call", text=_interruption(call.name, native, words),
                                       line=self.history.thread.messages[-1].line))
            self.history.recovered(call, observation(state))
        self.history.open_calls.clear()

    def _close(self) -> None:
        if renamed := self.history.ids.renamed:
            self.extra["renamed_calls"] = dict(renamed)
            self.notes.append(ReadNote(
                code="reused-call-id", text=f"{len(renamed)} call ids come back later; they were made unique"))
        if pending := unfinished(self.states):
            self.extra["unfinished_calls"] = pending
        last = next((plain(r.value.get("run_id")) for r in reversed(self.records)), "")
        if self.records and last not in self.extra.get("terminals", {}):
            self.outcome = Outcome(value="unknown", source=f"no terminal event of run {last}", detail="no end")

    def _note(self, code: str, text: str, record: Record) -> None:
        self.notes.append(ReadNote(code=code, text=text, line=record.line, byte=record.byte))


_EVENTS = {
    "message": _Session._message, "state_transition": _Session._state_transition, "checkpoint": _Session._checkpoint,
    "tool_lifecycle": _Session._tool_lifecycle, "terminal": _Session._terminal,
}
_WORDS = {
    "completed": "completed, but its observation was not written",
    "failed": "failed, and its observation was not written",
    "uncertain": "was started and has no end: uncertain whether it ran",
    "never-ran": "was requested only: it never ran",
    "unknown": "has no result and no recorded state",
}


def _interruption(name: str, call_id: str, state: str) -> str:
    return f"call {call_id} ({name}) {_WORDS[state]}; the observation that a resume gives was put in"


def is_compaction(payload: Mapping[str, Any]) -> bool:
    """Whether a checkpoint changed the model's view; state dumps and imports of old snapshots did not."""
    if payload.get("legacy_snapshot_import"):
        return False
    return isinstance(payload.get("summary"), str) or (
        "retain_start_idx" in payload and "runtime_state" not in payload)


def _answered(records: list[Record]) -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for record in records:
        payload = record.value.get("payload")
        if record.value.get("event_type") == "message" and isinstance(payload, dict) and payload.get("role") == "tool":
            call_id = mapping(payload.get("metadata")).get("tool_call_id")
            found.add((plain(record.value.get("run_id")), plain(call_id)))
    return found
