"""The steps of a lane as spans with the views themselves, and a recording in pieces from which it can be read again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from evals.sinks.opik_messages import chat_message, chat_messages, within
from replay.engine import Session, View
from replay.redact import Redactor
from replay.transcript import Step, Transcript, Usage
from replay.view import shown_messages
from replay.writers.json_lines import json_bytes
from replay.writers.rewindow import records

Row = dict[str, Any]
PART_CHARACTERS = 1_000_000
"""Of a recording, in one span; a longer line is a part of its own."""
LINES = "rewindow_jsonl"
"""Key of a span's input under which lines of Rewindow's own format stand."""


def step_rows(session: Session, views: Sequence[View], policy: str, is_recorded: bool, start: float,
              most_bytes: int) -> Iterator[Row]:
    """One span for each step; `start`: seconds since the epoch for what has no time of its own."""
    steps = session.transcript.steps
    for view, step, (begin, end) in zip(views, steps, times(steps, start), strict=True):
        shown = {"messages": chat_messages(s.message for s in shown_messages(session.log, view.window))}
        sent, is_cut = within(shown, most_bytes)
        row: Row = {"name": f"step {view.step}", "type": "llm", "start_time": begin, "end_time": end, "input": sent,
                    "metadata": {"rewindow": _facts(session, view) | {"policy": policy, "view_cut": is_cut}}}
        answer = None if step.response is None else session.log.messages[step.response]
        if answer is not None:
            row["output"] = within({"choices": [{"message": chat_message(answer)}]}, most_bytes)[0]
        if model := step.model or session.transcript.model:
            row["model"] = model
        if usage := _usage(step.usage) if is_recorded else _estimated(view, session.output_tokens[view.step - 1]):
            row["usage"] = usage
        yield row | _error(view, step)


def times(steps: Sequence[Step], start: float) -> Iterator[tuple[str, str]]:
    """When each step began and ended, in rising order; a step without a time takes a second."""
    before = next((s.time for s in steps if s.time is not None), start + 1.0) - 1.0
    for step in steps:
        end = max(step.time if step.time is not None else before + 1.0, before + 0.001)
        yield iso(before), iso(end)
        before = end


def iso(seconds: float) -> str:
    """A time as Opik writes it, to the microsecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _facts(session: Session, view: View) -> Row:
    facts: Row = {"step": view.step, "view_tokens": view.figure.tokens, "how": view.figure.how,
                  "counted_tokens": view.counted, "status": view.status, "mode": view.mode,
                  "messages": view.print.messages, "fingerprint": view.fingerprint,
                  "tokens_by_class": dict(session.log.by_class(view.window)),
                  "events": [event.to_json() for event in view.events]}
    if view.decision is not None:
        facts["decision"] = {name: getattr(view.decision, name) for name in ("estimated_tokens", "threshold", "reason")}
    return facts


def _usage(usage: Usage | None) -> dict[str, int]:
    """What was billed, in the spelling that Opik and its integrations use."""
    if usage is None:
        return {}
    written = usage.cache_write_5m + usage.cache_write_1h
    return {"prompt_tokens": usage.input_total, "completion_tokens": usage.output, "total_tokens": usage.total,
            "original_usage.prompt_tokens_details.cached_tokens": usage.cache_read,
            "original_usage.cache_creation_input_tokens": written}


def _estimated(view: View, output: int) -> dict[str, int]:
    return {"prompt_tokens": view.figure.tokens, "completion_tokens": output,
            "total_tokens": view.figure.tokens + output}


def _error(view: View, step: Step) -> Row:
    if view.status == "refused":
        return {"error_info": {"exception_type": "RequestRefused", "traceback": "",
                               "message": "the request did not fit the window, and the policy has no way out"}}
    if step.error:
        return {"error_info": {"exception_type": "ModelCallFailed", "message": step.error, "traceback": ""}}
    return {}


def recording(transcript: Transcript, redactor: Redactor | None) -> tuple[list[Row], Mapping[str, Any]]:
    """Spans that hold a whole recording, without times, and how to know that they are complete."""
    lines = (redactor.value(r) if redactor else r for r in records(transcript))
    parts = list(_parts(json_bytes(line).decode() for line in lines))
    rows = [{"name": f"recording {number} of {len(parts)}", "type": "general", "input": {LINES: text},
             "metadata": {"rewindow": {"part": number}}} for number, text in enumerate(parts, 1)]
    return rows, {"parts": len(parts), "sha256": hashlib.sha256("".join(parts).encode()).hexdigest()}


def _parts(lines: Iterator[str]) -> Iterator[str]:
    gathered: list[str] = []
    size = 0
    for line in lines:
        if gathered and size + len(line) > PART_CHARACTERS:
            yield "".join(gathered)
            gathered, size = [], 0
        gathered.append(line + "\n")
        size += len(line) + 1
    if gathered:
        yield "".join(gathered)


def learn(redactor: Redactor, transcript: Transcript) -> None:
    """Tell a redactor which names occur in a session, before anything of it is written."""
    redactor.learn(transcript.cwd)
    for line in records(transcript):
        redactor.learn(line)
