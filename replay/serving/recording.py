"""Writes what a harness sent in the layout of a capture, which the reader `wire` reads."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replay.blocks import ToolCall
from replay.errors import ConfigError
from replay.serving.answers import NO_USAGE
from replay.serving.kinds import Kind
from replay.serving.requests import Asked, Items
from replay.serving.script import Divergence
from replay.transcript import Usage
from replay.writers.json_lines import json_bytes, output

FILES = ("requests.jsonl", "items.jsonl", "config.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Responded:
    """What came of a request."""

    kind: Kind
    step: int
    """The recorded step that answered, or before which the request came."""
    status: int = 200
    error: str | None = None
    text: str = ""
    calls: Sequence[ToolCall] = ()
    usage: Usage = NO_USAGE
    divergences: Sequence[Divergence] = ()
    line: int = 0
    """The thread that answered: 0 the main one, then the sub-agents'."""
    told: int | None = None
    """The turn of that thread, from 0."""


@dataclass
class Recording:
    """A folder that grows with each request; what was written before a crash can be read.

    Lines are appended whole; config.json is replaced whole whenever a prompt or a process is new.
    """

    folder: Path
    config: dict[str, Any]
    _kinds: str = ""
    _items: int = 0
    _prompts: list[str] = field(default_factory=list)
    _commands: list[dict[str, Any]] = field(default_factory=list)

    def start(self) -> None:
        """Make the folder. Raises ConfigError where a recording lies there."""
        if any((self.folder / name).exists() for name in FILES):
            raise ConfigError("--record", str(self.folder), "a recording lies there; name another folder")
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in FILES[:2]:
            (self.folder / name).touch(mode=0o600)
        self._describe()

    def add(self, asked: Asked, done: Responded, items: Items, prompts: Sequence[str]) -> None:
        """Take in a request with what came of it, and the prompts that it brought."""
        fresh = [{"id": i, "item": items.natives[i]} for i in range(self._items, len(items.natives))]
        self._items += len(fresh)
        _append(self.folder / "items.jsonl", fresh)
        _append(self.folder / "requests.jsonl", [_row(asked, done)])
        self._kinds += "X" if done.status != 200 else {"step": ".", "summary": "S", "other": "o"}[done.kind]
        new = [p for p in prompts if p not in self._prompts]
        self._prompts += new
        if new:
            self._describe()

    def process_ended(self, argv: Sequence[str], code: int | None, requests: int) -> None:
        """A process of the harness has ended; its successor may know less than it did."""
        self._commands.append({"argv": list(argv), "exit": code, "requests_so_far": requests})
        self._describe()

    def close(self) -> None:
        """Write the last state."""
        self._describe()

    def _describe(self) -> None:
        told = {**self.config, "prompts": self._prompts, "commands": self._commands, "kinds": self._kinds}
        with output(self.folder / "config.json") as file:
            file.write(json_bytes(told))


def _append(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    data = b"".join(json_bytes(row) + b"\n" for row in rows)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(handle, data)
    finally:
        os.close(handle)


def _row(asked: Asked, done: Responded) -> dict[str, Any]:
    tools = asked.parsed.tools
    schemas = {"names": asked.parsed.tool_names, "bytes": len(json_bytes(list(tools)))} if tools else None
    calls = [{"id": c.id, "name": c.name, "arguments": c.parsed} for c in done.calls]
    usage = {"prompt": done.usage.input_total, "completion": done.usage.output, "total": done.usage.total}
    response = {"status": done.status, "error": done.error, "text": done.text, "tool_calls": calls, "usage": usage}
    return {"index": asked.number, "kind": done.kind, "endpoint": asked.path, "request_bytes": asked.size,
            "instructions": None, "tools": schemas, "params": asked.parsed.params, "items": asked.ids,
            "recorded_step": done.step, "thread": done.line, "response": response,
            "divergences": [d.to_json() for d in done.divergences]}
