"""Writes a recording as Claude Code 2.1 does: a chain of lines, one block of a response a line."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from evals.samples.ids import Ids
from evals.samples.recording import Call, Entry, Fold, Recording
from evals.samples.writers.common import Row, iso, lines
from replay.transcript import Usage

SMALL_COPY = 1_200
"""Characters up to which the interface's own copy of a command's output is written, to keep the files small."""


def write(recording: Recording, ids: Ids) -> bytes:
    """The bytes of the session file."""
    return lines(_Chain(recording, ids).rows)


def usage_of(usage: Usage, output: int) -> Row:
    """Usage in the provider's words."""
    return {"input_tokens": usage.input_uncached,
            "cache_creation_input_tokens": usage.cache_write_5m + usage.cache_write_1h,
            "cache_read_input_tokens": usage.cache_read,
            "cache_creation": {"ephemeral_5m_input_tokens": usage.cache_write_5m,
                               "ephemeral_1h_input_tokens": usage.cache_write_1h},
            "output_tokens": output, "service_tier": "standard"}


class _Chain:
    """Rows that hang on each other by `parentUuid`."""

    def __init__(self, recording: Recording, ids: Ids) -> None:
        self.rows: list[Row] = []
        self._recording, self._ids = recording, ids
        self._session = ids.uuid("session")
        self._parent: str | None = None
        self._call_rows: dict[str, str] = {}
        self._turn_started = recording.started
        for event in recording.events:
            if isinstance(event, Fold):
                self._fold(event)
            elif isinstance(event, Entry):
                self._entry(event)

    def _row(self, kind: str, time: float, parent: str | None, **more: Any) -> str:
        identity = self._ids.uuid()
        scenario = self._recording.scenario
        self.rows.append({
            "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": self._recording.cwd,
            "sessionId": self._session, "version": scenario.version, "gitBranch": "main", "type": kind, **more,
            "uuid": identity, "timestamp": iso(time)})
        return identity

    def _entry(self, entry: Entry) -> None:
        if entry.kind == "prompt":
            self._prompt(entry)
        elif entry.kind == "injected":
            self._parent = self._row("user", entry.time, self._parent, isMeta=True,
                                     message={"role": "user", "content": entry.text})
        elif entry.kind == "response":
            self._response(entry)
        else:
            self._result(entry)

    def _prompt(self, entry: Entry) -> None:
        self._turn_started = entry.time
        place = len(self.rows)
        self._parent = self._row("user", entry.time, self._parent, message={"role": "user", "content": entry.text})
        snapshot = {"messageId": self._parent, "trackedFileBackups": {}, "timestamp": iso(entry.time)}
        self.rows.insert(place, {"type": "file-history-snapshot", "messageId": self._parent, "snapshot": snapshot,
                                 "isSnapshotUpdate": False})

    def _response(self, entry: Entry) -> None:
        messages = response_messages(entry, self._recording.scenario.model, self._ids)
        request = self._ids.word("req_011C", 20)
        for number, message in enumerate(messages):
            time = entry.time - 0.3 * (len(messages) - 1 - number)
            self._parent = self._row("assistant", time, self._parent, message=message, requestId=request)
            block = message["content"][0]
            if block["type"] == "tool_use":
                self._call_rows[block["id"]] = self._parent
        if entry.final:
            self._parent = self._row(
                "system", entry.time, self._parent, subtype="turn_duration", isMeta=False,
                durationMs=round(1000 * (entry.time - self._turn_started)))

    def _result(self, entry: Entry) -> None:
        parent = self._call_rows[entry.call.id]
        agent = self._ids.hex("agent", 7) if entry.side else ""
        if entry.side:
            self._side(entry.side, entry.call, agent, parent)
        self._parent = self._row("user", entry.time, parent, message=result_message(entry),
                                 **_copy(entry, agent), sourceToolAssistantUUID=parent)

    def _side(self, side: Recording, call: Call, agent: str, parent: str) -> None:
        """A sub-agent's messages, nested in progress rows that hang on its call."""
        above = parent
        for inner in side.entries():
            for row in self._side_rows(inner):
                data = {"message": row, "normalizedMessages": [], "type": "agent_progress", "prompt": side.prompt,
                        "agentId": agent}
                above = self._row("progress", inner.time, above, data=data, parentToolUseID=call.id,
                                  toolUseID=f"agent_{agent}")

    def _side_rows(self, inner: Entry) -> list[Row]:
        head = {"uuid": self._ids.uuid(), "timestamp": iso(inner.time)}
        if inner.kind == "prompt":
            content = [{"type": "text", "text": inner.text}]
            return [{"type": "user", "message": {"role": "user", "content": content}, **head}]
        if inner.kind == "result":
            return [{"type": "user", "message": result_message(inner), **head}]
        request = self._ids.word("req_011C", 20)
        return [{"type": "assistant", "message": message, "requestId": request, **head, "uuid": self._ids.uuid()}
                for message in response_messages(inner, self._recording.scenario.model, self._ids)]

    def _fold(self, fold: Fold) -> None:
        if fold.kind == "micro":
            blanked = [entry.call.id for entry in fold.blanked]
            self._parent = self._row(
                "system", fold.time, self._parent, subtype="microcompact_boundary", content="Context microcompacted",
                isMeta=False, level="info", microcompactMetadata={
                    "trigger": fold.trigger, "preTokens": fold.before, "tokensSaved": fold.saved,
                    "compactedToolIds": blanked, "clearedAttachmentUUIDs": []})
            return
        boundary = self._row(
            "system", fold.time, None, logicalParentUuid=self._parent, subtype="compact_boundary",
            content="Conversation compacted", isMeta=False, level="info",
            compactMetadata={"trigger": fold.trigger, "preTokens": fold.before})
        self._parent = self._row("user", fold.time, boundary, isVisibleInTranscriptOnly=True, isCompactSummary=True,
                                 message={"role": "user", "content": fold.summary.text})


