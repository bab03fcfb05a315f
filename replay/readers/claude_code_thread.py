"""Writes the log of one Claude Code thread from its lines.

One response is split over several lines with one `message.id`; it stands where its first line stands.
Between two responses the tool results come first, as the service demands, then the rest in file order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from replay.blocks import Block, ToolCall
from replay.readers.call_ids import CallIds
from replay.readers.claude_code_attachments import attachment_blocks
from replay.readers.claude_code_blocks import Complain, blocks_of, merged, result_of, usage_of
from replay.readers.claude_code_compactions import Opened, micro, promises_more
from replay.readers.claude_code_lines import Line, is_boundary, is_summary
from replay.readers.claude_code_queue import Queue
from replay.readers.claude_code_speakers import Speaker, queued, speaker
from replay.readers.common import ThreadBuilder, seconds
from replay.transcript import Message, ReadNote, RecordedCompaction, Role, Thread

_MODELLED = frozenset({"type", "message", "uuid", "parentUuid", "timestamp", "isSidechain", "requestId"})
_MODELLED_MESSAGE = frozenset({"id", "type", "role", "content", "model"})

Part = Mapping[str, Any]


class _Held(NamedTuple):
    """A message that waits until the tool results of its turn are in the log."""

    line: Line
    blocks: list[Block]
    speaker: Speaker
    is_queued: bool


def write_thread(name: str, lines: Sequence[Line], notes: list[ReadNote],
                 parent_call: str | None = None) -> tuple[Thread, int]:
    """The thread of the lines, and how many distinct messages they hold (user lines and responses)."""
    writer = _Writer(ThreadBuilder(id=name, parent_call=parent_call), notes, Queue.over(lines))
    for line in lines:
        if line.kind == "assistant":
            writer.responses.setdefault(_response_key(line), []).append(line)
    for line in lines:
        writer.take(line)
    return writer.finish(), writer.count


@dataclass
class _Writer:
    thread: ThreadBuilder
    notes: list[ReadNote]
    queue: Queue
    count: int = 0
    responses: dict[str, list[Line]] = field(default_factory=dict)
    """All lines of each response that is not written yet."""
    ids: CallIds = field(default_factory=CallIds)
    names: dict[str, str] = field(default_factory=dict)
    """Tool of each call so far."""
    held: list[_Held] = field(default_factory=list)
    early: dict[str, list[tuple[Line, list[Part]]]] = field(default_factory=dict)
    """Results whose call comes later in the file, by call."""
    opened: Opened | None = None
    places: dict[str, int] = field(default_factory=dict)
    """Log index of each uuid."""
    orphans: list[Line] = field(default_factory=list)
    coming: set[str] | None = None

    def take(self, line: Line) -> None:
        rule = _RULES.get(line.kind)
        if rule is not None:
            rule(self, line)

    def finish(self) -> Thread:
        self.speak()
        for waiting in self.early.values():
            for line, parts in waiting:
                self.results(line, parts)
        if self.orphans:
            first = self.orphans[0]
            self.notes.append(ReadNote(
                code="orphan-result", line=first.number, byte=first.byte,
                text=f"{len(self.orphans)} tool results answer calls that are not in the file"))
        return self.thread.build()

    # -- responses

    def response(self, line: Line) -> None:
        group = self.responses.pop(_response_key(line), None)
        if group is None:
            return
        self.count += 1
        self.speak(line.stamp)
        rows = [part.message for part in group if part.message is not None]
        if len(rows) < len(group):
            self.complaint(line)("bad-message", "an assistant record without a message object; kept out")
        if not rows:
            self.count -= 1
            return
        blocks = blocks_of(_content(rows), self.complaint(line))
        if line.value.get("isApiErrorMessage") is True:
            self.failure(line, rows, blocks)
        elif rows[0].get("model") == "<synthetic>":
            self.place(group, self.add(line, "assistant", blocks, ("injected", "synthetic")))
        else:
            self.said(group, rows, blocks)

    def said(self, group: Sequence[Line], rows: Sequence[Part], blocks: Sequence[Block]) -> None:
        first, last = group[0], group[-1]
        own = [self.called(b) if isinstance(b, ToolCall) else b for b in blocks]
        extra = _rest(first.value)
        extra["message"] = {k: v for k, v in rows[-1].items() if k not in _MODELLED_MESSAGE}
        step = self.thread.respond(
            own, usage_of(row.get("usage") for row in rows), model=_string(rows[0].get("model")),
            time=seconds(last.value.get("timestamp")), request_id=_string(first.value.get("requestId")),
            id=_string(rows[0].get("id")) or first.uuid, line=first.number, extra=MappingProxyType(extra))
        message = self.thread.messages[step.start]
        self.place(group, message)
        for call in message.calls if self.early else ():
            for line, parts in self.early.pop(call.id, ()):
                self.results(line, parts)

    def called(self, call: ToolCall) -> ToolCall:
        own = self.ids.call(call.id)
        self.names[own] = call.name
        return call if own == call.id else ToolCall(id=own, name=call.name, arguments=call.arguments,
                                                    is_object=call.is_object)

    def failure(self, line: Line, rows: Sequence[Part], blocks: Sequence[Block]) -> None:
        """A request that failed: the program's words about it were not sent to the model again."""
        model = _string(rows[0].get("model"))
        text = "\n".join(b.text for b in blocks if b.kind == "text")
        self.thread.fail(text or "API error", usage_of(row.get("usage") for row in rows),
                         model=None if model == "<synthetic>" else model,
                         time=seconds(line.value.get("timestamp")), request_id=_string(line.value.get("requestId")))

    # -- the user's side

    def user(self, line: Line) -> None:
        if line.message is None:
            self.complaint(line)("bad-message", "a user record without a message object; kept out")
            return
        self.count += 1
        content = line.message.get("content")
        if is_summary(line):
            self.summary(line, content)
            return
        if isinstance(content, list):
            parts = [p for p in content if isinstance(p, dict) and p.get("type") == "tool_result"]
            if parts:
                self.answer(line, parts)
                if len(parts) == len(content):
                    return
                content = [p for p in content if not (isinstance(p, dict) and p.get("type") == "tool_result")]
        self.queue.prompted(content)
        self.close()
        self.hold(line, blocks_of(content, self.complaint(line)), speaker(line.value, content))

    def answer(self, line: Line, parts: list[Part]) -> None:
        """Write tool results, after their calls: a result may stand before its call in the file."""
        for part in parts:
            call = part.get("tool_use_id")
            if isinstance(call, str) and not self.ids.known(call):
                if call in self.calls_to_come():
                    self.early.setdefault(call, []).append((line, parts))
                    return
                self.orphans.append(line)
            elif not isinstance(call, str):
                self.complaint(line)("bad-block", "a tool result without the id of its call; it pairs with nothing")
        self.results(line, parts)

    def calls_to_come(self) -> set[str]:
        if self.coming is None:
            contents = (row.message.get("content") for group in self.responses.values() for row in group if row.message)
            self.coming = {str(p.get("id")) for c in contents if isinstance(c, list) for p in c
                           if isinstance(p, dict) and p.get("type") == "tool_use"}
        return self.coming

    def results(self, line: Line, parts: Sequence[Part]) -> None:
        blocks = []
        for part in parts:
            own = self.ids.result(_string(part.get("tool_use_id")) or "")
            blocks.append(result_of(part, own, self.names.get(own)))
        self.place([line], self.add(line, "tool", blocks, ("tool", None)))

    def queue_move(self, line: Line) -> None:
        sent = self.queue.move(line)
        if sent is not None:
            self.hold(line, blocks_of(sent, self.complaint(line)), queued(sent), is_queued=True)

    def attachment(self, line: Line) -> None:
        found = line.value.get("attachment")
        if not isinstance(found, dict):
            return
        if found.get("type") == "queued_command":
            self.close()
            self.hold(line, blocks_of(found.get("prompt"), self.complaint(line)), queued(found.get("prompt")))
        elif blocks := attachment_blocks(found):
            kind: Speaker = ("injected", str(found.get("type")))
            if self.opened:
                self.opened.inserted.append(_message(-1, line, "user", blocks, kind))
            else:
                self.hold(line, blocks, kind)

    # -- compactions

    def system(self, line: Line) -> None:
        if is_boundary(line):
            self.speak()
            self.opened = Opened(line)
        elif line.value.get("subtype") == "microcompact_boundary":
            self.speak()
            self.thread.compactions.append(micro(line, self.thread.messages))

    def summary(self, line: Line, content: Any) -> None:
        if self.opened is None:
            self.speak()
            self.opened = Opened(line)
        blocks = blocks_of(content, self.complaint(line))
        self.opened.summaries.append(_message(-1, line, "user", blocks, ("summary", None)))

    def copy(self, line: Line) -> None:
        if self.opened and line.uuid:
            self.opened.copies.append(line.uuid)

    def clear(self, line: Line) -> None:
        self.speak()
        if self.thread.messages:
            self.thread.compactions.append(RecordedCompaction(
                position=len(self.thread.messages), kind="clear", line=line.number))

    def close(self) -> None:
        """The talk goes on after a compaction: its parts are complete."""
        if self.opened is None:
            return
        opened, self.opened = self.opened, None
        done = opened.close(len(self.thread.messages), self.places)
        self.thread.compactions.append(done)
        if promises_more(opened.line) and not any(isinstance(part, int) for part in done.window):
            self.complaint(opened.line)("missing-kept", "the messages that a compaction kept are not in the file")

    # -- the log

    def speak(self, stamp: str = "") -> None:
        """The model is about to speak (at `stamp`): the user's side of the log is complete."""
        self.close()
        held, self.held = self.held, []
        for waiting in held:
            if waiting.is_queued and stamp and waiting.line.stamp > stamp:
                self.held.append(waiting)
            else:
                self.place([waiting.line], self.add(waiting.line, "user", waiting.blocks, waiting.speaker))

    def hold(self, line: Line, blocks: list[Block], kind: Speaker, is_queued: bool = False) -> None:
        self.held.append(_Held(line, blocks, kind, is_queued))

    def add(self, line: Line, role: Role, blocks: Sequence[Block], kind: Speaker) -> Message:
        message = _message(len(self.thread.messages), line, role, blocks, kind)
        self.thread.messages.append(message)
        return message

    def place(self, lines: Sequence[Line], message: Message) -> None:
        for line in lines:
            if line.uuid:
                self.places.setdefault(line.uuid, message.index)

    def complaint(self, line: Line) -> Complain:
        def complain(code: str, text: str) -> None:
            self.notes.append(ReadNote(code=code, text=text, line=line.number, byte=line.byte))
        return complain


_RULES = {
    "assistant": _Writer.response, "user": _Writer.user, "attachment": _Writer.attachment, "system": _Writer.system,
    "queue-operation": _Writer.queue_move, "copy": _Writer.copy, "clear": _Writer.clear,
}
"""What to do with a line, by its kind; other kinds say nothing to the model."""


def _message(index: int, line: Line, role: Role, blocks: Sequence[Block], kind: Speaker) -> Message:
    origin, detail = kind
    return Message(index=index, role=role, blocks=tuple(blocks), origin=origin, id=line.uuid,
                   time=seconds(line.value.get("timestamp")), line=line.number, detail=detail,
                   extra=MappingProxyType(_rest(line.value)))


def _response_key(line: Line) -> str:
    """What the lines of one response share."""
    found = (line.message or {}).get("id") or line.value.get("requestId") or line.uuid
    return found if isinstance(found, str) else f"line {line.number}.{line.byte}.{id(line.value)}"


def _content(rows: Sequence[Part]) -> Any:
    return rows[0].get("content") if len(rows) == 1 else merged(row.get("content") for row in rows)


def _rest(value: Mapping[str, Any]) -> dict[str, Any]:
    return {key: found for key, found in value.items() if key not in _MODELLED}


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None
