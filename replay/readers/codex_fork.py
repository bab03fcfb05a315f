"""Where a forked rollout stops repeating its parent: those records are history, but not this session's requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from replay.readers.codex_records import Item

_BURST = 0.25
"""Seconds. A fork writes its parent's records in one go; a pause longer than this ends them."""
_TURN_STARTS = frozenset({"task_started", "turn_started"})


def metas(items: Sequence[Item]) -> list[Mapping[str, Any]]:
    """The session headers of a rollout, in order; the first names the file."""
    return [item.payload for item in items if item.kind == "session_meta"]


def parent_of(headers: Sequence[Mapping[str, Any]]) -> str | None:
    """The session that a rollout was forked from or started by."""
    if not headers:
        return None
    own = headers[0]
    for key in ("forked_from_id", "parent_thread_id"):
        if isinstance(own.get(key), str):
            return str(own[key])
    spawn = _inside(own.get("source"), "subagent", "thread_spawn", "parent_thread_id")
    if isinstance(spawn, str):
        return spawn
    return next((str(h["id"]) for h in headers[1:] if isinstance(h.get("id"), str) and h["id"] != own.get("id")), None)


def _inside(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def copied(items: Sequence[Item]) -> int:
    """Number of leading items that a fork repeats from its parent; 0 for a session of its own."""
    own = next((i for i in items if i.kind == "session_meta"), None)
    if own is None:
        return 0
    start = _copy_start(items, own)
    if start is None:
        return 0
    by_turn = _first_own_turn(items, start, str(own.payload.get("id")))
    return by_turn if by_turn is not None else _end_of_burst(items, start)


def _copy_start(items: Sequence[Item], own: Item) -> int | None:
    """Where the copy begins: at another session's header before any content, else behind the own header."""
    name, after_own = own.payload.get("id"), 0
    for index, item in enumerate(items):
        if item is own:
            after_own = index + 1
        elif item.kind == "session_meta" and item.payload.get("id") not in (name, None):
            return index
        elif item.kind in ("response_item", "event_msg", "compacted"):
            break
    return after_own if isinstance(own.payload.get("forked_from_id"), str) else None


def _first_own_turn(items: Sequence[Item], start: int, session: str) -> int | None:
    """The first turn that began after the session did; both ids carry their time in front (UUID version 7)."""
    if not _is_timed(session):
        return None
    for index in range(start, len(items)):
        item = items[index]
        if item.kind == "turn_context" or (item.kind == "event_msg" and item.type in _TURN_STARTS):
            turn = item.payload.get("turn_id")
            if isinstance(turn, str) and _is_timed(turn) and turn.lower() > session.lower():
                return index
    return None


def _is_timed(name: str) -> bool:
    return len(name) == 36 and name[14] == "7"


def _end_of_burst(items: Sequence[Item], start: int) -> int:
    limit = items[start].time if start < len(items) else None
    if limit is None:
        return start
    for index in range(start, len(items)):
        time = items[index].time
        if time is None:
            continue
        if time > limit + _BURST:
            return index
        limit = max(limit, time)
    return len(items)
