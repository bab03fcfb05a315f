"""Reader for OpenHands event streams and evaluation outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from replay.readers import openhands_content as content
from replay.readers.common import ThreadBuilder
from replay.readers.native import mapping, rest, string
from replay.readers.odd_types import OddTypes
from replay.readers.openhands_log import EventLog, key_of
from replay.readers.openhands_outcome import outcome_of
from replay.readers.openhands_sessions import Event, Found, found_sessions, is_event, is_instance, is_pair
from replay.readers.openhands_usage import Ledger
from replay.readers.source import Source
from replay.transcript import ReadNote, Thread, Transcript

_TOOLS = frozenset({
    "run", "run_ipython", "read", "write", "edit", "browse", "browse_interactive", "call_tool_mcp", "think", "finish",
    "reject", "delegate", "task_tracking", "mcp"})
_SIDE_ACTIONS = frozenset({
    "null", "change_agent_state", "condensation_request", "start", "pause", "resume", "stop", "push", "send_pr",
    "loop_recovery", "initialize", "add_task", "modify_task", "save_file", "summarize"})
_SIDE_OBSERVATIONS = frozenset({"null", "agent_state_changed", "loop_detection", "loop_recovery"})
_OBSERVATIONS = frozenset({
    "run", "run_ipython", "read", "write", "edit", "browse", "mcp", "think", "delegate", "error", "success",
    "user_rejected", "download", "task_tracking", "chat", "message", "condense"})


class OpenHands:
    """Reads OpenHands 0.x streams: event arrays, the UI's download, `events/<n>.json` folders, output.jsonl.

    All event files of a folder are one session; a line of output.jsonl (also the resolver's) is one session. The
    calls of one model response make one message. Calls whose response was not recorded are made from the action.
    Condensations are recorded compactions, delegates sub-agents. Usage comes from the raw responses, the listed
    calls, or the growth of the running totals; requests beside the conversation (draft editors, condensers) are an
    abandoned thread of their own. `message_count` counts message and system events. A `finish` call has no result.
    """

    name = "openhands"

    def sniff(self, source: Source) -> int:
        """How surely the source is of this format, from 0 to 100."""
        document = source.document
        rows = document[:50] if isinstance(document, list) else source.objects()
        return max(map(_score, rows), default=0)

    def read(self, source: Source) -> tuple[Transcript, ...]:
        """Every session of the source."""
        return tuple(_Session(found).read(source.path) for found in found_sessions(source))


def _score(value: Any) -> int:
    if is_pair(value):
        return 80
    if not isinstance(value, dict):
        return 0
    listed = value.get("trajectory")
    if isinstance(listed, list) and "history" not in value:
        return 85 if any(is_event(e) and "response" not in e for e in listed[:5]) else 0
    if is_instance(value):
        history = value["history"]
        return 90 if not history or any(is_event(e) or is_pair(e) for e in history[:5]) else 0
    if not is_event(value):
        return 0
    if "source" in value and ("args" in value or "content" in value or "extras" in value):
        return 85
    return 40 if "action" not in value or "observation" not in value else 0


@dataclass
class _Session:
    """Reads the events of one session."""

    found: Found
    ledger: Ledger = field(default_factory=Ledger)
    odd: OddTypes = field(default_factory=lambda: OddTypes("event type"))
    notes: list[ReadNote] = field(default_factory=list)
    stack: list[EventLog] = field(default_factory=list)
    subagents: list[Thread] = field(default_factory=list)
    tools: Any = None
    version: str | None = None
    seen: dict[Any, Mapping[str, Any]] = field(default_factory=dict)

    def read(self, path: str) -> Transcript:
        """The session as a transcript."""
        head, name = self.found.head, self.found.name
        self.ledger.collect(head.get("metrics"))
        main = EventLog(ThreadBuilder(id=name), self.ledger, replies_are_program=bool(head))
        self.stack = [main]
        for event in self.found.events:
            self._event(event)
        while len(self.stack) > 1:
            self._end_delegate()
        main.finish()
        main.thread.steps = self.ledger.settle(main.thread.steps)
        side = self.ledger.thread(name)
        if renamed := main.pairing.ids.renamed:
            self.notes.append(ReadNote(code="reused-call-id",
                                       text=f"{len(renamed)} call ids come back; they were made unique"))
        return Transcript(
            format="openhands", session_id=name, path=path, main=main.thread.build(), subagents=tuple(self.subagents),
            abandoned=(side,) if side else (), model=main.model or _model(head), harness_version=self.version,
            notes=(*self.found.notes, *self.notes, *self.odd.notes()), message_count=main.messages,
            outcome=outcome_of([e.native for e in self.found.events], head), extra=self._extra(head))

    def _extra(self, head: Mapping[str, Any]) -> Mapping[str, Any]:
        extra = dict(rest(head, frozenset({"history"})))
        if self.tools is not None:
            extra["tools"] = self.tools
        return MappingProxyType(extra)

    def _event(self, event: Event) -> None:
        native = event.native
        if self._is_repeated(event) or _is_hidden(native):
            return
        if isinstance(native.get("action"), str):
            self._action(event, native["action"])
        else:
            self._observation(event, str(native["observation"]))

    def _is_repeated(self, event: Event) -> bool:
        """The same event once more; another event under a known id is kept."""
        own = key_of(event.native.get("id"))
        known = self.seen.get(own) if own is not None else None
        if known is not None and known == event.native:
            self.notes.append(ReadNote(code="duplicate", text=f"event {own} is written again; read once",
                                       line=event.line, byte=event.byte))
            return True
        if own is not None:
            self.seen[own] = event.native
        return False

    def _action(self, event: Event, kind: str) -> None:
        log, native = self.stack[-1], event.native
        if kind == "message":
            log.message(event)
        elif kind == "system":
            self._system(event)
        elif kind == "condensation":
            self.ledger.other(native)
            log.condensations.forgotten.add(key_of(native.get("id")))
            note = log.condensations.condense(content.arguments_of(native), log.thread, event.line)
            self.notes.extend([note] if note else [])
        elif kind == "recall":
            log.condensations.note(key_of(native.get("id")))
        elif kind in _TOOLS or isinstance(native.get("tool_call_metadata"), dict):
            self._tool(event, kind)
        elif kind not in _SIDE_ACTIONS:
            self.odd.add(f"action {kind}", event.line or 1, event.byte)

    def _system(self, event: Event) -> None:
        arguments = content.arguments_of(event.native)
        self.tools = self.tools if self.tools is not None else arguments.get("tools")
        version = arguments.get("openhands_version")
        self.version = version if isinstance(version, str) else self.version
        self.stack[-1].system(event)

    def _tool(self, event: Event, kind: str) -> None:
        log, native = self.stack[-1], event.native
        if native.get("source") in ("user", "environment"):
            log.command(event)
            return
        log.act(event)
        if kind == "delegate":
            call = log.calls.get(key_of(native.get("id"))) or None
            name = f"{self.stack[0].thread.id}/delegate-{len(self.subagents) + len(self.stack)}"
            self.stack.append(EventLog(ThreadBuilder(id=name, parent_call=call), self.ledger, is_delegate=True))

    def _observation(self, event: Event, kind: str) -> None:
        if kind == "delegate" and len(self.stack) > 1:
            self._end_delegate()
        log = self.stack[-1]
        if kind in _SIDE_OBSERVATIONS:
            return
        self.ledger.other(event.native)
        if kind == "recall":
            log.recall(event)
            return
        if kind not in _OBSERVATIONS:
            self.odd.add(f"observation {kind}", event.line or 1, event.byte)
        log.observe(event)

    def _end_delegate(self) -> None:
        log = self.stack.pop()
        log.finish()
        self.subagents.append(log.thread.build())


def _is_hidden(native: Mapping[str, Any]) -> bool:
    return content.arguments_of(native).get("hidden") is True or content.extras_of(native).get("hidden") is True


def _model(head: Mapping[str, Any]) -> str | None:
    return string(mapping(mapping(head.get("metadata")).get("llm_config")).get("model"))
