"""Files that a shell command names as read, written, renamed or deleted, for the commands that agents use to do so."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Literal

ShellTouch = tuple[Literal["read", "edit", "write", "rename", "delete"], str, str | None]

_SEPARATOR = re.compile(r"\s*(?:&&|\|\||;|\n|\|)\s*")
_WRITTEN = re.compile(r"(?<![0-9&<>=-])>{1,2}\s*([\w./~+@-]*[\w~-])")
_HEREDOC = re.compile(r"<<-?\s*['\"]?(\w+)['\"]?.*?^\s*\1\s*$", re.DOTALL | re.MULTILINE)
_READERS = frozenset(("cat", "head", "tail", "nl", "less", "more", "bat", "sed"))
_PROGRAMS = _READERS | {"mv", "rm", "cp", "tee", "git", "cd"}
_FILE_LIKE = re.compile(r"[\w~./@+-]*\w\.\w{1,10}|[\w~./@+-]*/[\w.@+-]+|Makefile|Dockerfile|README|LICENSE")
_HANDLED = re.compile(r"\b(?:cat|head|tail|nl|less|more|bat|sed|mv|rm|cp|tee)\b|>")
_LONGEST = 20_000


def shell_touches(command: str, folder: str = "") -> Iterator[ShellTouch]:
    """The files of a command line that runs in a folder; what is not understood is left out."""
    if len(command) > _LONGEST or not _HANDLED.search(command):
        return
    for part in _SEPARATOR.split(_HEREDOC.sub("", command)):
        words = _words(_WRITTEN.sub("", part))
        if words[:1] == ["cd"] and len(words) == 2:
            folder = inside(folder, words[1])
        written = (f for f in _WRITTEN.findall(part) if _FILE_LIKE.fullmatch(f) and not f.startswith("/dev/"))
        found = [*(("write", f, None) for f in written), *_program(words)]
        yield from ((kind, inside(folder, path), new and inside(folder, new)) for kind, path, new in found)


def inside(folder: str, path: str) -> str:
    """A path as seen from where the folder's own path starts."""
    path = path.removeprefix("./")
    return path if not folder or path.startswith(("/", "~")) else f"{folder.rstrip('/')}/{path}"


def _words(part: str) -> list[str]:
    """The words of a simple command, where it is one of those that are understood."""
    first = part.split(None, 1)[:1]
    if not first or first[0] not in _PROGRAMS:
        return []
    if "'" not in part and '"' not in part and "\\" not in part:
        return part.split()
    try:
        return shlex.split(part)
    except ValueError:
        return []


def _program(words: list[str]) -> Iterator[ShellTouch]:
    if words[:1] == ["git"] and words[1:2] in (["mv"], ["rm"]):
        words = words[1:]
    if not words:
        return
    name, operands = words[0], [w for w in words[1:] if w and not w.startswith("-")]
    if name == "sed" and not any(w.startswith(("-e", "-f")) for w in words[1:]):
        # The first operand of sed is its script.
        operands = operands[1:]
    files = [f for f in operands if _FILE_LIKE.fullmatch(f)]
    if name == "mv" and len(files) == len(operands) == 2:
        old, new = files
        yield "rename", old, new
    elif name == "rm":
        yield from (("delete", f, None) for f in files)
    elif name == "cp" and len(files) == len(operands) == 2:
        yield "write", files[1], None
    elif name == "tee":
        yield from (("write", f, None) for f in files)
    elif name in _READERS:
        in_place = name == "sed" and any(w.startswith(("-i", "--in-place")) for w in words[1:])
        yield from (("edit" if in_place else "read", f, None) for f in files)
