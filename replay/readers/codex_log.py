"""The log of a Codex session while its rollout is read: items into messages, responses into steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from replay.blocks import Block, Opaque, Text
from replay.readers import codex_content as content
from replay.readers.codex_prompts import Prompts
from replay.readers.codex_records import CALLS, OUTPUTS, SUMMARIES, Item
from replay.readers.codex_usage import TokenCounts
from replay.readers.common import ThreadBuilder, json_text, leftover, whole
from replay.transcript import NOTHING, Message, Outcome, ReadNote, Role, Step, Thread, Usage

_ROLES: Mapping[str, Role] = {"user": "user", "developer": "developer", "system": "system"}
_MODELLED = ("type", "role", "content", "summary", "encrypted_content", "name", "namespace", "arguments", "input",
             "action", "call_id", "output", "result", "id")


@dataclass
class OpenResponse:
    """The items of the response that is being read."""

    blocks: list[Block] = field(default_factory=list)
    messages: int = 0
    """Native message items among them."""
    id: str | None = None
    extras: list[Mapping[str, Any]] = field(default_factory=list)
    first: Item | None = None
    last: Item | None = None


@dataclass
class RolloutLog:
    """Builds the main thread of a rollout, record by record."""

    thread: ThreadBuilder
    prompts: Prompts
    events: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The UI's own records of tool calls, by call id."""
    own: bool = True
    """False while the records of a fork's parent are read: they are in the log, but were billed elsewhere."""
    model: str | None = None
    window: int | None = None
    tokens: TokenCounts = field(default_factory=TokenCounts)
    counts: list[int] = field(default_factory=list)
    """Native message items of each log message."""
    started: bool = False
    """A prompt or a response was seen: later developer messages are no longer the initial context."""
    side: list[Thread] = field(default_factory=list)
    """Requests that are not steps of the thread, and turns that were rolled back."""
    notes: list[ReadNote] = field(default_factory=list)
    outcome: Outcome | None = None
    open: OpenResponse = field(default_factory=OpenResponse)
    names: dict[str, str] = field(default_factory=dict)
    """Tool names by call id."""
    failure: str | None = None
    """An error that was reported in the turn that is being read."""
    encrypted: Opaque | None = None
    """A server-side summary that no `compacted` record has taken up yet."""
    _awaiting: bool = False
    """The latest step has no usage yet."""
    _seen: dict[tuple[Any, ...], dict[str, Any]] = field(default_factory=dict)

    def item(self, item: Item) -> None:
        """Take in a response item: a part of the model's response, or what the model was shown."""
        kind = item.type
        if kind == "message" and item.payload.get("role") != "assistant":
            self._shown(item)
        elif kind in OUTPUTS:
            self._result(item)
        elif kind == "agent_message":
            self.injected(item, "agent_message")
        elif kind == "additional_tools":
            size = len(json_text(item.payload.get("tools")))
            self._add("developer", [Opaque(label=kind, size_bytes=size)], item, "injected", kind)
        elif kind in SUMMARIES:
            size = len(str(item.payload.get("encrypted_content") or ""))
            self.encrypted = Opaque(label="compaction", size_bytes=size)
        elif kind in CALLS or kind in ("message", "reasoning"):
            self._said(item)

    def _said(self, item: Item) -> None:
        if self._repeated(item):
            return
        kind, payload = item.type, item.payload
        if kind == "message":
            self.say(content.blocks(payload.get("content")), item, messages=1)
        elif kind == "reasoning":
            self.say([content.reasoning(payload)], item)
        else:
            made = content.call(payload, item.line)
            first = made[0]
            if first.kind == "tool_call":
                self.names[first.id] = first.name
            self.say(made, item)

    def say(self, blocks: list[Block], item: Item, messages: int = 0) -> None:
        """Add blocks to the open response."""
        response = self.open
        response.blocks.extend(blocks)
        response.messages += messages
        response.first = response.first or item
        response.last = item
        native = item.payload.get("id")
        if messages and response.id is None and isinstance(native, str):
            response.id = native
        extra = leftover(item.payload, *_MODELLED)
        if extra:
            response.extras.append(extra)

    def close(self) -> None:
        """End the open response: it becomes one message and, unless a fork's parent made it, one step."""
        response = self.open
        if response.first is None or response.last is None:
            return
        self.open = OpenResponse()
        extra = MappingProxyType({"items": tuple(response.extras)}) if response.extras else NOTHING
        line, time = response.first.line, response.last.time
        if self.own:
            self.thread.respond(response.blocks, model=self.model, time=time, line=line, id=response.id, extra=extra)
            self._awaiting = True
        else:
            self.thread.add("assistant", response.blocks, "model", time=time, line=line, id=response.id, extra=extra)
        self.counts.append(response.messages)
        self.started = True

    def _shown(self, item: Item) -> None:
        if self._repeated(item):
            return
        blocks = content.blocks(item.payload.get("content"))
        role = _ROLES.get(str(item.payload.get("role")), "user")
        origin, detail = self.prompts.origin(role, blocks, self.started or bool(self.open.blocks))
        self._add(role, blocks, item, origin, detail, 1)

    def injected(self, item: Item, detail: str) -> None:
        """Add a message of another agent, which the model sees as the user's."""
        self._add("user", content.blocks(item.payload.get("content")), item, "injected", detail)

    def prompt(self, text: str, item: Item) -> None:
        """Add a prompt that only a UI event tells of."""
        self._add("user", [Text(text=text)], item, "human", None, 1)

    def _add(self, role: Role, blocks: list[Block], item: Item, origin: Any, detail: str | None,
             messages: int = 0) -> None:
        self.close()
        native = item.payload.get("id")
        self.thread.add(role, blocks, origin, detail=detail, line=item.line, time=item.time,
                        id=native if isinstance(native, str) else None, extra=leftover(item.payload, *_MODELLED))
        self.counts.append(messages)
        self.started = self.started or origin in ("human", "nudge")

    def _result(self, item: Item) -> None:
        if self._repeated(item):
            return
        self.close()
        event = self.events.get(str(item.payload.get("call_id")), NOTHING)
        block = content.result(item.payload, item.line, self.names, event)
        if block.call_id not in self.names:
            self.notes.append(ReadNote(code="result-without-call", line=item.line,
                                       text=f"the call {block.call_id!r} that this result answers is not in the file"))
        extra = leftover(item.payload, *_MODELLED)
        if event:
            extra = MappingProxyType({**extra, "event": event})
        self.thread.add("tool", [block], "tool", line=item.line, time=item.time, extra=extra)
        self.counts.append(0)

    def _repeated(self, item: Item) -> bool:
        """Whether the very same record was read before; reasoning without content is never told apart."""
        if not self.own or item.stamp is None or item.type == "reasoning":
            return False
        payload = item.payload
        key = (item.stamp, item.type, payload.get("call_id") or payload.get("id") or payload.get("role"))
        try:
            before = self._seen.setdefault(key, payload)
        except TypeError:
            return False
        if before is payload or before != payload:
            return False
        self.notes.append(ReadNote(code="duplicate", text="the same record was read before; counted once",
                                   line=item.line))
        return True

    def measured(self, usage: Usage | None, item: Item, request_id: str | None = None) -> None:
        """Give the usage to the response it belongs to; without one it is a request that left nothing."""
        if usage is None:
            return
        self.close()
        if not self.own:
            return
        steps = self.thread.steps
        if self._awaiting and steps:
            steps[-1] = replace(steps[-1], usage=usage, request_id=request_id)
        else:
            start = len(self.thread.messages)
            steps.append(Step(number=len(steps) + 1, start=start, response=None, usage=usage, model=self.model,
                              time=item.time, request_id=request_id))
        self._awaiting = False

    def after_compaction(self, info: Any) -> None:
        """Keep the harness's own count of the new window: a token count that is no request's."""
        compactions = self.thread.compactions
        last = info.get("last_token_usage") if isinstance(info, dict) else None
        if not compactions or not isinstance(last, dict) or whole(last.get("input_tokens")):
            return
        latest, steps = compactions[-1], self.thread.steps
        moved_on = bool(steps) and steps[-1].start >= latest.position
        if latest.counter_after is None and whole(last.get("total_tokens")) and not moved_on:
            compactions[-1] = replace(latest, counter_after=whole(last.get("total_tokens")))

    def failed(self, reason: str, time: float | None) -> None:
        """A request ended in an error: of the response that came so far, or of one that left nothing."""
        self.close()
        if not self.own:
            return
        steps, messages = self.thread.steps, self.thread.messages
        if self._awaiting and steps:
            steps[-1] = replace(steps[-1], error=reason)
            self._awaiting = False
        elif messages and messages[-1].role != "assistant":
            self.thread.fail(reason, model=self.model, time=time)

    def interrupted(self, reason: str) -> None:
        """The turn was aborted: a response without usage was cut off."""
        if self._awaiting and self.own and self.thread.steps:
            self.thread.steps[-1] = replace(self.thread.steps[-1], error=reason)
            self._awaiting = False

    def take_request(self, summary: str, label: str) -> bool:
        """Move the request that wrote a summary out of the thread; False where the latest response is not it."""
        self.close()
        thread = self.thread
        last = thread.messages[-1] if thread.messages else None
        if last is None or last.role != "assistant" or last.calls or not _is_written_by(summary, last):
            return False
        thread.messages.pop()
        self.counts.pop()
        steps: tuple[Step, ...] = ()
        if thread.steps and thread.steps[-1].response == last.index:
            steps = (replace(thread.steps.pop(), number=1, start=0, response=0),)
            self._awaiting = False
        if self.own:
            self.side.append(Thread(id=label, messages=(replace(last, index=0),), steps=steps))
        return True


def _is_written_by(summary: str, message: Message) -> bool:
    text = message.text.strip()
    return bool(text) and summary.rstrip().endswith(text)
