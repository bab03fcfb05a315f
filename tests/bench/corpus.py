"""A generated corpus: many sessions of coding agents as OpenAI messages, made fast."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import orjson

_WORDS = [f"word{n}" for n in range(400)]
_TEXTS = 400
"""Different texts of each size; a session draws from them."""


def write_corpus(folder: Path, sessions: int, steps: int = 100, seed: int = 5) -> list[Path]:
    """Write `sessions` files of `steps` model calls each: prompts, reads, edits and commands with 20 to 250 words."""
    draw = random.Random(seed)
    short = [" ".join(draw.choices(_WORDS, k=draw.randint(5, 30))) for _ in range(_TEXTS)]
    long = [" ".join(draw.choices(_WORDS, k=draw.randint(20, 250))) for _ in range(_TEXTS)]
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for number in range(sessions):
        made.append(folder / f"{number:05}.jsonl")
        made[-1].write_bytes(b"\n".join(map(orjson.dumps, _session(number, steps, draw, short, long))) + b"\n")
    return made


def _session(number: int, steps: int, draw: random.Random, short: list[str], long: list[str]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for step in range(steps):
        if step % 12 == 0:
            lines.append({"role": "user", "content": f"Session {number}, task {step}: {draw.choice(short)}"})
        if step % 12 == 11:
            lines.append({"role": "assistant", "content": f"Part {step} is done. {draw.choice(short)}"})
            continue
        call = f"c{step}"
        lines.append({"role": "assistant", "content": draw.choice(short), "tool_calls": [
            {"id": call, "type": "function", "function": _function(draw, short)}]})
        lines.append({"role": "tool", "tool_call_id": call, "content": f"{step}: {draw.choice(long)}"})
    return lines


def _function(draw: random.Random, short: list[str]) -> dict[str, str]:
    path = f"src/file{draw.randrange(60)}.py"
    kind = draw.randrange(3)
    given = ({"file_path": path} if kind == 0 else {"command": f"pytest {path}"} if kind == 1 else
             {"file_path": path, "old_string": draw.choice(short), "new_string": draw.choice(short)})
    return {"name": ("Read", "Bash", "Edit")[kind], "arguments": orjson.dumps(given).decode()}
