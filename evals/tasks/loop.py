"""The agent: a loop of the smallest useful kind. An instrument for comparing context policies, not a product.

Six tools (read, write, edit, bash, grep, list), capped outputs, one model call a step. The window belongs to the policy
of the session that is being written; everything else is the same for every policy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

import orjson

from evals.model.asks import Ask, Reply, Spent
from evals.tasks.workspace import Workspace
from replay.blocks import Block, Text, ToolCall, ToolResult
from replay.live import LiveSession
from replay.transcript import Step, Usage

SYSTEM = """You are a coding agent. You work alone on a task in the folder {folder}, which holds all that you need.
Look at things with your tools before you decide, do what the task asks, and check that it works. There is no network.
Nobody answers questions. When the task is done, answer with a short sentence and no tool call: that ends your work."""
GO_ON = "Your answer was cut off because it was too long. Go on in smaller steps."
MOST_CHARS = 12_000
"""Of a tool's output; the middle of a longer one is left out."""
MOST_ANSWER_TOKENS = 4_000
SAMPLES_APART = 1_000_000
"""Between the seeds of a request and of the same one made again in the same run."""

Why = Literal["finished", "step-limit", "no-room", "refusal", "empty", "stopped", "infra"]
"""How a run ended: the model said that it is done; its steps were used up; a request stayed refused; the model
refused, or said nothing; a tool rule stopped it; or something failed that is nobody's fault."""


