"""What Claude Code attaches to a user turn: which kinds the model was sent, and their text.

The file holds an attachment's fields, not the words that the program wrote around them. The text here is
therefore made of the recorded fields alone, in the order of the table below. Where the program wrote a
reminder of its own and no field holds it, an opaque block of unknown size marks the place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from replay.blocks import Block, Opaque, Text
from replay.readers.common import image, json_text

_SENT: Mapping[str, tuple[str, ...]] = {
    # Files and folders that a prompt named, that the editor shows, or that changed on disk.
    "file": ("filename", "content"),
    "directory": ("path", "content"),
    "compact_file_reference": ("filename",),
    "pdf_reference": ("filename",),
    "edited_text_file": ("filename", "snippet"),
    "selected_lines_in_ide": ("filename", "content"),
    "opened_file_in_ide": ("filename",),
    "nested_memory": ("path", "content"),
    "relevant_memories": ("memories",),
    "mcp_resource": ("uri", "content"),
    "diagnostics": ("files",),
    # What the model may call. The deltas are sent once and hold until the next compaction.
    "skill_listing": ("content",),
    "invoked_skills": ("skills",),
    "deferred_tools_delta": ("addedLines", "removedNames"),
    "agent_listing_delta": ("addedLines", "removedTypes"),
    "mcp_instructions_delta": ("addedBlocks", "removedNames"),
    "agent_mention": ("agentType",),
    # Hooks speak to the model by their content; their stdout is shown to the person alone.
    "hook_success": ("content",),
    "hook_additional_context": ("content",),
    "hook_blocking_error": ("blockingError",),
    "hook_stopped_continuation": ("message",),
    "async_hook_response": ("response",),
    # Reminders and states.
    "queued_command": ("prompt",),
    "task_reminder": ("content",),
    "todo_reminder": ("content",),
    "todo": ("content",),
    "task_status": ("taskId", "status", "description", "deltaSummary"),
    "plan_mode": ("planFilePath",),
    "plan_mode_reentry": ("planFilePath",),
    "plan_mode_exit": ("planFilePath",),
    "plan_file_reference": ("planFilePath", "planContent"),
    "auto_mode": (),
    "auto_mode_exit": (),
    "date_change": ("newDate",),
    "output_style": ("style",),
    "critical_system_reminder": ("content",),
    "token_usage": ("used", "total", "remaining"),
}
"""Kinds that were sent, with the fields whose text was."""

_REMINDERS = frozenset({"task_reminder", "todo_reminder", "plan_mode", "plan_mode_reentry", "plan_mode_exit",
                        "auto_mode", "auto_mode_exit", "date_change", "output_style", "critical_system_reminder"})
"""Kinds that were sent even where no field holds a text."""

_UI_ONLY = frozenset({
    "hook_system_message", "hook_non_blocking_error", "hook_error_during_execution", "hook_cancelled",
    "hook_permission_decision", "command_permissions", "structured_output", "max_turns_reached",
})
"""Kinds that only the person saw."""


def is_known(kind: str) -> bool:
    """Whether the table covers a kind of attachment."""
    return kind in _SENT or kind in _UI_ONLY


def attachment_blocks(attachment: Mapping[str, Any]) -> list[Block]:
    """The blocks that the model was sent for an attachment; none for what only the person saw.

    Of a kind that is not in the table, `content` is taken to have been sent where it is text.
    """
    kind, content = attachment.get("type"), attachment.get("content")
    if not isinstance(kind, str) or kind in _UI_ONLY:
        return []
    if kind not in _SENT:
        return [Text(text=content)] if isinstance(content, str) and content else []
    if isinstance(content, dict) and content.get("type") == "image" and isinstance(content.get("file"), dict):
        return [image(_render(content["file"].get("type")), content["file"].get("base64"))]
    parts = (_render(attachment.get(name)) for name in _SENT[kind])
    text = "\n".join(part for part in parts if part)
    if text:
        return [Text(text=text)]
    return [Opaque(label=kind, size_bytes=0)] if kind in _REMINDERS else []


def _render(value: Any, depth: int = 0) -> str:
    if isinstance(value, str):
        return value
    if depth > _DEEPEST:
        return json_text(value)
    if isinstance(value, list):
        return "\n".join(part for part in (_render(v, depth + 1) for v in value) if part)
    if isinstance(value, dict):
        return _object(value, depth)
    return "" if value is None else str(value)


def _object(value: Mapping[str, Any], depth: int) -> str:
    for key, rule in _SPECIAL.items():
        if key in value:
            return rule(value)
    inner = next((value[key] for key in ("text", "file", "content") if key in value), None)
    return json_text(value) if inner is None else _render(inner, depth + 1)


def _file_diagnostics(value: Mapping[str, Any]) -> str:
    found = value["diagnostics"]
    lines = [_diagnostic(d) for d in found if isinstance(d, dict)] if isinstance(found, list) else []
    return "\n".join([_render(value.get("uri")), *lines])


def _diagnostic(value: Mapping[str, Any]) -> str:
    span = value.get("range")
    start = span.get("start") if isinstance(span, dict) else None
    place = f"{start.get('line')}:{start.get('character')}" if isinstance(start, dict) else "?"
    words = (_render(value.get(k)) for k in ("severity", "message", "code", "source"))
    return " ".join([place, *(w for w in words if w)])


def _task(value: Mapping[str, Any]) -> str:
    return f"#{_render(value.get('id'))} [{_render(value.get('status'))}] {_render(value['subject'])}"


_SPECIAL: Mapping[str, Callable[[Mapping[str, Any]], str]] = {"diagnostics": _file_diagnostics, "subject": _task}
"""How some objects inside an attachment read, by a field that tells them."""
_DEEPEST = 8
