"""What a resumed MyCodeAgent session shows the model for calls that were interrupted.

The harness follows each call through `requested`, `started`, then `completed` or `failed`. When a session is
loaded again, a call without an observation gets one, and its text tells how far the call came: requested only
never ran; started without an end is uncertain and must be inspected before it is tried again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from replay.readers.mycodeagent_history import mapping, plain

UNSAFE = frozenset({"Edit", "Bash", "Task"})
"""Tools that must not be run again when it is uncertain whether they ran."""


@dataclass
class Lifecycle:
    """The recorded states of one tool call."""

    name: str = ""
    statuses: list[str] = field(default_factory=list)
    last: Mapping[str, Any] = field(default_factory=dict)

    @property
    def state(self) -> str:
        """`completed`, `failed`, `uncertain` (started, no end), `never-ran` (requested only) or `unknown`."""
        for status, state in _STATES:
            if status in self.statuses:
                return state
        return "unknown"


_STATES = (("completed", "completed"), ("failed", "failed"), ("started", "uncertain"), ("requested", "never-ran"))
_ERRORS = {
    "uncertain": ("INTERRUPTED_UNCERTAIN", "The tool was interrupted while it ran; check the state before a retry."),
    "never-ran": ("NOT_EXECUTED_REPLAN", "The tool was never started; the call can be planned afresh."),
    "unknown": ("RECOVERY_STATE_UNKNOWN", "Nothing tells how far the tool came; check the state before a retry."),
}
Lifecycles = dict[tuple[str, str], Lifecycle]


def lifecycles(events: Iterable[Mapping[str, Any]]) -> Lifecycles:
    """The states of every call of a session, by run and call id."""
    found: Lifecycles = {}
    for event in events:
        if event.get("event_type") == "tool_lifecycle":
            payload = mapping(event.get("payload"))
            if call_id := plain(payload.get("tool_call_id")):
                _follow(found.setdefault((plain(event.get("run_id")), call_id), Lifecycle()), payload)
    return found


def _follow(call: Lifecycle, payload: Mapping[str, Any]) -> None:
    call.name = plain(payload.get("tool_name")) or call.name
    call.last = payload
    call.statuses.append(plain(payload.get("status")))


def observation(call: Lifecycle | None) -> str:
    """The observation that stands for a call whose own was never recorded, as JSON text."""
    state = call.state if call else "unknown"
    if call and state == "completed":
        return _completed(call.last)
    if call and state == "failed":
        return _error("EXECUTION_FAILED", plain(call.last.get("error")) or "The tool failed; no observation was kept.")
    return _error(*_ERRORS[state])


def _completed(payload: Mapping[str, Any]) -> str:
    result = payload.get("result", payload.get("result_text"))
    if result is None:
        result = {"status": "success", "data": {"recovered": True}}
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def _error(code: str, message: str) -> str:
    body = {"status": "error", "error": {"code": code, "message": message}, "data": {"recovered": True}}
    return json.dumps(body, ensure_ascii=False)


def unfinished(found: Lifecycles) -> tuple[Mapping[str, Any], ...]:
    """The calls without an end: run, id, tool, state, and whether the tool may safely run again."""
    return tuple(
        {"run_id": run, "tool_call_id": call_id, "tool_name": call.name, "state": call.state,
         "replay_allowed": call.state == "never-ran" or call.name not in UNSAFE}
        for (run, call_id), call in found.items() if call.state in ("uncertain", "never-ran"))
