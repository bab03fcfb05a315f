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

from replay.readers.claude_code_lines import string

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
    is_side: bool
    """Its lines say that they are a sub-agent's."""


def subagent_files(path: Path, sessions: Collection[str] | None = None,
                   agents: Collection[str] = ()) -> tuple[Path, ...]:
    """The files of the sub-agents that a session's file started, sorted; none for a sub-agent's own file.

    `sessions`: the session ids in the file (default: those in its first lines, and the file's name);
    `agents`: ids of sub-agents that the file names. Files of other sessions in the same folder are left out.
    """
    return tuple(found.path for found in agent_files(path, sessions, agents))


def agent_files(path: Path, sessions: Collection[str] | None = None,
                agents: Collection[str] = ()) -> list[AgentFile]:
    """The same with what each file says about itself."""
    if path.match(_PATTERN) and _agent_file(path).is_side:
        return []
    ids = {path.name.partition(".")[0], *(_session_ids(path) if sessions is None else sessions)}
    beside = [f for f in _beside(path.parent, _changed(path.parent))
              if f.is_side and f.path != path and (f.session in ids or f.agent in agents)]
    below = [_agent_file(found) for name in ids if _is_plain(name)
             for found in (path.parent / name / "subagents").rglob(_PATTERN)]
    own = [f for f in below if f.session is None or f.session in ids or f.agent in agents]
    return sorted({f.path: f for f in (*beside, *own)}.values())


@lru_cache(maxsize=64)
def _beside(folder: Path, changed: int) -> tuple[AgentFile, ...]:  # noqa: ARG001  (it is a key of the cache)
    """The files right in a folder that are named as sub-agents'; `changed`, its change time, tells of new ones."""
    return tuple(map(_agent_file, folder.glob(_PATTERN)))


def _changed(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return 0


def _is_plain(name: str) -> bool:
    """Whether an id from a file can be the name of a folder, and of nothing else."""
    return 0 < len(name) < 100 and name.replace("-", "").replace("_", "").isalnum()


def _agent_file(path: Path) -> AgentFile:
    agent = session = None
    is_side = False
    for value in _first_objects(path):
        agent = agent or string(value.get("agentId"))
        session = session or string(value.get("sessionId"))
        is_side = is_side or value.get("isSidechain") is True
    return AgentFile(path, agent or path.name.partition(".")[0].removeprefix("agent-"), session, is_side)


def _session_ids(path: Path) -> set[str]:
    return {found for value in _first_objects(path) if (found := string(value.get("sessionId")))}


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
