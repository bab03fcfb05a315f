"""Who wrote a user line of Claude Code: the person, or the program beside or in place of the person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replay.readers.claude_code_blocks import is_result
from replay.readers.claude_code_lines import Line
from replay.transcript import Origin

Speaker = tuple[Origin, str | None]
"""Origin of a message and what kind of message it is."""

_HUMAN: Speaker = ("human", None)
_TAGS: Mapping[str, Speaker] = {
    # The expansion of a prompt command follows it as an injected line; the call itself starts the turn.
    "command-message": ("human", "command"),
    # Commands that the program answers itself, and shell lines: no model call follows them.
    "command-name": ("injected", "local_command"),
    "local-command-stdout": ("injected", "local_command_output"),
    "local-command-stderr": ("injected", "local_command_output"),
    "local-command-caveat": ("injected", "local_command_caveat"),
    "bash-input": ("injected", "shell_input"),
    "bash-stdout": ("injected", "shell_output"),
    "bash-stderr": ("injected", "shell_output"),
    "system-reminder": ("injected", "system_reminder"),
    "user-prompt-submit-hook": ("injected", "hook"),
    "ide_opened_file": ("injected", "ide"),
    "ide_selection": ("injected", "ide"),
    # Prompts that the program writes when something happened in the background.
    "task-notification": ("nudge", "task_notification"),
    "agent-notification": ("nudge", "task_notification"),
    "teammate-message": ("nudge", "teammate_message"),
}
_OPENINGS: tuple[tuple[str, Speaker], ...] = (
    ("[Request interrupted by user", ("injected", "interruption")),
    ("Caveat: The messages below were generated", ("injected", "local_command_caveat")),
    ("This session is being continued from a previous conversation", ("injected", "continuation")),
)
_META_OPENINGS: tuple[tuple[str, Speaker], ...] = (
    ("Stop hook feedback", ("nudge", "stop_hook")),
    ("Continue from where you left off", ("nudge", "continue")),
)


def speaker(value: Mapping[str, Any], content: Any) -> Speaker:
    """Origin and kind of a user line from its flags and the text of `content`.

    A line of several texts is the person's if any text is.
    """
    if value.get("isMeta") is True:
        return _meta(value, content)
    source = value.get("origin")
    kind = source.get("kind") if isinstance(source, dict) else None
    if isinstance(kind, str) and kind != "human":
        return "nudge", kind.replace("-", "_")
    found = [by_text(text) for text in _texts(content)]
    if not found or _HUMAN in found:
        return _HUMAN
    return found[0]


def by_text(text: str) -> Speaker:
    """Origin and kind of a text by how it begins."""
    head = text[:120].lstrip()
    if head.startswith("<"):
        return _TAGS.get(head[1:].partition(">")[0], _HUMAN)
    if head[:1] in "[CT":
        return next((who for opening, who in _OPENINGS if head.startswith(opening)), _HUMAN)
    return _HUMAN


def _meta(value: Mapping[str, Any], content: Any) -> Speaker:
    text = next(iter(_texts(content)), "").lstrip()
    for opening, who in _META_OPENINGS:
        if text.startswith(opening):
            return who
    if value.get("sourceToolUseID"):
        return "injected", "skill"
    who = by_text(text)
    return who if who[0] == "injected" else ("injected", "meta")


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    found = [b if isinstance(b, str) else b.get("text") for b in content if isinstance(b, (str, dict))]
    return [text for text in found if isinstance(text, str)]


def queued(content: Any) -> Speaker:
    """Origin and kind of text that waited in the queue and was sent during a turn."""
    who = by_text(next(iter(_texts(content)), ""))
    return ("injected", who[1]) if who[0] == "nudge" else ("human", "queued_command")


def is_prompt(line: Line) -> bool:
    """Whether a line is a prompt that the person typed, and no tool result."""
    if line.kind != "user" or line.value.get("isCompactSummary") is True:
        return False
    content = (line.message or {}).get("content")
    if isinstance(content, list) and any(map(is_result, content)):
        return False
    return content is not None and speaker(line.value, content)[0] == "human"
