"""What the calls of a session did: files that they read, changed or renamed, commands that they ran, how they ended."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from evals.shell_paths import shell_touches
from evals.shell_results import failed
from replay.blocks import ToolCall, ToolResult
from replay.log import Log
from replay.transcript import Thread

TouchKind = Literal["read", "edit", "write", "rename", "delete"]

_READ = frozenset(("read", "readfile", "view", "viewfile", "open", "notebookread", "readmanyfiles"))
_EDIT = frozenset(("edit", "multiedit", "strreplace", "replace", "replaceinfile", "editfile", "notebookedit",
                   "applydiff", "insert", "insertcontent", "searchreplace", "searchandreplace"))
_WRITE = frozenset(("write", "writefile", "create", "createfile", "writetofile"))
_EDITOR = frozenset(("strreplaceeditor", "strreplacebasededittool", "texteditor", "filededitor", "fileeditor"))
_EDITOR_KINDS: Mapping[str, TouchKind] = {"view": "read", "create": "write", "str_replace": "edit", "insert": "edit",
                                          "undo_edit": "edit"}
_SHELL = frozenset(("bash", "shell", "execcommand", "runcommand", "executebash", "terminal", "runshellcommand",
                    "localshell", "containerexec", "run", "executecommand", "runterminalcmd"))
_PATCH = frozenset(("applypatch", "patch"))
_PATH_KEYS = ("file_path", "path", "filePath", "filename", "notebook_path", "absolute_path", "target_file", "file")
_COMMAND_KEYS = ("command", "cmd", "script")
_PATCHED = re.compile(r"^\*\*\* (Update|Add|Delete) File: (.+?)\s*$|^\*\*\* Move to: (.+?)\s*$", re.MULTILINE)
_PLAIN_NAME = re.compile(r"[^a-z]")


@dataclass(frozen=True, slots=True)
class Touch:
    """One file that a call read or changed."""

    kind: TouchKind
    path: str
    """As the call spells it, `/` between components."""
    new_path: str | None = None
    """kind `rename`: what the file is called from then on."""
    guarded: bool = False
    """Made by an editing tool, where some harnesses demand that the file was read before."""


@dataclass(frozen=True, slots=True)
class Action:
    """One call with its result."""

    message: int
    """Log index of the message that makes the call."""
    call: ToolCall
    result: int | None
    """Log index of the message with the result; None where none came."""
    text: str
    """The result's text."""
    failed: bool
    """The result is an error, or states an exit code other than 0."""
    command: str | None
    """A shell's command line; None for other tools."""
    touches: tuple[Touch, ...]


def actions(log: Log | Thread) -> list[Action]:
    """Every call of a log, or of a thread, in order."""
    results = {r.call_id: (m.index, r) for m in log.messages for r in m.results}
    return [_action(message.index, call, results.get(call.id)) for message in log.messages for call in message.calls]


def _action(message: int, call: ToolCall, answer: tuple[int, ToolResult] | None) -> Action:
    command = command_of(call)
    index, result = answer if answer else (None, None)
    return Action(message, call, index, result.text if result else "",
                  failed(result.text, result.is_error) if result else False, command, tuple(_touches(call, command)))


@cache
def plain_name(name: str) -> str:
    """A tool's name in lower-case letters alone, without the server it comes from."""
    return _PLAIN_NAME.sub("", name.rpartition("__")[2].lower())


def command_of(call: ToolCall) -> str | None:
    """The command line that a call runs in a shell; None where it runs none."""
    if plain_name(call.name) not in _SHELL:
        return None
    given = next((v for k in _COMMAND_KEYS if (v := call.mapping.get(k))), None)
    if isinstance(given, list):
        # A shell's own command line, such as ["bash", "-lc", "make test"].
        return str(given[-1]) if len(given) > 2 and str(given[1]).startswith("-") else " ".join(map(str, given))
    return given if isinstance(given, str) else None


def _folder(call: ToolCall) -> str:
    """The folder that a call says its command runs in; empty for the session's."""
    return next((v for k in ("workdir", "cwd", "working_directory") if isinstance(v := call.mapping.get(k), str)), "")


def _touches(call: ToolCall, command: str | None) -> Iterator[Touch]:
    name = plain_name(call.name)
    if command is not None:
        yield from patched(command)
        yield from (Touch(k, p, new) for k, p, new in shell_touches(command, _folder(call)))
    elif name in _PATCH:
        yield from patched(_patch_text(call))
    elif kind := _kind(name, call.mapping):
        path = next((v for k in _PATH_KEYS if isinstance(v := call.mapping.get(k), str) and v), None)
        if path:
            yield Touch(kind, clean(path), guarded=kind in ("edit", "write"))


def _kind(name: str, arguments: Mapping[str, Any]) -> TouchKind | None:
    if name in _EDITOR:
        return _EDITOR_KINDS.get(str(arguments.get("command")))
    return "read" if name in _READ else "edit" if name in _EDIT else "write" if name in _WRITE else None


def _patch_text(call: ToolCall) -> str:
    given = call.mapping
    return next((v for k in ("input", "patch", "diff") if isinstance(v := given.get(k), str)), call.arguments)


def patched(text: str) -> Iterator[Touch]:
    """The files of a patch in the `*** Update File:` form."""
    current = ""
    for found in _PATCHED.finditer(text) if "*** " in text else ():
        verb, path, moved = found.groups()
        if moved:
            yield Touch("rename", current, clean(moved))
            continue
        current = clean(path)
        yield Touch("delete" if verb == "Delete" else "write" if verb == "Add" else "edit", current)


def clean(path: str) -> str:
    """A path with `/` between components and without a leading `./`."""
    return path.strip().replace("\\", "/").removeprefix("./")
