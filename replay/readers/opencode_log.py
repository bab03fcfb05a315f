"""The log of one OpenCode session: messages and parts into steps, results, compactions and prunings."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from replay.blocks import Block, Text
from replay.readers import opencode_parts as native
from replay.readers.call_ids import CallIds
from replay.readers.common import ThreadBuilder, leftover, seconds
from replay.readers.odd_types import OddTypes
from replay.readers.opencode_records import StoredMessage, StoredSession, mapping, plain
from replay.readers.opencode_storage import child_of
from replay.transcript import Message, Origin, ReadNote, RecordedCompaction, Step, Thread, Usage

_INFO = ("id", "sessionID", "role", "time", "tokens", "modelID", "finish", "error")
_STATE = ("status", "input", "output", "error", "attachments")
_ABORTED = "MessageAbortedError"


@dataclass
class SessionLog:
    """Builds the thread of one session, message by message."""

    session: StoredSession
    thread: ThreadBuilder
    is_started_by_agent: bool = False
    """The prompts of the session were written by another agent."""
    ids: CallIds = field(default_factory=CallIds)
    odd: OddTypes = field(default_factory=lambda: OddTypes("part type", "kept as opaque blocks"))
    notes: list[ReadNote] = field(default_factory=list)
    side: list[Thread] = field(default_factory=list)
    """What was cut off, and the requests that wrote summaries."""
    children: dict[str, str] = field(default_factory=dict)
    """Ids of the sessions that calls started, with the calls."""
    model: str | None = None
    ending: str | None = None
    copied: set[str] = field(default_factory=set)
    """Responses that a fork took over from the session it was made from."""
    places: dict[str, int] = field(default_factory=dict)
    """Length of the log when each message came."""
    made: list[float] = field(default_factory=list)
    """When the native message of each log message was made; never decreasing."""
    pruned: list[tuple[float, int]] = field(default_factory=list)
    summaries: dict[str, StoredMessage] = field(default_factory=dict)
    """Finished summaries by the id of the message that asked for them."""
    has_overflowed: bool = False
    """The compaction before was forced: the prompt it interrupted is written again."""
    prompted: StoredMessage | None = None
    """The user message before."""
    began: float | None = None
    """When the session was made."""

    def read(self, messages: Sequence[StoredMessage]) -> Thread:
        """The thread of the messages."""
        self.summaries = {str(m.info.get("parentID")): m for m in messages if _is_summary(m) and _is_finished(m)}
        self.began = seconds(mapping(self.session.info.get("time")).get("created"))
        last = messages[-1] if messages else None
        for message in messages:
            self.places[message.id] = len(self.thread.messages)
            if message.info.get("role") == "user":
                self.user(message)
            elif message.info.get("role") == "assistant":
                self.assistant(message, message is last)
            else:
                self.odd.add(f"role {message.info.get('role')}", message.line or 0, 0)
            self._pass_time(message)
        self._prunings()
        return self.thread.build()

    def _pass_time(self, message: StoredMessage) -> None:
        before = self.made[-1] if self.made else 0.0
        moment = max(before, _created(message) or before)
        self.made.extend([moment] * (len(self.thread.messages) - len(self.made)))

    def user(self, message: StoredMessage) -> None:
        """A prompt: what the person wrote, then what the program put beside it."""
        self.prompted = message
        marker = next((p for p in message.parts if p.get("type") == "compaction"), None)
        if marker is not None:
            self._asked_to_compact(message, marker)
            return
        blocks = list(native.user_blocks(message.parts, self.odd, message.line))
        is_again, self.has_overflowed = self.has_overflowed and self._is_again(blocks), False
        for is_synthetic, group in groupby(sorted(blocks, key=lambda b: b[0]), key=lambda b: b[0]):
            origin, detail = self._speaker(message, is_synthetic, alone=all(b[0] for b in blocks))
            self._add("user", (b[1] for b in group), "nudge" if is_again else origin, message,
                      "replay" if is_again else detail)

    def _is_again(self, blocks: Iterable[tuple[bool, Block]]) -> bool:
        texts = [b.text for _, b in blocks if isinstance(b, Text)]
        before = next((m for m in reversed(self.thread.messages) if m.origin == "human"), None)
        return before is not None and texts == [b.text for b in before.blocks if isinstance(b, Text)]

    def _speaker(self, message: StoredMessage, is_synthetic: bool, alone: bool) -> tuple[Origin, str | None]:
        if not is_synthetic:
            return ("nudge", "agent") if self.is_started_by_agent else ("human", None)
        if not alone or _is_run_by_person(message):
            return "injected", "synthetic"
        told = [name for p in message.parts for name, value in mapping(p.get("metadata")).items() if value is True]
        return "nudge", told[0] if told else "synthetic"

    def _add(self, role: Any, blocks: Iterable[Block], origin: Origin, message: StoredMessage,
             detail: str | None = None) -> None:
        self.thread.add(role, blocks, origin, id=message.id or None, time=_created(message), line=message.line,
                        detail=detail, extra=leftover(message.info, *_INFO))

    def assistant(self, message: StoredMessage, is_last: bool) -> None:
        """A response with its tool calls and their results; or a summary; or what the person ran."""
        info = message.info
        self.model = plain(info.get("modelID")) or self.model
        if _is_summary(message):
            self.summary(message)
            return
        error = _error(info)
        self.ending = error or plain(info.get("finish")) or ("unfinished" if is_last else None)
        if error is not None and not (error.startswith(_ABORTED) and _has_content(message)):
            self._failed(message, error)
        elif self._is_run_for_person(message):
            blocks, tools = self._blocks(message, message.parts)
            self._add("assistant", blocks, "injected", message, "run_by_person")
            self._results(message, tools, is_last)
        else:
            self._respond(message, error, is_last)

    def _respond(self, message: StoredMessage, error: str | None, is_last: bool) -> None:
        groups = native.segments(message.parts)
        for group in groups:
            blocks, tools = self._blocks(message, group)
            usage = self._usage(message, group, len(groups), group is groups[-1])
            if blocks:
                self.thread.respond(blocks, usage, model=self.model, time=_ended(message), error=error,
                                    id=message.id or None, line=message.line, extra=leftover(message.info, *_INFO))
                self._results(message, tools, is_last)
            elif group is groups[-1]:
                self.thread.fail("no response was recorded", usage, model=self.model, time=_ended(message))

    def _usage(self, message: StoredMessage, group: Sequence[Mapping[str, Any]], count: int,
               is_final: bool) -> Usage | None:
        """Tokens of one call: the message's, or those of its own `step-finish` where a message holds several calls."""
        if self._is_copied(message):
            return None
        whole = native.usage_of(message.info.get("tokens")) if is_final else None
        if count == 1 and whole is not None and whole.total:
            return whole
        own = next((native.usage_of(p.get("tokens")) for p in group if p.get("type") == "step-finish"), None)
        return own if own is not None and own.total else whole

    def _is_copied(self, message: StoredMessage) -> bool:
        """A message that is older than its session was taken over by a fork; it was billed there."""
        moment = _created(message)
        if self.began is None or moment is None or moment >= self.began:
            return False
        self.copied.add(message.id)
        return True

    def _blocks(self, message: StoredMessage,
                parts: Iterable[dict[str, Any]]) -> tuple[list[Block], list[tuple[str, dict[str, Any]]]]:
        blocks: list[Block] = []
        tools: list[tuple[str, dict[str, Any]]] = []
        for part in parts:
            if part.get("type") == "tool":
                call_id = self.ids.call(plain(part.get("callID")) or plain(part.get("id")) or "")
                blocks.append(native.call_block(part, call_id))
                tools.append((call_id, part))
                if child := child_of(part):
                    self.children.setdefault(child, call_id)
            elif (block := native.response_block(part, self.odd, message.line)) is not None:
                blocks.append(block)
        return blocks, tools

    def _results(self, message: StoredMessage, tools: Iterable[tuple[str, dict[str, Any]]], is_last: bool) -> None:
        """One message a tool part; a call that never ended is told to the model once it is asked again."""
        for call_id, part in tools:
            result = native.result_block(part, call_id)
            state = mapping(part.get("state"))
            if result is None:
                self._unfinished(message, call_id, part, is_last)
                continue
            if (moment := native.pruned_at(part)) is not None:
                self.pruned.append((moment / 1000, len(self.thread.messages)))
            self.thread.add("tool", [result], "tool", id=plain(part.get("id")), line=message.line,
                            time=seconds(mapping(state.get("time")).get("end")), extra=leftover(state, *_STATE))

    def _unfinished(self, message: StoredMessage, call_id: str, part: Mapping[str, Any], is_last: bool) -> None:
        status = mapping(part.get("state")).get("status")
        self.notes.append(ReadNote(code="call-without-result", line=message.line, text=(
            f"{part.get('tool')} ({call_id}) was left {status}; "
            + ("no result was recorded" if is_last else "later requests said that it was interrupted"))))
        if not is_last:
            told = native.result_block({"tool": part.get("tool"), "state": {
                "status": "error", "error": native.INTERRUPTED}}, call_id)
            self.thread.add("tool", [told] if told else [], "tool", id=plain(part.get("id")), line=message.line)

    def _is_run_for_person(self, message: StoredMessage) -> bool:
        return self.prompted is not None and _is_run_by_person(self.prompted) and bool(message.parts) and all(
            p.get("type") == "tool" for p in message.parts)

    def _failed(self, message: StoredMessage, error: str) -> None:
        """A response that ended in an error is never sent again, so it stays out of the log."""
        usage = None if self._is_copied(message) else native.usage_of(message.info.get("tokens"))
        self.thread.fail(error, usage, model=self.model, time=_ended(message))
        blocks, _ = self._blocks(message, message.parts)
        if blocks:
            part = Message(index=0, role="assistant", blocks=tuple(blocks), origin="model", id=message.id or None,
                           time=_created(message), line=message.line)
            self.side.append(Thread(id=f"{self.thread.id}/cut-off-{message.id}", messages=(part,)))

    def _asked_to_compact(self, message: StoredMessage, marker: Mapping[str, Any]) -> None:
        self.has_overflowed = marker.get("overflow") is True
        if message.id not in self.summaries:
            self.notes.append(ReadNote(code="compaction-unfinished", line=message.line, text=(
                "a compaction was asked for but no finished summary follows; the window stays as it was")))
            self._add("user", [Text(text=native.MARKER)], "injected", message, "compaction")

    def summary(self, message: StoredMessage) -> None:
        """A summary: billed, and from now on in front of what is kept."""
        usage = None if self._is_copied(message) else native.usage_of(message.info.get("tokens"))
        if usage is not None and usage.total:
            step = Step(number=1, start=0, response=None, usage=usage, model=self.model, time=_ended(message),
                        error=_error(message.info))
            self.side.append(Thread(id=f"{self.thread.id}/summary-{message.id}", steps=(step,)))
        if _is_finished(message):
            self._compacted(message)

    def _compacted(self, message: StoredMessage) -> None:
        asked = self.prompted if self.prompted and self.prompted.id == message.info.get("parentID") else None
        marker = next((p for p in asked.parts if p.get("type") == "compaction"), {}) if asked else {}
        text = "\n".join(p["text"] for p in message.parts if p.get("type") == "text" and isinstance(p.get("text"), str))
        head: list[int | Message] = [Message(index=-1, role="user", blocks=(Text(text=native.MARKER),),
                                             origin="injected", detail="compaction")] if marker else []
        head.append(Message(index=-1, role="assistant", blocks=(Text(text=text),), origin="summary",
                            id=message.id or None, time=_created(message), line=message.line))
        for part in message.parts:
            native.response_block(part, self.odd, message.line)
        end = len(self.thread.messages)
        auto = marker.get("auto")
        self.thread.compactions.append(RecordedCompaction(
            position=end, kind="full", window=(*head, *range(self._tail(marker, message), end)),
            trigger=None if auto is None else "auto" if auto else "manual", summary=text or None,
            summary_readable=bool(text), line=message.line, extra=leftover(marker, "type", "auto", "id", "messageID",
                                                                           "sessionID")))

    def _tail(self, marker: Mapping[str, Any], message: StoredMessage) -> int:
        """Where the kept tail begins; the end of the log where there is none."""
        first = marker.get("tail_start_id")
        if first is None or first in self.places:
            return len(self.thread.messages) if first is None else self.places[first]
        self.notes.append(ReadNote(code="missing-kept-entry", line=message.line, text=(
            f"the first kept message {first!r} is not before this compaction; only the summary is kept")))
        return len(self.thread.messages)

    def _prunings(self) -> None:
        """Prunings by where in the log they took effect; those of one pass are one event."""
        places = sorted((max(bisect_right(self.made, moment), index + 1), index) for moment, index in self.pruned)
        for position, group in groupby(places, key=lambda place: place[0]):
            self.thread.compactions.append(RecordedCompaction(
                position=position, kind="micro", elided=tuple(index for _, index in group), trigger="auto"))
        self.thread.compactions.sort(key=lambda c: c.position)


