"""Writes one Claude Code thread from its lines.

One response is split over several lines with one `message.id`; it stands where its first line stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from replay.blocks import Block, Text, ToolCall
from replay.readers.call_ids import CallIds
from replay.readers.claude_code_attachments import attachment_blocks
from replay.readers.claude_code_blocks import blocks_of, is_result, merged, result_of, usage_of
from replay.readers.claude_code_compactions import Opened, micro, promises_more
from replay.readers.claude_code_lines import Line, is_boundary, is_summary, string
from replay.readers.claude_code_log import ThreadLog, message_of, rest_of
from replay.readers.claude_code_queue import Queue
from replay.readers.claude_code_speakers import queued, speaker
from replay.readers.common import ThreadBuilder, seconds
from replay.transcript import ReadNote, RecordedCompaction, Thread, Usage

_MODELLED = frozenset({"id", "type", "role", "content", "model"})

Part = Mapping[str, Any]


def write_thread(name: str, lines: Sequence[Line], notes: list[ReadNote]) -> tuple[Thread, int]:
    """The thread of the lines, and how many distinct messages they hold (user lines and responses)."""
    writer = _Writer(ThreadLog(ThreadBuilder(id=name), notes), Queue.over(lines), _responses(lines))
    for line in lines:
        rule = _RULES.get(line.kind)
        if rule is not None:
            rule(writer, line)
    return writer.finish(), writer.count


def _responses(lines: Iterable[Line]) -> dict[int, list[Line]]:
    """The lines of each response by the identity of the first one's record."""
    by_key: dict[str, list[Line]] = {}
    by_first: dict[int, list[Line]] = {}
    for line in lines:
        if line.kind == "assistant":
            key = (line.message or {}).get("id") or line.value.get("requestId")
            group = by_key.get(key) if isinstance(key, str) else None
            if group is None:
                group = by_first[id(line.value)] = []
                if isinstance(key, str):
                    by_key[key] = group
            group.append(line)
    return by_first


