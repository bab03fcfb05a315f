"""The history of one SWE-agent attempt as a thread's log and steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from replay.blocks import Block, Image, Reasoning, Text, ToolCall, ToolResult
from replay.readers.common import ThreadBuilder
from replay.readers.native import objects, rest
from replay.readers.odd_types import OddTypes
from replay.readers.openai_chat_blocks import Pairing, content_blocks, part_call, thought
from replay.readers.swe_agent_attempts import Attempt, aligned, prompt_of
from replay.readers.swe_agent_views import Views
from replay.readers.text_actions import action_blocks
from replay.transcript import Message, Origin, ReadNote, Role, Thread

_MODELLED = frozenset({"role", "content", "tool_calls", "tool_call_ids", "thinking_blocks"})
_PROMPTS = frozenset({"response", "query", "messages"})
_STEP_EXTRA = ("execution_time", "state", "extra_info", "observation")
_ENDINGS = ("Exit due to ", "Exiting due to ", "Exited ")
_NO_REQUEST = ("repeated format", "total execution time")
"""Endings that the program decided on without asking the model once more."""


@dataclass
class Read:
    """What an attempt came to."""

    main: Thread
    subagents: list[Thread]
    discarded: list[Thread]
    count: int


def read_attempt(attempt: Attempt, name: str, notes: list[ReadNote]) -> Read:
    """The threads of an attempt; history items of other agents become threads of their own."""
    items = _checked(attempt, notes)
    agent = next((_agent(i) for i in items if _agent(i) and not i.get("is_demo")), None)
    own = [i for i in items if i.get("is_demo") or _agent(i) in (None, agent)]
    log = HistoryLog(ThreadBuilder(id=name), attempt.steps, notes)
    log.read(own)
    others = [_agent(i) for i in items if not i.get("is_demo") and _agent(i) not in (None, agent)]
    subagents = []
    for other in dict.fromkeys(others):
        beside = HistoryLog(ThreadBuilder(id=f"{name}/{other}"), [], notes)
        subagents.append(beside.read([i for i in items if _agent(i) == other and not i.get("is_demo")]))
    return Read(log.thread.build(), subagents, log.discarded, len(own))


def _agent(item: Mapping[str, Any]) -> str | None:
    """The name of the agent that an item belongs to, where it bears one."""
    name = item.get("agent")
    return name if isinstance(name, str) else None


def _checked(attempt: Attempt, notes: list[ReadNote]) -> list[dict[str, Any]]:
    items = [item for item in attempt.history if isinstance(item, dict)]
    for name, what in (("history", "history items"), ("trajectory", "trajectory steps")):
        notes.extend(kept_out(attempt.native.get(name), what))
    if not isinstance(attempt.native.get("history"), list) and items:
        notes.append(ReadNote(code="no-history", text="no history; rebuilt from the trajectory's steps"))
    return items


def kept_out(listed: Any, what: str) -> list[ReadNote]:
    """A note on entries of a list that are no objects, or on what stands in the list's place."""
    if listed is None or (isinstance(listed, list) and all(isinstance(entry, dict) for entry in listed)):
        return []
    count = sum(not isinstance(entry, dict) for entry in listed) if isinstance(listed, list) else None
    told = f"{count} {what} are not JSON objects" if count else f"the {what} are not in a list"
    return [ReadNote(code="not-an-object", text=f"{told}; kept out")]


