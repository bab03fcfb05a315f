"""Sessions for a model to be asked about, the fixture endpoint as a user's file, and the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evals.model.config import Models
from replay.cli import main


def chat(path: Path, rounds: int, size: int = 400) -> Path:
    """A session in OpenAI's chat format: one prompt and one tool call a round."""
    lines: list[dict[str, Any]] = []
    for n in range(rounds):
        call = {"name": "read", "arguments": json.dumps({"path": f"src/{path.stem}_{n}.py"})}
        lines.append({"role": "user", "content": f"Please look at file {n} with ticket {4100 + n}."})
        lines.append({"role": "assistant", "content": f"I decided in round {n} to read src/{path.stem}_{n}.py first.",
                      "tool_calls": [{"id": f"c{n}", "type": "function", "function": call}]})
        lines.append({"role": "tool", "tool_call_id": f"c{n}", "content": f"line {n} " * size})
        lines.append({"role": "assistant", "content": f"File {n} is fine. Next I will run check {7200 + n}."})
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    """Two sessions that outgrow a window of 8,000 tokens several times."""
    folder = tmp_path / "sessions"
    folder.mkdir()
    for n in range(2):
        chat(folder / f"s{n}.jsonl", 16 + n)
    return folder


@pytest.fixture
def many(tmp_path: Path) -> Callable[[int], Path]:
    """Makes a folder with so many sessions."""
    def make(count: int) -> Path:
        folder = tmp_path / "many"
        folder.mkdir()
        for n in range(count):
            chat(folder / f"s{n}.jsonl", 26)
        return folder

    return make


@pytest.fixture
def models_file(models: Models, tmp_path: Path) -> Path:
    """The fixture's endpoint as a user's file."""
    file = tmp_path / "models.toml"
    file.write_text(f'[model]\nbase_url = "{models.base_url}"\ncache = "{models.cache}"\nsummariser = "tiny"\n'
                    'answerer = "tiny"\njudge = "tiny"\nbackoff = 0.001\nprice_input = 1\nprice_output = 2\n',
                    encoding="utf-8")
    return file


Run = Callable[..., tuple[int, dict[str, Any], str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line: exit code, document on stdout (empty where there is none) and text on stderr."""
    def call(*arguments: str | Path) -> tuple[int, dict[str, Any], str]:
        with pytest.raises(SystemExit) as stopped:
            main([str(a) for a in arguments])
        out = capsys.readouterr()
        return int(stopped.value.code or 0), json.loads(out.out or "{}"), out.err

    return call
