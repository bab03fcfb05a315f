"""Ctrl-C in the middle of a study: what was answered is kept, and the rest is asked next time."""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


def call(sessions: Path, models_file: Path, *more: str | Path) -> list[str | Path]:
    return ["agree", sessions, "-p", "full-history", "-p", "codex", "--window", "8000", "--models", models_file,
            "--steps", "6", "--json", *more]


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """Ctrl-C arrives also where a shell started the tests in the background, with the signal ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_ctrl_c_keeps_answers_and_the_next_run_asks_the_rest(sessions: Path, models_file: Path, endpoint: Any,
                                                            run: Any) -> None:
    """The stopped run has its numbers and says that it was stopped; together both asked each question once."""
    seen = threading.Event()

    def answer(_: Any) -> dict[str, Any]:
        if len(endpoint.requests) == 6 and not seen.is_set():
            seen.set()
            _thread.interrupt_main()
        return {"text": '{"tool": "read", "arguments": {}}', "delay": 0.02}

    endpoint.default = answer
    code, stopped, said = run(*call(sessions, models_file))
    before = len(endpoint.requests)
    _, whole, _ = run(*call(sessions, models_file))

    assert (0, "interrupted") == (code, stopped["studies"]["stopped"])
    assert "interrupted" in said
    assert before == whole["studies"]["bill"]["cached"]
    assert len(endpoint.requests) == before + whole["studies"]["bill"]["requests"]
    assert whole["studies"]["stopped"] is None