@dataclass
class HistoryLog:
    """Builds the log of one agent, item by item."""

    thread: ThreadBuilder
    steps: list[dict[str, Any]]
    notes: list[ReadNote]
    pairing: Pairing = field(default_factory=Pairing)
    odd: OddTypes = field(default_factory=lambda: OddTypes("role", fate="kept as text beside the person's"))
    discarded: list[Thread] = field(default_factory=list)
    waiting: list[ToolCall] = field(default_factory=list)
    """Calls of the latest response that have no result yet."""
    prompted: bool = False
    ended: bool = False

    def read(self, items: list[dict[str, Any]]) -> Thread:
        """The thread of the items."""
        answers = [i for i in items if i.get("role") == "assistant" and not i.get("is_demo")]
        made, left = aligned([_text(i.get("content")) for i in answers], self.steps)
        number = 0
        for item in items:
            if item.get("role") == "assistant" and not item.get("is_demo"):
                self._discard(left[number])
                self._assistant(item, self._step(made[number]))
                number += 1
            else:
                self._other(item)
        self._trailing(left[-1])
        Views(self.thread, items).compare(self.steps, made)
        self.notes.extend(self.odd.notes())
        if renamed := self.pairing.ids.renamed:
            self.notes.append(ReadNote(code="reused-call-id",
                                       text=f"{len(renamed)} call ids come back; they were made unique"))
        return self.thread.build()

    def _step(self, index: int | None) -> Mapping[str, Any]:
        return {} if index is None else self.steps[index]

    def _other(self, item: dict[str, Any]) -> None:
        role = item.get("role")
        if item.get("is_demo"):
            self.thread.add(_plain_role(role), _demo_blocks(item), "injected", detail="demonstration",
                            extra=rest(item, _MODELLED))
        elif role == "system":
            self._tell(item, "system")
        elif role == "tool" or (role == "user" and self.waiting):
            self._result(item)
        elif role == "user":
            self._user(item)
        else:
            self.odd.add(role, 1, 0)
            self._tell(item, "injected", str(role))

    def _tell(self, item: dict[str, Any], origin: Origin, detail: str | None = None) -> None:
        """Append a message that is neither an answer nor a result."""
        self.thread.add("system" if origin == "system" else "user", content_blocks(item.get("content"), self.pairing),
                        origin, detail=detail, extra=rest(item, _MODELLED))

    def _user(self, item: dict[str, Any]) -> None:
        if self.ended:
            self._tell(item, "injected", "exit")
        else:
            self._tell(item, "nudge" if self.prompted else "human")
        self.prompted = True

    def _result(self, item: dict[str, Any]) -> None:
        """An observation: the result of the calls it names, else of the oldest that waits."""
        parts = content_blocks(item.get("content"), self.pairing)
        text = "\n".join(p.text for p in parts if isinstance(p, Text))
        named = item.get("tool_call_ids")
        ids = [self.pairing.result(native, None) for native in named] if isinstance(named, list) else []
        ids = ids or [self.waiting[0].id if self.waiting else ""]
        names = {call.id: call.name for call in self.waiting}
        first = ToolResult(call_id=ids[0], text=text, name=names.get(ids[0]),
                           images=tuple(p for p in parts if isinstance(p, Image)))
        others = [ToolResult(call_id=own, text="", name=names.get(own)) for own in ids[1:]]
        self.waiting = [call for call in self.waiting if call.id not in ids]
        self.thread.add("tool", [first, *others], "tool", extra=rest(item, _MODELLED))

    def _assistant(self, item: dict[str, Any], step: Mapping[str, Any]) -> None:
        text = _text(item.get("content"))
        if not item.get("tool_calls") and text.startswith(_ENDINGS):
            self._ending(item, text)
            return
        blocks = self._response(item, text)
        extra = {**rest(item, _MODELLED), **{name: step[name] for name in _STEP_EXTRA if step.get(name)}}
        self.thread.respond(blocks, extra=extra)

    def _ending(self, item: dict[str, Any], text: str) -> None:
        """The program gave up and wrote an answer in the model's place."""
        if not any(words in text for words in _NO_REQUEST):
            self.thread.fail(text)
        self.thread.add("assistant", [Text(text=text)], "injected", detail="exit", extra=rest(item, _MODELLED))
        self.waiting, self.ended = [], True

    def _response(self, item: Mapping[str, Any], text: str) -> list[Block]:
        self.pairing.respond()
        blocks: list[Block] = _thoughts(item)
        listed = item.get("tool_calls")
        calls = [part_call(c, self.pairing) for c in objects(listed)]
        if listed and (not isinstance(listed, list) or len(calls) < len(listed)):
            self.notes.append(ReadNote(code="bad-block", text="tool calls that are no JSON objects; left out"))
        action = item.get("action")
        if listed or not isinstance(action, str) or not action.strip():
            blocks += [*([Text(text=text)] if text else []), *calls]
        else:
            blocks += action_blocks(text, action, self.pairing.ids.call(f"action-{len(self.thread.steps) + 1}"))
        self.waiting = [b for b in blocks if isinstance(b, ToolCall)]
        return blocks

    def _discard(self, indices: list[int]) -> None:
        """Responses that the program threw away: billed, and never in the history."""
        for index in indices:
            step = self.steps[index]
            text = _text(step.get("response"))
            self.thread.fail(f"discarded response: {_reason(self.steps, index)}")
            message = Message(index=0, role="assistant", blocks=(Text(text=text),), origin="model",
                              extra=rest(step, _PROMPTS))
            self.discarded.append(Thread(id=f"{self.thread.id}/discarded-{index + 1}", messages=(message,)))

    def _trailing(self, indices: list[int]) -> None:
        """Steps after the last answer of the history: 0.x did not store the submission there, 1.x lost the response."""
        for index in indices:
            step = self.steps[index]
            if "query" in step or "messages" in step:
                self._discard([index])
                continue
            self._assistant({"content": step.get("response"), "action": step.get("action")}, step)
            if self.waiting and isinstance(step.get("observation"), str):
                self._result({"role": "user", "content": step["observation"], "message_type": "observation"})


def _reason(steps: list[dict[str, Any]], index: int) -> str:
    """What the program told the model about its response, as the next step's prompt ends with it."""
    _, prompt = prompt_of(steps[index + 1]) if index + 1 < len(steps) else ("", None)
    last = prompt[-1] if prompt else {}
    told = _text(last.get("content")) if last.get("message_type") == "user" else ""
    return told.strip().split("\n", 1)[0] or "wrong format or blocked"


def _thoughts(item: Mapping[str, Any]) -> list[Block]:
    found: list[Block] = [thought(t) for t in objects(item.get("thinking_blocks"))]
    reasoning = item.get("reasoning_content")
    return [Reasoning(text=reasoning), *found] if isinstance(reasoning, str) and reasoning and not found else found


def _demo_blocks(item: Mapping[str, Any]) -> list[Block]:
    """A demonstration as text: its calls were never made in this run."""
    blocks = content_blocks(item.get("content"), Pairing())
    calls = [part_call(c, Pairing()) for c in objects(item.get("tool_calls"))]
    return [*blocks, *(Text(text=f"{call.name}({call.arguments})") for call in calls)]


def _plain_role(role: Any) -> Role:
    return "assistant" if role == "assistant" else "system" if role == "system" else "user"


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(b.text for b in content_blocks(content, Pairing()) if isinstance(b, Text))
