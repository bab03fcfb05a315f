"""What a tool call did, told from its arguments: read, edited, wrote, searched or ran, and what it asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from evals.spans import Want, wants_of
from evals.spans_patch import Replacement, has_patch, patch_parts
from evals.spans_shell import Reading, command_reads, command_words, paths_of
from replay.blocks import ToolCall

Verb = Literal["read", "edit", "write", "search", "run", "other"]

OLD_KEYS = ("old_string", "old_str", "oldText", "oldString", "old_text", "search", "old_content", "old")
NEW_KEYS = ("new_string", "new_str", "newText", "newString", "new_text", "replace", "new_content", "new")
BODY_KEYS = ("content", "file_text", "create_content", "contents", "insert_text", "new_source", "text", "body", "code")
PATH_KEYS = ("file_path", "filePath", "path", "filename", "file", "notebook_path", "target_file", "absolute_path",
             "dir_path", "workdir", "cwd", "directory")
COMMAND_KEYS = ("command", "cmd", "script")
_SEARCH_KEYS = ("pattern", "query", "regex", "glob", "queries", "url")
_PROSE_KEYS = frozenset((
    "description", "justification", "explanation", "thought", "reasoning", "prompt", "message", "todos", "plan", "task",
    "tasks", "instruction", "subject", "activeForm", "summary", "title", "questions", "context", "allowedPrompts",
    "chars", "model", "subagent_type", "agent_type", "reasoning_effort", "output_mode", "sandbox_permissions",
    "prefix_rule", "type", "security_risk"))
_KNOB_KEYS = frozenset(("limit", "offset", "timeout", "yield_time_ms", "max_output_tokens", "head_limit", "timeout_ms",
                        "max_results", "view_range", "-A", "-B", "-C", "verbosity", "depth", "scale"))
_NOT_ASKED = _PROSE_KEYS | _KNOB_KEYS | {*BODY_KEYS, *PATH_KEYS}
_EDITOR_VERBS: Mapping[str, Verb] = {"view": "read", "create": "write", "str_replace": "edit", "insert": "edit",
                                     "undo_edit": "other"}
_READ_NAME = re.compile(r"(?i)^(?:read|view|open|cat|notebookread|(?:read|view|open)_?files?|read_many_files)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """One call in the words of this package."""

    tool: str
    verb: Verb
    path: str | None = None
    """The file or folder that it names first."""
    paths: tuple[str, ...] = ()
    """Every file or folder that it names."""
    readings: tuple[Reading, ...] = ()
    edits: tuple[Replacement, ...] = ()
    """Replacements of text, in order; an empty `old` inserts."""
    writes: tuple[tuple[str, str], ...] = ()
    """Files written as a whole: path and content."""
    command: str | None = None
    asked: tuple[Want, ...] = ()
    """What its arguments name, without what it creates, without prose and, but for commands, without its paths."""
    key: str = ""
    """Tool, target and range: two calls with one key acquire the same."""

    @property
    def changes(self) -> tuple[str, ...]:
        """Paths of the files that it edits or writes."""
        return tuple(dict.fromkeys([*(e.path for e in self.edits), *(path for path, _ in self.writes)]))


def deed_of(call: ToolCall) -> Deed:
    """What a call did. Arguments of an unknown shape make a deed of the verb `other`."""
    arguments = call.mapping
    command = _command(arguments)
    patch = next((v for v in [command, *arguments.values()] if isinstance(v, str) and has_patch(v)), None)
    if patch is not None:
        return _patch_deed(call, patch)
    if command is not None and command in _EDITOR_VERBS and _path(arguments):
        return _file_deed(call, arguments, _EDITOR_VERBS[command])
    if command is not None:
        return _command_deed(call, arguments, command)
    return _file_deed(call, arguments, _verb(call.name, arguments))


def text_of(value: Any) -> str:
    """The strings and numbers in data, one a line, keys left out."""
    return "\n".join(_leaves(value))


def _leaves(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            pending.extend(reversed(item.values()))
        elif isinstance(item, list):
            pending.extend(reversed(item))
        elif item is not None and not isinstance(item, bool):
            yield str(item)


def _command(arguments: Mapping[str, Any]) -> str | None:
    """The command line; of a list such as `["bash", "-lc", "…"]` what the shell is given."""
    for key in COMMAND_KEYS:
        value = arguments.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(v, str) for v in value):
            return str(value[-1]) if len(value) == 3 and value[1] in ("-c", "-lc") else " ".join(value)
    return None


def _path(arguments: Mapping[str, Any]) -> str | None:
    return next((arguments[k] for k in PATH_KEYS if isinstance(arguments.get(k), str) and arguments[k]), None)


def _first(arguments: Mapping[str, Any], keys: tuple[str, ...]) -> str | None:
    return next((arguments[k] for k in keys if isinstance(arguments.get(k), str)), None)


def _verb(name: str, arguments: Mapping[str, Any]) -> Verb:
    if _path(arguments) is None:
        return "search" if any(k in arguments for k in _SEARCH_KEYS) else "other"
    if isinstance(arguments.get("edits"), list) or _first(arguments, OLD_KEYS) is not None:
        return "edit"
    if _first(arguments, BODY_KEYS) is not None:
        return "write"
    if any(k in arguments for k in _SEARCH_KEYS):
        return "search"
    return "read" if _READ_NAME.match(name) else "other"


def _file_deed(call: ToolCall, arguments: Mapping[str, Any], verb: Verb) -> Deed:
    path = _path(arguments)
    body = _first(arguments, BODY_KEYS)
    return Deed(
        tool=call.name, verb=verb, path=path, paths=(path,) if path else (),
        readings=(Reading(path, _range(arguments)),) if verb == "read" and path else (),
        edits=tuple(_edits(path or "", arguments)) if verb == "edit" else (),
        writes=((path, body),) if verb == "write" and path and body is not None else (),
        asked=tuple(_wants(_asked(arguments, verb))), key=_key(call.name, arguments))


def _edits(path: str, arguments: Mapping[str, Any]) -> Iterator[Replacement]:
    listed = arguments.get("edits")
    for part in listed if isinstance(listed, list) else [arguments]:
        if isinstance(part, Mapping):
            own = _path(part) or path
            every = part.get("replace_all") is True or part.get("replaceAll") is True
            new = _first(part, NEW_KEYS) or _first(part, BODY_KEYS) or ""
            yield Replacement(own, _first(part, OLD_KEYS) or "", new, every)


def _range(arguments: Mapping[str, Any]) -> tuple[int, int] | None:
    """Lines `[first, stop)` of a read; None: the whole file."""
    span = arguments.get("view_range")
    if isinstance(span, list) and len(span) == 2 and all(isinstance(n, int) for n in span):
        return span[0], span[1] + 1 if span[1] >= 0 else 1 << 30
    offset, limit = (arguments.get(k) for k in ("offset", "limit"))
    if not isinstance(offset, int) and not isinstance(limit, int):
        return None
    first = offset if isinstance(offset, int) else 0
    return first, first + limit if isinstance(limit, int) else 1 << 30


def _asked(arguments: Mapping[str, Any], verb: Verb) -> Iterator[str]:
    replaced = (*OLD_KEYS, *NEW_KEYS, "edits") if verb == "edit" else ()
    for key, value in arguments.items():
        is_verb = key in COMMAND_KEYS and isinstance(value, str) and value in _EDITOR_VERBS
        if key not in _NOT_ASKED and key not in replaced and not is_verb:
            yield from _leaves(value)


def _key(name: str, arguments: Mapping[str, Any]) -> str:
    kept = {k: v for k, v in arguments.items() if k not in _PROSE_KEYS and k not in ("timeout", "yield_time_ms")}
    return f"{name} {sorted(kept.items(), key=lambda kv: kv[0])}"


def _command_deed(call: ToolCall, arguments: Mapping[str, Any], command: str) -> Deed:
    rest = {k: v for k, v in arguments.items() if k not in COMMAND_KEYS}
    asked = tuple(_wants([command_words(command)]))
    named = tuple(paths_of(asked))
    return Deed(tool=call.name, verb="run", path=named[0] if named else _path(arguments), paths=named,
                readings=tuple(command_reads(command)), command=command,
                asked=(*asked, *_wants(_asked(rest, "run"))), key=f"{call.name} {' '.join(command.split())}")


def _wants(texts: Iterable[str]) -> Iterator[Want]:
    return (want for text in texts for want in wants_of(text))


def _patch_deed(call: ToolCall, patch: str) -> Deed:
    edits, writes = patch_parts(patch)
    paths = tuple(dict.fromkeys([*(e.path for e in edits), *(path for path, _ in writes)]))
    return Deed(tool=call.name, verb="edit" if edits else "write", path=paths[0] if paths else None, paths=paths,
                edits=tuple(edits), writes=tuple(writes), key=f"{call.name} {patch}")
