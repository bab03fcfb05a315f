"""A view as short entries: which log messages it shows, in which form, and what was put between them.

Written `4-9` (log messages as they are), `7*1f2e3d4c` (log message 7 in another form, with its digest), and
`summary#1f2e3d4c` or `injected#1f2e3d4c` (a message that is in no log).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any

from replay.canonical import digest
from replay.diff import Label
from replay.log import Log
from replay.view import plain_text
from replay.window import Inserted, Window, pieces

_DIGEST_LENGTH = 8
_ENTRY = re.compile(r"(\d+)(?:-(\d+))?(?:\*([0-9a-f]+))?|(summary|injected)#([0-9a-f]+)")


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of a view."""

    index: int | None
    """Log index; None for what is in no log."""
    digest: str = ""
    """Of the form it is shown in; empty: as it stands in the log."""
    kind: str = "log"
    """`log`, `summary` or `injected`."""

    @property
    def word(self) -> str:
        """How the entry is written."""
        if self.index is None:
            return f"{self.kind}#{self.digest}"
        return f"{self.index}*{self.digest}" if self.digest else str(self.index)


def entries(log: Log, window: Window, skip: int) -> Iterator[Entry]:
    """The entries of a view behind its first `skip` messages."""
    for item in window.items:
        if isinstance(item, Inserted):
            if skip:
                skip -= 1
                continue
            yield Entry(None, digest(item.message).hex()[:_DIGEST_LENGTH], item.kind)
            continue
        passed = min(skip, item.stop - item.start)
        skip -= passed
        for start, stop, rendering in pieces(window.marks, item.start + passed, item.stop):
            for index in range(start, stop):
                shown = b"" if rendering is None else log.rendered_digest(rendering, index)
                same = rendering is None or shown == log.digests[index]
                yield Entry(index, "" if same else shown.hex()[:_DIGEST_LENGTH])


def written(found: Iterable[Entry]) -> str:
    """Entries as text; neighbours that stand as in the log become one range."""
    words: list[str] = []
    for is_plain, group in groupby(found, lambda e: e.index is not None and not e.digest):
        members = list(group)
        words += ranges([e.index for e in members if e.index is not None]) if is_plain else [e.word for e in members]
    return " ".join(words)


def ranges(indices: Sequence[int]) -> list[str]:
    """Indices as ranges `first-last`, in their order."""
    runs: list[list[int]] = []
    for index in indices:
        if runs and runs[-1][1] + 1 == index:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return [str(a) if a == b else f"{a}-{b}" for a, b in runs]


def parsed(text: str) -> list[Entry]:
    """The entries that `written` wrote."""
    found: list[Entry] = []
    for match in _ENTRY.finditer(text):
        first, last, form, kind, inserted = match.groups()
        if kind:
            found.append(Entry(None, inserted, kind))
        else:
            found += [Entry(i, form or "") for i in range(int(first), int(last or first) + 1)]
    return found


@dataclass(frozen=True, slots=True)
class EntryDifference:
    """One labelled difference of a view against the golden one, seen from the view."""

    label: Label
    index: int | None
    role: str
    ours: str
    """How the view shows it; empty where it does not."""
    golden: str
    text: str
    """Beginning of the message, where the log holds it."""

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"label": self.label, "message": self.index, "role": self.role, "view": self.ours or None,
                "golden": self.golden or None, "text": self.text}

    def __str__(self) -> str:
        place = "–" if self.index is None else str(self.index)
        forms = f"{self.golden or 'nothing'} → {self.ours or 'nothing'}"
        return f"{self.label:>9}  {place} {self.role}: {self.text or forms}" + (f" ({forms})" if self.text else "")


def compared(log: Log, ours: Sequence[Entry], golden: Sequence[Entry]) -> list[EntryDifference]:
    """The labelled differences of two views of one step, those of log messages first."""
    a = {e.index: e for e in ours if e.index is not None}
    b = {e.index: e for e in golden if e.index is not None}
    moved = _moved([i for i in a if i in b], [i for i in b if i in a])
    found = []
    for index in sorted({*a, *b}):
        label = _label(a.get(index), b.get(index), index in moved)
        if label is not None:
            found.append(_difference(log, label, index, a.get(index), b.get(index)))
    return found + _inserted([e for e in ours if e.index is None], [e for e in golden if e.index is None])


def _label(ours: Entry | None, golden: Entry | None, is_moved: bool) -> Label | None:
    if ours is None or golden is None:
        return "missing" if ours is None else "added"
    if ours.digest != golden.digest:
        return "changed"
    return "moved" if is_moved else None


def _difference(log: Log, label: Label, index: int, ours: Entry | None, golden: Entry | None) -> EntryDifference:
    known = index < len(log.messages)
    role = log.messages[index].role if known else "unknown"
    text = _beginning(plain_text(log.messages[index])) if known else ""
    return EntryDifference(label, index, role, _form(ours), _form(golden), text)


def _form(entry: Entry | None) -> str:
    if entry is None:
        return ""
    return f"other form {entry.digest}" if entry.digest else "as recorded"


def _beginning(text: str, length: int = 90) -> str:
    line = " ".join(text[:4 * length].split())
    return line if len(line) <= length else line[:length - 1] + "…"


def _moved(ours: list[int | None], golden: list[int | None]) -> set[int | None]:
    if ours == golden:
        return set()
    matcher = SequenceMatcher(None, ours, golden, autojunk=False)
    stay = {ours[i] for block in matcher.get_matching_blocks() for i in range(block.a, block.a + block.size)}
    return set(ours) - stay


def _inserted(ours: list[Entry], golden: list[Entry]) -> list[EntryDifference]:
    """Messages that are in no log: equal ones pair up, then those of one kind in order."""
    rest, left = list(golden), []
    for entry in ours:
        rest.remove(entry) if entry in rest else left.append(entry)
    found = []
    for entry in left:
        twin = next((e for e in rest if e.kind == entry.kind), None)
        if twin is not None:
            rest.remove(twin)
        found.append(EntryDifference("changed" if twin else "added", None, entry.kind, entry.word,
                                     twin.word if twin else "", ""))
    return found + [EntryDifference("missing", None, e.kind, "", e.word, "") for e in rest]
