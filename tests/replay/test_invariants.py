"""Pairing of calls and results in a view."""

from __future__ import annotations

import pytest

from replay.blocks import Text, ToolCall, ToolResult
from replay.invariants import PairingChecker, pairing
from replay.transcript import Message, Origin, Role


def message(role: Role, origin: Origin, *blocks: Text | ToolCall | ToolResult) -> Message:
    """A message of a view."""
    return Message(index=-1, role=role, blocks=blocks, origin=origin)


def calls(*ids: str) -> Message:
    """A response that makes these calls."""
    return message("assistant", "model", *(ToolCall(id=i, name="Read", arguments="{}") for i in ids))


def results(*ids: str) -> Message:
    """The results of these calls."""
    return message("tool", "tool", *(ToolResult(call_id=i, text="t") for i in ids))


PROMPT = message("user", "human", Text(text="go"))
REMINDER = message("user", "injected", Text(text="by the way"))
ANSWER = message("assistant", "model", Text(text="done"))


@pytest.mark.parametrize("view", [
    [], [PROMPT, calls("a"), results("a"), ANSWER], [PROMPT, calls("a", "b"), results("b"), results("a"), ANSWER],
    [PROMPT, calls("a", "b"), results("a", "b"), PROMPT], [PROMPT, calls("a"), REMINDER, results("a"), ANSWER],
    [PROMPT, calls("a")], [results("")]])
def test_valid_views(view: list[Message]) -> None:
    """Results may come in any order, in one message or several, with reminders between; the last calls may be open."""
    assert [] == pairing(view)


@pytest.mark.parametrize(("view", "faults"), [
    ([PROMPT, results("a")], [("orphan-result", "a", 1)]),
    ([PROMPT, calls("a", "b"), results("a"), ANSWER], [("missing-result", "b", 1)]),
    ([PROMPT, calls("a"), PROMPT], [("missing-result", "a", 1)]),
    ([PROMPT, calls("a"), ANSWER, results("a")], [("missing-result", "a", 1), ("late-result", "a", 3)]),
    ([PROMPT, calls("a"), results("a"), results("a")], [("late-result", "a", 3)]),
    ([PROMPT, calls("a"), results("a"), calls("a"), results("a")], [("repeated-call", "a", 3)])])
def test_broken_views(view: list[Message], faults: list[tuple[str, str, int]]) -> None:
    """Each broken rule is named with the call and its place in the view."""
    assert faults == [(v.fault, v.call_id, v.position) for v in pairing(view)]


def test_checker_follows_a_growing_view() -> None:
    """Fed message by message it says at each point what the view so far breaks."""
    checker = PairingChecker()
    found = []
    for part in (PROMPT, calls("a"), PROMPT, results("a")):
        checker.feed(part)
        found.append(len(checker.current()))

    assert [0, 0, 1, 0] == found
