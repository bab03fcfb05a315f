"""Of several results that show the same file only the newest stays: SWE-agent's closed windows, duplicate reads."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import NamedTuple
from weakref import WeakKeyDictionary

from replay.blocks import Block, ToolCall, ToolResult
from replay.log import Log
from replay.policy.base import Moment, Refusal, Remarked
from replay.transcript import Message
from replay.window import Mark, Span

_PATH_KEYS = ("file_path", "path", "filePath", "filename")
_PARTIAL = ("offset", "limit", "view_range")
_HEADER, _HEADER_END = "[File: ", " lines total)]"
"""How SWE-agent heads a window: the path and the number of lines in brackets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutdatedFile:
    """Shows a result that holds a file without the file's lines.

    A result holds a file where it has SWE-agent's header and numbered lines, or is of one of the `read_tools`.
    `{lines}` in `text` is the number of lines that are missing.
    """

    text: str = "Outdated window with {lines} lines omitted...\n"
    read_tools: tuple[str, ...] = ()

    def words(self) -> str:
        """The form in words."""
        return f"as “{self.text.strip()}”"

    def render(self, message: Message) -> Message:
        """The message without the files' lines; the same object where it holds none."""
        blocks = tuple(map(self._block, message.blocks))
        return message if all(a is b for a, b in zip(blocks, message.blocks, strict=True)) else replace(
            message, blocks=blocks)

    def _block(self, block: Block) -> Block:
        if not isinstance(block, ToolResult) or block.is_error or not block.text:
            return block
        if block.name in self.read_tools:
            return self._shown(block, self.text.replace("{lines}", str(len(block.text.splitlines()))))
        if header(block.text) is None:
            return block
        lines = block.text.splitlines(keepends=True)
        numbered = [i for i, line in enumerate(lines) if line.partition(":")[0].isdigit() and ":" in line]
        if not numbered:
            return block
        omitted = self.text.replace("{lines}", str(len(numbered)))
        return self._shown(block, "".join([*lines[:numbered[0]], omitted, *lines[numbered[-1] + 1:]]))

    @staticmethod
    def _shown(block: ToolResult, text: str) -> ToolResult:
        return block if text == block.text else replace(block, text=text, images=())


def header(text: str) -> str | None:
    """The path in the first header of a window; None where there is none."""
    if _HEADER not in text:
        return None
    line = next((line for line in text.splitlines() if line.startswith(_HEADER) and line.endswith(_HEADER_END)), None)
    return None if line is None else line[len(_HEADER):].rpartition(" (")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewestPerFile:
    """Changes every result that shows a file which a later result in the window shows again.

    Imitates SWE-agent's closed_window. With `whole`, reads of a part of a file neither count nor are changed.
    """

    whole: bool = False
    rendering: OutdatedFile = field(default_factory=OutdatedFile, metadata={"part": "rendering"})

    def words(self) -> str:
        """The rule in words."""
        reads = "whole reads" if self.whole else "views"
        return f"of several {reads} of a file all but the newest are shown {self.rendering.words()}"

    def marks(self, moment: Moment) -> Remarked | Refusal:
        """The window's marks with those for what became outdated."""
        mine = sorted((m for m in moment.window.marks if m.rendering == self.rendering), key=_start)
        fresh = sorted(self._outdated(moment, mine))
        if not fresh:
            return Refusal("nothing_to_elide")
        counts = moment.log.changed(self.rendering)
        for index in fresh:
            _join(mine, Mark(self.rendering, index, index + 1), counts)
        others = tuple(m for m in moment.window.marks if m.rendering != self.rendering)
        return Remarked((*others, *mine), tuple(fresh))

    def _outdated(self, moment: Moment, mine: list[Mark]) -> Iterator[int]:
        """Visible results shown again since the rule last acted: all before the first marked one are seen to."""
        known = _views(self, moment.log)
        for position in range(bisect_left(known.again, moment.window.end) - 1, -1, -1):
            earlier = known.earlier[position]
            place = bisect_right(mine, earlier, key=_start) - 1
            if place >= 0 and earlier < mine[place].stop:
                return
            if any(isinstance(i, Span) and i.start <= earlier < i.stop for i in moment.window.items):
                yield earlier


_start = attrgetter("start")


def _join(marks: list[Mark], new: Mark, counts: list[int]) -> None:
    """Put a mark among sorted ones; where nothing between two would be changed they become one."""
    place = bisect_left(marks, new.start, key=_start)
    if place and counts[marks[place - 1].stop] == counts[new.start]:
        new = Mark(new.rendering, marks[place - 1].start, new.stop)
        place -= 1
        del marks[place]
    if place < len(marks) and counts[new.stop] == counts[marks[place].start]:
        new = Mark(new.rendering, new.start, marks[place].stop)
        del marks[place]
    insort(marks, new, key=_start)


class _Views(NamedTuple):
    """Log indices with which an earlier message's files are all shown again, in order, and that message's index."""

    again: list[int]
    earlier: list[int]


_KNOWN: WeakKeyDictionary[Log, dict[NewestPerFile, _Views]] = WeakKeyDictionary()


def _views(rule: NewestPerFile, log: Log) -> _Views:
    """The repeated views of a log, found once."""
    known = _KNOWN.setdefault(log, {})
    if rule not in known:
        known[rule] = found = _Views([], [])
        newest: dict[str, int] = {}
        live: dict[int, set[str]] = {}
        for index, path in _shown(rule, log):
            before = newest.get(path, index)
            if before != index:
                live[before].discard(path)
                if not live[before]:
                    found.again.append(index)
                    found.earlier.append(before)
            newest[path] = index
            live.setdefault(index, set()).add(path)
    return known[rule]


def _shown(rule: NewestPerFile, log: Log) -> Iterator[tuple[int, str]]:
    """Log index and path of each result that shows a file; in the place of a path that does not count a unique one."""
    calls: dict[str, ToolCall] = {}
    shown = log.rendered(rule.rendering)
    for message in log.messages:
        calls.update((call.id, call) for call in message.calls)
        if shown[message.index] is message:
            continue
        for result in message.results:
            path = header(result.text) or _read(rule, calls.get(result.call_id))
            yield message.index, path if path and not result.is_error else f"\0{result.call_id}"


def _read(rule: NewestPerFile, call: ToolCall | None) -> str | None:
    """The file that a call reads; None for other calls."""
    if call is None or call.name not in rule.rendering.read_tools:
        return None
    if rule.whole and any(call.mapping.get(a) for a in _PARTIAL):
        return None
    return next((p for p in map(call.mapping.get, _PATH_KEYS) if isinstance(p, str) and p), None)


FILE_RULES: Mapping[str, type] = {"newest-per-file": NewestPerFile}
FILE_RENDERINGS: Mapping[str, type] = {"outdated-file": OutdatedFile}
"""Names for `use = …` in the tables of these kinds."""
