"""Writes a recording as MyCodeAgent does: a transcript of events, one run a prompt."""

from __future__ import annotations

from typing import Any

from evals.samples.ids import Ids
from evals.samples.recording import Call, Entry, Fold, Recording
from evals.samples.writers.common import Row, iso, lines


def write(recording: Recording, ids: Ids) -> bytes:
    """The bytes of the transcript file."""
    return lines(_Events(recording, ids).rows)


class _Events:
    """Rows that carry run and step."""

    def __init__(self, recording: Recording, ids: Ids) -> None:
        self.rows: list[Row] = []
        self._ids = ids
        self._session = "s-" + ids.hex("session", 12)
        self._run = self._step = 0
        self._messages: list[Entry] = []
        for event in recording.events:
            if isinstance(event, Fold):
                self._checkpoint(event)
            elif isinstance(event, Entry):
                self._entry(event)

    def _row(self, kind: str, time: float, **payload: Any) -> None:
        self.rows.append({
            "event_id": "evt-" + self._ids.hex("event", 32), "timestamp": iso(time), "session_id": self._session,
            "run_id": f"run-{self._run}", "step": self._step, "event_type": kind, "payload": payload,
            "schema_version": 1})

    def _message(self, entry: Entry, role: str, **metadata: Any) -> None:
        self._messages.append(entry)
        self._row("message", entry.time, role=role, content=entry.text, metadata=metadata)

    def _entry(self, entry: Entry) -> None:
        if entry.kind == "prompt":
            self._run, self._step = self._run + 1, 0
            self._message(entry, "user")
            self._move(entry.time, None, "user_input", "user_input")
        elif entry.kind == "response":
            self._response(entry)
        elif entry.kind == "result":
            self._result(entry, entry.call)

    def _move(self, time: float, old: str | None, new: str, reason: str) -> None:
        self._row("state_transition", time, from_state=old, to_state=new, reason=reason, details={})

    def _response(self, entry: Entry) -> None:
        self._step += 1
        calls = [{"id": c.id, "name": c.name, "arguments": c.text} for c in entry.calls]
        more: Row = {"action_type": "tool_call", "tool_calls": calls} if calls else {}
        if entry.thinking:
            more["reasoning_content"] = entry.thinking
        self._message(entry, "assistant", step=self._step, **more)
        for call in entry.calls:
            self._lifecycle(entry.time, call, "requested", args=call.arguments)
        if entry.final:
            self._move(entry.time, "model_call", "finished", "final_answer")
            self._row("terminal", entry.time, reason="completed", details={})

    def _lifecycle(self, time: float, call: Call, status: str, **more: Any) -> None:
        self._row("tool_lifecycle", time, tool_name=call.name, tool_call_id=call.id, status=status, **more)

    def _result(self, entry: Entry, call: Call) -> None:
        self._lifecycle(entry.time, call, "started")
        self._lifecycle(entry.time, call, "failed" if entry.outcome.failed else "completed")
        self._message(entry, "tool", step=self._step, tool_name=call.name, tool_call_id=call.id)

    def _checkpoint(self, fold: Fold) -> None:
        kept = [self._messages.index(entry) for entry in fold.window if entry in self._messages]
        start = kept[0] if kept else len(self._messages)
        self._row("checkpoint", fold.time, checkpoint_id="compact_" + self._ids.hex("checkpoint", 32),
                  summary=fold.summary.text, source_message_count=len(self._messages), retain_start_idx=start,
                  messages_compacted=start, created_at=iso(fold.time), metadata={})
