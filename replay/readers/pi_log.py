"""The log of one path through a Pi session: entries into messages, responses into steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from replay.blocks import Block, Text, ToolCall
from replay.readers import pi_content as content
from replay.readers.call_ids import CallIds
from replay.readers.common import ThreadBuilder, leftover, seconds, whole
from replay.readers.pi_tree import Entry, Tree
from replay.transcript import NOTHING, Message, Origin, ReadNote, RecordedCompaction, Role, Step, Thread

_MODELLED = frozenset({
    "type", "id", "parentId", "fromId", "role", "content", "timestamp", "usage", "model", "stopReason",
    "errorMessage", "toolCallId", "toolName", "isError", "responseId", "sections", "command", "output", "exitCode",
    "cancelled", "truncated", "fullOutputPath", "customType", "summary"})
_BROKEN = ("error", "aborted")


@dataclass
class PathLog:
    """Builds the thread of one path, entry by entry."""

    tree: Tree
    thread: ThreadBuilder
    ids: CallIds = field(default_factory=CallIds)
    model: str | None = None
    messages: int = 0
    """Message entries of the path."""
    ending: str | None = None
    """How the last response ended, as Pi says it."""
    side: list[Thread] = field(default_factory=list)
    """Responses that were cut off, and requests that wrote summaries."""
    notes: list[ReadNote] = field(default_factory=list)
    is_branch: bool = False
    """The path begins in the middle: what an entry refers to may lie before it."""
    answered: frozenset[str] = frozenset()
    """Native ids of the calls that have results on the path."""
    starts: dict[str, int] = field(default_factory=dict)
    """Length of the log when each entry came."""
    places: dict[str, int] = field(default_factory=dict)
    """Log index of each entry that is in the log."""
    edits: dict[int, Message | None] = field(default_factory=dict)
    """Log messages that the model no longer sees as they stand: what it sees instead."""

    def read(self, path: Iterable[Entry]) -> Thread:
        """The thread of a path."""
        entries = list(path)
        self.answered = frozenset(str(m.get("toolCallId")) for m in map(_message, entries)
                                  if m.get("role") == "toolResult")
        for entry in entries:
            before = self.starts[entry.id] = len(self.thread.messages)
            if handler := _ENTRIES.get(entry.type):
                handler(self, entry)
            if len(self.thread.messages) > before:
                self.places[entry.id] = before
        return self.thread.build()

    def add(self, role: Role, blocks: Iterable[Block], origin: Origin, entry: Entry, detail: str | None = None) -> None:
        """Append a message that an entry holds."""
        native = _message(entry) or entry.native
        self.thread.add(role, blocks, origin, id=entry.id, time=_time(entry), line=entry.line, detail=detail,
                        extra=_rest(native))

    def message(self, entry: Entry) -> None:
        """Take in a message entry by its role."""
        message = _message(entry)
        if not message:
            self.notes.append(ReadNote(code="bad-record", text="a message entry without a message", line=entry.line))
            return
        self.messages += 1
        role = message.get("role")
        for kind in content.odd_parts(message.get("content")):
            self.tree.odd.add(f"content/{kind}", entry.line, 0)
        if handler := _ROLES.get(str(role)):
            handler(self, entry, message)
        else:
            self.tree.odd.add(f"message/{role}", entry.line, 0)

    def user(self, entry: Entry, message: Mapping[str, Any]) -> None:
        """A prompt; one that an agent wrote stands in the person's place."""
        origin: Origin = "nudge" if message.get("attribution") == "agent" else "human"
        self.add("user", content.blocks(message.get("content")), origin, entry)

    def assistant(self, entry: Entry, message: Mapping[str, Any]) -> None:
        """A response. One that was cut off is never sent again, so it stays out of the log."""
        model = message.get("model")
        self.model = model if isinstance(model, str) else self.model
        stop = message.get("stopReason")
        self.ending = stop if isinstance(stop, str) else None
        blocks = content.blocks(message.get("content"))
        reason = str(message.get("errorMessage") or stop) if stop in _BROKEN else None
        usage, time, native = content.usage(message.get("usage")), _time(entry), message.get("responseId")
        request = native if isinstance(native, str) else None
        if reason is not None and not any(isinstance(b, ToolCall) and b.id in self.answered for b in blocks):
            self.thread.fail(reason, usage, model=self.model, time=time, request_id=request)
            self._cut_off(blocks, entry)
            return
        blocks = [self._own_id(b) if isinstance(b, ToolCall) else b for b in blocks]
        self.thread.respond(blocks, usage, model=self.model, time=time, request_id=request, error=reason,
                            line=entry.line, id=entry.id, extra=_rest(message))

    def _own_id(self, call: ToolCall) -> ToolCall:
        name = self.ids.call(call.id)
        return call if name == call.id else replace(call, id=name)

    def _cut_off(self, blocks: list[Block], entry: Entry) -> None:
        if blocks:
            part = Message(index=0, role="assistant", blocks=tuple(blocks), origin="model", id=entry.id,
                           time=_time(entry), line=entry.line)
            self.side.append(Thread(id=f"{self.thread.id}/cut-off-{entry.id}", messages=(part,)))

    def tool_result(self, entry: Entry, message: Mapping[str, Any]) -> None:
        """The result of a call."""
        native = str(message.get("toolCallId") or "")
        if not self.ids.known(native) and not self.is_branch:
            self.notes.append(ReadNote(code="result-without-call", line=entry.line,
                                       text=f"the call {native!r} that this result answers was not read before it"))
        self.add("tool", [content.result(message, self.ids.result(native))], "tool", entry)

    def shell(self, entry: Entry, message: Mapping[str, Any]) -> None:
        """A command that the person ran; with two exclamation marks the model is not told."""
        if not message.get("excludeFromContext"):
            self.add("user", [Text(text=content.shell_text(message))], "injected", entry, "bashExecution")

    def custom(self, entry: Entry, message: Mapping[str, Any]) -> None:
        """A message that an extension put in."""
        kind = message.get("customType")
        self.add("user", content.blocks(message.get("content")), "injected", entry,
                 kind if isinstance(kind, str) else "custom")

    def branch_summary(self, entry: Entry, message: Mapping[str, Any]) -> None:
        """What the model is told of a branch that was left."""
        summary = message.get("summary")
        if isinstance(summary, str) and summary:
            self.add("user", [Text(text=content.branch_text(summary))], "injected", entry, "branch_summary")
        self.billed(entry, "branch-summary")

    def system(self, entry: Entry, message: Mapping[str, Any]) -> None:
        """A recorded system prompt."""
        self.add("system", [Text(text=content.system_text(message))], "system", entry)

    def summary_message(self, entry: Entry, message: Mapping[str, Any]) -> None:
        """A compaction that was stored as a message: nothing before it is kept."""
        self.compacted(entry, message, len(self.thread.messages))

    def compaction(self, entry: Entry) -> None:
        """A compaction: its summary, then the log from the first kept entry on."""
        native = entry.native
        first: Any = native.get("firstKeptEntryId")
        if first is None and (target := self.tree.at(native.get("firstKeptEntryIndex"))):
            first = target.id
        start = self.starts.get(first) if isinstance(first, str) and first != entry.id else None
        if start is None and first is not None and self.is_branch:
            start = 0
        if start is None and first is not None:
            self.notes.append(ReadNote(code="missing-kept-entry", line=entry.line, text=(
                f"the first kept entry {first!r} is not before this compaction; only the summary is kept")))
        self.compacted(entry, native, len(self.thread.messages) if start is None else start)
        self.billed(entry, "compaction")

    def compacted(self, entry: Entry, native: Mapping[str, Any], start: int) -> None:
        """Record a compaction that keeps the log from an index on."""
        text = native.get("summary")
        summary = text if isinstance(text, str) else ""
        head = Message(index=-1, role="user", blocks=(Text(text=content.compaction_text(summary)),),
                       origin="summary", time=_time(entry), line=entry.line)
        system = self._system(native.get("systemMessage"))
        kept = (i for i in range(start, len(self.thread.messages)) if i not in system)
        self.thread.compactions.append(RecordedCompaction(
            position=len(self.thread.messages), kind="full", window=(*system, head, *self._shown(kept)),
            counter_before=whole(native.get("tokensBefore")) or None, summary=summary or None,
            summary_readable=bool(summary), line=entry.line,
            extra=leftover(native, "type", "id", "parentId", "summary", "tokensBefore", "timestamp")))

    def _system(self, native: Any) -> tuple[int | Message, ...]:
        """The system prompt in front of a compacted window, where Pi recorded one."""
        if not isinstance(native, Mapping):
            return ()
        text = content.system_text(native)
        for message in self.thread.messages:
            if message.role == "system" and message.text == text:
                return (message.index,)
        return (Message(index=-1, role="system", blocks=(Text(text=text),), origin="system"),)

    def _shown(self, indices: Iterable[int]) -> list[int | Message]:
        """Log messages as later edits of the context left them."""
        shown: list[int | Message] = []
        for index in indices:
            edit = self.edits.get(index, index)
            if edit is not None:
                shown.append(edit)
        return shown

    def context_edit(self, entry: Entry) -> None:
        """An entry is left out of what the model sees from now on, or shown with other content."""
        target = self.places.get(str(entry.native.get("targetId")))
        if target is None:
            return
        replacement = entry.native.get("replacement")
        old = self.thread.messages[target]
        new = content.blocks(replacement.get("content")) if isinstance(replacement, dict) else None
        self.edits[target] = None if new is None else _edited(old, new)
        window: list[int | Message] = []
        for part in self._current():
            edit = self.edits[target] if part == target or (isinstance(part, Message) and part.id == old.id) else part
            if edit is not None:
                window.append(edit)
        self.thread.compactions.append(RecordedCompaction(
            position=len(self.thread.messages), kind="full", window=tuple(window), trigger="context_edit",
            line=entry.line, extra=MappingProxyType(entry.native)))

    def _current(self) -> tuple[int | Message, ...]:
        last = self.thread.compactions[-1] if self.thread.compactions else None
        window, position = (last.window, last.position) if last else ((), 0)
        return (*window, *range(position, len(self.thread.messages)))

    def model_change(self, entry: Entry) -> None:
        """The person chose another model; forks write one name for provider and model."""
        model = entry.native.get("modelId") or entry.native.get("model")
        self.model = model if isinstance(model, str) else self.model

    def billed(self, entry: Entry, what: str = "usage") -> None:
        """Tokens of a request that left no message, such as the one that wrote a summary."""
        usage = content.usage(entry.native.get("usage"))
        if usage is not None and usage.total:
            step = Step(number=1, start=0, response=None, usage=usage, model=self.model, time=_time(entry))
            self.side.append(Thread(id=f"{self.thread.id}/{what}-{entry.id}", steps=(step,)))


