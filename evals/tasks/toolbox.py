"""The agent's file tools. A script that runs inside the enclosure: `toolbox.py NAME`, arguments as JSON on stdin.

Exit code 1 with one line where the call cannot be done.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

MOST_HITS = 200
MOST_BYTES = 4_000_000
SKIPPED = {".git", "__pycache__"}


class Wrong(Exception):
    """The call cannot be done."""


def _place(path: Any) -> Path:
    if not isinstance(path, str) or not path:
        raise Wrong("path: expected the path of a file")
    found = Path(path)
    if not found.resolve().is_relative_to(Path.cwd().resolve()):
        raise Wrong(f"{path}: outside the workspace")
    return found


def _text(path: Path) -> str:
    if path.is_file() and path.stat().st_size > MOST_BYTES:
        raise Wrong(f"{path}: larger than {MOST_BYTES:,} bytes; look at parts of it with bash")
    return path.read_bytes().decode("utf-8", "replace")


def _number(value: Any, name: str, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise Wrong(f"{name}: expected a whole number from {least}")
    return value


def read(path: str = "", offset: int = 1, limit: int = 1_000_000) -> str:
    """Lines of a file, from `offset` on (1 is the first)."""
    start = _number(offset, "offset", 1) - 1
    lines = _text(_place(path)).splitlines(keepends=True)
    return "".join(lines[start:start + _number(limit, "limit", 1)])


def write(path: str = "", content: str = "") -> str:
    """Write a whole file; folders on the way are made."""
    place = _place(path)
    if not isinstance(content, str):
        raise Wrong("content: expected text")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(content, encoding="utf-8")
    return f"wrote {path}: {len(content.splitlines())} lines"


def edit(path: str = "", old: str = "", new: str = "", every: bool = False) -> str:
    """Replace text that stands in the file exactly once, or (`every`) at each of its places."""
    place = _place(path)
    if not isinstance(old, str) or not isinstance(new, str) or not old:
        raise Wrong("old: expected the text to replace")
    text = place.read_text(encoding="utf-8")
    count = text.count(old)
    if not count:
        raise Wrong(f"{path}: the old text does not occur")
    if count > 1 and not every:
        raise Wrong(f"{path}: the old text occurs {count} times; name more of its surroundings")
    place.write_text(text.replace(old, new), encoding="utf-8")
    return f"edited {path}: {count} place{'s' if count > 1 else ''}"


def grep(pattern: str = "", path: str = ".", glob: str = "*") -> str:
    """Lines that match a regular expression, as `file:line: text`."""
    try:
        wanted = re.compile(pattern)
    except (re.error, TypeError) as error:
        raise Wrong(f"pattern: {error}") from error
    found = []
    for file in _files(_place(path), glob):
        for number, line in enumerate(_text(file).splitlines(), 1):
            if wanted.search(line):
                found.append(f"{file}:{number}: {line[:400]}")
                if len(found) >= MOST_HITS:
                    return "\n".join([*found, f"(stopped after {MOST_HITS} lines)"])
    return "\n".join(found) or "no line matches"


def _files(place: Path, glob: str) -> Iterator[Path]:
    if place.is_file():
        yield place
        return
    for folder, names, files in os.walk(place):
        names[:] = sorted(n for n in names if n not in SKIPPED)
        for name in sorted(files):
            file = Path(folder, name)
            if fnmatch.fnmatch(name, str(glob)) and file.is_file() and file.stat().st_size <= MOST_BYTES:
                yield file


def listing(path: str = ".") -> str:
    """Entries of a folder with their sizes; a folder ends in a slash."""
    entries = sorted(_place(path).iterdir())
    return "\n".join(f"{e.name}/" if e.is_dir() else f"{e.name}  {e.lstat().st_size:,} bytes" for e in entries) \
        or "empty"


TOOLS: dict[str, Callable[..., str]] = {"read": read, "write": write, "edit": edit, "grep": grep, "list": listing}


def main() -> int:
    """Carry out the named tool."""
    code, told = _carried_out(sys.argv[1], json.load(sys.stdin))
    sys.stdout.buffer.write(told.encode("utf-8", "replace"))
    return code


def _carried_out(name: str, given: dict[str, Any]) -> tuple[int, str]:
    try:
        return 0, TOOLS[name](**given)
    except (Wrong, OSError, UnicodeError) as error:
        return 1, _words(error)
    except TypeError as error:
        return 1, f"arguments: {str(error).partition(' ')[2]}"


def _words(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename}: {(error.strerror or str(error)).lower()}"
    return str(error)


if __name__ == "__main__":
    sys.exit(main())
