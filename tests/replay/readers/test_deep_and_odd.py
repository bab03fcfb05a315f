"""Odd values where a reader looks for a name or a number, and lists in lists."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replay.errors import ReadError
from replay.readers import read_bytes


def events(*natives: dict[str, Any]) -> bytes:
    """An OpenHands event stream."""
    return json.dumps([{"id": n, "timestamp": "2026-01-01T00:00:00", **native} for n, native in enumerate(natives)]).encode()


PROMPT = {"source": "user", "action": "message", "args": {"content": "List the files."}}
ANSWER = {"source": "agent", "action": "message", "args": {"content": "There are two."}}


@pytest.mark.parametrize("offset", [[], {}, "2", None, 1.5])
def test_a_summary_without_a_place_is_put_first_and_noted(offset: Any) -> None:
    """A condensation whose offset is no number keeps its summary, with a note."""
    condensation = {"source": "agent", "action": "condensation", "args": {
        "forgotten_event_ids": [1], "summary": "Files were listed.", "summary_offset": offset}}
    found = read_bytes(events(PROMPT, ANSWER, condensation, PROMPT, ANSWER), "openhands")[0]

    assert "Files were listed." == found.compactions[0].summary
    assert "Files were listed." in [m.text for m in found.compactions[0].window if not isinstance(m, int)]
    assert ["misplaced-summary"] == [n.code for n in found.notes if n.code == "misplaced-summary"]


@pytest.mark.parametrize("state", [[], {}, 7, None, {"a": []}])
def test_a_state_that_is_no_name_is_no_outcome(state: Any) -> None:
    """An agent state of another type than text says nothing of how the session ended."""
    changed = {"source": "environment", "observation": "agent_state_changed", "extras": {"agent_state": state}}
    found = read_bytes(events(PROMPT, ANSWER, changed), "openhands")[0]

    assert found.outcome is None


@pytest.mark.parametrize("depth", [5, 100, 900, 1200])
def test_lists_in_lists_overflow_nothing(depth: int) -> None:
    """A document of lists in lists is no session, and said to be none."""
    with pytest.raises(ReadError, match=r"no known transcript format|nested|JSON"):
        read_bytes(b"[" * depth + b"{}" + b"]" * depth)


@pytest.mark.parametrize("role", [{"a": None}, 7, [], None, "critic"])
def test_an_answer_with_a_role_that_is_none_is_still_an_answer(role: Any) -> None:
    """The output of a generation is said by the model, whatever stands where its role should."""
    generation = {"id": "o1", "traceId": "t1", "type": "GENERATION", "startTime": "2026-01-01T00:00:00Z",
                  "input": [{"role": "user", "content": "What does it print?"}],
                  "output": {"role": role, "content": "It prints 2."}}
    trace = {"id": "t1", "name": "run", "timestamp": "2026-01-01T00:00:00Z", "observations": [generation]}
    found = read_bytes(json.dumps(trace).encode(), "otel")[0]

    assert [("user", "What does it print?"), ("assistant", "It prints 2.")] == [(m.role, m.text) for m in found.messages]
