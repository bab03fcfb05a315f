"""What happened to a session's files: calls with results, reads, changes, texts that an edit can be typed from."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from evals.spans_calls import Deed, deed_of
from evals.spans_index import UnitIndex
from evals.spans_patch import Replacement
from evals.spans_paths import compatible, path_parts
from evals.spans_shell import Reading, may_change_files
from replay.blocks import ToolCall, ToolResult

READINGS_KEPT = 8
"""Newest texts of a file, of results and of edits each, that an edit is compared with."""
CHANGES_FOLLOWED = 64
"""Later edits that a text of a file is followed through."""
_NUMBERED = re.compile(r"^[ \t]*\d+(?:→|\t|\| ?|: ?)", re.MULTILINE)
_NUMBERED_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Act:
    """A call with what it did and where its result stands. Blocks are numbers of the session's `UnitIndex`."""

    number: int
    """From 0, in the order of the log."""
    call: int
    """Block of the call."""
    deed: Deed
    result: int | None
    failed: bool
    """Its result is an error: no file was changed."""


@dataclass(frozen=True, slots=True)
class Source:
    """A text of a file in the log, and the edits of that file since."""

    unit: int
    """Block that shows the text."""
    text: str
    """As shown, numbers of lines left out."""
    later: tuple[int, ...]
    """Blocks of the later edits, in order."""
    holds: bool
    """Whether the old text stands in it once all later edits are applied."""


@dataclass(frozen=True, slots=True)
class EditAttempt:
    """One part of a recorded edit that replaces text."""

    act: Act
    part: Replacement
    sources: tuple[Source, ...]
    """Texts of the file from before, newest first, that may hold the old text."""


@dataclass(slots=True)
class _Live:
    unit: int
    text: str
    now: str
    later: list[int] = field(default_factory=list)


class Files:
    """The history of a session's files, told from its calls alone."""

    def __init__(self, index: UnitIndex) -> None:
        """Look at every call once."""
        self.index = index
        self.acts = list(_acts(index))
        self.by_result = {a.result: a for a in self.acts if a.result is not None}
        self.by_call = {a.call: a for a in self.acts}
        self._changes: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
        self._all_changes: list[int] = []
        for act in self.acts:
            self._note_changes(act)

    def _note_changes(self, act: Act) -> None:
        if act.failed:
            return
        paths = act.deed.changes
        if act.deed.command is not None and may_change_files(act.deed.command):
            paths = (*paths, *act.deed.paths)
        elif not paths:
            return
        self._all_changes.append(act.call)
        for parts in dict.fromkeys(map(path_parts, paths)):
            # A change of a file is a change of every folder above it.
            for depth in range(1, len(parts) + 1):
                self._changes.setdefault(parts[depth - 1], []).append((act.call, parts[:depth]))

    def changed_since(self, paths: tuple[str, ...], since: int, before: int) -> bool:
        """Whether a file or folder was changed by a call in blocks `(since, before)`; with no path, whether any was."""
        if not paths:
            place = bisect_right(self._all_changes, since)
            return place < len(self._all_changes) and self._all_changes[place] < before
        return any(self._changed(path_parts(path), since, before) for path in paths)

    def _changed(self, parts: tuple[str, ...], since: int, before: int) -> bool:
        known = self._changes.get(parts[-1], []) if parts else []
        place = bisect_right(known, (since, ("\U0010ffff",)))
        for unit, changed in known[place:place + CHANGES_FOLLOWED]:
            if unit >= before:
                break
            if compatible(parts, changed):
                return True
        return False

    @cached_property
    def edits(self) -> list[EditAttempt]:
        """Every replacement of a text that is not empty, in order, with the texts that it can be typed from."""
        return list(_Desk(self).attempts())

    @cached_property
    def reads(self) -> list[tuple[Act, Reading]]:
        """Every successful read of a file with a result, in order."""
        return [(a, r) for a in self.acts if a.result is not None and not a.failed for r in a.deed.readings[:1]]


