"""Claude Code records as lines: what kind each is, which are repeats, and which nobody knows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from replay.readers.claude_code_attachments import is_known
from replay.readers.common import not_an_object
from replay.readers.odd_types import OddTypes
from replay.readers.source import Record
from replay.transcript import ReadNote

TALK = frozenset({"user", "assistant"})
"""Records that hold a message."""
CHAIN = TALK | {"system", "attachment", "progress"}
"""Records that take part in the chain of `parentUuid`s."""
_SIDE = frozenset({
    "summary", "file-history-snapshot", "file-history-delta", "queue-operation", "ai-title", "custom-title",
    "agent-name", "last-prompt", "mode", "permission-mode", "pr-link", "bridge-session",
})
_SYSTEM = frozenset({
    "compact_boundary", "microcompact_boundary", "local_command", "api_error", "turn_duration", "stop_hook_summary",
    "informational", "away_summary", "bridge_status", "",
})
_PROGRESS = frozenset({
    "agent_progress", "bash_progress", "hook_progress", "mcp_progress", "waiting_for_task", "query_update",
    "search_results_received",
})
_CROWD = 16
"""A time that more records share than this does not tell them apart."""
SIDE_TYPES = _SIDE | {"progress", "attachment", "system"}
"""Record types besides messages, by which a file can be told."""


class Line(NamedTuple):
    """One record that is a JSON object, with its place and its links."""

    number: int
    """1-based line of the file; the ordinal of the entry in a document."""
    byte: int
    kind: str
    """The record's type; `copy`: an earlier message written again (uuid: the original's);
    `clear`: the context was emptied here."""
    uuid: str | None
    parent: str | None
    value: Mapping[str, Any]
    is_side: bool = False
    """Part of a sub-agent's talk."""

    @property
    def message(self) -> Mapping[str, Any] | None:
        """The native message, where it is an object."""
        found = self.value.get("message")
        return found if isinstance(found, dict) else None

    @property
    def stamp(self) -> str:
        """The timestamp as written; empty where there is none."""
        return string(self.value.get("timestamp")) or ""


def lines_of(records: Iterable[Record], notes: list[ReadNote]) -> list[Line]:
    """Every record that is an object, in file order; what is no object or unknown becomes a note."""
    found: list[Line] = []
    odd = OddTypes()
    for number, byte, value in records:
        if not isinstance(value, dict):
            notes.append(not_an_object(number, byte, value))
            continue
        get = value.get
        kind, uuid, parent = get("type"), get("uuid"), get("parentUuid")
        line = Line(number, byte, kind if isinstance(kind, str) else "", uuid if isinstance(uuid, str) else None,
                    parent if isinstance(parent, str) else None, value, get("isSidechain") is True)
        if line.kind not in TALK and (label := unknown(line)):
            odd.add(label, number, byte)
        found.append(line)
    notes.extend(odd.notes())
    return found


def unknown(line: Line) -> str:
    """The name of a record's type where no rule here covers it; empty for known ones."""
    kind = line.kind
    if kind in TALK or kind in _SIDE:
        return ""
    if kind == "system":
        return "" if (sub := _text(line.value, "subtype")) in _SYSTEM else f"system/{sub}"
    if kind == "progress" and _is_broken(line):
        return "progress/agent_progress without a user's or an assistant's message"
    if kind == "progress":
        return "" if (sub := _text(line.value.get("data"), "type")) in _PROGRESS else f"progress/{sub or '(no type)'}"
    if kind == "attachment":
        return "" if is_known(sub := _text(line.value.get("attachment"), "type")) else f"attachment/{sub}"
    return kind or "(no type)"


def string(value: Any) -> str | None:
    """The value where it is a string."""
    return value if isinstance(value, str) else None


def _text(value: Any, key: str) -> str:
    return string(value.get(key) if isinstance(value, dict) else None) or ""


def is_boundary(line: Line) -> bool:
    """Whether a full compaction took effect at this line."""
    return line.kind == "system" and line.value.get("subtype") == "compact_boundary"


def is_summary(line: Line) -> bool:
    """Whether a user line holds the summary of a compaction."""
    return line.kind == "user" and line.value.get("isCompactSummary") is True


def _is_broken(line: Line) -> bool:
    """Whether a progress line holds a sub-agent's message that cannot be read."""
    data = line.value.get("data")
    if not isinstance(data, dict) or data.get("type") != "agent_progress":
        return False
    return bool(data.get("message")) and nested(line) is None


def nested(line: Line) -> Line | None:
    """The sub-agent's message inside an `agent_progress` line, as a line of its own."""
    data = line.value.get("data")
    inner = data.get("message") if isinstance(data, dict) else None
    kind = inner.get("type") if isinstance(inner, dict) else None
    if not isinstance(inner, dict) or not isinstance(kind, str) or kind not in TALK:
        return None
    return Line(line.number, line.byte, kind, string(inner.get("uuid")), None, inner)


def without_repeats(lines: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    """The lines with each record once, and the repeats that say nothing new.

    A repeat has the content of an earlier record and its uuid, or else its time in another session. Right
    after a compaction it is a message that the harness kept and wrote again, perhaps with a new uuid. Where
    later records can hang on it, it stays in the list as a line of kind `copy`.
    """
    kept: list[Line] = []
    repeats: list[Line] = []
    place: dict[str, int] = {}
    stamped: dict[str, list[int]] = {}
    boundary: Line | None = None
    for line in lines:
        at = place.get(line.uuid) if line.uuid else None
        if at is None and line.kind in TALK:
            at = _rewritten(line, boundary, kept, stamped)
        if at is None or not _same(kept[at], line):
            if line.uuid:
                place.setdefault(line.uuid, len(kept))
            if line.kind in TALK:
                stamped.setdefault(line.stamp, []).append(len(kept))
            kept.append(line)
            if boundary is not None or line.kind == "system":
                boundary = _open_boundary(line, boundary)
            continue
        original = kept[at]
        preserved = boundary is not None and line.kind in TALK and original.number < boundary.number
        if preserved or line.uuid != original.uuid:
            kept.append(line._replace(kind="copy", uuid=original.uuid))
        if not preserved:
            repeats.append(line)
            if _output(line) > _output(original):
                kept[at] = original._replace(value=line.value)
    return kept, repeats


def _open_boundary(line: Line, boundary: Line | None) -> Line | None:
    """The compaction whose kept messages may still follow: none once the talk goes on."""
    if is_boundary(line):
        return line
    return None if line.kind in TALK and not is_summary(line) else boundary


def _rewritten(line: Line, boundary: Line | None, kept: Sequence[Line],
               stamped: Mapping[str, list[int]]) -> int | None:
    """Index of the record that a line with another uuid repeats."""
    stamp = line.stamp
    found = stamped.get(stamp, ())
    if not stamp or len(found) > _CROWD:
        return None
    for at in found:
        old = kept[at]
        is_older = boundary is not None and old.number < boundary.number and stamp < boundary.stamp
        if (is_older or old.value.get("sessionId") != line.value.get("sessionId")) and _same(old, line):
            return at
    return None


def _same(first: Line, second: Line) -> bool:
    if first.kind != second.kind:
        return False
    if first.kind not in TALK:
        return True
    one, two = first.message, second.message
    if one is None or two is None:
        return first.value.get("message") == second.value.get("message")
    return one.get("id") == two.get("id") and one.get("content") == two.get("content")


def _output(line: Line) -> float:
    usage = (line.message or {}).get("usage")
    found = usage.get("output_tokens") if isinstance(usage, dict) else 0
    return found if isinstance(found, (int, float)) else 0