def _is_summary(message: StoredMessage) -> bool:
    return message.info.get("role") == "assistant" and message.info.get("summary") is True


def _is_finished(message: StoredMessage) -> bool:
    """Old versions wrote no `finish`; there a text is enough."""
    if message.info.get("error"):
        return False
    return bool(message.info.get("finish")) or any(p.get("type") == "text" and p.get("text") for p in message.parts)


def _has_content(message: StoredMessage) -> bool:
    return any(p.get("type") not in ("step-start", "reasoning") for p in message.parts)


def _is_run_by_person(message: StoredMessage) -> bool:
    return any(p.get("type") == "subtask" or (p.get("synthetic") and p.get("text") == native.RUN_BY_PERSON)
               for p in message.parts)


def _error(info: Mapping[str, Any]) -> str | None:
    error = info.get("error")
    if not error:
        return None
    told = mapping(error)
    reason = plain(mapping(told.get("data")).get("message")) or plain(told.get("message"))
    return ": ".join(filter(None, (plain(told.get("name")) or "error", reason or plain(error))))


def _created(message: StoredMessage) -> float | None:
    return seconds(mapping(message.info.get("time")).get("created"))


def _ended(message: StoredMessage) -> float | None:
    return seconds(mapping(message.info.get("time")).get("completed")) or _created(message)
