"""A small family of tasks, and a scripted agent that works on them as far as it still knows what it was told."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WORDS = ("mango", "papaya", "quince", "lychee", "tamarind", "durian")
NEXT = """#!/bin/sh
n=$(cat count 2>/dev/null || echo 0)
n=$((n + 1))
echo $n > count
echo "STEP $n of 5"
seq 1 700
"""


def make_task(folder: Path, word: str) -> Path:
    """A task whose one rule must be remembered over five large outputs."""
    task = folder / f"remember-{word}"
    for name in ("environment", "tests", "solution"):
        (task / name).mkdir(parents=True)
    (task / "task.toml").write_text('version = "1.0"\n[agent]\nmax_steps = 12\n')
    (task / "instruction.md").write_text(f"Run `sh next.sh` five times. Then write the fruit <{word}> into answer.txt.\n")
    (task / "environment" / "next.sh").write_text(NEXT)
    (task / "tests" / "test.sh").write_text(f'[ "$(cat answer.txt 2>/dev/null)" = "{word}" ] || exit 1\n')
    (task / "solution" / "solve.sh").write_text(f"printf {word} > answer.txt\n")
    return task


@pytest.fixture
def tasks(tmp_path: Path) -> list[str]:
    """Folders of six tasks."""
    return [str(make_task(tmp_path / "tasks", word)) for word in WORDS]


@pytest.fixture
def agent() -> Callable[[dict[str, Any]], Any]:
    """What the scripted model answers: it has no memory but the view that it is sent."""
    def answer(body: dict[str, Any]) -> Any:
        seen = "\n".join(str(m.get("content")) for m in body["messages"])
        billed = {"usage": (len(str(body["messages"])) // 3, 20)}
        last = str(body["messages"][-1].get("content"))
        if last.startswith("wrote answer.txt"):
            return {"text": "Done.", **billed}
        if "STEP 5 of 5" in last:
            found = re.search(r"<(\w+)>", seen)
            content = found[1] if found else "no idea"
            return {"calls": [("write", {"path": "answer.txt", "content": content})], **billed}
        return {"text": "Next.", "calls": [("bash", {"command": "sh next.sh"})], **billed}

    return answer
