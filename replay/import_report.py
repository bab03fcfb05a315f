"""What reading did to a file, in words a user can act on: repaired, left out, unknown, incomplete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Fate = Literal["repaired", "left-out", "unknown", "incomplete", "told"]
FATES: Mapping[Fate, str] = {
    "repaired": "read after a repair", "left-out": "could not be read and was left out",
    "unknown": "of a kind that no reader knows", "incomplete": "refers to something that is not in the file",
    "told": "worth knowing",
}
"""What can become of a record, with its words."""
FAULTS: frozenset[Fate] = frozenset({"repaired", "left-out", "unknown"})
"""What `--strict` counts as a fault: damage and the unknown, not what a file was written without."""

_REPAIRED = frozenset({"bad-utf8", "nul-bytes", "bad-escape", "lone-surrogate", "loose-json",
                       "glued-values", "too-deep"})
_LEFT_OUT = frozenset({"cut-tail", "cut-archive", "malformed", "subagent-unreadable"})
_INCOMPLETE = frozenset({
    "orphan-result", "result-without-call", "call-without-result", "interrupted-call", "no-header", "no-history",
    "history-elsewhere", "continued-elsewhere", "subagent-elsewhere", "tail-not-in-log", "compaction-unfinished"})
_ADVICE: Mapping[str, str] = {
    "bad-json": "look at that line: one record of the session is missing from the log",
    "cut-tail": "its writer was stopped or is still writing; read the file again once it is complete",
    "cut-archive": "pack or copy the file again if the original is still there",
    "bad-utf8": "the file went through a program with another encoding; those characters are lost",
    "bad-escape": "the file went through a program that edits JSON as text, such as a redactor",
    "nul-bytes": "the machine stopped while the file was written",
    "glued-values": "two writers wrote at the same time, or a line break was lost; nothing is missing",
    "unknown-type": "a newer version may have written it; the rest of the session is read as usual",
    "no-header": "a later chunk of a log: read the first chunk too, or go by the file's name",
    "duplicate": "written more than once; counted once",
}
_SHOWN_LINES = 5


def fate_of(code: str) -> Fate:
    """What a note's code says became of the record; `told` for codes of own readers."""
    if code in _REPAIRED:
        return "repaired"
    if code in _LEFT_OUT or code.startswith(("bad-", "not-an-", "unreadable-", "unread-")):
        return "left-out"
    if code.startswith("unknown-"):
        return "unknown"
    return "incomplete" if code in _INCOMPLETE or code.startswith("missing-") else "told"


@dataclass(frozen=True, slots=True)
class Group:
    """Notes of one kind in one session."""

    code: str
    text: str
    """Words of the first of them."""
    lines: tuple[int, ...] = ()
    count: int = 0

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.lines[:_SHOWN_LINES])) + (", …" if len(self.lines) > _SHOWN_LINES else "")
        where = f" (line{'s' if len(self.lines) > 1 else ''} {shown})" if self.lines else ""
        times = f" x {self.count}" if self.count > 1 else ""
        advice = f" – {_ADVICE[self.code]}" if self.code in _ADVICE else ""
        return f"{self.code}{times}{where}: {self.text}{advice}"


def grouped(notes: Iterable[Mapping[str, Any]]) -> Iterator[tuple[Fate, list[Group]]]:
    """A session's notes by what became of the records, notes of one kind together; unknown kinds each for itself."""
    kinds: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for note in notes:
        kinds.setdefault((note["code"], note["text"] if fate_of(note["code"]) == "unknown" else ""), []).append(note)
    groups = [Group(found[0]["code"], found[0]["text"], tuple(n["line"] for n in found if n["line"]), len(found))
              for found in kinds.values()]
    for fate in FATES:
        if ours := [group for group in groups if fate_of(group.code) == fate]:
            yield fate, ours


@dataclass
class Tally:
    """Counts over all files of an import."""

    files: int = 0
    sessions: int = 0
    notes: dict[Fate, int] = field(default_factory=lambda: dict.fromkeys(FATES, 0))

    def add(self, notes: Iterable[Mapping[str, Any]]) -> None:
        """Count a session with its notes."""
        self.sessions += 1
        for note in notes:
            self.notes[fate_of(note["code"])] += 1

    @property
    def is_faulty(self) -> bool:
        """Whether anything was damaged or unknown."""
        return any(self.notes[fate] for fate in FAULTS)
