"""One recording of Gemini CLI as a transcript's threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from replay.blocks import Block, ToolCall
from replay.readers import gemini_parts as native
from replay.readers.common import ThreadBuilder, leftover, seconds
from replay.readers.gemini_log import GeminiLog
from replay.readers.gemini_records import Event, Recording, answered
from replay.transcript import NOTHING, ReadNote, Thread

_MODELLED = frozenset({"id", "timestamp", "type", "content", "thoughts", "tokens", "model", "toolCalls"})
_CALL = ("id", "name", "args", "result", "status", "timestamp")
_FAILED = ("error", "cancelled")
_ROLES = {"user": "user", "gemini": "model"}


@dataclass
class SessionReader:
    """Turns the events of a recording into a log."""

    recording: Recording
    log: GeminiLog
    names: list[str] = field(default_factory=list)
    """Ids of the messages that are not taken back, in order; a made-up one where there is none."""
    places: dict[str, int] = field(default_factory=dict)
    """Log index at which each message began."""
    agents: dict[str, str] = field(default_factory=dict)
    """Ids of the sub-agents that calls started, with the calls."""
    errors: list[str] = field(default_factory=list)
    """Texts of the messages that told of an error."""
    last: str | None = None
    """What the last message was."""
    _answered: set[str] = field(default_factory=set)
    _history: Event | None = None
    """A rewritten history that no message has followed yet; only the last one before a message was ever sent."""

    def read(self) -> Thread:
        """The main thread of the recording."""
        self._answered = answered(self.recording)
        for event in self.recording.events:
            if event.kind == "history":
                self._history = event
                continue
            self._take_over(is_end=False)
            if event.kind == "message":
                self._message(event)
            else:
                self._rewind(event)
        self._take_over(is_end=True)
        return self.log.thread.build()

    def _message(self, event: Event) -> None:
        name = event.id or f"message-{len(self.names)}"
        self.names.append(name)
        self.places[name] = len(self.log.thread.messages)
        _HANDLERS[event.value["type"]](self, event)
        self.last = event.value["type"]

    def _more(self, event: Event) -> dict[str, Any]:
        value = event.value
        extra = NOTHING if value.keys() <= _MODELLED else leftover(value, *_MODELLED)
        return {"id": event.id, "time": seconds(value.get("timestamp")), "line": event.line, "extra": extra}

    def user(self, event: Event) -> None:
        """A prompt, or results of tools."""
        self.log.user(event.value.get("content"), **self._more(event))

    def gemini(self, event: Event) -> None:
        """A response; calls that were recorded apart from it are put back into it."""
        value = event.value
        blocks, calls = self._blocks(value)
        if not blocks and calls and not _is_billed(value) and self._was_response():
            self.log.add_calls([call for call, _ in calls])
        else:
            model = value.get("model")
            self.log.respond([*blocks, *(call for call, _ in calls)], native.usage_of(value.get("tokens")),
                             model=model if isinstance(model, str) else None, **self._more(event))
        self._results(event, calls)

    def _was_response(self) -> bool:
        messages = self.log.thread.messages
        return bool(messages) and messages[-1].origin == "model" and not messages[-1].calls

    def _blocks(self, value: Mapping[str, Any]) -> tuple[list[Block], list[tuple[ToolCall, dict[str, Any]]]]:
        """What was said, and the calls with what is told of them; newer files hold the calls in the content too."""
        told = [c for c in value.get("toolCalls") or () if isinstance(c, dict)] if isinstance(
            value.get("toolCalls"), list) else []
        by_id = {c["id"]: c for c in told if isinstance(c.get("id"), str)}
        blocks: list[Block] = []
        calls = []
        parts = native.parts_of(value.get("content"))
        if not any(part.get("thought") for part in parts):
            blocks.extend(native.thoughts(value.get("thoughts")))
        for part in parts:
            if isinstance(given := part.get("functionCall"), dict):
                calls.append((self.log.called(given), by_id.pop(str(given.get("id")), {})))
            elif part.get("text") != "":
                blocks.append(native.block(part))
        rest = [c for c in told if not isinstance(c.get("id"), str) or c["id"] in by_id]
        calls.extend((self.log.called(c), c) for c in rest)
        return blocks, calls

    def _results(self, event: Event, calls: Sequence[tuple[ToolCall, dict[str, Any]]]) -> None:
        """Results that are kept with their calls; not those that are messages of their own."""
        parts: list[dict[str, Any]] = []
        for call, told in calls:
            if isinstance(agent := told.get("agentId"), str):
                self.agents[agent] = call.id
            if str(told.get("id")) not in self._answered:
                parts.extend(_result_parts(call, told))
        failed = [str(told.get("id")) for _, told in calls if told.get("status") in _FAILED]
        if parts:
            extra = {call.id: leftover(told, *_CALL) for call, told in calls}
            self.log.results(parts, failed, time=seconds(calls[-1][1].get("timestamp")), line=event.line, extra=extra)

    def info(self, event: Event) -> None:
        """A notice for the person; with files in it, it is what a tool gave back and was sent."""
        if any("inlineData" in part or "fileData" in part for part in native.parts_of(event.value.get("content"))):
            self.log.user(event.value["content"], "injected", "binary", **self._more(event))

    def error(self, event: Event) -> None:
        """A failure that the person was shown; a failed request is a step without a response."""
        text = "\n".join(str(part.get("text", "")) for part in native.parts_of(event.value.get("content")))
        self.errors.append(text)
        if "API Error" in text[:20]:
            self.log.thread.fail(text, model=self.log.model, time=seconds(event.value.get("timestamp")))

    def warning(self, event: Event) -> None:
        """A notice for the person."""

    def _take_over(self, is_end: bool) -> None:
        event, self._history = self._history, None
        if event is None:
            return
        messages = [m for m in event.value if isinstance(m, dict) and str(m.get("type")) in _ROLES]
        if event.value and not messages:
            self.recording.notes.append(ReadNote(code="bad-history", line=event.line, byte=event.byte, text=(
                "a rewritten history without messages in it; the window stays as it was")))
            return
        turns = [self.log.turn(m.get("id") if isinstance(m.get("id"), str) else None, _ROLES[m["type"]],
                               m.get("content"), event.line) for m in messages]
        if is_end and self.log.thread.messages and not any(
                native.SNAPSHOT in turn.message.text or turn.message.results for turn in turns):
            return
        if not self.names:
            self.names.extend(turn.id or f"message-{n}" for n, turn in enumerate(turns))
            self.places.update((name, n) for n, name in enumerate(self.names))
        self.log.rewrite(turns, event.line)
        if self.log.window.repeats:
            self.recording.notes.append(ReadNote(code="repeated-results", line=event.line, byte=event.byte, text=(
                f"{self.log.window.repeats} tool results were sent a second time from here on; they are counted once")))

    def _rewind(self, event: Event) -> None:
        name = event.value
        at = self.places.get(name, self.log.window.place_of(name))
        if at is None:
            self.recording.notes.append(ReadNote(code="unknown-rewind", line=event.line, byte=event.byte, text=(
                f"rewound to {name}, which is not in the history; the program then forgets everything before")))
        self.log.rewind(at or 0, name)
        first = self.names.index(name) if name in self.names else None
        kept = [n for n in self.names if self.places[n] < (at or 0)] if first is None else self.names[:first]
        self.names = kept
        self.places = {n: self.places[n] for n in kept}


def _is_billed(value: Mapping[str, Any]) -> bool:
    usage = native.usage_of(value.get("tokens"))
    return usage is not None and usage.total > 0


def _result_parts(call: ToolCall, told: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    """The result that is kept with a call, as function response parts under the call's id."""
    result = told.get("result")
    if result is None:
        return []
    if isinstance(result, str):
        return [{"functionResponse": {"id": told.get("id"), "name": call.name, "response": {"output": result}}}]
    parts = native.parts_of(result)
    if not any("functionResponse" in part for part in parts):
        return [{"functionResponse": {"id": told.get("id"), "name": call.name, "response": {
            "output": "\n".join(str(p.get("text", "")) for p in parts)}}}, *(p for p in parts if "text" not in p)]
    return parts


_HANDLERS: Mapping[str, Callable[[SessionReader, Event], None]] = {
    "user": SessionReader.user, "gemini": SessionReader.gemini, "info": SessionReader.info,
    "error": SessionReader.error, "warning": SessionReader.warning,
}


def reader_of(recording: Recording, name: str, call: str | None = None, is_agent: bool = False) -> SessionReader:
    """A reader of a recording; a sub-agent's prompts stand in the person's place."""
    log = GeminiLog(ThreadBuilder(id=name, parent_call=call), is_started_by_agent=is_agent)
    return SessionReader(recording, log)


def notes_of(reader: SessionReader) -> list[ReadNote]:
    """Everything odd in a recording that was read."""
    odd = [replace(note, line=note.line or None, byte=note.byte if note.line else None)
           for note in reader.recording.odd.notes()]
    notes = [*reader.recording.notes, *reader.log.notes, *odd]
    return sorted(notes, key=lambda note: note.line or 0)
