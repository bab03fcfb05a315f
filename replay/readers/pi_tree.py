"""The entries of a Pi session as a tree: which path is active, and which branches were left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from replay.readers.common import not_an_object
from replay.readers.odd_types import OddTypes
from replay.readers.source import Record, Source
from replay.transcript import ReadNote

_CONTEXT = frozenset({"message", "custom_message", "compaction", "branch_summary", "context_edit"})
_MARKS = frozenset({"model_change", "thinking_level_change", "custom"})
_ASIDE = frozenset({"label", "session_info", "usage"})
"""Entries that say something about the session but never move its end."""
_KNOWN = _CONTEXT | _MARKS | _ASIDE


class Entry(NamedTuple):
    """One line of a session behind its header."""

    id: str
    parent: str | None
    type: str
    native: dict[str, Any]
    line: int
    position: int
    """Index among all parsed lines, the header included, from 0."""


@dataclass
class Tree:
    """One session: its header and its entries in the order of the file."""

    header: dict[str, Any] | None = None
    entries: dict[str, Entry] = field(default_factory=dict)
    notes: list[ReadNote] = field(default_factory=list)
    odd: OddTypes = field(default_factory=lambda: OddTypes(what="entry type"))
    unknown: list[dict[str, Any]] = field(default_factory=list)
    _size: int = 0

    def add(self, record: Record, native: dict[str, Any]) -> None:
        """Take in a line. Without an id or a parent it follows the line before it, as in version 1."""
        position, self._size = self._size, self._size + 1
        name = native.get("id")
        entry_id = name if isinstance(name, str) and name else f"entry-{position}"
        if entry_id in self.entries:
            self._repeated(record, native, entry_id)
            return
        kind = str(native.get("type"))
        if kind not in _KNOWN:
            self.odd.add(kind, record.line, record.byte)
            self.unknown.append(native)
        parent = self._parent(record, native)
        self.entries[entry_id] = Entry(entry_id, parent, kind, native, record.line, position)

    def begin(self, header: dict[str, Any]) -> None:
        """Take in the header."""
        self.header = header
        self._size += 1

    def _repeated(self, record: Record, native: dict[str, Any], entry_id: str) -> None:
        same = self.entries[entry_id].native == native
        text = "the same entry was read before; counted once" if same else (
            f"the id {entry_id!r} stands for another entry already; this one was kept out")
        self.notes.append(ReadNote(code="duplicate", text=text, line=record.line, byte=record.byte))

    def _parent(self, record: Record, native: dict[str, Any]) -> str | None:
        before = next(reversed(self.entries), None)
        if "parentId" not in native:
            return before
        parent = native["parentId"]
        if parent is None and native.get("type") == "label":
            parent = native.get("targetId")
        if parent is None or (isinstance(parent, str) and parent in self.entries):
            return parent
        if before is not None:
            self.notes.append(ReadNote(code="missing-parent", line=record.line, byte=record.byte, text=(
                f"the parent {parent!r} is not in the file; taken after the entry before it")))
        return before

    def at(self, position: Any) -> Entry | None:
        """The entry at an index among all parsed lines."""
        if not isinstance(position, int):
            return None
        return next((e for e in self.entries.values() if e.position == position), None)

    def leaf(self) -> Entry | None:
        """The end of the active path: the last entry that is more than a remark."""
        for entry in reversed(self.entries.values()):
            is_rootless_mark = entry.parent is None and entry.type not in _CONTEXT and len(self.entries) > 1
            if entry.type not in _ASIDE and not is_rootless_mark:
                return entry
        return None

    def path(self) -> list[Entry]:
        """The entries from the root to the leaf."""
        leaf = self.leaf()
        return list(reversed(list(self._upwards(leaf, set())))) if leaf else []

    def branches(self, path: Sequence[Entry]) -> Iterator[list[Entry]]:
        """The entries off the path, each in exactly one branch, from where it leaves what came before it."""
        taken = {entry.id for entry in path}
        off = [entry for entry in self.entries.values() if entry.id not in taken]
        inner = {entry.parent for entry in off}
        for entry in off:
            if entry.id not in inner:
                yield list(reversed(list(self._upwards(entry, taken))))

    def _upwards(self, entry: Entry | None, taken: set[str]) -> Iterator[Entry]:
        while entry is not None and entry.id not in taken:
            taken.add(entry.id)
            yield entry
            entry = self.entries.get(entry.parent) if entry.parent else None


def trees(source: Source) -> list[Tree]:
    """The sessions of a file: one, unless headers of other sessions stand between the lines."""
    found = [Tree()]
    for record in source.records:
        value = record.value
        if not isinstance(value, dict):
            found[-1].notes.append(not_an_object(record.line, record.byte, value))
        elif value.get("type") == "session":
            _header(found, record, value)
        else:
            found[-1].add(record, value)
    return found


def _header(found: list[Tree], record: Record, header: dict[str, Any]) -> None:
    tree = found[-1]
    if tree.header is not None and tree.header.get("id") == header.get("id"):
        tree.notes.append(ReadNote(code="duplicate", text="the header was read before", line=record.line,
                                   byte=record.byte))
    elif tree.header is None and not tree.entries:
        tree.begin(header)
    else:
        found.append(Tree())
        found[-1].begin(header)


def version(tree: Tree) -> int:
    """The format's version: the header's; without one 1 where entries carry no ids, else 3."""
    value = (tree.header or {}).get("version")
    if isinstance(value, int):
        return value
    if tree.header is not None:
        return 1
    return 3 if any("parentId" in e.native for e in tree.entries.values()) else 1


def is_entry(native: Mapping[str, Any]) -> bool:
    """Whether an object looks like a message entry, for files that begin in the middle."""
    message = native.get("message")
    return native.get("type") == "message" and isinstance(message, dict) and isinstance(message.get("role"), str)
