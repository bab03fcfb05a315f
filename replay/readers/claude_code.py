"""Reader of Claude Code sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from replay.readers.claude_code_agents import file_groups, inline_groups, progress_groups, starts_of, threads_of
from replay.readers.claude_code_facts import Facts, facts_of, outcome_of
from replay.readers.claude_code_files import agent_files, subagent_files
from replay.readers.claude_code_lines import SIDE_TYPES, TALK, Line, lines_of, string, without_repeats
from replay.readers.claude_code_thread import write_thread
from replay.readers.claude_code_tree import Branches, branches_of
from replay.readers.source import Record, Source
from replay.transcript import ReadNote, Thread, Transcript

__all__ = ["ClaudeCode", "subagent_files"]

_TELLING = {"summary": "leafUuid", "file-history-snapshot": "messageId"}
"""Side records without a session id, with the field that tells them from another program's."""


class ClaudeCode:
    """Reads the session files of Claude Code 1.0, 2.0 and 2.1, its sub-agent files, and its web export.

    Sub-agent files that lie beside or below a session's file are read with it. A sub-agent's file that is
    read on its own is a session whose `parent_session` is the one that started it.
    """

    name = "claude-code"

    def sniff(self, source: Source) -> int:
        """How surely the source is a Claude Code file: 0 not at all, 100 beyond doubt."""
        document = source.document
        if isinstance(document, dict) and isinstance(document.get("loglines"), list):
            return 95
        return max((_score(value) for value in source.objects()), default=0)

    def read(self, source: Source) -> tuple[Transcript, ...]:
        """The session of the file; everything odd is a note."""
        notes: list[ReadNote] = []
        lines = lines_of(_records(source), notes)
        main = [line for line in lines if not line.is_side]
        side = [line for line in lines if line.is_side]
        if any(line.kind in TALK for line in side) and not any(line.kind in TALK for line in main):
            return (_agent_session(source, lines, notes),)
        return (_session(source, main, side, notes),)


def _score(value: Mapping[str, Any]) -> int:
    kind = value.get("type")
    if not isinstance(kind, str) or "projectHash" in value or "$set" in value:
        return 0
    if "sessionId" in value and ("parentUuid" in value or kind in SIDE_TYPES):
        return 90
    if kind in TALK and isinstance(value.get("message"), dict) and ("parentUuid" in value or "sessionId" in value):
        return 80
    return 70 if _TELLING.get(kind) in value else 0


def _records(source: Source) -> Sequence[Record]:
    document = source.document
    entries = document.get("loglines") if isinstance(document, dict) else None
    if not isinstance(entries, list):
        return source.records
    return [Record(number, 0, entry) for number, entry in enumerate(entries, 1)]


def _session(source: Source, main: Sequence[Line], side: Sequence[Line], notes: list[ReadNote]) -> Transcript:
    facts = facts_of(main, source)
    thread, count, abandoned = _threads(_branches(main, facts.leaf, notes), notes)
    starts = starts_of(main)
    files = agent_files(Path(source.path), facts.sessions, starts) if source.folder else []
    groups = {**progress_groups(main), **inline_groups(side), **file_groups(files, notes)}
    extra = {**facts.extra, "subagent_files": [str(f.path) for f in files]} if files else facts.extra
    return _transcript(source, facts, thread, count, notes, extra,
                       subagents=tuple(threads_of(groups, starts, thread, notes)), abandoned=abandoned,
                       parent_session=_before(facts))


def _before(facts: Facts) -> str | None:
    """The session that this file goes on with: the one whose records stand before its own."""
    own = facts.sessions.index(facts.session) if facts.session in facts.sessions else 0
    return facts.sessions[own - 1] if own else None


def _agent_session(source: Source, lines: Sequence[Line], notes: list[ReadNote]) -> Transcript:
    """A sub-agent's file: its thread is the main one here; threads of other agents in it are sub-agents."""
    facts = facts_of(lines, source)
    groups = inline_groups([line for line in lines if line.is_side])
    stem = Path(source.path).name.partition(".")[0].removeprefix("agent-")
    own = stem if stem in groups else next(iter(groups))
    branches = _branches(lines if len(groups) == 1 else groups[own], facts.leaf, notes)
    thread, count, abandoned = _threads(branches, notes)
    others = {**progress_groups(lines), **{key: group for key, group in groups.items() if key != own}}
    agent = next((a for line in groups[own] if (a := string(line.value.get("agentId")))), stem)
    return _transcript(source, facts, thread, count, notes, facts.extra, session_id=agent, abandoned=abandoned,
                       subagents=tuple(threads_of(others, starts_of(lines), thread, notes)),
                       parent_session=facts.session)


def _threads(branches: Branches, notes: list[ReadNote]) -> tuple[Thread, int, tuple[Thread, ...]]:
    """The main thread, its number of messages, and the abandoned branches."""
    thread, count = write_thread("main", branches.active, notes)
    abandoned = (write_thread(f"abandoned-{branch[0].uuid or branch[0].number}", branch, notes)[0]
                 for branch in branches.abandoned)
    return thread, count, tuple(abandoned)


def _branches(lines: Sequence[Line], leaf: str | None, notes: list[ReadNote]) -> Branches:
    kept, repeats = without_repeats(lines)
    if repeats:
        notes.append(ReadNote(code="duplicate", line=repeats[0].number, byte=repeats[0].byte,
                              text=f"record that repeats an earlier one x {len(repeats)}; left out"))
    branches = branches_of(kept, leaf)
    if branches.detached:
        notes.append(_detached(branches.detached, next((line for line in kept if line.uuid), kept[0])))
    return branches


def _detached(lines: Sequence[Line], first: Line) -> ReadNote:
    begins = lines[0] is first
    what = "the file begins in the middle of a session" if begins else "messages before it are missing"
    return ReadNote(code="missing-parent", line=lines[0].number, byte=lines[0].byte,
                    text=f"record whose parent is not in the file x {len(lines)}: {what}")


def _transcript(source: Source, facts: Facts, thread: Thread, count: int, notes: Sequence[ReadNote],
                extra: Mapping[str, Any], **more: Any) -> Transcript:
    fields = {"session_id": facts.session, **more}
    return Transcript(format="claude-code", path=source.path, main=thread, notes=tuple(notes),
                      harness_version=facts.version, cwd=facts.cwd, message_count=count,
                      model=next((s.model for s in reversed(thread.steps) if s.model), None),
                      outcome=outcome_of(thread, facts), extra=MappingProxyType(dict(extra)), **fields)
