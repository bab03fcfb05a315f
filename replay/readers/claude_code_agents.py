"""The sub-agents of a Claude Code session, from all four places where their messages can stand.

Inline lines marked `isSidechain` (1.0), files of their own (2.0 and later), messages nested in
`agent_progress` lines (2.1), and a file that is a sub-agent's as a whole (that one is read as a main thread).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from replay.errors import ReadError
from replay.readers.claude_code_files import AgentFile
from replay.readers.claude_code_lines import TALK, Line, lines_of, nested, string, without_repeats
from replay.readers.claude_code_thread import write_thread
from replay.readers.claude_code_tree import in_order
from replay.readers.source import open_source
from replay.transcript import ReadNote, Thread


def starts_of(lines: Sequence[Line]) -> dict[str, str]:
    """Which call started which agent, by the agent's id, as the main lines of a file tell it."""
    found: dict[str, str] = {}
    for line in lines:
        agent, call = _named(line)
        if agent and call:
            found.setdefault(agent, call)
    return found


def _named(line: Line) -> tuple[str | None, str | None]:
    if line.kind == "user" and isinstance(told := line.value.get("toolUseResult"), dict):
        return string(told.get("agentId")), _first_result(line)
    if line.kind == "progress" and isinstance(data := line.value.get("data"), dict):
        return string(data.get("agentId")), string(line.value.get("parentToolUseID"))
    return None, None


def _first_result(line: Line) -> str | None:
    content = (line.message or {}).get("content")
    parts = content if isinstance(content, list) else []
    return next((string(p.get("tool_use_id")) for p in parts if isinstance(p, dict)), None)


def inline_groups(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """Side-chain lines by the agent they name, or else by the uuid of their chain's first line."""
    roots: dict[str, str] = {}
    groups: dict[str, list[Line]] = {}
    for line in lines:
        named = line.value.get("agentId")
        above = roots.get(line.parent) if line.parent else None
        key = named if isinstance(named, str) else above or line.uuid or next(reversed(groups), "sidechain")
        if line.uuid:
            roots[line.uuid] = key
        groups.setdefault(key, []).append(line)
    return {key: group for key, group in groups.items() if any(line.kind in TALK for line in group)}


def progress_groups(lines: Sequence[Line]) -> dict[str, list[Line]]:
    """The messages nested in `agent_progress` lines, by agent."""
    groups: dict[str, list[Line]] = {}
    for line in lines:
        data = line.value.get("data") if line.kind == "progress" else None
        if isinstance(data, dict) and data.get("type") == "agent_progress" and (inner := nested(line)):
            agent = string(data.get("agentId")) or string(line.value.get("parentToolUseID")) or "agent"
            groups.setdefault(agent, []).append(inner)
    return groups


def threads_of(groups: Mapping[str, Sequence[Line]], starts: Mapping[str, str], main: Thread,
               notes: list[ReadNote]) -> list[Thread]:
    """A thread for each sub-agent, linked to the call that started it.

    The call is known by the agent's id (`starts`), or else it is the first call of the main thread with the
    agent's first prompt that started no other agent.
    """
    by_prompt = _calls_by_prompt(main) if groups else {}
    taken: set[str] = set()
    threads: list[Thread] = []
    for agent, lines in groups.items():
        kept, _ = without_repeats(lines)
        thread, _ = write_thread(agent, in_order(kept), notes)
        prompt = thread.messages[0].text.strip() if thread.messages else ""
        call = starts.get(agent) or next((c for c in by_prompt.get(prompt, ()) if c not in taken), None)
        if call is not None:
            taken.add(call)
        threads.append(replace(thread, parent_call=call))
    return threads


def _calls_by_prompt(main: Thread) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for call in main.tool_calls():
        if call.name in ("Task", "Agent") and isinstance(prompt := call.mapping.get("prompt"), str):
            found.setdefault(prompt.strip(), []).append(call.id)
    return found


def file_groups(files: Sequence[AgentFile], notes: list[ReadNote]) -> dict[str, list[Line]]:
    """The lines of each sub-agent's file, and of the sub-agents it holds itself; its notes name the file."""
    groups: dict[str, list[Line]] = {}
    inner: dict[str, list[Line]] = {}
    for found in files:
        own: list[ReadNote] = []
        try:
            source = open_source(found.path)
        except ReadError as error:
            notes.append(ReadNote(code="subagent-unreadable", text=str(error)))
            continue
        lines = lines_of(source.records, own)
        groups.setdefault(found.agent, []).extend(line for line in lines if line.kind != "progress")
        inner.update(progress_groups(lines))
        notes.extend(replace(note, text=f"{found.path.name}: {note.text}") for note in (*source.notes, *own))
    return {**inner, **groups}
