"""Writes a recording as Pi does (version 3): a tree of entries."""

from __future__ import annotations

from typing import Any

from evals.samples.ids import Ids
from evals.samples.recording import Entry, Fold, Recording, Rewind
from evals.samples.writers.common import Row, iso, lines, milliseconds
from replay.transcript import Usage

PRICES = (3.0, 15.0, 0.3, 3.75)
"""Dollars a million tokens: input, output, cache read, cache write."""
THINKING = "medium"


def write(recording: Recording, ids: Ids) -> bytes:
    """The bytes of the session file."""
    return lines(_Tree(recording, ids).rows)


class _Tree:
    """Rows with short ids; each hangs on the one before unless the person went back."""

    def __init__(self, recording: Recording, ids: Ids) -> None:
        self._recording, self._ids = recording, ids
        self._names: dict[Entry, str] = {}
        self._parent: str | None = None
        self.rows: list[Row] = [{"type": "session", "version": 3, "id": ids.uuid("session"), "cwd": recording.cwd,
                                 "timestamp": iso(recording.started)}]
        self._row("model_change", recording.started, provider="anthropic", modelId=recording.scenario.model)
        self._row("thinking_level_change", recording.started, thinkingLevel=THINKING)
        for event in recording.events:
            self._event(event)

    def _row(self, kind: str, time: float, **more: Any) -> str:
        identity = self._ids.hex("entry", 8)
        self.rows.append({"type": kind, "id": identity, "parentId": self._parent, "timestamp": iso(time), **more})
        self._parent = identity
        return identity

    def _event(self, event: Entry | Fold | Rewind) -> None:
        if isinstance(event, Rewind):
            self._parent = self._names[event.to]
        elif isinstance(event, Fold):
            self._fold(event)
        elif event.kind == "injected":
            self._names[event] = self._row("custom_message", event.time, customType=event.detail, display=False,
                                           content=event.text)
        else:
            self._names[event] = self._row("message", event.time, message=self._message(event))

    def _fold(self, fold: Fold) -> None:
        kept = [self._names[entry] for entry in fold.window if entry in self._names]
        files = {"readFiles": [f for f in fold.read_files if f not in fold.changed_files],
                 "modifiedFiles": list(fold.changed_files)}
        self._row("compaction", fold.time, summary=fold.summary.text, firstKeptEntryId=kept[0] if kept else None,
                  tokensBefore=fold.before, details=files, fromHook=False)

    def _message(self, entry: Entry) -> Row:
        if entry.kind == "prompt":
            content = [{"type": "text", "text": entry.text}]
            return {"role": "user", "content": content, "timestamp": milliseconds(entry.time)}
        if entry.kind == "response":
            return self._response(entry)
        return {"role": "toolResult", "toolCallId": entry.call.id, "toolName": entry.call.name,
                "content": [{"type": "text", "text": entry.text}], "isError": entry.outcome.failed,
                "timestamp": milliseconds(entry.time)}

    def _response(self, entry: Entry) -> Row:
        blocks: list[Row] = []
        if entry.thinking:
            blocks.append({"type": "thinking", "thinking": entry.thinking, "thinkingSignature": ""})
        if entry.text:
            blocks.append({"type": "text", "text": entry.text})
        blocks += [{"type": "toolCall", "id": c.id, "name": c.name, "arguments": c.arguments} for c in entry.calls]
        return {"role": "assistant", "content": blocks, "api": "anthropic-messages", "provider": "anthropic",
                "model": self._recording.scenario.model, "usage": usage_of(entry.usage),
                "stopReason": "stop" if entry.final else "toolUse", "timestamp": milliseconds(entry.started)}


def usage_of(usage: Usage) -> Row:
    """Usage with its cost, in the harness's words."""
    written = usage.cache_write_5m + usage.cache_write_1h
    parts = (usage.input_uncached, usage.output, usage.cache_read, written)
    cost = [round(tokens * price / 1_000_000, 6) for tokens, price in zip(parts, PRICES, strict=True)]
    names = ("input", "output", "cacheRead", "cacheWrite")
    return {**dict(zip(names, parts, strict=True)), "totalTokens": usage.total,
            "cost": {**dict(zip(names, cost, strict=True)), "total": round(sum(cost), 6)}}
