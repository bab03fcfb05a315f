"""What a Claude Code file says about its session as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replay.readers.claude_code_lines import TALK, Line, unknown
from replay.readers.source import Source
from replay.transcript import Outcome, Thread

_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle", "agent-name": "agentName",
           "mode": "mode", "permission-mode": "permissionMode"}
"""Side records that describe the session, with the field that does."""


@dataclass(frozen=True)
class Facts:
    """Session-wide facts of one file."""

    session: str
    """The file's own session id: that of its name, or else the last one in it."""
    sessions: tuple[str, ...]
    """All session ids in the file, in order."""
    version: str | None
    cwd: str | None
    leaf: str | None
    """Uuid at which the file says that the active branch ends, if it says so behind the last message."""
    pull_request: str | None
    extra: Mapping[str, Any]
    """Titles and modes (the last of each), and the records of unknown type as they stood."""


def facts_of(lines: Sequence[Line], source: Source) -> Facts:
    """The facts that the main lines of a file tell."""
    sessions = tuple(dict.fromkeys(s for line in lines if line.kind != "progress"
                                   and isinstance(s := line.value.get("sessionId"), str)))
    stem = Path(source.path).name.partition(".")[0]
    own = stem if stem in sessions else _last(lines, "sessionId") or (sessions[-1] if sessions else stem)
    request = next((u for line in reversed(lines) if line.kind == "pr-link"
                    and isinstance(u := line.value.get("prUrl"), str)), None)
    return Facts(session=own, sessions=sessions, version=_last(lines, "version"),
                 cwd=next((c for line in lines if isinstance(c := line.value.get("cwd"), str)), None),
                 leaf=_leaf(lines), pull_request=request, extra=_extra(lines, source))


def _last(lines: Sequence[Line], key: str) -> str | None:
    found = (line.value.get(key) for line in reversed(lines) if line.kind in TALK)
    return next((value for value in found if isinstance(value, str)), None)


def _leaf(lines: Sequence[Line]) -> str | None:
    for line in reversed(lines):
        if line.kind in TALK:
            return None
        if line.kind == "last-prompt" and isinstance(leaf := line.value.get("leafUuid"), str):
            return leaf
    return None


def _extra(lines: Iterable[Line], source: Source) -> dict[str, Any]:
    extra: dict[str, Any] = {}
    for line in lines:
        if line.kind in TALK or line.kind == "progress":
            continue
        if (field := _TITLES.get(line.kind)) and field in line.value:
            extra[field] = line.value[field]
        elif unknown(line):
            extra.setdefault("unknown", []).append(line.value)
    if isinstance(source.document, dict) and "loglines" in source.document:
        extra |= {key: value for key, value in source.document.items() if key != "loglines"}
    return extra


def outcome_of(thread: Thread, facts: Facts) -> Outcome:
    """How the session seems to have ended. The file stores no verdict, so this is a hint with its source."""
    last = thread.steps[-1] if thread.steps else None
    if last is None:
        return Outcome(value="unknown", source="no model call")
    if last.error is not None:
        return Outcome(value="fail", source="API error", detail=last.error)
    after = thread.messages[last.start:]
    stopped = next((m for m in after if m.detail == "interruption"), None)
    if stopped is not None:
        return Outcome(value="partial", source="interruption", detail=stopped.text)
    answered = {r.call_id for m in after for r in m.results}
    if any(call.id not in answered for m in after for call in m.calls):
        return Outcome(value="partial", source="a tool call without a result at the end")
    if facts.pull_request:
        return Outcome(value="unknown", source="pull request", detail=facts.pull_request)
    reason = after[0].extra.get("message", {}).get("stop_reason") if after else None
    return Outcome(value="unknown", source="stop reason", detail=reason if isinstance(reason, str) else None)