def response_messages(entry: Entry, model: str, ids: Ids) -> list[Row]:
    """One message a block, all with the same id; only the last has the whole usage and a reason to stop."""
    blocks: list[Row] = []
    if entry.thinking:
        blocks.append({"type": "thinking", "thinking": entry.thinking, "signature": _signature(entry.thinking)})
    if entry.text:
        blocks.append({"type": "text", "text": entry.text})
    blocks += [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in entry.calls]
    identity, last = ids.word("msg_01", 22), len(blocks) - 1
    stop = "end_turn" if entry.final else "tool_use"
    return [{"model": model, "id": identity, "type": "message", "role": "assistant", "content": [block],
             "stop_reason": stop if number == last else None, "stop_sequence": None,
             "usage": usage_of(entry.usage, entry.usage.output if number == last else 1)}
            for number, block in enumerate(blocks)]


def result_message(entry: Entry) -> Row:
    """The message of a tool's result."""
    content: Any = [{"type": "text", "text": entry.text}] if entry.side else entry.text
    block = {"tool_use_id": entry.call.id, "type": "tool_result", "content": content}
    return {"role": "user", "content": [{**block, "is_error": True} if entry.outcome.failed else block]}


def _copy(entry: Entry, agent: str) -> Row:
    """The interface's copy of a result, where it is small."""
    action, outcome = entry.action, entry.outcome
    if entry.side:
        inner = list(entry.side.entries())
        usages = [e.usage for e in inner if e.kind == "response"]
        calls = sum(len(e.calls) for e in inner)
        return {"toolUseResult": {"status": "completed", "agentId": agent, "totalToolUseCount": calls,
                                  "totalDurationMs": round(1000 * (entry.time - inner[0].time)),
                                  "totalTokens": usages[-1].total}}
    if action.kind == "bash" and len(outcome.text) <= SMALL_COPY:
        return {"toolUseResult": {"stdout": outcome.text, "stderr": "", "interrupted": False, "isImage": False}}
    if action.kind == "todo":
        return {"toolUseResult": {"newTodos": action.get("items")}}
    if outcome.failed:
        return {"toolUseResult": f"Error: {outcome.text[:SMALL_COPY]}"}
    return {}


def _signature(text: str) -> str:
    """Stands where a provider signs its reasoning; it signs nothing."""
    return base64.b64encode(b"scripted" + hashlib.sha512(text.encode()).digest()).decode()
