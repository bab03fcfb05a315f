"""The records of a Codex rollout in one shape, whatever version wrote them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from replay.readers.common import not_an_object, seconds
from replay.readers.odd_types import OddTypes
from replay.readers.source import Record, Source
from replay.transcript import ReadNote

CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call", "tool_search_call",
                   "image_generation_call", "mcp_call"})
OUTPUTS = frozenset({"function_call_output", "custom_tool_call_output", "local_shell_call_output",
                     "tool_search_output", "mcp_tool_call_output"})
SUMMARIES = frozenset({"compaction", "compaction_summary", "context_compaction"})
"""Response items that carry an encrypted summary."""
RESPONSE_ITEMS = CALLS | OUTPUTS | SUMMARIES | {
    "message", "reasoning", "agent_message", "additional_tools", "ghost_snapshot", "compaction_trigger"}
ENVELOPES = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted",
                       "token_usage_record", "inter_agent_communication"})
_SIDE = frozenset({"world_state", "inter_agent_communication_metadata", "security_risk_score", "realtime_item"})
_EVENTS = frozenset({
    "agent_message", "agent_reasoning", "agent_reasoning_raw_content", "agent_reasoning_section_break",
    "background_event", "context_compacted", "deprecation_notice", "entered_review_mode", "error",
    "exited_review_mode", "item_completed", "item_started", "item_updated", "model_reroute", "model_verification",
    "patch_apply_updated", "plan_update", "raw_response_item", "request_permissions", "request_user_input",
    "safety_buffering", "session_configured", "shutdown_complete", "skills_update_available", "stream_error",
    "sub_agent_activity", "task_complete", "task_started", "terminal_interaction", "thread_goal_updated",
    "thread_name_updated", "thread_rolled_back", "thread_settings_applied", "token_count", "turn_aborted",
    "turn_complete", "turn_diff", "turn_started", "undo_completed", "undo_started", "user_message",
    "view_image_tool_call", "warning"})
_EVENT_ENDS = ("_begin", "_end", "_delta", "_request", "_response")
_EVENT_STARTS = ("collab_", "guardian_", "hook_", "mcp_", "realtime_")


REPLAYED = frozenset({"token_count", "task_started", "turn_started", "task_complete", "turn_complete",
                      "turn_aborted", "error", "thread_rolled_back"})
"""UI events that say something about the session which no other record says."""


class Item(NamedTuple):
    """One record: what it is, its content and its place."""

    kind: str
    """A name of `ENVELOPES`."""
    type: str
    """The payload's own type; empty where it has none."""
    payload: dict[str, Any]
    line: int
    stamp: Any
    """The record's time as it stands in the file."""

    @property
    def time(self) -> float | None:
        """Seconds since the epoch."""
        return seconds(self.stamp)


@dataclass
class Rollout:
    """The records of a file that matter for the session, and what was odd about the rest."""

    items: list[Item] = field(default_factory=list)
    copies: list[Item] = field(default_factory=list)
    """UI events that repeat what other records hold, in a form of their own."""
    unknown: list[dict[str, Any]] = field(default_factory=list)
    """Records of unknown types, as they stood."""
    notes: list[ReadNote] = field(default_factory=list)


def rollout(source: Source) -> Rollout:
    """Sort the records of a file; every record that cannot be used is noted."""
    found = Rollout()
    odd = OddTypes()
    for record in _records(source):
        if isinstance(record.value, dict):
            _sort(record, record.value, found, odd)
        else:
            found.notes.append(not_an_object(record.line, record.byte, record.value))
    found.notes.extend(odd.notes())
    return found


def _records(source: Source) -> Iterable[Record]:
    """The records of a file; those of a whole document are its parts."""
    if not source.is_document:
        return source.records
    record, value = source.records[0], source.document
    if isinstance(value, dict) and isinstance(value.get("items"), list):
        value = [value.get("session"), *value["items"]]
    parts = value if isinstance(value, list) else [value]
    return [Record(record.line, record.byte, part) for part in parts]


def _sort(record: Record, value: dict[str, Any], found: Rollout, odd: OddTypes) -> None:
    kind, payload = value.get("type"), value.get("payload")
    if isinstance(payload, dict) and isinstance(kind, str):
        name = type_of(payload)
        if kind in ENVELOPES and is_known(kind, name):
            item = Item(kind, name, payload, record.line, value.get("timestamp"))
            (found.items if kind != "event_msg" or name in REPLAYED else found.copies).append(item)
        elif kind not in _SIDE:
            odd.add(f"{kind}/{name}" if kind in ENVELOPES else kind, record.line, record.byte)
            found.unknown.append(value)
    elif "payload" in value:
        found.notes.append(ReadNote(code="bad-record", text="a record without a readable type and payload; kept out",
                                    line=record.line, byte=record.byte))
    else:
        _sort_bare(record, value, found, odd)


def _sort_bare(record: Record, value: dict[str, Any], found: Rollout, odd: OddTypes) -> None:
    """Records of versions that wrote no envelope: a header, state marks, response items."""
    kind = type_of(value)
    if kind in RESPONSE_ITEMS:
        found.items.append(Item("response_item", kind, value, record.line, value.get("timestamp")))
    elif value.get("type") is None and is_bare_header(value):
        found.items.append(Item("session_meta", "", value, record.line, value.get("timestamp")))
    elif "record_type" not in value:
        odd.add(value.get("type"), record.line, record.byte)
        found.unknown.append(value)


def type_of(native: Mapping[str, Any]) -> str:
    """The type that an object names; empty where it names none."""
    value = native.get("type")
    return value if isinstance(value, str) else ""


def is_bare_header(value: dict[str, Any]) -> bool:
    """Whether an object is the header of a rollout without envelopes."""
    return isinstance(value.get("id"), str) and "timestamp" in value and bool(
        {"instructions", "git", "cwd", "originator"} & value.keys())


def is_known(kind: str, name: str) -> bool:
    """Whether a payload type of an envelope is one that this reader understands or may leave out."""
    if kind == "response_item":
        return name in RESPONSE_ITEMS
    if kind != "event_msg":
        return True
    return name in _EVENTS or name.endswith(_EVENT_ENDS) or name.startswith(_EVENT_STARTS)