def _rest(native: Mapping[str, Any]) -> Mapping[str, Any]:
    return NOTHING if native.keys() <= _MODELLED else leftover(native, *_MODELLED)


def _message(entry: Entry) -> dict[str, Any]:
    message = entry.native.get("message")
    return message if isinstance(message, dict) else {}


def _time(entry: Entry) -> float | None:
    own = seconds(entry.native.get("timestamp"))
    return own if own is not None else seconds(_message(entry).get("timestamp"))


def _edited(old: Message, blocks: list[Block]) -> Message:
    """A log message with other content; a tool result stays the answer to its call."""
    if old.results:
        text = "\n".join(b.text for b in blocks if isinstance(b, Text))
        return replace(old, index=-1, blocks=tuple(replace(r, text=text, images=()) for r in old.results))
    return replace(old, index=-1, blocks=tuple(blocks))


_ROLES: Mapping[str, Callable[[PathLog, Entry, Mapping[str, Any]], None]] = {
    "user": PathLog.user, "assistant": PathLog.assistant, "toolResult": PathLog.tool_result,
    "bashExecution": PathLog.shell, "custom": PathLog.custom, "hookMessage": PathLog.custom,
    "branchSummary": PathLog.branch_summary, "compactionSummary": PathLog.summary_message, "system": PathLog.system,
}
_ENTRIES: Mapping[str, Callable[[PathLog, Entry], None]] = {
    "message": PathLog.message, "compaction": PathLog.compaction, "context_edit": PathLog.context_edit,
    "custom_message": lambda log, entry: log.custom(entry, entry.native),
    "branch_summary": lambda log, entry: log.branch_summary(entry, entry.native),
    "model_change": PathLog.model_change, "usage": lambda log, entry: log.billed(entry),
}
