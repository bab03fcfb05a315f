"""The messages of a mini-swe-agent run as a thread's log and steps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from replay.blocks import Block, Image, Reasoning, Text, ToolCall, ToolResult
from replay.readers.common import ThreadBuilder, seconds
from replay.readers.native import mapping, objects, rest, string
from replay.readers.odd_types import OddTypes
from replay.readers.openai_chat_blocks import (
    Pairing,
    assistant_blocks,
    content_blocks,
    item_blocks,
    thought,
)
from replay.readers.openai_chat_usage import usage_of
from replay.readers.text_actions import action_blocks
from replay.transcript import Message, Origin, ReadNote, Thread, Usage

_COMMAND = re.compile(r"```(?:mswea_bash_command|bash)[ \t]*\n.*?\n```", re.DOTALL)
_MODELLED = frozenset({
    "role", "content", "tool_calls", "tool_call_id", "call_id", "output", "usage", "timestamp", "type",
    "reasoning_content", "thinking_blocks", "model", "id"})
_PERSON = frozenset({"UserInterruption", "UserRejection", "UserNewTask"})


@dataclass
class MiniLog:
    """Builds the log of one run, message by message."""

    thread: ThreadBuilder
    notes: list[ReadNote]
    pairing: Pairing = field(default_factory=Pairing)
    odd: OddTypes = field(default_factory=lambda: OddTypes("role", fate="kept as text beside the person's"))
    discarded: list[Thread] = field(default_factory=list)
    count: int = 0
    model: str | None = None
    exit_status: str | None = None
    waiting: list[ToolCall] = field(default_factory=list)
    """Calls of the latest response that have no result yet."""
    expects: bool = False
    """The latest answer held a command, so that an observation follows."""
    by_hand: bool = False
    """The person typed the latest command."""

    def read(self, messages: list[Any]) -> None:
        """Take in all messages, in order."""
        bad = 0
        for place, native in enumerate(messages, 1):
            if isinstance(native, dict):
                self.count += 1
                self._message(native, place == len(messages))
            else:
                bad += 1
        if bad:
            self.notes.append(ReadNote(code="not-an-object", text=f"{bad} messages are not JSON objects; kept out"))
        if renamed := self.pairing.ids.renamed:
            self.notes.append(ReadNote(code="reused-call-id",
                                       text=f"{len(renamed)} call ids come back; they were made unique"))
        self.notes.extend(self.odd.notes())

    def _message(self, native: dict[str, Any], is_last: bool) -> None:
        role, extra = native.get("role"), _extra(native)
        status = extra.get("exit_status")
        if role == "assistant" or native.get("object") == "response":
            self._assistant(native, extra)
        elif role == "exit" or (isinstance(status, str) and status):
            self._exit(native, status)
        elif role == "system":
            self._add(native, "system")
        elif role == "tool" or native.get("type") == "function_call_output":
            self._result(native, extra)
        elif role == "user":
            self._user(native, extra, is_last)
        else:
            self.odd.add(role or native.get("type"), 1, 0)
            self._add(native, "injected", str(role))

    def _add(self, native: dict[str, Any], origin: Origin, detail: str | None = None) -> None:
        """Append a message that is neither an answer nor a result."""
        self.thread.add("system" if origin == "system" else "user", content_blocks(native.get("content"), self.pairing),
                        origin, detail=detail, time=_time(native), extra=rest(native, _MODELLED))

    def _exit(self, native: dict[str, Any], status: Any) -> None:
        """What the run ended with; the model never saw it."""
        self.exit_status = status if isinstance(status, str) else self.exit_status
        self._add(native, "injected", "exit")

    def _user(self, native: dict[str, Any], extra: Mapping[str, Any], is_last: bool) -> None:
        interrupt = extra.get("interrupt_type")
        if interrupt:
            self._interrupt(native, extra, str(interrupt))
        elif "actions" in extra:
            self.by_hand = True
            self._add(native, "injected", "command")
        elif self.by_hand:
            self.by_hand = False
            self._add(native, "injected", "command_output")
        elif not self.thread.steps:
            self._add(native, "human")
        elif is_last and "returncode" not in extra and not _is_observation(native) and not self._is_refused():
            self._exit(native, None)
        else:
            self._observation(native, extra)

    def _is_refused(self) -> bool:
        """The latest message is an answer without a command: the program asks for another one."""
        return self.thread.messages[-1].role == "assistant" and not self.expects

    def _observation(self, native: dict[str, Any], extra: Mapping[str, Any]) -> None:
        if self.expects or "returncode" in extra or _is_observation(native):
            self._result(native, extra)
        else:
            self._add(native, "nudge", "format_error")

    def _interrupt(self, native: dict[str, Any], extra: Mapping[str, Any], kind: str) -> None:
        """The run was interrupted: by the person, or by the program for the form of an answer."""
        if kind not in _PERSON and "response" in extra:
            self._discard(extra)
        self._add(native, "human" if kind in _PERSON else "nudge", kind)
        self.waiting, self.expects = [], False

    def _discard(self, extra: Mapping[str, Any]) -> None:
        """A response that was thrown away for its form: billed, and never among the messages."""
        response = mapping(extra.get("response"))
        first = next(iter(objects(response.get("choices"))), {})
        message = mapping(first.get("message"))
        blocks = _chat_blocks(message, Pairing()) if message else _item_blocks(response, Pairing())
        if not blocks and isinstance(extra.get("model_response"), str):
            blocks = [Text(text=extra["model_response"])]
        self.thread.fail("discarded response: wrong format", usage_of(response.get("usage")),
                         model=self._model(response), time=seconds(extra.get("timestamp")),
                         request_id=string(response.get("id")))
        part = Message(index=0, role="assistant", blocks=tuple(blocks), origin="model")
        self.discarded.append(Thread(id=f"{self.thread.id}/discarded-{len(self.discarded) + 1}", messages=(part,)))

    def _result(self, native: dict[str, Any], extra: Mapping[str, Any]) -> None:
        parts = content_blocks(native.get("content", native.get("output")), self.pairing)
        named = native.get("tool_call_id") or native.get("call_id")
        own = self.pairing.result(named, None) if named else self.waiting[0].id if self.waiting else ""
        names = {call.id: call.name for call in self.waiting}
        self.waiting = [call for call in self.waiting if call.id != own]
        self.expects = bool(self.waiting)
        block = ToolResult(call_id=own, text="\n".join(p.text for p in parts if isinstance(p, Text)),
                           name=names.get(own, "bash"), images=tuple(p for p in parts if isinstance(p, Image)),
                           is_error=_is_failure(native, extra))
        self.thread.add("tool", [block], "tool", time=_time(native), extra=rest(native, _MODELLED))

    def _assistant(self, native: dict[str, Any], extra: Mapping[str, Any]) -> None:
        response = mapping(extra.get("response"))
        blocks = self._blocks(native, extra)
        self.waiting = [b for b in blocks if isinstance(b, ToolCall)]
        text = "\n".join(b.text for b in blocks if isinstance(b, Text))
        self.expects = bool(self.waiting) or len(_COMMAND.findall(text)) == 1
        self.thread.respond(
            blocks, _usage(native, response), model=self._model(response or native), time=_time(native),
            request_id=string(response.get("id")) or string(native.get("id")), extra=rest(native, _MODELLED))

    def _blocks(self, native: dict[str, Any], extra: Mapping[str, Any]) -> list[Block]:
        if native.get("object") == "response" or "output" in native:
            return _item_blocks(native, self.pairing)
        blocks = _chat_blocks(native, self.pairing)
        named = objects(extra.get("actions"))
        if len(named) != 1 or any(isinstance(b, ToolCall) for b in blocks):
            return blocks
        command, text = named[0].get("command"), next((b.text for b in blocks if isinstance(b, Text)), "")
        if not isinstance(command, str) or not command:
            return blocks
        thoughts = [b for b in blocks if isinstance(b, Reasoning)]
        cut = action_blocks(text, command, self.pairing.ids.call(f"action-{len(self.thread.steps) + 1}"))
        return [*thoughts, *(replace(b, name="bash") if isinstance(b, ToolCall) else b for b in cut)]

    def _model(self, response: Mapping[str, Any]) -> str | None:
        self.model = string(response.get("model")) or self.model
        return self.model


def _chat_blocks(native: Mapping[str, Any], pairing: Pairing) -> list[Block]:
    blocks = assistant_blocks(native, pairing)
    if any(isinstance(b, Reasoning) for b in blocks):
        return blocks
    return [*map(thought, objects(native.get("thinking_blocks"))), *blocks]


def _item_blocks(native: Mapping[str, Any], pairing: Pairing) -> list[Block]:
    pairing.respond()
    return [block for item in objects(native.get("output")) for block in item_blocks(item, pairing)]


def _usage(native: Mapping[str, Any], response: Mapping[str, Any]) -> Usage | None:
    return usage_of(response.get("usage")) or usage_of(native.get("usage"))


def _is_observation(native: Mapping[str, Any]) -> bool:
    content = native.get("content")
    return isinstance(content, str) and content.startswith(("<returncode>", "<exception>"))


def _is_failure(native: Mapping[str, Any], extra: Mapping[str, Any]) -> bool:
    """Whether the command ended with another code than 0, from the record or else from the observation's words."""
    if extra.get("returncode") is not None:
        return bool(extra["returncode"])
    return _is_observation(native) and not str(native["content"]).startswith("<returncode>0<")


def _extra(native: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(native.get("extra"))




def _time(native: Mapping[str, Any]) -> float | None:
    own = seconds(native.get("timestamp"))
    return own if own is not None else seconds(_extra(native).get("timestamp"))
