"""The dialect of a harness that reads and searches through a shell and edits through patches."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson

from evals.samples.recording import Outcome
from evals.samples.scenario import Action
from evals.samples.usage import count


class Codex:
    """Codex: `exec_command`, `apply_patch` and `update_plan`."""

    def lower(self, action: Action) -> Action:
        """Reading, searching and listing become commands."""
        command = _command(action)
        return action if command is None else replace(action, kind="bash", target=command)

    def call(self, action: Action, cwd: str) -> tuple[str, Mapping[str, Any] | str]:
        """Tool name and arguments; a patch is free text."""
        if action.kind in ("edit", "write"):
            return "apply_patch", _patch(action)
        if action.kind == "todo":
            plan = [{"step": item["content"], "status": item["status"]} for item in action.get("items")]
            return "update_plan", {"plan": plan}
        return "exec_command", {"cmd": action.target, "workdir": cwd, "max_output_tokens": 20000}

    def result(self, action: Action, outcome: Outcome, cwd: str) -> str:
        """What the model gets back."""
        if action.kind == "todo":
            return "Plan updated"
        if action.kind == "bash":
            return _command_result(action, outcome)
        if outcome.failed:
            return f"apply_patch did not apply: {outcome.text}; expected lines:\n{action.get('old')}"
        mark = "M" if action.kind == "edit" else "A"
        done = f"Done. Changed files:\n{mark} {cwd}/{action.target}\n"
        return orjson.dumps({"output": done, "metadata": {"exit_code": 0, "duration_seconds": 0.0}}).decode()


def _command(action: Action) -> str | None:
    if action.kind == "read":
        first = int(action.get("start", 1))
        return f"sed -n '{first},{first + int(action.get('lines', 400)) - 1}p' {shlex.quote(action.target)}"
    if action.kind == "grep":
        return f"grep -n -E {shlex.quote(action.target)} {action.get('in')}"
    if action.kind == "list":
        return f"ls -1 {action.target}"
    return None


def _command_result(action: Action, outcome: Outcome) -> str:
    chunk = hashlib.sha256((action.target + outcome.text).encode()).hexdigest()[:6]
    return (f"Chunk ID: {chunk}\nWall time: 0.0{int(chunk, 16) % 900 + 100} seconds\n"
            f"Process exited with code {outcome.code}\nOriginal token count: {count(outcome.text)}\n"
            f"Output:\n{outcome.text}")


def _patch(action: Action) -> str:
    """A patch with one hunk; lines that old and new text share at both ends are context."""
    if action.kind == "write":
        body = [f"*** Add File: {action.target}", *("+" + line for line in str(action.get("text")).splitlines())]
    else:
        body = [f"*** Update File: {action.target}", "@@", *_hunk(str(action.get("old")), str(action.get("new")))]
    return "\n".join(["*** Begin Patch", *body, "*** End Patch"])


def _hunk(old: str, new: str) -> list[str]:
    before, after = old.split("\n"), new.split("\n")
    limit = min(len(before), len(after))
    head = next((n for n in range(limit) if before[n] != after[n]), limit)
    tail = next((n for n in range(limit - head) if before[-1 - n] != after[-1 - n]), limit - head)
    stop_before, stop_after = len(before) - tail, len(after) - tail
    return [*(" " + line for line in before[:head]), *("-" + line for line in before[head:stop_before]),
            *("+" + line for line in after[head:stop_after]), *(" " + line for line in before[stop_before:])]