@dataclass
class _Writer:
    log: ThreadLog
    queue: Queue
    responses: dict[int, list[Line]]
    """All lines of each response that is not written yet, by the identity of the first one's record."""
    count: int = 0
    ids: CallIds = field(default_factory=CallIds)
    names: dict[str, str] = field(default_factory=dict)
    """Tool of each call so far."""
    early: dict[str, list[tuple[Line, list[Part]]]] = field(default_factory=dict)
    """Results whose call comes later in the file, by call."""
    orphans: list[Line] = field(default_factory=list)
    """Lines with results whose call is not in the file."""
    coming: set[str] | None = None
    """Ids of all calls, gathered when a result comes before its call."""
    opened: Opened | None = None

    def finish(self) -> Thread:
        """The thread, once every line was taken."""
        self.speak()
        for waiting in self.early.values():
            for line, parts in waiting:
                self.results(line, parts)
        if self.orphans:
            self.log.complaint(self.orphans[0])(
                "orphan-result", f"tool result whose call is not in the file x {len(self.orphans)}")
        self.log.notes.extend(self.log.odd.notes())
        return self.log.thread.build()

    def speak(self, stamp: str = "") -> None:
        """The model speaks next (at `stamp`): the user's side is complete."""
        self.close()
        self.log.release(stamp)

    def response(self, line: Line) -> None:
        """Write a response at the place of its first line; its other lines are passed over."""
        group = self.responses.pop(id(line.value), None)
        if group is None:
            return
        rows = [row for part in group if (row := part.message) is not None]
        if len(rows) < len(group):
            self.log.complaint(line)("bad-message", "an assistant record without a message object; kept out")
        if not rows:
            return
        self.count += 1
        self.speak(line.stamp)
        content = rows[0].get("content") if len(rows) == 1 else merged(row.get("content") for row in rows)
        blocks = blocks_of(content, self.log.complaint(line))
        if line.value.get("isApiErrorMessage") is True:
            self.failure(line, rows, blocks)
        elif rows[0].get("model") == "<synthetic>":
            # Words that the program put into the model's mouth, such as "No response requested."
            self.log.add(line, "assistant", blocks, ("injected", "synthetic"))
        else:
            self.said(group, rows, blocks)

    def said(self, group: Sequence[Line], rows: Sequence[Part], blocks: Sequence[Block]) -> None:
        """Write what the model said, as a message and a step."""
        first, thread, place = group[0], self.log.thread, len(self.log)
        extra = rest_of(first.value)
        extra["message"] = {key: value for key, value in rows[-1].items() if key not in _MODELLED}
        thread.respond(
            [self.called(b) if isinstance(b, ToolCall) else b for b in blocks], _usage(rows),
            model=string(rows[0].get("model")), time=seconds(group[-1].value.get("timestamp")),
            request_id=string(first.value.get("requestId")), id=string(rows[0].get("id")) or first.uuid,
            line=first.number, extra=MappingProxyType(extra))
        self.log.placed(group, place)
        for call in thread.messages[place].calls if self.early else ():
            for line, parts in self.early.pop(call.id, ()):
                self.results(line, parts)

    def called(self, call: ToolCall) -> ToolCall:
        """A call with an id that no other call of the log has."""
        own = self.ids.call(call.id)
        self.names[own] = call.name
        if own == call.id:
            return call
        return ToolCall(id=own, name=call.name, arguments=call.arguments, is_object=call.is_object)

    def failure(self, line: Line, rows: Sequence[Part], blocks: Sequence[Block]) -> None:
        """A request that failed: the program's words about it are not sent to the model afterwards."""
        model = string(rows[0].get("model"))
        text = "\n".join(b.text for b in blocks if isinstance(b, Text))
        self.log.thread.fail(
            text or "API error", _usage(rows), model=None if model == "<synthetic>" else model,
            time=seconds(line.value.get("timestamp")), request_id=string(line.value.get("requestId")))

    def user(self, line: Line) -> None:
        """Take a user line: a summary, tool results, text, or results and text."""
        message = line.message
        if message is None:
            self.log.complaint(line)("bad-message", "a user record without a message object; kept out")
            return
        self.count += 1
        content = message.get("content")
        if is_summary(line):
            self.summary(line, content)
            return
        if isinstance(content, list) and (parts := [p for p in content if is_result(p)]):
            self.answer(line, parts)
            if len(parts) == len(content):
                return
            content = [p for p in content if not is_result(p)]
        self.queue.prompted(content)
        self.close()
        self.log.hold(line, blocks_of(content, self.log.complaint(line)), speaker(line.value, content))

    def answer(self, line: Line, parts: list[Part]) -> None:
        """Write tool results after their calls: a result may stand before its call in the file."""
        named = [p.get("tool_use_id") for p in parts]
        for call in named:
            if not isinstance(call, str):
                self.log.complaint(line)("bad-block", "a tool result without the id of its call; it pairs with nothing")
            elif not self.ids.known(call):
                if call in self.calls_to_come():
                    self.early.setdefault(call, []).append((line, parts))
                    return
                self.orphans.append(line)
        self.results(line, parts)

    def calls_to_come(self) -> set[str]:
        """Ids of all calls of the thread."""
        if self.coming is None:
            contents = (row.message.get("content") for group in self.responses.values() for row in group if row.message)
            self.coming = {str(p.get("id")) for content in contents if isinstance(content, list) for p in content
                           if isinstance(p, dict) and p.get("type") == "tool_use"}
        return self.coming

    def results(self, line: Line, parts: Sequence[Part]) -> None:
        """Write tool results."""
        blocks: list[Block] = []
        for part in parts:
            own = self.ids.result(string(part.get("tool_use_id")) or "")
            blocks.append(result_of(part, own, self.names.get(own)))
        self.log.add(line, "tool", blocks, ("tool", None))

    def queue_operation(self, line: Line) -> None:
        """Take a move of the queue."""
        sent = self.queue.move(line)
        if sent is not None:
            self.log.hold(line, blocks_of(sent, self.log.complaint(line)), queued(sent), is_queued=True)

    def attachment(self, line: Line) -> None:
        """Take an attachment; right behind a summary it belongs to the compaction."""
        found = line.value.get("attachment")
        if not isinstance(found, dict):
            return
        if found.get("type") == "queued_command":
            self.close()
            prompt = found.get("prompt")
            self.log.hold(line, blocks_of(prompt, self.log.complaint(line)), queued(prompt))
        elif blocks := attachment_blocks(found):
            kind = str(found.get("type"))
            if self.opened:
                self.opened.inserted.append(message_of(line, "user", blocks, ("injected", kind)))
            else:
                self.log.hold(line, blocks, ("injected", kind))

    def system(self, line: Line) -> None:
        """Take a system line: only the marks of compactions matter."""
        if is_boundary(line):
            self.speak()
            self.opened = Opened(line)
        elif line.value.get("subtype") == "microcompact_boundary":
            self.speak()
            self.log.thread.compactions.append(micro(line, self.log.thread.messages))

    def summary(self, line: Line, content: Any) -> None:
        """Take the summary of a compaction."""
        blocks = blocks_of(content, self.log.complaint(line))
        if self.opened is None and line.uuid is None:
            # An export without links does not tell whether the window was cut here or in an earlier session.
            self.log.hold(line, blocks, ("injected", "continuation"))
            return
        if self.opened is None:
            self.speak()
            self.opened = Opened(line)
        self.opened.summaries.append(message_of(line, "user", blocks, ("summary", None)))

    def copy(self, line: Line) -> None:
        """Take a message that was written again."""
        own, place = line.value.get("uuid"), self.log.places.get(line.uuid or "")
        if isinstance(own, str) and place is not None:
            self.log.places.setdefault(own, place)
        if self.opened and line.uuid:
            self.opened.copies.append(line.uuid)

    def clear(self, line: Line) -> None:
        """The context was emptied."""
        self.speak()
        self.log.thread.compactions.append(RecordedCompaction(position=len(self.log), kind="clear", line=line.number))

    def close(self) -> None:
        """The talk goes on after a compaction: its parts are complete."""
        if self.opened is None:
            return
        opened, self.opened = self.opened, None
        done = opened.close(len(self.log), self.log.places)
        self.log.thread.compactions.append(done)
        if promises_more(opened.line) and not any(isinstance(part, int) for part in done.window):
            self.log.complaint(opened.line)("missing-kept", "the messages that a compaction kept are not in the file")


_RULES: Mapping[str, Callable[[_Writer, Line], None]] = {
    "assistant": _Writer.response, "user": _Writer.user, "attachment": _Writer.attachment, "system": _Writer.system,
    "queue-operation": _Writer.queue_operation, "copy": _Writer.copy, "clear": _Writer.clear,
}
"""What to do with a line, by its kind; other kinds say nothing to the model."""


def _usage(rows: Iterable[Part]) -> Usage | None:
    return usage_of(row.get("usage") for row in rows)
