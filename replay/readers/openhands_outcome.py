"""How an OpenHands session ended: a graded result, the resolver's guess, an error, or the agent's last state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from replay.readers import openhands_content as content
from replay.readers.native import mapping, string
from replay.transcript import Outcome

_STATES: Mapping[str, Literal["fail", "partial"]] = {"error": "fail", "rejected": "fail", "stopped": "partial"}
_ENDED = frozenset({"finished", *_STATES})


def outcome_of(events: Sequence[Mapping[str, Any]], head: Mapping[str, Any]) -> Outcome | None:
    """The outcome of a session; None where nothing tells."""
    return _graded(head) or _guessed(head) or _error(head) or _last_state(events)


def _graded(head: Mapping[str, Any]) -> Outcome | None:
    tests = mapping(head.get("test_result"))
    places = {"test_result.report": mapping(tests.get("report")), "test_result": tests,
              "report": mapping(head.get("report"))}
    for source, place in places.items():
        graded = place.get("resolved")
        if isinstance(graded, bool):
            return Outcome(value="pass" if graded else "fail", source=f"{source}.resolved")
    return None


def _guessed(head: Mapping[str, Any]) -> Outcome | None:
    """The issue resolver lets a model judge whether the issue is solved."""
    success = head.get("success")
    if "issue" not in head or not isinstance(success, bool):
        return None
    return Outcome(value="pass" if success else "fail", source="success", detail=string(head.get("result_explanation")))


def _error(head: Mapping[str, Any]) -> Outcome | None:
    error = head.get("error")
    return Outcome(value="fail", source="error", detail=content.text_of(error)) if error else None


def _last_state(events: Sequence[Mapping[str, Any]]) -> Outcome | None:
    for event in reversed(events):
        if event.get("observation") == "agent_state_changed":
            state = content.extras_of(event).get("agent_state")
            if isinstance(state, str) and state in _ENDED:
                return Outcome(value=_STATES.get(state, "unknown"), source="agent_state", detail=state)
        elif event.get("action") == "finish":
            return Outcome(value="unknown", source="finish", detail=_claim(event))
        elif event.get("action") == "message":
            return None
    return None


def _claim(event: Mapping[str, Any]) -> str | None:
    claimed = content.arguments_of(event).get("task_completed")
    return None if claimed is None else f"task_completed: {content.text_of(claimed)}"
