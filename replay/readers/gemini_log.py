"""The log of a Gemini session: contents into messages, responses into steps, rewritten histories into compactions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from replay.blocks import Block, Image, Text, ToolCall, ToolResult
from replay.readers import gemini_parts as native
from replay.readers.call_ids import CallIds
from replay.readers.common import ThreadBuilder
from replay.readers.gemini_window import LogWindow, Placed, Turn, masked, summary_at
from replay.transcript import Message, Origin, ReadNote, RecordedCompaction, Step, Thread, Usage


@dataclass
class GeminiLog:
    """Builds a thread from contents in the order in which they were said."""

    thread: ThreadBuilder
    is_started_by_agent: bool = False
    notes: list[ReadNote] = field(default_factory=list)
    side: list[Thread] = field(default_factory=list)
    """Branches that were rewound, and requests that wrote summaries."""
    model: str | None = None
    window: LogWindow = field(init=False)
    _ids: CallIds = field(default_factory=CallIds)
    _unnamed: dict[str, list[str]] = field(default_factory=dict)
    """Ids that were made up for calls without one, by the tool's name, until they are answered."""

    def __post_init__(self) -> None:
        """Start with an empty window."""
        self.window = LogWindow(self.thread.messages)

    def user(self, content: Any, origin: Origin | None = None, detail: str | None = None, **more: Any) -> None:
        """A content in the user's name: function responses, or a text with files."""
        parts = native.parts_of(content)
        if any("functionResponse" in part for part in parts):
            self.results(parts, **more)
            return
        blocks = [native.block(part) for part in parts]
        text = "\n".join(part["text"] for part in parts if isinstance(part.get("text"), str))
        if native.SNAPSHOT in text[:200]:
            self._snapshot(blocks, text, **more)
            return
        who = native.Speaker(origin, detail) if origin else native.speaker(text)
        if who.origin == "human" and self.is_started_by_agent:
            who = native.Speaker("nudge", "agent")
        self._append(self.thread.add("user", blocks, who.origin, detail=who.detail, **more))

    def _append(self, message: Message) -> None:
        self.window.add(message)

    def results(self, parts: Sequence[dict[str, Any]], failed: Iterable[str] = (), **more: Any) -> None:
        """Function responses, with the pictures that stand beside them; a result that came before is noted."""
        blocks: list[Block] = []
        wrong = set(failed)
        for part in parts:
            told = part.get("functionResponse")
            if not isinstance(told, dict):
                self._beside(blocks, native.block(part))
                continue
            call_id = self.answered(told)
            if call_id and self.window.has_result(call_id):
                self.notes.append(ReadNote(code="duplicate", line=more.get("line"), text=(
                    f"the result of {call_id} was read before; this copy was kept out")))
                continue
            blocks.append(native.response(told, call_id, str(told.get("id")) in wrong))
        if any(isinstance(b, ToolResult) for b in blocks):
            self._append(self.thread.add("tool", blocks, "tool", **more))

    @staticmethod
    def _beside(blocks: list[Block], other: Block) -> None:
        """A picture belongs to the result before it."""
        last = blocks[-1] if blocks else None
        if isinstance(other, Image) and isinstance(last, ToolResult):
            blocks[-1] = replace(last, images=(*last.images, other))
        else:
            blocks.append(other)

    def called(self, told: Any) -> ToolCall:
        """A function call, under an id that is unique in the log."""
        name = told.get("id") if isinstance(told, dict) else None
        if isinstance(name, str) and name:
            return native.call(told, self._ids.call(name))
        block = native.call(told, "")
        made = self._ids.call(block.name)
        self._unnamed.setdefault(block.name, []).append(made)
        return replace(block, id=made)

    def answered(self, told: dict[str, Any]) -> str:
        """The log id of the call that a response answers; without an id the first open call of that tool."""
        name = told.get("id")
        if isinstance(name, str) and name:
            return self._ids.result(name)
        waiting = self._unnamed.get(str(told.get("name")), [])
        return waiting.pop(0) if waiting else ""

    def respond(self, blocks: Iterable[Block], usage: Usage | None = None, **more: Any) -> None:
        """A response of the model, unless it is what the program says in its name."""
        blocks = tuple(blocks)
        if len(blocks) == 1 and isinstance(blocks[0], Text) and blocks[0].text in native.ACKNOWLEDGEMENTS and not (
                usage is not None and usage.total):
            self._acknowledge(blocks, **more)
            return
        self.model = more.get("model") or self.model
        more.setdefault("model", self.model)
        self.thread.respond(blocks, usage, **more)
        self._append(self.thread.messages[-1])

    def _acknowledge(self, blocks: tuple[Block, ...], **more: Any) -> None:
        """The model's assent to a context or a summary, which the program wrote."""
        more.pop("model", None)
        last = self.thread.compactions[-1] if self.thread.compactions else None
        if last is None or last.position < len(self.thread.messages) or last.kind != "full":
            self._append(self.thread.add("assistant", blocks, "injected", detail="acknowledgement", **more))
            return
        message = Message(index=-1, role="assistant", blocks=blocks, origin="injected", detail="acknowledgement")
        self.thread.compactions[-1] = replace(last, window=(*last.window, message))
        self.window.items.append(Placed(None, message))

    def add_calls(self, calls: Sequence[ToolCall]) -> None:
        """Put calls that were recorded on their own into the response before them."""
        last = self.thread.messages[-1]
        message = self.thread.messages[-1] = replace(last, blocks=(*last.blocks, *calls))
        self.window.items.pop()
        self._append(message)

    def _snapshot(self, blocks: Sequence[Block], text: str, **more: Any) -> None:
        """A summary that stands among the messages: everything before it has left the window."""
        head = Message(index=-1, role="user", blocks=tuple(blocks), origin="summary", id=more.get("id"),
                       time=more.get("time"), line=more.get("line"))
        kept = [item for item in self.window.items if item.index is not None and self._is_context(item.index)]
        self._compact([*kept, Placed(None, head)], text, more.get("line"))

    def _is_context(self, index: int) -> bool:
        return self.thread.messages[index].detail == "session_context"

    def _compact(self, items: list[Placed], summary: str | None, line: int | None, **more: Any) -> None:
        self.window.items = items
        self.thread.compactions.append(RecordedCompaction(
            position=len(self.thread.messages), kind="full", window=tuple(item.part for item in items),
            summary=summary, summary_readable=bool(summary), line=line, **more))

    def turn(self, name: str | None, role: str, content: Any, line: int | None) -> Turn:
        """A content of a rewritten history; it takes no new call ids."""
        blocks: list[Block] = []
        for part in native.parts_of(content):
            if (call_id := native.call_id_of(part, "functionCall")) is not None:
                blocks.append(native.call(part["functionCall"], self._ids.result(call_id)))
            elif (call_id := native.call_id_of(part, "functionResponse")) is not None:
                blocks.append(native.response(part["functionResponse"], self._ids.result(call_id)))
            else:
                self._beside(blocks, native.block(part))
        if role == "model":
            return Turn(name, Message(index=-1, role="assistant", blocks=tuple(blocks), origin="injected", line=line))
        is_result = any(isinstance(b, ToolResult) for b in blocks)
        text = "\n".join(b.text for b in blocks if isinstance(b, Text))
        who = native.Speaker("tool") if is_result else native.speaker(text)
        return Turn(name, Message(index=-1, role="tool" if is_result else "user", blocks=tuple(blocks),
                                  origin="injected" if who.origin == "human" else who.origin, id=name, line=line,
                                  detail=who.detail))

    def rewrite(self, turns: Sequence[Turn], line: int | None, is_marked: bool = True, keeps_open: bool = False,
                **more: Any) -> None:
        """Take over a history that the program wrote anew.

        `is_marked`: a summary carries the tag of a snapshot. `keeps_open`: what was said since the last response is
        sent too, though the history does not hold it.
        """
        before, after = self.window.items, self.window.placed(turns)
        if keeps_open:
            after += self._open(after)
        if not self.thread.messages:
            self._begin(turns)
            return
        at = summary_at(after, before, is_marked)
        if at is not None and after[at].message is not None:
            self._compressed(after, at, line, **more)
        elif [i.identity for i in before] == [i.identity for i in after]:
            self._changed_in_place(before, after, line)
        else:
            self._changed(before, after, line)

    def _open(self, after: Sequence[Placed]) -> list[Placed]:
        """What was said since the last response and is not held yet; results only where their calls are held."""
        held = {item.index for item in after}
        calls = {call.id for i in held if i is not None for call in self.thread.messages[i].calls}
        start = max((m.index for m in self.thread.messages if m.role == "assistant"), default=-1) + 1
        return [Placed(m.index) for m in self.thread.messages[start:]
                if m.index not in held and all(r.call_id in calls for r in m.results)]

    def _begin(self, turns: Iterable[Turn]) -> None:
        """The first history is the beginning of the log."""
        for turn in turns:
            message = turn.message
            if message.role == "user" and native.SNAPSHOT in message.text[:200]:
                self._snapshot(message.blocks, message.text, id=turn.id, line=message.line)
            elif message.role == "assistant":
                self.respond([self._own(b) for b in message.blocks], id=turn.id, line=message.line)
            else:
                origin = native.speaker(message.text).origin if message.origin == "injected" else message.origin
                self._append(self.thread.add(message.role, message.blocks, origin, id=turn.id, line=message.line,
                                             detail=message.detail))

    def _own(self, block: Block) -> Block:
        return replace(block, id=self._ids.call(block.id)) if isinstance(block, ToolCall) else block

    def _compressed(self, after: list[Placed], at: int, line: int | None, **more: Any) -> None:
        message = after[at].message
        assert message is not None  # noqa: S101 - the caller found it there
        head = replace(message, origin="summary", detail=None)
        items = [*after[:at], Placed(None, head), *after[at + 1:]]
        self._compact(items, head.text or None, line, **more)

    def _changed_in_place(self, before: Sequence[Placed], after: list[Placed], line: int | None) -> None:
        """The same messages with other texts: results that were blanked."""
        blanked = masked(before, after, self.thread.messages)
        if blanked is None:
            self._compact(after, None, line)
            return
        for text, indices in blanked.items():
            self.thread.compactions.append(RecordedCompaction(
                position=len(self.thread.messages), kind="micro", elided=tuple(indices), placeholder=text, line=line))
        shown = {index for indices in blanked.values() for index in indices}
        self.window.items = [new if new.index in shown else old for old, new in zip(before, after, strict=True)]

    def _changed(self, before: Sequence[Placed], after: list[Placed], line: int | None) -> None:
        """Other messages than before, without a summary: new ones at the end, or some that were dropped."""
        count = len(before)
        is_longer = [i.identity for i in before] == [i.identity for i in after[:count]]
        if is_longer and all(item.index is None for item in after[count:]):
            self._begin([Turn(m.id, m) for item in after[count:] if (m := item.message) is not None])
            return
        self.notes.append(ReadNote(code="history-rewritten", line=line, text=(
            f"the program wrote its history anew: {count} messages before, {len(after)} after, no summary among them")))
        self._compact(after, None, line)

    def rewind(self, at: int, name: str) -> None:
        """Leave a branch: everything from a log index on was taken back."""
        left = self.thread.messages[at:]
        steps = [step for step in self.thread.steps if step.start >= at]
        if left or steps:
            self.side.append(Thread(
                id=f"{self.thread.id}/rewound-{name}", messages=tuple(replace(m, index=m.index - at) for m in left),
                steps=tuple(_moved(step, number, at) for number, step in enumerate(steps, 1))))
        del self.thread.messages[at:]
        self.thread.steps[:] = self.thread.steps[:len(self.thread.steps) - len(steps)]
        self.thread.compactions[:] = [c for each in self.thread.compactions if (c := _cut(each, at)) is not None]
        self.window = _window(self.thread)

    def billed(self, usage: Usage | None, name: str, **more: Any) -> None:
        """Tokens of a request that left nothing in the log, such as one that wrote a summary."""
        if usage is not None and usage.total:
            step = Step(number=1, start=0, response=None, usage=usage, **more)
            self.side.append(Thread(id=f"{self.thread.id}/{name}", steps=(step,)))


def _moved(step: Step, number: int, at: int) -> Step:
    response = None if step.response is None else step.response - at
    return replace(step, number=number, start=step.start - at, response=response)


def _cut(compaction: RecordedCompaction, at: int) -> RecordedCompaction | None:
    """A compaction as it stands once the log ends at an index; None if it is undone."""
    if compaction.position <= at:
        return compaction
    if compaction.kind == "full" and at in compaction.window:
        window = tuple(p for p in compaction.window if isinstance(p, Message) or p < at)
        return replace(compaction, position=at, window=window)
    elided = tuple(i for i in compaction.elided if i < at)
    return replace(compaction, position=at, elided=elided) if elided else None


def _window(thread: ThreadBuilder) -> LogWindow:
    """The window at the end of a thread."""
    window = LogWindow(thread.messages)
    for message in thread.messages:
        window.add(message)
    full = [c for c in thread.compactions if c.kind == "full"]
    if full:
        kept = [Placed(p) if isinstance(p, int) else Placed(None, p) for p in full[-1].window]
        window.items = [*kept, *(Placed(i) for i in range(full[-1].position, len(thread.messages)))]
    return window
