"""The event stream of one OpenHands agent as a thread's log and steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from replay.blocks import Block, Image, Text, ToolCall, ToolResult
from replay.readers import openhands_content as content
from replay.readers.common import ThreadBuilder, seconds
from replay.readers.native import mapping, objects, rest, string
from replay.readers.openai_chat_blocks import Pairing, assistant_blocks
from replay.readers.openhands_condensation import Condensations
from replay.readers.openhands_sessions import Event
from replay.readers.openhands_usage import Ledger
from replay.transcript import Origin, Role

_ACTION = frozenset({
    "action", "args", "source", "id", "timestamp", "message", "cause", "tool_call_metadata", "llm_metrics", "timeout"})
_RESULT = frozenset({
    "observation", "content", "source", "id", "timestamp", "cause", "tool_call_metadata", "llm_metrics"})
_CONTENT = frozenset({"content"})
FINISHERS = frozenset({"finish", "reject"})
"""Actions that end the turn: nothing answers them."""


@dataclass
class _Told:
    """A message for the model that waits until the open calls are answered."""

    event: Event
    role: Role
    blocks: list[Block]
    origin: Origin
    detail: str | None
    entry: list[int | None]


@dataclass
class EventLog:
    """Builds the log of one agent, event by event.

    A prompt that comes while a call is unanswered is placed after the result: providers refuse it in between.
    """

    thread: ThreadBuilder
    ledger: Ledger
    is_delegate: bool = False
    replies_are_program: bool = False
    """An evaluation: prompts after the first are written by the program."""
    pairing: Pairing = field(default_factory=Pairing)
    condensations: Condensations = field(default_factory=Condensations)
    messages: int = 0
    """Message and system events."""
    model: str | None = None
    calls: dict[int | str | None, str] = field(default_factory=dict)
    """Log id of the call that each action event stands for."""
    by_person: set[int | str | None] = field(default_factory=set)
    """Action events that the person made."""
    responses: dict[str, tuple[int, dict[str, str]]] = field(default_factory=dict)
    """By the response's id: the log index of its message, and log ids by native call id."""
    waiting: list[ToolCall] = field(default_factory=list)
    held: list[_Told] = field(default_factory=list)
    knowledge: set[str] = field(default_factory=set)
    prompted: bool = False

    def tell(self, event: Event, blocks: list[Block], origin: Origin, detail: str | None = None,
             role: Role = "user") -> None:
        """Add what the model is told, now or once the open calls are answered."""
        told = _Told(event, role, blocks, origin, detail, self.condensations.note(key_of(event.native.get("id"))))
        self.held.append(told)
        if not self.waiting:
            self.release()

    def release(self) -> None:
        """Add the messages that waited."""
        for told in self.held:
            native = told.event.native
            message = self.thread.add(told.role, told.blocks, told.origin, detail=told.detail, line=told.event.line,
                                      id=_id(native), time=seconds(native.get("timestamp")),
                                      extra=rest(native, _ACTION))
            told.entry[1] = message.index
        self.held = []

    def system(self, event: Event) -> None:
        """The system prompt; its tools are kept beside it."""
        self.messages += 1
        arguments = content.arguments_of(event.native)
        text = content.text_of(arguments.get("content"))
        entry = self.condensations.note(key_of(event.native.get("id")), is_system=True)
        message = self.thread.add("system", [Text(text=text)], "system", line=event.line, id=_id(event.native),
                                  time=seconds(event.native.get("timestamp")),
                                  extra=rest(arguments, _CONTENT))
        entry[1] = message.index

    def message(self, event: Event) -> None:
        """A message action, of the person or of the agent."""
        self.messages += 1
        source, blocks = _source(event.native, self.prompted), content.prompt_blocks(event.native)
        if source == "agent":
            self.respond(event, blocks)
            return
        detail = None if source == "user" else source
        origin: Origin = "human" if source == "user" else "injected"
        if self.is_delegate or (self.replies_are_program and self.prompted and source == "user"):
            origin, detail = "nudge", "task" if self.is_delegate else "fake_user"
        self.condensations.first_prompt = self.condensations.first_prompt or _id(event.native)
        self.tell(event, blocks, origin, detail)
        self.prompted = True

    def command(self, event: Event) -> None:
        """An action that the person made in the session."""
        native = event.native
        arguments = content.arguments_of(native)
        text = f"User executed the command:\n{arguments.get('command')}" if native.get("action") == "run" else (
            f"User requested {native.get('action')}: {content.call_arguments(native)}")
        if (own := key_of(native.get("id"))) is not None:
            self.by_person.add(own)
        self.tell(event, [Text(text=text)], "injected", str(native.get("action")))

    def act(self, event: Event) -> None:
        """An action of the agent: a call of a response, which is new unless an earlier event stood for it."""
        native, metadata = event.native, mapping(event.native.get("tool_call_metadata"))
        response = mapping(metadata.get("model_response"))
        known = self.responses.get(string(response.get("id")) or "")
        if known is None:
            self._first(event, metadata, response)
        else:
            index, ids = known
            self.calls[key_of(native.get("id"))] = ids.get(str(metadata.get("tool_call_id")), "")
            self.condensations.note(key_of(native.get("id")))[1] = index

    def _first(self, event: Event, metadata: Mapping[str, Any], response: Mapping[str, Any]) -> None:
        blocks, ids = self._blocks(event.native, metadata, response)
        index = self.respond(event, blocks, response)
        if name := string(response.get("id")):
            self.responses[name] = (index, ids)
        native_id = str(metadata.get("tool_call_id"))
        calls = [b for b in blocks if isinstance(b, ToolCall)]
        self.calls[key_of(event.native.get("id"))] = ids.get(native_id) or (calls[0].id if calls else "")

    def respond(self, event: Event, blocks: list[Block], response: Mapping[str, Any] | None = None) -> int:
        """Add a response; gives the log index of its message."""
        native, raw = event.native, response or {}
        self.release()
        self.model = string(raw.get("model")) or self.model
        step = self.thread.respond(
            blocks, self.ledger.response(native, raw), model=self.model, time=seconds(native.get("timestamp")),
            request_id=string(raw.get("id")), line=event.line, id=_id(native),
            extra=rest(native, _ACTION))
        ended = native.get("action") in FINISHERS
        self.waiting = [] if ended else [b for b in blocks if isinstance(b, ToolCall)]
        self.condensations.note(key_of(native.get("id")))[1] = step.start
        return step.start

    def _blocks(self, native: Mapping[str, Any], metadata: Mapping[str, Any],
                response: Mapping[str, Any]) -> tuple[list[Block], dict[str, str]]:
        """The blocks of a response with log ids by native call id; from the action itself where nothing else is."""
        message = _message(response)
        blocks = assistant_blocks(message, self.pairing) if message else []
        calls = [b for b in blocks if isinstance(b, ToolCall)]
        natives = [str(c.get("id")) for c in objects(message.get("tool_calls"))]
        ids = dict(zip(natives, (c.id for c in calls), strict=False))
        if not calls:
            call = self._call(native, metadata)
            ids[str(metadata.get("tool_call_id"))] = call.id
            thought = content.text_of(content.arguments_of(native).get("thought"))
            shown = [] if blocks or not thought or native.get("action") == "think" else [Text(text=thought)]
            blocks = [*blocks, *shown, call]
        return blocks, ids

    def _call(self, native: Mapping[str, Any], metadata: Mapping[str, Any]) -> ToolCall:
        own = metadata.get("tool_call_id")
        name = metadata.get("function_name") or native.get("action")
        native_id = own if isinstance(own, str) and own else f"action-{len(self.thread.steps) + 1}"
        return ToolCall(id=self.pairing.ids.call(native_id), name=str(name), arguments=content.call_arguments(native))

    def observe(self, event: Event) -> None:
        """An observation: the result of a call, or text for the model where no call asked for it."""
        native = event.native
        own = self._answered(native)
        if own is None:
            text = content.result_text(native)
            if key_of(native.get("cause")) in self.by_person:
                text = f"\nObserved result of command executed by user:\n{text}"
            self.tell(event, [Text(text=text)], "injected", str(native.get("observation")))
            return
        call = next((c for c in self.waiting if c.id == own), None)
        self.waiting = [c for c in self.waiting if c.id != own]
        images = content.images_of(content.extras_of(native).get("image_urls"))
        block = ToolResult(call_id=own, text=content.result_text(native), is_error=content.is_failure(native),
                           name=call.name if call else _name(native),
                           images=tuple(i for i in images if isinstance(i, Image)))
        message = self.thread.add("tool", [block], "tool", line=event.line, id=_id(native),
                                  time=seconds(native.get("timestamp")), extra=rest(native, _RESULT))
        self.condensations.note(key_of(native.get("id")))[1] = message.index
        if not self.waiting:
            self.release()

    def _answered(self, native: Mapping[str, Any]) -> str | None:
        """The log id of the call that an observation answers: by cause, by call id, else the oldest that waits."""
        cause = key_of(native.get("cause"))
        if cause in self.by_person:
            return None
        if cause is not None and cause in self.calls:
            return self.calls[cause]
        named = mapping(native.get("tool_call_metadata")).get("tool_call_id")
        if isinstance(named, str) and self.pairing.ids.known(named):
            return self.pairing.ids.result(named)
        return self.waiting[0].id if self.waiting and cause in (None, -1) else None

    def recall(self, event: Event) -> None:
        """What a recall put beside the prompt, as far as it was not shown before."""
        text = content.recall_text(content.extras_of(event.native), self.knowledge)
        if text:
            self.tell(event, [Text(text=text)], "injected", "recall")
        else:
            self.condensations.note(key_of(event.native.get("id")))

    def finish(self) -> None:
        """Add what still waits at the end of the stream."""
        self.release()


def _source(native: Mapping[str, Any], prompted: bool) -> str:
    """Who wrote a message; the oldest events do not say, but only the agent waits for a reply."""
    source = native.get("source")
    if isinstance(source, str) and source:
        return source
    waits = content.arguments_of(native).get("wait_for_response")
    return "agent" if prompted and waits is True else "user"


def _message(response: Mapping[str, Any]) -> Mapping[str, Any]:
    first = next(iter(objects(response.get("choices"))), {})
    return mapping(first.get("message"))



def key_of(value: Any) -> int | str | None:
    """An event's id or cause, where it can be one."""
    return value if isinstance(value, (int, str)) and not isinstance(value, bool) else None


def _id(native: Mapping[str, Any]) -> str | None:
    own = key_of(native.get("id"))
    return None if own is None else str(own)


def _name(native: Mapping[str, Any]) -> str | None:
    return string(mapping(native.get("tool_call_metadata")).get("function_name"))
