"""Files that belong to another file's session: sub-agents' transcripts, single events."""

from __future__ import annotations

from pathlib import Path

from replay.readers.openhands_sessions import companion_events


def companion_files(path: Path) -> tuple[Path, ...]:
    """Files that a session file's reader takes in itself: below `<folder>/<session>/`, or the other single events."""
    stem = path.name.removesuffix(".gz").removesuffix(".zst").removesuffix(".jsonl")
    folder = path.parent / stem / "subagents"
    agents = tuple(sorted(folder.rglob("agent-*.jsonl"))) if folder.is_dir() else ()
    return (*agents, *companion_events(path))