def _acts(index: UnitIndex) -> Iterator[Act]:
    """Calls joined with their results; an id that is used again belongs to the newest call."""
    results: dict[int, int] = {}
    waiting: dict[str, int] = {}
    for number, unit in enumerate(index.units):
        if isinstance(unit.block, ToolCall):
            waiting[unit.block.id] = number
        elif isinstance(unit.block, ToolResult) and unit.block.call_id in waiting:
            results[waiting.pop(unit.block.call_id)] = number
    calls = [(n, u.block) for n, u in enumerate(index.units) if isinstance(u.block, ToolCall)]
    for number, (call, made) in enumerate(calls):
        found = results.get(call)
        answer = index.units[found].block if found is not None else None
        yield Act(number, call, deed_of(made), found, isinstance(answer, ToolResult) and answer.is_error)


class _Desk:
    """Follows the texts of every file through the edits of a session."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._shown: dict[str, deque[_Live]] = {}
        self._typed: dict[str, deque[_Live]] = {}
        self._names: dict[str, list[tuple[tuple[str, ...], str]]] = {}

    def attempts(self) -> Iterator[EditAttempt]:
        for act in self._files.acts:
            for part in act.deed.edits:
                if part.old.strip():
                    yield EditAttempt(act, part, tuple(self._sources(part)))
            if not act.failed:
                self._take(act)

    def _take(self, act: Act) -> None:
        """What a successful call shows and changes. Edits of one call apply one after the other."""
        for part in act.deed.edits:
            self._apply(act, part)
        for path, body in act.deed.writes:
            name = self._name(path)
            self._shown.pop(name, None)
            self._typed[name] = deque([_live(act.call, body)], READINGS_KEPT)
        if act.result is not None and act.deed.readings:
            text = _plain(self._files.index.units[act.result].text)
            for reading in act.deed.readings:
                kept = self._shown.setdefault(self._name(reading.path), deque(maxlen=READINGS_KEPT))
                kept.append(_Live(act.result, text, text))

    def _apply(self, act: Act, part: Replacement) -> None:
        name = self._name(part.path)
        change = Replacement(part.path, normal(part.old), normal(part.new), part.every)
        for kept in (self._shown.get(name), self._typed.get(name)):
            for live in kept or ():
                if len(live.later) < CHANGES_FOLLOWED:
                    live.now = change.applied(live.now)
                    live.later.append(act.call)
        self._typed.setdefault(name, deque(maxlen=READINGS_KEPT)).append(_live(act.call, part.new))

    def _sources(self, part: Replacement) -> Iterator[Source]:
        name, old = self._name(part.path), normal(part.old)
        kept = [*self._shown.get(name, ()), *self._typed.get(name, ())]
        for live in sorted(kept, key=lambda s: -s.unit):
            holds = old in live.now
            if (holds or live.later) and len(live.later) < CHANGES_FOLLOWED:
                yield Source(live.unit, live.text, tuple(live.later), holds)

    def _name(self, path: str) -> str:
        """One name for all spellings of a path: the first spelling that agrees with it."""
        parts = path_parts(path)
        known = self._names.setdefault(parts[-1] if parts else "", [])
        found = next((name for other, name in known if compatible(parts, other)), None)
        if found is None:
            known.append((parts, path))
        return found or path


def _live(unit: int, text: str) -> _Live:
    text = normal(text)
    return _Live(unit, text, text)


def normal(text: str) -> str:
    """A text without carriage returns and without spaces at the ends of its lines."""
    if not any(end in text for end in (" \n", "\t\n", "\r")) and text[-1:] not in (" ", "\t"):
        return text
    return "\n".join([line.rstrip(" \t\r") for line in text.split("\n")])


def _plain(text: str) -> str:
    """A result without the numbers that a tool puts in front of lines."""
    text = normal(text)
    lines = text.count("\n") + 1
    numbered = len(_NUMBERED.findall(text))
    return _NUMBERED.sub("", text) if numbered >= _NUMBERED_SHARE * lines else text
