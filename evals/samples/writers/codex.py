"""Writes a recording as the Codex command line does: response items and events in envelopes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from evals.samples.ids import Ids
from evals.samples.recording import Call, Entry, Fold, Recording
from evals.samples.writers.common import Row, iso, lines
from replay.transcript import Usage

INSTRUCTIONS = "You are a coding agent. Work in the folder that you are given, run the tests, and say what you did."


def write(recording: Recording, ids: Ids) -> bytes:
    """The bytes of the rollout file."""
    return lines(_Rollout(recording, ids).rows)


def totals(usage: Usage) -> Row:
    """Usage in the harness's words: input includes what was cached, output includes reasoning."""
    return {"input_tokens": usage.input_total, "cached_input_tokens": usage.cache_read,
            "output_tokens": usage.output, "reasoning_output_tokens": usage.reasoning, "total_tokens": usage.total}


class _Rollout:
    """Rows with a running total of tokens."""

    def __init__(self, recording: Recording, ids: Ids) -> None:
        self.rows: list[Row] = []
        self._recording, self._ids = recording, ids
        self._total = Usage()
        self._turn = ""
        self._meta()
        for event in recording.events:
            if isinstance(event, Fold):
                self._fold(event)
            elif isinstance(event, Entry):
                self._entry(event)

    def _row(self, kind: str, time: float, payload: Row) -> None:
        self.rows.append({"timestamp": iso(time), "type": kind, "payload": payload})

    def _item(self, time: float, **payload: Any) -> None:
        self._row("response_item", time, payload)

    def _event(self, time: float, kind: str, **payload: Any) -> None:
        self._row("event_msg", time, {"type": kind, **payload})

    def _meta(self) -> None:
        scenario, started = self._recording.scenario, self._recording.started
        self._row("session_meta", started, {
            "id": self._ids.uuid("session"), "timestamp": iso(started), "cwd": self._recording.cwd,
            "originator": "codex_cli_rs", "cli_version": scenario.version, "source": "cli", "model_provider": "openai",
            "base_instructions": {"text": INSTRUCTIONS}})

    def _open_turn(self, time: float) -> None:
        if self._turn:
            return
        self._turn = self._ids.uuid("turn")
        self._event(time, "task_started", turn_id=self._turn, collaboration_mode_kind="default",
                    model_context_window=self._recording.scenario.window)

    def _context(self, time: float) -> None:
        self._row("turn_context", time, {
            "turn_id": self._turn, "cwd": self._recording.cwd, "timezone": "Etc/UTC", "approval_policy": "never",
            "current_date": datetime.fromtimestamp(time, UTC).date().isoformat(),
            "sandbox_policy": {"type": "workspace-write", "network_access": False},
            "model": self._recording.scenario.model, "effort": "medium", "summary": "auto"})

    def _entry(self, entry: Entry) -> None:
        self._open_turn(entry.time)
        if entry.kind == "prompt":
            self._context(entry.time)
            self._item(entry.time, **item_of(entry))
            self._event(entry.time, "user_message", message=entry.text, images=[], local_images=[], text_elements=[])
        elif entry.kind == "response":
            self._response(entry)
        else:
            self._item(entry.time, **item_of(entry))

    def _response(self, entry: Entry) -> None:
        if entry.thinking:
            self._event(entry.started + 0.8, "agent_reasoning", text=entry.thinking)
            self._item(entry.started + 0.8, type="reasoning", content=None, encrypted_content=None,
                       summary=[{"type": "summary_text", "text": entry.thinking}])
        if entry.text:
            phase = "final_answer" if entry.final else "commentary"
            self._event(entry.time, "agent_message", message=entry.text, phase=phase)
            self._item(entry.time, **item_of(entry), phase=phase)
        for call in entry.calls:
            self._item(entry.time, **call_item(call))
        self._total += entry.usage
        self._count(entry.time, totals(entry.usage))
        if entry.final:
            self._event(entry.time, "task_complete", turn_id=self._turn, last_agent_message=entry.text)
            self._turn = ""

    def _count(self, time: float, last: Row) -> None:
        info = {"total_token_usage": totals(self._total), "last_token_usage": last,
                "model_context_window": self._recording.scenario.window}
        self._event(time, "token_count", info=info, rate_limits=None)

    def _fold(self, fold: Fold) -> None:
        history = [item_of(entry) for entry in fold.window]
        self._row("compacted", fold.time, {"message": fold.summary.text, "replacement_history": history})
        self._context(fold.time)
        self._count(fold.time, {**totals(Usage()), "total_tokens": fold.after})
        self._event(fold.time, "context_compacted")


def item_of(entry: Entry) -> Row:
    """The response item of a message or of a result."""
    if entry.kind == "result":
        kind = "custom_tool_call_output" if isinstance(entry.call.arguments, str) else "function_call_output"
        return {"type": kind, "call_id": entry.call.id, "output": entry.text}
    role = {"response": "assistant", "injected": entry.role}.get(entry.kind, "user")
    part = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": part, "text": entry.text}]}


def call_item(call: Call) -> Row:
    """The response item of a call."""
    if isinstance(call.arguments, str):
        return {"type": "custom_tool_call", "status": "completed", "call_id": call.id, "name": call.name,
                "input": call.arguments}
    return {"type": "function_call", "name": call.name, "arguments": call.text, "call_id": call.id}
