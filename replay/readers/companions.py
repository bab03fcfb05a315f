"""Files that belong to another session: a sub-agent's transcript beside or below its parent's."""

from __future__ import annotations

from pathlib import Path


def companion_files(path: Path) -> tuple[Path, ...]:
    """Files below `<folder>/<session>/` that a session file's reader takes in itself."""
    stem = path.name.removesuffix(".gz").removesuffix(".zst").removesuffix(".jsonl")
    folder = path.parent / stem / "subagents"
    return tuple(sorted(folder.rglob("agent-*.jsonl"))) if folder.is_dir() else ()
