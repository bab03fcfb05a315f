"""Actions that a model wrote as text: a fenced block, a command tag, or a function call in XML.

Benchmark agents without a tool interface take the action out of the answer by a pattern. What was taken out
becomes a tool call here, what stands around it stays text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from replay.blocks import Block, Text, ToolCall
from replay.readers.common import json_text

_FUNCTION = re.compile(r"<function=([^>\n]+)>\n?(.*?)</function>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\n]+)>\n?(.*?)\n?</parameter>", re.DOTALL)
_FENCE_OPEN = re.compile(r"```[^\s`]*[ \t]*\n[ \t\r\n]*\Z")
_FENCE_CLOSE = re.compile(r"[ \t\r\n]*```[ \t]*\n?")
_COMMANDS = frozenset({
    "open", "goto", "scroll_up", "scroll_down", "create", "edit", "insert", "append", "search_dir", "search_file",
    "find_file", "filemap", "submit", "exit_forfeit", "str_replace_editor", "undo_edit"})
"""Commands of the agent's own shell interface; every other first word is the shell's."""


class _Cut(NamedTuple):
    """Where the action stands in the text, with everything that belongs to its frame."""

    start: int
    stop: int
    name: str
    arguments: str


def action_blocks(text: str, action: str, call_id: str) -> list[Block]:
    """The blocks of an answer whose action was recorded: text before, the call, text after.

    Where the action cannot be found in the text, the whole text is followed by the call.
    """
    cut = _function(text) or _command(text, action)
    before, after = text[:cut.start], text[cut.stop:]
    call = ToolCall(id=call_id, name=cut.name, arguments=cut.arguments, is_object=False)
    return [*([Text(text=before)] if before.strip() else []), call, *([Text(text=after)] if after.strip() else [])]


def _function(text: str) -> _Cut | None:
    found = _FUNCTION.search(text) if "<function=" in text else None
    if found is None:
        return None
    parameters = dict(_PARAMETER.findall(found[2]))
    return _Cut(found.start(), found.end(), found[1].strip(), json_text(parameters))


def _command(text: str, action: str) -> _Cut:
    word = action.split(maxsplit=1)[0] if action.strip() else ""
    name = word if word in _COMMANDS else "bash"
    arguments = json_text({"command": action})
    start = text.rfind(action)
    if start < 0:
        action = action.strip()
        start = text.rfind(action)
    if start < 0:
        return _Cut(len(text), len(text), name, arguments)
    start, stop = _framed(text, start, start + len(action))
    return _Cut(start, stop, name, arguments)


def _framed(text: str, start: int, stop: int) -> tuple[int, int]:
    """The span widened over the fence or the command tag around it, where both ends have one."""
    opening, closing = _FENCE_OPEN.search(text, max(start - 80, 0), start), _FENCE_CLOSE.match(text, stop)
    if opening is not None and closing is not None:
        return opening.start(), closing.end()
    head, tail = text[:start].rstrip(), text[stop:].lstrip()
    if head.endswith("<command>") and tail.startswith("</command>"):
        return len(head) - len("<command>"), len(text) - len(tail) + len("</command>")
    return start, stop
