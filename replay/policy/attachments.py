"""A replacement with the files that were touched last, as the log knows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple
from weakref import WeakKeyDictionary

from replay.blocks import Text, ToolCall
from replay.log import Log
from replay.policy.base import Moment, check
from replay.policy.exchanges import SummaryExchange
from replay.transcript import Message
from replay.window import Inserted, Item

CHARS_PER_TOKEN = 4
_PATH_KEYS = ("file_path", "path", "filePath", "filename")
_PARTIAL = ("offset", "limit")
"""Arguments of a read that does not show the whole file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredFiles(SummaryExchange):
    """A summary with its answer, then the files that the window's calls touched last, newest first, then the tail.

    Imitates Qwen Code 0.24, which reads the files from disk. Here a file is what the log last showed of the whole of
    it, a read or a write; one that was changed since, or never shown whole, is left out. A file that is too large,
    or does not fit the rest of the budget, is named only.
    """

    files: int = 5
    file_tokens: int = 5_000
    budget_tokens: int = 50_000
    file_frame: str = "## {path}\n\n{content}"
    reference_frame: str = "{paths}"
    read_tools: tuple[str, ...] = ("read_file", "read", "Read")
    write_tools: tuple[str, ...] = ("write_file", "write", "Write")
    change_tools: tuple[str, ...] = ("edit", "replace", "Edit", "edit_file")

    def __post_init__(self) -> None:
        """Refuse negative numbers."""
        check(self, "files", self.files >= 0, "0 or more")
        check(self, "budget_tokens", min(self.file_tokens, self.budget_tokens) >= 0, "0 or more tokens")

    def words(self) -> str:
        """What stands around the summary, in words."""
        return f"it stands with an answer in the model's name and the {self.files} files touched last"

    def place(self, summary: Inserted | None, kept: tuple[Item, ...], tail: tuple[Item, ...],
              moment: Moment) -> tuple[Item, ...]:
        """The exchange with the files in front of the tail."""
        return SummaryExchange.place(self, summary, kept, (*self._attached(moment), *tail), moment)

    def _attached(self, moment: Moment) -> Iterator[Inserted]:
        """Names of the large files, then the others."""
        known = _touches(self, moment.log)
        named: list[str] = []
        shown: list[tuple[str, str]] = []
        room = self.budget_tokens * CHARS_PER_TOKEN
        for path in self._paths(moment):
            content = _content(known.get(path, []), moment.window.end)
            if content is None:
                continue
            if len(content) > min(self.file_tokens * CHARS_PER_TOKEN, room):
                named.append(path)
                continue
            room -= len(content)
            shown.append((path, content))
        if named:
            yield _written(self.reference_frame.format(paths="\n".join(f"- {p}" for p in named)))
        for path, content in shown:
            yield _written(self.file_frame.format(path=path, content=content))

    def _paths(self, moment: Moment) -> list[str]:
        """Paths of the calls that the window shows, newest first, each once."""
        found: dict[str, None] = {}
        for index in reversed(list(moment.window.indices())):
            for call in reversed(moment.log.messages[index].calls):
                path = self.path_of(call)
                if path:
                    found.setdefault(path)
                if len(found) >= self.files:
                    return list(found)[:self.files]
        return list(found)

    def path_of(self, call: ToolCall) -> str | None:
        """The file that a call touches; None for other calls."""
        if call.name not in (*self.read_tools, *self.write_tools, *self.change_tools):
            return None
        return next((p for p in map(call.mapping.get, _PATH_KEYS) if isinstance(p, str) and p), None)


class _Touch(NamedTuple):
    """What a file held from a place of the log on; None where the log does not say."""

    place: int
    content: str | None


_KNOWN: WeakKeyDictionary[Log, dict[RestoredFiles, dict[str, list[_Touch]]]] = WeakKeyDictionary()


def _touches(rule: RestoredFiles, log: Log) -> dict[str, list[_Touch]]:
    """Path to what the log shows of the file, in order."""
    known = _KNOWN.setdefault(log, {})
    if rule not in known:
        found: dict[str, list[_Touch]] = {}
        made: dict[str, ToolCall] = {}
        for message in log.messages:
            made.update((call.id, call) for call in message.calls)
            for result in message.results:
                call = made.get(result.call_id)
                path = rule.path_of(call) if call is not None else None
                if call is None or path is None or result.is_error:
                    continue
                if call.name in rule.read_tools:
                    if not any(call.mapping.get(a) for a in _PARTIAL):
                        found.setdefault(path, []).append(_Touch(message.index, result.text))
                    continue
                content = call.mapping.get("content") if call.name in rule.write_tools else None
                found.setdefault(path, []).append(_Touch(message.index, content if isinstance(content, str) else None))
        known[rule] = found
    return known[rule]


def _content(touches: list[_Touch], end: int) -> str | None:
    return next((t.content for t in reversed(touches) if t.place < end), None)


def _written(text: str) -> Inserted:
    message = Message(index=-1, role="user", blocks=(Text(text=text),), origin="injected")
    return Inserted(message=message, kind="injected", label="file")


ATTACHMENTS: Mapping[str, type] = {"restored-files": RestoredFiles}
"""Names for `use = …` in a replacement table."""
