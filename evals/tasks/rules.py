"""How tool calls are answered when a session is run again: by a stated rule for each tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evals.spans_calls import Deed, deed_of
from evals.tasks.loop import TOOLS, Answer, LiveTools
from evals.tasks.restore import below
from replay.blocks import ToolCall, ToolResult
from replay.canonical import plain_arguments
from replay.errors import ConfigError
from replay.transcript import Transcript

KINDS = ("recorded", "live", "fixed", "stop")
DEFAULT = "recorded,live,stop"
OURS = {t["function"]["name"]: t for t in TOOLS}


@dataclass(frozen=True, slots=True)
class Rule:
    """Ways to answer a tool's calls, tried in order; one that has no answer is a miss."""

    ways: tuple[str, ...]
    text: str = ""
    """The answer of `fixed`."""


def parse_rules(given: Sequence[str]) -> dict[str, Rule]:
    """Rules as `TOOL=WAY[,WAY…]`, `*` for every other tool; `fixed:TEXT` comes last. Raises ConfigError."""
    found = {"*": _rule(DEFAULT, "*")}
    for text in given:
        tool, equals, ways = text.partition("=")
        if not equals or not tool:
            raise ConfigError("--tool", "", f"expected TOOL=WAY[,WAY…] with {', '.join(KINDS)}; found {text!r}")
        found[tool] = _rule(ways, tool)
    return found


def _rule(ways: str, tool: str) -> Rule:
    head, colon, text = ways.partition("fixed:")
    listed = [w for w in head.split(",") if w] + (["fixed"] if colon else [])
    unknown = [w for w in listed if w not in KINDS or (w == "fixed" and not colon)]
    if unknown or not listed:
        raise ConfigError("--tool", tool, f"no such way {', '.join(unknown) or repr(ways)}; known: recorded, live, "
                          "fixed:TEXT, stop")
    return Rule(tuple(listed), text)


def call_key(call: ToolCall) -> tuple[str, str]:
    """What makes two calls the same: the tool and its arguments, in whatever order and spacing."""
    return call.name, plain_arguments(call.arguments)


@dataclass
class RuledTools:
    """Answers calls by rules, and counts how."""

    rules: Mapping[str, Rule]
    live: LiveTools
    cwd: str | None
    recorded: dict[tuple[str, str], list[ToolResult]] = field(default_factory=dict)
    """Results of the recording from the first step on that runs again, each used once, in order."""
    ways: Counter[str] = field(default_factory=Counter)
    """How many calls were answered in which way."""
    misses: list[dict[str, Any]] = field(default_factory=list)

    def answer(self, step: int, call: ToolCall) -> Answer:
        """The first way of the tool's rule that has an answer; each that has none is a miss."""
        rule = self.rules.get(call.name, self.rules["*"])
        for way in rule.ways:
            found = self._by(way, rule, step, call)
            if found is not None:
                self.ways[way] += 1
                return found
            self.misses.append({"step": step, "tool": call.name, "way": way, "arguments": call.arguments[:200]})
        self.ways["stop"] += 1
        return Answer("This tool has no answer in this run.", True, f"no rule answers {call.name} at step {step}")

    def _by(self, way: str, rule: Rule, step: int, call: ToolCall) -> Answer | None:
        if way == "recorded":
            left = self.recorded.get(call_key(call))
            return Answer((found := left.pop(0)).text, found.is_error) if left else None
        if way == "fixed":
            return Answer(rule.text)
        if way == "stop":
            return Answer("The run stops here.", True, f"{call.name} at step {step}: the rule says stop")
        ours = _translated(call, self.cwd)
        return None if ours is None else self._carried_out(step, ours)

    def _carried_out(self, step: int, calls: Sequence[ToolCall]) -> Answer:
        answers = []
        for call in calls:
            answers.append(self.live.answer(step, call))
            if answers[-1].is_error:
                break
        return Answer("\n".join(a.text for a in answers), answers[-1].is_error)


def results_from(transcript: Transcript, start: int) -> dict[tuple[str, str], list[ToolResult]]:
    """The results of each distinct call made from a log index on, in order."""
    results = {r.call_id: r for m in transcript.messages for r in m.results}
    found: dict[tuple[str, str], list[ToolResult]] = {}
    for message in transcript.messages[start:]:
        for call in message.calls:
            if call.id in results:
                found.setdefault(call_key(call), []).append(results[call.id])
    return found


def _translated(call: ToolCall, cwd: str | None) -> list[ToolCall] | None:
    """A call of another harness in the words of our tools; None where we have no such tool."""
    if call.name in OURS and set(call.mapping) <= set(OURS[call.name]["function"]["parameters"]["properties"]):
        return [call]
    deed = deed_of(call)
    if deed.command is not None:
        return [_ours("bash", {"command": _inside(deed.command, cwd)})]
    return _file_calls(deed, cwd)


def _file_calls(deed: Deed, cwd: str | None) -> list[ToolCall] | None:
    made: list[ToolCall | None] = [_on(path, cwd, "write", content=text) for path, text in deed.writes]
    made += [_on(e.path, cwd, "edit", old=e.old, new=e.new, every=e.every) for e in deed.edits]
    for reading in deed.readings:
        first, stop = reading.lines or (1, 1 << 30)
        made.append(_on(reading.path, cwd, "read", offset=max(1, first), limit=max(1, stop - max(1, first))))
    return None if not made or None in made else [c for c in made if c is not None]


def _on(path: str, cwd: str | None, name: str, **arguments: Any) -> ToolCall | None:
    place = below(path, cwd)
    return None if place is None else _ours(name, {"path": place, **arguments})


def _ours(name: str, arguments: Mapping[str, Any]) -> ToolCall:
    import orjson

    return ToolCall(id="", name=name, arguments=orjson.dumps(arguments).decode())


def _inside(command: str, cwd: str | None) -> str:
    """A command with the recorded folder's name taken for the workspace's."""
    return command.replace(cwd.rstrip("/"), ".") if cwd and len(cwd) > 1 else command


def schemas(transcript: Transcript) -> list[dict[str, Any]]:
    """The tools that a recording uses: ours as we know them, others with the arguments that they were called with."""
    seen: dict[str, list[dict[str, Any]]] = {}
    for call in transcript.main.tool_calls():
        seen.setdefault(call.name, []).append(call.mapping)
    if seen.keys() <= OURS.keys():
        return [*TOOLS]
    return [_schema(name, calls) for name, calls in sorted(seen.items())]


def _schema(name: str, calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for call in calls:
        for key, value in call.items():
            properties.setdefault(key, _type(value))
    needed = sorted(k for k in properties if all(k in call for call in calls))
    given = {"type": "object", "properties": dict(sorted(properties.items())), "required": needed}
    about = f"{name}, as in the recording"
    return {"type": "function", "function": {"name": name, "description": about, "parameters": given}}


def _type(value: Any) -> dict[str, Any]:
    for kind, name in ((bool, "boolean"), (int, "integer"), (float, "number"), (str, "string"), (list, "array")):
        if isinstance(value, kind):
            return {"type": name, "items": {}} if name == "array" else {"type": name}
    return {"type": "object"}