def _tool(name: str, about: str, needed: Mapping[str, str], more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    properties = {k: {"type": "string", "description": v} for k, v in needed.items()} | dict(more or {})
    return {"type": "function", "function": {"name": name, "description": about, "parameters": {
        "type": "object", "properties": properties, "required": list(needed), "additionalProperties": False}}}


def _whole(about: str) -> dict[str, str]:
    return {"type": "integer", "description": about}


TOOLS: Sequence[dict[str, Any]] = (
    _tool("read", "Read a text file, or lines of it.", {"path": "file"},
          {"offset": _whole("first line, from 1"), "limit": _whole("number of lines")}),
    _tool("write", "Write a whole file.", {"path": "file", "content": "its new text"}),
    _tool("edit", "Replace text that stands in a file exactly once.",
          {"path": "file", "old": "text to replace", "new": "text in its place"},
          {"every": {"type": "boolean", "description": "replace it wherever it stands"}}),
    _tool("bash", "Run a shell command in the folder; each runs by itself, nothing stays behind.",
          {"command": "the command"}),
    _tool("grep", "Find lines by a regular expression.", {"pattern": "regular expression"},
          {"path": {"type": "string", "description": "file or folder"},
           "glob": {"type": "string", "description": "names of files, such as *.py"}}),
    _tool("list", "List a folder.", {}, {"path": {"type": "string", "description": "folder"}}),
)


class Answer(NamedTuple):
    """What a tool call gives back."""

    text: str
    is_error: bool = False
    stop: str | None = None
    """Why the run shall end behind it; None: it goes on."""


class Follower(Protocol):
    """Compares a run with the recording that it runs again."""

    def blocks(self, number: int, made: Sequence[Block]) -> list[Block]:
        """The blocks to write down for a step."""

    def rest(self, step: Step, live: LiveSession) -> bool:
        """Take over what the recording holds behind a step's results; whether the run goes on by that."""


class Tools(Protocol):
    """Answers tool calls."""

    def answer(self, step: int, call: ToolCall) -> Answer:
        """The answer to one call of a step."""


@dataclass(frozen=True)
class LiveTools:
    """Carries every call out in a workspace."""

    room: Workspace

    def answer(self, step: int, call: ToolCall) -> Answer:
        """The tool's output, or one line on what is wrong with the call."""
        given = call.parsed
        if not isinstance(given, dict):
            return Answer("arguments: expected a JSON object", is_error=True)
        if call.name == "bash":
            return self._bash(given)
        if call.name not in {t["function"]["name"] for t in TOOLS}:
            return Answer(f"there is no tool {call.name!r}", is_error=True)
        done = self.room.tool(call.name, given)
        return Answer(capped(done.output), is_error=done.code != 0)

    def _bash(self, given: Mapping[str, Any]) -> Answer:
        command = given.get("command")
        if not isinstance(command, str) or "\0" in command:
            return Answer("command: expected a text", is_error=True)
        done = self.room.run(["/bin/sh", "-c", command])
        why = {"time": f"ended after {self.room.limits.seconds:g} s", "output": "ended: too much output",
               "disk": "ended: the folder has grown too large"}.get(done.ended or "", f"exit code {done.code}")
        shown = capped(done.output)
        return Answer(f"{shown}\n[{why}]" if done.code else shown, is_error=done.code != 0)


def capped(text: str, most: int = MOST_CHARS) -> str:
    """The text, with the middle left out where it is too long."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half:,} characters left out …]\n{text[-half:]}"


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run ended, and what its answers took."""

    why: Why
    detail: str
    spent: Spent


@dataclass
class Agent:
    """One run: a session, a model, tools, and so many steps."""

    live: LiveSession
    ask: Callable[[Ask], Reply]
    tools: Tools
    model: str
    steps: int
    replicate: int = 0
    """Which sample of the same questions; sent as the seed."""
    temperature: float = 0.0
    offered: Sequence[dict[str, Any]] = TOOLS
    """Schemas of the tools that the model may call."""
    follower: Follower | None = None
    """Where a recording is run again: keeps the log equal to it as long as the actions are."""
    spent: Spent = field(default_factory=Spent)
    _asked: dict[str, int] = field(default_factory=dict)
    """How often each request was made again."""

    def run(self) -> Ending:
        """Work until something ends it."""
        while len(self.live.thread.steps) < self.steps:
            reply = self._reply()
            if reply is None:
                return self._ended("no-room", str(self.live.thread.steps[-1].error))
            if reply.problem not in (None, "cut-short"):
                return self._trouble(reply)
            stop = self._take(reply)
            if stop is not None:
                return stop
        return self._ended("step-limit", f"{self.steps} steps")

    def _reply(self) -> Reply | None:
        """The model's answer; None where no request fits any more."""
        while (request := self.live.request()) is not None:
            reply = self.ask(self._question(orjson.dumps(request.messages).decode()))
            self.spent += reply.spent
            if reply.problem != "context-length":
                return reply
            self.live.refused()
        return None

    def _question(self, messages: str) -> Ask:
        """The request; one that this run made before is asked as a new sample, as it would be without a cache."""
        again = self._asked[messages] = self._asked.get(messages, -1) + 1
        tools = orjson.dumps(list(self.offered)).decode()
        return Ask(model=self.model, messages=messages, tools=tools, purpose="agent",
                   max_tokens=MOST_ANSWER_TOKENS, temperature=self.temperature,
                   replicate=self.replicate + SAMPLES_APART * again)

    def _trouble(self, reply: Reply) -> Ending:
        self.live.failed(f"{reply.problem}: {reply.detail}", time=time.time())
        why: Why = reply.problem if reply.problem in ("refusal", "empty") else "infra"  # type: ignore[assignment]
        return self._ended(why, f"{reply.problem}: {reply.detail}")

    def _take(self, reply: Reply) -> Ending | None:
        """Write the answer down and carry out its calls; what ended the run, if anything did."""
        blocks = self._blocks(reply)
        if self.follower is not None:
            blocks = self.follower.blocks(len(self.live.thread.steps) + 1, blocks)
        step = self.live.answered(blocks, usage(reply.spent), time=time.time(), model=self.model)
        calls = self.live.thread.messages[step.start].calls
        for call in calls:
            answer = self.tools.answer(step.number, call)
            result = ToolResult(call_id=call.id, name=call.name, text=answer.text, is_error=answer.is_error)
            self.live.thread.add("tool", [result], "tool", time=time.time())
            if answer.stop is not None:
                return self._ended("stopped", answer.stop)
        goes_on = self.follower is not None and self.follower.rest(step, self.live)
        if calls or goes_on:
            return None
        if reply.problem is None:
            return self._ended("finished", reply.text[-300:])
        self.live.thread.add("user", [Text(text=GO_ON)], "injected", time=time.time())
        return None

    def _blocks(self, reply: Reply) -> list[Block]:
        """The answer as blocks; a call without an id, or with one that was used before, gets one of its own."""
        known = {c.id for m in self.live.thread.messages for c in m.calls}
        blocks: list[Block] = [Text(text=reply.text)] if reply.text else []
        for number, (call, name, arguments) in enumerate(reply.calls):
            mine = call if call and call not in known else f"call-{len(self.live.thread.steps) + 1}-{number}"
            known.add(mine)
            blocks.append(ToolCall(id=mine, name=name, arguments=arguments, is_object=False))
        return blocks or [Text(text="")]

    def _ended(self, why: Why, detail: str) -> Ending:
        return Ending(why, detail, self.spent)


def usage(spent: Spent) -> Usage | None:
    """What a provider reported, as a transcript holds it; None where it reported nothing."""
    if spent.estimated:
        return None
    return Usage(input_uncached=spent.input - spent.cached, cache_read=spent.cached, output=spent.output)


def begin(live: LiveSession, instruction: str, folder: str) -> None:
    """The messages with which every run begins."""
    live.thread.add("system", [Text(text=SYSTEM.format(folder=folder))], "system", time=time.time())
    live.thread.add("user", [Text(text=instruction)], "human", time=time.time())
