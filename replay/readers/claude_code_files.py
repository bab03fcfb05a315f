"""The sub-agent files of a Claude Code session, which lie beside or below the session's own file."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson

_PATTERN = "agent-*.jsonl*"
_HEAD = 20
"""Lines at the top of a file in which its session id is looked for."""


class AgentFile(NamedTuple):
    """A sub-agent's file with what its first lines say."""

    path: Path
    agent: str
    """The agent's id: from the file's lines, or else from its name."""
    session: str | None
    """Id of the session that started it."""


def is_agent_file(path: Path) -> bool:
    """Whether a file is named as a sub-agent's."""
    return path.match(_PATTERN)


def subagent_files(path: Path, sessions: Collection[str] | None = None,
                   agents: Collection[str] = ()) -> tuple[Path, ...]:
    """The files of the sub-agents that a session's file started, sorted.

    `sessions`: the session ids in the file (default: those in its first lines, and the file's name);
    `agents`: ids of sub-agents that the file names. Files of other sessions in the same folder are left out.
    """
    return tuple(found.path for found in agent_files(path, sessions, agents))


def agent_files(path: Path, sessions: Collection[str] | None = None,
                agents: Collection[str] = ()) -> list[AgentFile]:
    """The same with what each file says about itself."""
    if is_agent_file(path):
        return []
    stem = path.name.partition(".")[0]
    ids = {stem, *(_session_ids(path) if sessions is None else sessions)}
    beside = [f for f in _listed(path.parent, _changed(path.parent)) if f.session in ids or f.agent in agents]
    below = [_agent_file(p) for name in sorted(ids) for p in sorted((path.parent / name / "subagents").rglob(_PATTERN))
             if name]
    own = [f for f in below if f.session is None or f.session in ids or f.agent in agents]
    return sorted({f.path: f for f in [*beside, *own]}.values())


@lru_cache(maxsize=64)
def _listed(folder: Path, changed: int) -> tuple[AgentFile, ...]:
    """The sub-agent files right in a folder; `changed` is the folder's change time, so that news are seen."""
    return tuple(_agent_file(p) for p in sorted(folder.glob(_PATTERN)))


def _changed(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


def _agent_file(path: Path) -> AgentFile:
    agent = session = None
    for value in _first_objects(path):
        agent = agent or _string(value.get("agentId"))
        session = session or _string(value.get("sessionId"))
    return AgentFile(path, agent or path.name.partition(".")[0].removeprefix("agent-"), session)


def _session_ids(path: Path) -> set[str]:
    return {found for value in _first_objects(path) if (found := _string(value.get("sessionId")))}


def _first_objects(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
            for line in islice(lines, _HEAD):
                if isinstance(value := _parsed(line), dict):
                    yield value
    except (OSError, EOFError, zlib.error):
        return


def _parsed(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return None


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) else None
