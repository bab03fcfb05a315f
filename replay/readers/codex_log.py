"""The log of a Codex session while its rollout is read: items into messages, responses into steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from replay.blocks import Block, Image, Opaque, Text, ToolCall
from replay.readers import codex_content as content
from replay.readers.call_ids import CallIds
from replay.readers.codex_prompts import Prompts
from replay.readers.codex_records import CALLS, OUTPUTS, SUMMARIES, Item
from replay.readers.codex_usage import TokenCounts
from replay.readers.common import ThreadBuilder, json_text, leftover, whole
from replay.transcript import NOTHING, Message, Outcome, ReadNote, Role, Step, Thread, Usage

_ROLES: Mapping[str, Role] = {"user": "user", "developer": "developer", "system": "system"}
_MODELLED = frozenset({"type", "role", "content", "summary", "encrypted_content", "name", "namespace", "arguments",
                       "input", "action", "call_id", "output", "result", "id"})
_SERVED = frozenset({"web_search_call", "image_generation_call"})
"""Calls that the provider answers itself: no result stands in the file."""
_LOOK_BACK = 50
"""Records of one time stamp among which a repeated one is looked for."""


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
    ids: CallIds = field(default_factory=CallIds)
    names: dict[str, str] = field(default_factory=dict)
    """Tool names by call id."""
    unanswered: dict[str, int] = field(default_factory=dict)
    """Lines of the calls that have no result yet, by call id."""
    failure: str | None = None
    """An error that was reported in the turn that is being read."""
    encrypted: Opaque | None = None
    """A server-side summary that no `compacted` record has taken up yet."""
    _answer: tuple[Message, str | None] | None = None
    """The latest response and its model, until its usage comes or another one ends: then it becomes a step."""
    _seen: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The records of each time stamp."""

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
            self._called(content.call(payload, item.line), item)

    def _called(self, made: tuple[ToolCall, *tuple[Image, ...]], item: Item) -> None:
        call, *images = made
        name = self.ids.call(call.id)
        self.names[name] = call.name
        if item.type not in _SERVED:
            self.unanswered[name] = item.line
        self.say([call if name == call.id else replace(call, id=name), *images], item)

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
        extra = _rest(item.payload)
        if extra:
            response.extras.append(extra)

    def close(self) -> None:
        """End the open response: it becomes one message and, unless a fork's parent made it, one step."""
        response = self.open
        if response.first is None or response.last is None:
            return
        self.open = OpenResponse()
        extra = MappingProxyType({"items": tuple(response.extras)}) if response.extras else NOTHING
        self.settle()
        answer = self.thread.add("assistant", response.blocks, "model", time=response.last.time,
                                 line=response.first.line, id=response.id, extra=extra)
        self._answer = (answer, self.model) if self.own else None
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
                        id=native if isinstance(native, str) else None, extra=_rest(item.payload))
        self.counts.append(messages)
        self.started = self.started or origin in ("human", "nudge")

    def _result(self, item: Item) -> None:
        if self._repeated(item):
            return
        self.close()
        native = content.call_id(item.payload, item.line)
        event, name = self.events.get(native, NOTHING), self.ids.result(native)
        block = content.result(item.payload, name, self.names.get(name), event)
        if self.unanswered.pop(name, None) is None and name not in self.names:
            self.notes.append(ReadNote(code="result-without-call", line=item.line,
                                       text=f"the call {native!r} that this result answers is not in the file"))
        extra = _rest(item.payload)
        if event:
            extra = MappingProxyType({**extra, "event": event})
        self.thread.add("tool", [block], "tool", line=item.line, time=item.time, extra=extra)
        self.counts.append(0)

    def _repeated(self, item: Item) -> bool:
        """Whether the very same record, time included, was read before; reasoning without content is not told apart."""
        stamp, payload = item.stamp, item.payload
        if not self.own or not isinstance(stamp, str) or item.type == "reasoning":
            return False
        before = self._seen.get(stamp)
        if before is None:
            self._seen[stamp] = [payload]
            return False
        if payload not in before[-_LOOK_BACK:]:
            before.append(payload)
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
        if self._answer is None:
            self._step(len(self.thread.messages), None, usage, self.model, item.time, request_id)
        self.settle(usage, request_id)

    def settle(self, usage: Usage | None = None, request_id: str | None = None, error: str | None = None) -> None:
        """Make the latest response a step, with what is known of it by now."""
        answer, self._answer = self._answer, None
        if answer is not None:
            message, model = answer
            self._step(message.index, message.index, usage, model, message.time, request_id, error)

    def _step(self, start: int, response: int | None, usage: Usage | None, model: str | None, time: float | None,
              request_id: str | None = None, error: str | None = None) -> None:
        steps = self.thread.steps
        steps.append(Step(number=len(steps) + 1, start=start, response=response, usage=usage, model=model, time=time,
                          request_id=request_id, error=error))

    def after_compaction(self, info: Any) -> None:
        """Keep the harness's own count of the new window: a token count that is no request's."""
        compactions = self.thread.compactions
        last = info.get("last_token_usage") if isinstance(info, dict) else None
        if not compactions or not isinstance(last, dict) or whole(last.get("input_tokens")):
            return
        latest, steps = compactions[-1], self.thread.steps
        moved_on = self._answer is not None or (bool(steps) and steps[-1].start >= latest.position)
        if latest.counter_after is None and whole(last.get("total_tokens")) and not moved_on:
            compactions[-1] = replace(latest, counter_after=whole(last.get("total_tokens")))

    def failed(self, reason: str, time: float | None) -> None:
        """A request ended in an error: of the response that came so far, or of one that left nothing."""
        self.close()
        if not self.own:
            return
        messages = self.thread.messages
        if self._answer is not None:
            self.settle(error=reason)
        elif messages and messages[-1].role != "assistant":
            self._step(len(messages), None, None, self.model, time, error=reason)

    def interrupted(self, reason: str) -> None:
        """The turn was aborted: a response without usage was cut off."""
        self.settle(error=reason)

    def take_request(self, summary: str, label: str) -> bool:
        """Move the request that wrote a summary out of the thread; False where the latest response is not it."""
        self.close()
        self.settle()
        thread = self.thread
        last = thread.messages[-1] if thread.messages else None
        if last is None or last.role != "assistant" or last.calls or not _is_written_by(summary, last):
            return False
        thread.messages.pop()
        self.counts.pop()
        steps: tuple[Step, ...] = ()
        if thread.steps and thread.steps[-1].response == last.index:
            steps = (replace(thread.steps.pop(), number=1, start=0, response=0),)
        if self.own:
            self.side.append(Thread(id=label, messages=(replace(last, index=0),), steps=steps))
        return True


def _is_written_by(summary: str, message: Message) -> bool:
    text = message.text.strip()
    return bool(text) and summary.rstrip().endswith(text)


def _rest(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    return NOTHING if payload.keys() <= _MODELLED else leftover(payload, *_MODELLED)
