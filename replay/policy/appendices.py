"""Appendices: what a harness writes behind a summary from the log itself, without a model."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

from replay.blocks import ToolCall
from replay.log import Log
from replay.window import Span

_PATH_KEYS = ("path", "file_path", "filePath", "filename")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLists:
    """The files that were read and those that were changed, each in a tag of its own, by name.

    Imitates Pi: the lists are cumulative, a changed file is not listed as read. Its own tools are `read`, `write`
    and `edit`; the same tools of other harnesses are known too.
    """

    read_tools: tuple[str, ...] = ("read", "Read", "read_file")
    change_tools: tuple[str, ...] = ("write", "edit", "Write", "Edit", "write_file", "edit_file")
    cumulative: bool = True
    """What earlier summaries cover is listed too."""

    def text(self, log: Log, covers: tuple[Span, ...]) -> str:
        """The lists of what the covered calls touched; empty where they touched nothing."""
        read: set[str] = set()
        changed: set[str] = set()
        for touch in _touches(self, log, covers):
            (changed if touch.is_change else read).add(touch.path)
        lists = (("read-files", sorted(read - changed, key=_utf16)), ("modified-files", sorted(changed, key=_utf16)))
        return "".join(f"\n\n<{tag}>\n{chr(10).join(paths)}\n</{tag}>" for tag, paths in lists if paths)


class _Touch(NamedTuple):
    """A call that read or changed a file."""

    place: int
    path: str
    is_change: bool


_KNOWN: WeakKeyDictionary[Log, dict[FileLists, tuple[list[int], list[_Touch]]]] = WeakKeyDictionary()


def _touches(lists: FileLists, log: Log, covers: tuple[Span, ...]) -> Iterator[_Touch]:
    known = _KNOWN.setdefault(log, {})
    if lists not in known:
        found = [t for m in log.messages for call in m.calls for t in _touch(lists, m.index, call)]
        known[lists] = [t.place for t in found], found
    indices, touches = known[lists]
    for span in covers:
        yield from touches[bisect_left(indices, span.start):bisect_left(indices, span.stop)]


def _touch(lists: FileLists, index: int, call: ToolCall) -> Iterator[_Touch]:
    if call.name not in lists.read_tools and call.name not in lists.change_tools:
        return
    path = next((p for p in map(call.mapping.get, _PATH_KEYS) if isinstance(p, str) and p), None)
    if path is not None:
        yield _Touch(index, path, call.name in lists.change_tools)


def _utf16(path: str) -> bytes:
    """JavaScript sorts by UTF-16 units."""
    return path.encode("utf-16-be", "surrogatepass")


APPENDICES: Mapping[str, type] = {"file-lists": FileLists}
"""Names for `use = …` in an appendix table."""
