"""How each harness puts a tool call and its result into words.

Five harnesses differ only in names and phrases and are rows of a table; Codex does everything through a
shell and patches and has a module of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from evals.samples.codex_dialect import Codex
from evals.samples.recording import Outcome
from evals.samples.scenario import Action


class Dialect(Protocol):
    """A harness's tools."""

    def lower(self, action: Action) -> Action:
        """The action that is really performed, e.g. a command for a harness that has only a shell."""

    def call(self, action: Action, cwd: str) -> tuple[str, Mapping[str, Any] | str]:
        """Tool name and arguments of an action."""

    def result(self, action: Action, outcome: Outcome, cwd: str) -> str:
        """The text that the model gets back."""


def numbered(outcome: Outcome, arrow: str = "→") -> str:
    """Lines with their numbers, right-aligned in six places."""
    lines = outcome.text.split("\n")
    return "\n".join(f"{number:6d}{arrow}{line}" for number, line in enumerate(lines, outcome.first_line))


def plain(outcome: Outcome) -> str:
    """The lines as they stand, with a remark where the file goes on."""
    shown = outcome.first_line + outcome.text.count("\n")
    rest = outcome.total_lines - shown
    return outcome.text + (f"\n\n[{rest} more lines; go on at line {shown + 1}]" if rest > 0 else "")


@dataclass(frozen=True, kw_only=True)
class Table:
    """A harness whose tools take one mapping each."""

    names: Mapping[str, str]
    """Kind of action to tool name."""
    keys: Mapping[str, tuple[str, ...]]
    """Kind of action to the argument names for target and settings, in the order of `_SETTINGS`."""
    absolute: bool = False
    """Paths are written in full."""
    show: Callable[[Outcome], str] = plain
    """How a file's lines are shown."""
    wrap: Callable[[str, Action, Outcome], str] | None = None
    """Puts the text into an envelope."""

    def lower(self, action: Action) -> Action:
        """Every action is a tool of its own."""
        return action

    def call(self, action: Action, cwd: str) -> tuple[str, Mapping[str, Any]]:
        """Tool name and arguments."""
        first, *others = self.keys[action.kind]
        target: Any = action.get("items") if action.kind == "todo" else action.target
        if self.absolute and action.kind in ("read", "write", "edit"):
            target = f"{cwd}/{target}"
        arguments = {first: target}
        for key, setting in zip(others, _SETTINGS[action.kind], strict=False):
            if action.get(setting) is not None:
                arguments[key] = action.get(setting)
        return self.names[action.kind], arguments

    def result(self, action: Action, outcome: Outcome, cwd: str) -> str:
        """What the model gets back."""
        text = self._words(action, outcome, f"{cwd}/{action.target}")
        return self.wrap(text, action, outcome) if self.wrap else text

    def _words(self, action: Action, outcome: Outcome, path: str) -> str:
        shown = path if self.absolute else action.target
        if action.kind == "bash":
            return _command_words(outcome)
        if outcome.failed:
            return f"Error: {outcome.text}"
        if action.kind == "read":
            return self.show(outcome)
        if action.kind == "edit":
            return f"{shown} was changed. The lines around the change:\n{numbered(outcome)}"
        if action.kind == "write":
            return f"{shown} was written, {outcome.total_lines} lines."
        return outcome.text


_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "read": ("start", "lines"), "write": ("text",), "edit": ("old", "new"), "bash": ("why",),
    "grep": ("in",), "list": (), "todo": (), "delegate": ("prompt", "agent"),
}


def _command_words(outcome: Outcome) -> str:
    body = outcome.text or "(no output)"
    return f"Exit code {outcome.code}\n{body}" if outcome.code else body


def _marked(text: str, action: Action, outcome: Outcome) -> str:
    """Errors of the tool itself stand between tags; a command that fails is no such error."""
    return f"<tool_use_error>{text}</tool_use_error>" if outcome.failed and action.kind != "bash" else text


def _envelope(text: str, action: Action, outcome: Outcome) -> str:
    """Every result is a JSON object with a status, the data and a text."""
    data: dict[str, Any] = {"exit_code": outcome.code} if action.kind == "bash" else {"path": action.target}
    status = "error" if outcome.failed else "success"
    return orjson.dumps({"status": status, "data": data, "text": text}).decode()


CLAUDE_CODE = Table(
    names={"read": "Read", "write": "Write", "edit": "Edit", "bash": "Bash", "grep": "Grep", "list": "Glob",
           "todo": "TodoWrite", "delegate": "Task"},
    keys={"read": ("file_path", "offset", "limit"), "write": ("file_path", "content"),
          "edit": ("file_path", "old_string", "new_string"), "bash": ("command", "description"),
          "grep": ("pattern", "glob"), "list": ("pattern",), "todo": ("todos",),
          "delegate": ("description", "prompt", "subagent_type")},
    absolute=True, show=numbered, wrap=_marked)

PI = Table(
    names={"read": "read", "write": "write", "edit": "edit", "bash": "bash", "grep": "grep", "list": "find"},
    keys={"read": ("path", "offset", "limit"), "write": ("path", "content"), "edit": ("path", "oldText", "newText"),
          "bash": ("command",), "grep": ("pattern", "glob"), "list": ("pattern",)})

MYCODEAGENT = Table(
    names={"read": "Read", "write": "Write", "edit": "Edit", "bash": "Bash", "grep": "Grep", "list": "LS",
           "todo": "TodoWrite"},
    keys={"read": ("path", "start_line", "limit"), "write": ("path", "content"),
          "edit": ("path", "old_string", "new_string"), "bash": ("command",), "grep": ("pattern", "include"),
          "list": ("pattern",), "todo": ("todos",)},
    show=numbered, wrap=_envelope)

DECODE = Table(
    names={"read": "read", "write": "write", "edit": "edit", "bash": "bash", "grep": "grep", "list": "glob"},
    keys={"read": ("path", "offset", "limit"), "write": ("path", "content"), "edit": ("path", "old", "new"),
          "bash": ("command",), "grep": ("pattern", "include"), "list": ("pattern",)},
    show=numbered)

OPENAI_CHAT = Table(
    names={"read": "read_file", "write": "write_file", "edit": "replace_in_file", "bash": "run_command",
           "grep": "search", "list": "list_files"},
    keys={"read": ("path", "start_line", "line_count"), "write": ("path", "content"),
          "edit": ("path", "old_text", "new_text"), "bash": ("command",), "grep": ("pattern", "files"),
          "list": ("pattern",)})

DIALECTS: Mapping[str, Dialect] = {
    "claude-code": CLAUDE_CODE, "codex": Codex(), "pi": PI, "mycodeagent": MYCODEAGENT, "decode": DECODE,
    "openai-chat": OPENAI_CHAT,
}
"""Format name to the dialect of its harness."""
