"""A small stored run whose sessions try to be more than text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

POISON = ("<script>window.pwned=1</script> **bold**\n# heading\n[a](http://x) <img src=http://192.0.2.1/i.png "
          "onerror=window.pwned=1> \x1b[31mred\x1b[0m \u202egnirts :red[shout] $x^2$ `code`")
"""Markup, Markdown, terminal codes and a direction override in one text."""
POLICIES = ("full-history", "decode-adr18:trigger.at=0.4,tail_tokens=200", "mycodeagent:rounds=1")


def chat(turns: int, size: int, text: str = "") -> Iterator[dict[str, Any]]:
    """Messages of a session in OpenAI's shape: each turn asks, reads a file and answers."""
    yield {"role": "system", "content": f"You are a coding agent. {text}"}
    for turn in range(1, turns + 1):
        call = {"id": f"call-{turn}", "type": "function",
                "function": {"name": "read_file", "arguments": json.dumps({"path": f"src/m{turn}.py", "note": text})}}
        yield {"role": "user", "content": f"Task {turn}: look at module {turn}. {text}"}
        yield {"role": "assistant", "content": f"I read module {turn}.", "tool_calls": [call]}
        yield {"role": "tool", "tool_call_id": f"call-{turn}", "content": f"{text}\n" + f"line of m{turn}\n" * size}
        yield {"role": "assistant", "content": f"Module {turn} is fine. {text}"}


def write_session(path: Path, *messages: dict[str, Any]) -> Path:
    """One message a line."""
    path.write_text("".join(json.dumps(m) + "\n" for m in messages), encoding="utf-8")
    return path


def compare_files(files: list[Path], out: Path, window: int = 1_500) -> dict[str, Any]:
    """A stored run of the files under `POLICIES`."""
    from evals.compare import Comparison, compare
    from evals.trial import Settings
    from replay.find import Found
    from replay.policy.base import Capacity
    from replay.policy.load import policy

    settings = Settings(capacity=Capacity(window=window), tokenizer="o200k_base", summariser="extractive")
    job = Comparison(files=tuple(Found(f, True) for f in files), policies=tuple(map(policy, POLICIES)),
                     baseline=POLICIES[0], settings=settings, jobs=1)
    return compare(job, out)


@pytest.fixture(scope="session")
def stored() -> Callable[..., dict[str, Any]]:
    """Compares files under the test's policies and stores the run."""
    return compare_files


@pytest.fixture(scope="session")
def poison() -> str:
    """The hostile text."""
    return POISON


@pytest.fixture(scope="session")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a hostile session, a plain one, and one without a model call."""
    folder = tmp_path_factory.mktemp("sessions")
    write_session(folder / "hostile **bold** <b>.jsonl", *chat(8, 12, POISON))
    write_session(folder / "plain.jsonl", *chat(6, 40))
    write_session(folder / "silent.jsonl", {"role": "system", "content": "Nobody asks."},
                  {"role": "user", "content": "Is anybody there?"})
    return folder


@pytest.fixture(scope="session")
def run(sessions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stored run of those sessions."""
    out = tmp_path_factory.mktemp("runs") / "first"
    compare_files(sorted(sessions.iterdir()), out)
    return out
