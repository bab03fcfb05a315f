"""Sessions of the Pi coding agent, versions 1 to 3 of its format and the forks that write the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replay.readers.common import ThreadBuilder, leftover
from replay.readers.pi_log import PathLog
from replay.readers.pi_tree import Tree, is_entry, trees, version
from replay.readers.source import Source
from replay.transcript import NOTHING, Outcome, ReadNote, Thread, Transcript

_FOREIGN = ("messages", "session_id", "created_at", "payload")
"""Keys of other formats that also begin with a line of type `session`."""
_OUTCOMES: Mapping[str, Any] = {"error": "fail", "aborted": "partial", "length": "partial"}


class Pi:
    """Reads sessions of Pi (0.x to 1.6): linear files of version 1, trees of versions 2 and 3.

    The main thread is the path to the last entry. Branches that were left, responses that were cut off and
    requests that wrote a summary are under `abandoned`, so that what they cost is counted.
    """

    name = "pi"

    def sniff(self, source: Source) -> int:
        """95 for a session header, 90 for entries with parents, less for messages alone."""
        objects = source.objects()
        if any(o.get("type") == "session" and isinstance(o.get("id"), str) and not any(k in o for k in _FOREIGN)
               for o in objects):
            return 95
        entries = [o for o in objects if is_entry(o)]
        if any("parentId" in o for o in entries):
            return 90
        return 50 if entries else 0

    def read(self, source: Source) -> tuple[Transcript, ...]:
        """The sessions of a file; more than one only where files were joined."""
        return tuple(_transcript(source, tree) for tree in trees(source))


def _transcript(source: Source, tree: Tree) -> Transcript:
    header = tree.header or {}
    name = header.get("id")
    session = name if isinstance(name, str) and name else Path(source.path).stem
    path = tree.path()
    main = PathLog(tree, ThreadBuilder(id=session), model=_plain(header.get("modelId")))
    thread = main.read(path)
    logs = [main]
    abandoned: list[Thread] = []
    for branch in tree.branches(path):
        log = PathLog(tree, ThreadBuilder(id=f"{session}/{branch[-1].id}"), is_branch=True)
        left = log.read(branch)
        logs.append(log)
        abandoned.extend([left] if left.messages or left.steps else [])
    notes = [*tree.notes, *_header_notes(tree), *(n for log in logs for n in log.notes), *_unanswered(thread),
             *tree.odd.notes()]
    return Transcript(
        format="pi", session_id=session, path=source.path, main=thread,
        abandoned=(*abandoned, *(t for log in logs for t in log.side)),
        notes=tuple(sorted(notes, key=lambda n: n.line or 0)), model=main.model, cwd=_plain(header.get("cwd")),
        parent_session=_plain(header.get("parentSession")) or _plain(header.get("branchedFrom")),
        outcome=_outcome(main.ending), message_count=main.messages, extra=_extra(tree, header))


def _plain(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _extra(tree: Tree, header: Mapping[str, Any]) -> Mapping[str, Any]:
    extra = {**leftover(header, "type", "id", "cwd", "parentSession", "branchedFrom"), "version": version(tree)}
    names = [e.native.get("name") for e in tree.entries.values() if e.type == "session_info"]
    if names:
        extra["name"] = names[-1]
    if tree.unknown:
        extra["unknown_records"] = tuple(tree.unknown)
    return extra or NOTHING


def _header_notes(tree: Tree) -> list[ReadNote]:
    if tree.header is not None or not tree.entries:
        return []
    return [ReadNote(code="no-header", text="no session header; the session is named after the file")]


def _unanswered(thread: Thread) -> list[ReadNote]:
    answered = {r.call_id for m in thread.messages for r in m.results}
    return [ReadNote(code="call-without-result", text=f"no result of {call.name} ({call.id}) was recorded", line=m.line)
            for m in thread.messages for call in m.calls if call.id not in answered]


def _outcome(ending: str | None) -> Outcome | None:
    if ending is None:
        return None
    return Outcome(value=_OUTCOMES.get(ending, "unknown"), source="stopReason", detail=ending)
