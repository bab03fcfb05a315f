"""Sessions of every format, served to a harness that does exactly what the recorded one did."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replay.errors import ReadError
from replay.find import find, read_found
from replay.serving.anthropic import Anthropic
from replay.serving.build import Settings, build
from replay.serving.chat import Chat
from replay.serving.responses import Responses
from replay.serving.script import Turn, line_of
from replay.transcript import Transcript

SAMPLES = Path(__file__).resolve().parents[3] / "datasets" / "samples"
MOST_STEPS = 120
PER_FORMAT = 3


def sessions(folder: Path) -> Iterator[Transcript]:
    """The first sessions of each format that have a response and are not too long."""
    taken: Counter[str] = Counter()
    for found in find([str(folder)]):
        try:
            first = next(iter(read_found(found)), None)
        except ReadError:
            continue
        if first is None or not 0 < sum(s.response is not None for s in first.steps) <= MOST_STEPS:
            continue
        taken[first.format] += 1
        if taken[first.format] <= PER_FORMAT:
            yield first


def chat(turn: Turn) -> list[dict[str, Any]]:
    """What came before a turn, as messages of chat completions."""
    results = [{"role": "tool", "tool_call_id": r.call_id, "content": r.text} for r in turn.results.values()]
    return [*results, *({"role": "user", "content": p} for p in turn.prompts)]


def responses(turn: Turn) -> list[dict[str, Any]]:
    """The same as items of Responses."""
    results = [{"type": "function_call_output", "call_id": r.call_id, "output": r.text} for r in turn.results.values()]
    return [*results, *({"role": "user", "content": p} for p in turn.prompts)]


def anthropic(turn: Turn) -> list[dict[str, Any]]:
    """The same as one message of Anthropic's."""
    results = [{"type": "tool_result", "tool_use_id": r.call_id, "content": r.text} for r in turn.results.values()]
    content = [*results, *({"type": "text", "text": p} for p in turn.prompts)]
    return [{"role": "user", "content": content}] if content else []


PROTOCOLS = {
    "chat": (Chat(), chat, "messages", lambda said: [said["choices"][0]["message"]]),
    "responses": (Responses(), responses, "input", lambda said: said["output"]),
    "anthropic": (Anthropic(), anthropic, "messages", lambda said: [{"role": "assistant", "content": said["content"]}]),
}


def play(transcript: Transcript, name: str) -> tuple[int, list[Any]]:
    """Steps that were served, and what went wrong; the whole history is sent each time."""
    protocol, came, key, answer = PROTOCOLS[name]
    names = {c.name for m in transcript.messages for c in m.calls}
    tools = [{"type": "function", "name": n, "function": {"name": n}} for n in sorted(names)]
    endpoint, sent = build(transcript, Settings()), []
    for turn in line_of(transcript.main).turns:
        sent += came(turn)
        reply = endpoint.reply(protocol, json.dumps({"model": "m", key: sent, "tools": tools}).encode())
        if reply.status != 200 or reply.headers["x-rewindow-step"] != str(turn.step.number):
            return turn.step.number, [reply.body]
        sent += answer(json.loads(reply.body))
    return len(endpoint.tally.steps), endpoint.tally.divergences


@pytest.mark.parametrize("name", PROTOCOLS)
def test_bundled_sessions_are_served_to_their_end(name: str) -> None:
    """Every recorded response comes, in order, and nothing diverges."""
    for transcript in sessions(SAMPLES):
        expected = sum(s.response is not None for s in transcript.steps)

        assert (expected, []) == play(transcript, name), transcript.path


def test_real_sessions_are_served_to_their_end(transcripts: Path) -> None:
    """The same for public sessions of every format."""
    found = list(sessions(transcripts))

    assert 10 <= len({t.format for t in found})
    for transcript in found:
        expected = sum(s.response is not None for s in transcript.steps)
        assert (expected, []) == play(transcript, "chat"), transcript.path
