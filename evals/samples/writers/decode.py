"""Writes a recording as Decode does: batches of requests and responses, one batch a turn."""

from __future__ import annotations

from collections.abc import Iterable

from evals.samples.ids import Ids
from evals.samples.recording import Entry, Fold, Recording
from evals.samples.writers.common import Row, iso, lines

INSTRUCTIONS = "You are a coding agent in a terminal. Use the tools, keep answers short, and run the tests."


def write(recording: Recording, ids: Ids) -> bytes:
    """The bytes of the session file."""
    head = {"type": "session", "version": 1, "session_id": ids.uuid("session"), "cwd": recording.cwd,
            "created_at": iso(recording.started)}
    model = recording.scenario.model
    rows: list[Row] = [head]
    turn: list[Entry] = []
    for event in recording.events:
        if isinstance(event, Entry):
            turn.append(event)
        elif isinstance(event, Fold):
            rows += [_batch(turn, model), _fold(event, model)]
            turn = []
        if turn and turn[-1].final:
            rows.append(_batch(turn, model))
            turn = []
    return lines(row for row in [*rows, _batch(turn, model)] if row)


def _batch(entries: list[Entry], model: str) -> Row:
    return {"type": "messages", "messages": messages(entries, model)} if entries else {}


def _fold(fold: Fold, model: str) -> Row:
    if fold.kind == "clear":
        return {"type": "clear"}
    tail = [entry for entry in fold.window if entry is not fold.summary]
    return {"type": "compaction", "summary": messages([fold.summary], model), "tail": messages(tail, model)}


def messages(entries: Iterable[Entry], model: str) -> list[Row]:
    """Requests and responses; results that follow each other share a request."""
    found: list[Row] = []
    for entry in entries:
        if entry.kind == "response":
            found.append(_response(entry, model))
        elif entry.kind == "result" and found and found[-1].get("_open"):
            found[-1]["parts"].append(_part(entry))
        else:
            found.append(_request(entry))
    return [{key: value for key, value in message.items() if key != "_open"} for message in found]


def _request(entry: Entry) -> Row:
    return {"parts": [_part(entry)], "timestamp": iso(entry.time), "instructions": INSTRUCTIONS, "kind": "request",
            "run_id": None, "metadata": None, "_open": entry.kind == "result"}


def _part(entry: Entry) -> Row:
    if entry.kind != "result":
        return {"content": entry.text, "timestamp": iso(entry.time), "part_kind": "user-prompt"}
    return {"tool_name": entry.call.name, "content": entry.text, "tool_call_id": entry.call.id, "metadata": None,
            "timestamp": iso(entry.time), "outcome": "failed" if entry.outcome.failed else "success",
            "part_kind": "tool-return"}


def _response(entry: Entry, model: str) -> Row:
    parts: list[Row] = []
    if entry.thinking:
        parts.append({"content": entry.thinking, "id": None, "signature": None, "part_kind": "thinking"})
    if entry.text:
        parts.append({"content": entry.text, "id": None, "part_kind": "text"})
    parts += [{"tool_name": call.name, "args": call.arguments, "tool_call_id": call.id, "id": None,
               "part_kind": "tool-call"} for call in entry.calls]
    usage = {"input_tokens": entry.usage.input_total, "cache_write_tokens": entry.usage.cache_write_5m,
             "cache_read_tokens": entry.usage.cache_read, "output_tokens": entry.usage.output, "details": {}}
    return {"parts": parts, "usage": usage, "model_name": model, "timestamp": iso(entry.time), "kind": "response",
            "provider_name": None, "provider_response_id": None,
            "finish_reason": "stop" if entry.final else "tool_call", "run_id": None, "metadata": None}
