"""Qwen Code, a fork of Gemini CLI: Gemini contents in records that form a tree, compressions written out in full."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replay.blocks import Block
from replay.readers import gemini_parts as native
from replay.readers.common import ThreadBuilder, leftover, not_an_object, seconds, whole
from replay.readers.gemini_log import GeminiLog
from replay.readers.gemini_window import Turn
from replay.readers.odd_types import OddTypes
from replay.readers.source import Source
from replay.transcript import NOTHING, Origin, ReadNote, Thread, Transcript, Usage

_MODELLED = frozenset({"uuid", "parentUuid", "sessionId", "timestamp", "type", "cwd", "version", "message", "model",
                       "usageMetadata"})
_TYPES = frozenset({"user", "assistant", "tool_result", "system"})
_NUDGES = frozenset({"notification", "cron", "goal_control", "goal_runtime", "background_task_completed"})
_RESPONSE = "qwen-code.api_response"


@dataclass(frozen=True)
class _Row:
    value: dict[str, Any]
    line: int
    byte: int

    @property
    def uuid(self) -> str:
        name = self.value.get("uuid")
        return name if isinstance(name, str) and name else f"line-{self.line}"


def is_record(value: Mapping[str, Any]) -> bool:
    """Whether an object is a record of Qwen Code."""
    if not ("uuid" in value and "sessionId" in value):
        return False
    message = value.get("message")
    if isinstance(message, dict):
        return isinstance(message.get("parts"), list)
    return value.get("type") == "system" and isinstance(value.get("systemPayload"), dict)


def read(source: Source) -> tuple[Transcript, ...]:
    """The session of a file."""
    notes: list[ReadNote] = []
    rows = _rows(source, notes)
    main = [row for row in rows if not row.value.get("isSidechain")]
    is_agent = not main and bool(rows)
    path, branches = _tree(rows if is_agent else main, notes)
    told: dict[str, Any] = next((row.value for row in rows), {})
    name = str(told.get("sessionId") or Path(source.path).stem)
    odd = OddTypes("record type")
    reader = _Reader(GeminiLog(ThreadBuilder(id=name), is_started_by_agent=is_agent), odd)
    thread = reader.read(path)
    left = [_Reader(GeminiLog(ThreadBuilder(id=f"{name}/{b[-1].uuid}")), odd) for b in branches]
    abandoned = [r.read(b) for r, b in zip(left, branches, strict=True)]
    agents = [] if is_agent else _agents([row for row in rows if row.value.get("isSidechain")], odd)
    notes += [note for r in (reader, *left) for note in r.log.notes] + odd.notes()
    return (Transcript(
        format="gemini-cli", session_id=name, path=source.path, main=thread, subagents=tuple(agents),
        abandoned=(*(t for t in abandoned if t.messages or t.steps), *reader.log.side, *(
            t for r in left for t in r.log.side)),
        notes=tuple(sorted(notes, key=lambda note: note.line or 0)), parent_session=_parent(told, rows),
        harness_version=_last_text(rows, "version"), model=reader.log.model, window=reader.window,
        cwd=_last_text(rows, "cwd"), message_count=reader.count, extra=_extra(told)),)


def _extra(told: Mapping[str, Any]) -> Mapping[str, Any]:
    return leftover({"harness": "qwen-code", "gitBranch": told.get("gitBranch")})


def _rows(source: Source, notes: list[ReadNote]) -> list[_Row]:
    """The records, each id once."""
    found: dict[str, _Row] = {}
    for record in source.records:
        value = record.value
        if not isinstance(value, dict):
            notes.append(not_an_object(record.line, record.byte, value))
            continue
        row = _Row(value, record.line, record.byte)
        if row.uuid in found:
            same = found[row.uuid].value == value
            notes.append(ReadNote(code="duplicate", line=record.line, byte=record.byte, text=(
                f"record {row.uuid} is written again; " + ("read once" if same else "the first one holds"))))
            continue
        found[row.uuid] = row
    return list(found.values())


def _tree(rows: Sequence[_Row], notes: list[ReadNote]) -> tuple[list[_Row], list[list[_Row]]]:
    """The path to the last record, and the branches that were left."""
    known = {row.uuid: row for row in rows}
    above: dict[str, str | None] = {}
    before: str | None = None
    for row in rows:
        parent = row.value.get("parentUuid")
        if isinstance(parent, str) and parent not in above:
            notes.append(ReadNote(code="missing-parent", line=row.line, byte=row.byte, text=(
                f"the parent {parent} is not before this record; taken after the record before it")))
            parent = before
        above[row.uuid] = parent if isinstance(parent, str) else None if "parentUuid" in row.value else before
        before = row.uuid
    taken: set[str] = set()
    path = _upwards(before, above, known, taken)
    inner = {parent for name, parent in above.items() if name not in taken}
    ends = [name for name in above if name not in taken and name not in inner]
    return path, [branch for name in ends if (branch := _upwards(name, above, known, taken))]


def _upwards(name: str | None, above: Mapping[str, str | None], known: Mapping[str, _Row],
             taken: set[str]) -> list[_Row]:
    found = []
    while name is not None and name not in taken:
        taken.add(name)
        found.append(known[name])
        name = above[name]
    return found[::-1]


def _agents(rows: Iterable[_Row], odd: OddTypes) -> list[Thread]:
    groups: dict[str, list[_Row]] = {}
    for row in rows:
        groups.setdefault(str(row.value.get("agentId") or "sidechain"), []).append(row)
    return [_Reader(GeminiLog(ThreadBuilder(id=name), is_started_by_agent=True), odd).read(group)
            for name, group in groups.items()]


def _parent(told: Mapping[str, Any], rows: Iterable[_Row]) -> str | None:
    forked = told.get("forkedFrom")
    if isinstance(forked, dict) and isinstance(forked.get("sessionId"), str):
        return str(forked["sessionId"])
    for row in rows:
        payload = row.value.get("systemPayload")
        if row.value.get("subtype") == "parent_session" and isinstance(payload, dict):
            return str(payload.get("parentSessionId"))
    return None


def _last_text(rows: Sequence[_Row], key: str) -> str | None:
    return next((v for row in reversed(rows) if isinstance(v := row.value.get(key), str) and v), None)


@dataclass
class _Reader:
    log: GeminiLog
    odd: OddTypes
    count: int = 0
    window: int | None = None
    calls: set[str] = field(default_factory=set)
    """Native ids of all calls of the path."""
    waiting: list[tuple[_Row, Usage | None]] = field(default_factory=list)
    """Responses that the program reported and that have not shown up as messages yet."""

    def read(self, rows: Iterable[_Row]) -> Thread:
        listed = list(rows)
        self.calls = {str(part["functionCall"].get("id")) for row in listed for part in self._parts(row)
                      if isinstance(part.get("functionCall"), dict)}
        for row in listed:
            kind = str(row.value.get("type"))
            if kind not in _TYPES:
                self.odd.add(kind, row.line, row.byte)
                continue
            _HANDLERS[kind](self, row)
        self._bill()
        return self.log.thread.build()

    def _parts(self, row: _Row) -> list[dict[str, Any]]:
        message = row.value.get("message")
        return native.parts_of(message.get("parts")) if isinstance(message, dict) else []

    def _more(self, row: _Row) -> dict[str, Any]:
        extra = NOTHING if row.value.keys() <= _MODELLED else leftover(row.value, *_MODELLED)
        return {"id": row.uuid, "time": seconds(row.value.get("timestamp")), "line": row.line, "extra": extra}

    def user(self, row: _Row) -> None:
        self.count += 1
        subtype = row.value.get("subtype") if isinstance(row.value.get("subtype"), str) else None
        origin: Origin | None = None
        if subtype in _NUDGES or str(row.value.get("provenance")) in _NUDGES:
            origin = "nudge"
        elif subtype == "mid_turn_user_message":
            origin = "human"
        self.log.user(self._parts(row), origin, subtype, **self._more(row))

    def assistant(self, row: _Row) -> None:
        self.count += 1
        value = row.value
        if self.waiting:
            self.waiting.pop()
        self._bill()
        self.window = whole(value.get("contextWindowSize")) or self.window
        blocks: list[Block] = [self.log.called(part["functionCall"]) if "functionCall" in part else native.block(part)
                               for part in self._parts(row)]
        model = value.get("model")
        self.log.respond(blocks, native.metadata_usage(value.get("usageMetadata")),
                         model=model if isinstance(model, str) else None, **self._more(row))

    def tool_result(self, row: _Row) -> None:
        self.count += 1
        told = row.value.get("toolCallResult")
        failed = [str(told.get("callId"))] if isinstance(told, dict) and told.get("status") == "error" else []
        self.log.results(self._parts(row), failed, **self._more(row))

    def system(self, row: _Row) -> None:
        payload = row.value.get("systemPayload")
        subtype = row.value.get("subtype")
        if not isinstance(payload, dict):
            return
        if subtype == "ui_telemetry":
            self._reported(row, payload.get("uiEvent"))
        elif subtype == "chat_compression":
            self._compression(row, payload)

    def _reported(self, row: _Row, event: Any) -> None:
        """Every response is reported, those that wrote summaries too; only the others follow as messages."""
        if isinstance(event, dict) and event.get("event.name") == _RESPONSE:
            self.waiting.append((row, native.usage_of({
                "input": event.get("input_token_count"), "cached": event.get("cached_content_token_count"),
                "output": event.get("output_token_count")})))

    def _bill(self) -> None:
        for row, usage in self.waiting:
            self.log.billed(usage, f"summary-{row.uuid}", model=self.log.model,
                            time=seconds(row.value.get("timestamp")))
        self.waiting = []

    def _compression(self, row: _Row, payload: Mapping[str, Any]) -> None:
        self._bill()
        history = payload.get("compressedHistory")
        info = payload.get("info") if isinstance(payload.get("info"), dict) else {}
        if not isinstance(history, list):
            self.log.notes.append(ReadNote(code="bad-compaction", line=row.line, byte=row.byte, text=(
                "a compression without a history; the window stays as it was")))
            return
        told = dict(info or {})
        turns = list(self._past(self.log.turn(None, str(c.get("role")), c.get("parts"), row.line)
                                for c in history if isinstance(c, dict)))
        reason = told.get("triggerReason")
        trigger = None if not isinstance(reason, str) else "manual" if "manual" in reason else "auto"
        self.log.rewrite(turns, row.line, is_marked=False, keeps_open=True, trigger=trigger,
                         counter_before=whole(told.get("originalTokenCount")) or None,
                         counter_after=whole(told.get("newTokenCount")) or None,
                         extra=leftover(told, "originalTokenCount", "newTokenCount"))


    def _past(self, turns: Iterable[Turn]) -> Iterator[Turn]:
        """The turns up to the first that is said only later: old versions wrote the history after it had grown."""
        for turn in turns:
            if any(call.id in self.calls and not self.log.window.has_call(call.id) for call in turn.message.calls):
                return
            yield turn


_HANDLERS: Mapping[str, Callable[[_Reader, _Row], None]] = {
    "user": _Reader.user, "assistant": _Reader.assistant, "tool_result": _Reader.tool_result,
    "system": _Reader.system,
}

