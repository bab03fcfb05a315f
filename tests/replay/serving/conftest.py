"""A recorded session, and an endpoint that answers from it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from replay.serving.app import served
from replay.serving.build import Settings, build
from replay.serving.endpoint import Endpoint
from replay.testing import Script, summary_message
from replay.transcript import Transcript, Usage

ARGUMENTS = '{"path":"a.py"}'


def recorded() -> Transcript:
    """Two turns: a call, a pair of calls, two answers; the recorded harness compacted before the last step."""
    script = Script(session_id="recorded-session").user("Fix the parser.")
    script.call("read", ARGUMENTS, text="I look at a.py.", usage=Usage(input_uncached=100, cache_read=900, output=20))
    script.result("print(1)").call("read", '{"path":"b.py"}', count=2).result("bee", 0).result("bee again", 1)
    script.say("The parser is fixed.").user("Now the tests.").compacted(summary_message("Parser fixed."), 7,
                                                                        summary="Parser fixed.")
    return script.say("The tests pass.").build()


@dataclass
class Running:
    """An endpoint on a port."""

    url: str
    endpoint: Endpoint
    told: list[str] = field(default_factory=list)


@pytest.fixture
def serve() -> Iterator[Callable[..., Running]]:
    """Starts endpoints: `serve(limit=100)`, `serve(another_transcript)`."""
    with contextlib.ExitStack() as stack:
        def start(transcript: Transcript | None = None, **settings: Any) -> Running:
            told: list[str] = []
            endpoint = build(transcript or recorded(), Settings(**settings), told.append)
            return Running(stack.enter_context(served(endpoint)), endpoint, told)
        yield start


@pytest.fixture
def session() -> Transcript:
    """The recorded session."""
    return recorded()
