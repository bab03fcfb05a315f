"""Files that belong to another file's session: sub-agents' transcripts, single events, messages and parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from replay.readers.claude_code_files import subagent_files
from replay.readers.opencode_storage import children_of
from replay.readers.openhands_sessions import companion_events
from replay.readers.registry import claimed
from replay.readers.wire import capture_files

_HEAD_BYTES = 1 << 16
_GEMINI_SESSION = re.compile(rb'"sessionId"\s*:\s*"([\w-]{1,100})"')


def companion_files(path: Path) -> tuple[Path, ...]:
    """The files that are read as a part of this one's session."""
    return tuple(found for claims in _CLAIMS for found in claims(path))


def stored_parts(path: Path) -> tuple[Path, ...]:
    """OpenCode's messages and parts of a session file `session/<project>/<id>.json`, and what else bears its name."""
    root = path.parent.parent.parent
    if path.parent.parent.name != "session" or not path.stem.startswith("ses_"):
        return ()
    messages = sorted((root / "message" / path.stem).glob("*.json"))
    parts = [part for message in messages for part in sorted((root / "part" / message.stem).glob("*.json"))]
    return (*messages, *parts, *(found for found in sorted(root.glob(f"*/{path.stem}.json")) if found != path))


def agent_recordings(path: Path) -> tuple[Path, ...]:
    """Gemini's recordings of sub-agents, in a folder of `chats/` that bears the session's id."""
    if path.parent.name != "chats":
        return ()
    try:
        with path.open("rb") as file:
            named = _GEMINI_SESSION.search(file.read(_HEAD_BYTES))
    except OSError:
        return ()
    folder = path.parent / named[1].decode() if named else None
    return tuple(sorted(folder.glob("*.json*"))) if folder is not None and folder.is_dir() else ()


def side_files(path: Path) -> tuple[Path, ...]:
    """What Claude Code keeps about a session's sub-agents beside their transcripts: journals and descriptions."""
    folder = path.parent / path.name.partition(".")[0]
    if path.suffix not in (".jsonl", ".gz", ".zst") or not folder.is_dir():
        return ()
    return tuple(sorted(p for p in folder.rglob("*.json*") if p.name.endswith(("journal.jsonl", ".meta.json"))))


_CLAIMS: Sequence[Callable[[Path], tuple[Path, ...]]] = (
    subagent_files, side_files, companion_events, stored_parts, children_of, agent_recordings, capture_files, claimed)
