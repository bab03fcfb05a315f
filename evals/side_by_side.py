"""Two views of one step beside each other: message by message, every difference labelled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from replay.diff import Label, listed_differences
from replay.log import Log
from replay.view import Shown, shown_messages
from replay.window import Window


@dataclass(frozen=True, slots=True)
class Row:
    """One message in two views beside each other."""

    label: Label | None
    """What is different, seen from the first view; None: the same in both."""
    ours: Shown | None
    theirs: Shown | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """Two views of one step, aligned, with their labelled differences."""

    rows: tuple[Row, ...]
    counts: Mapping[Label, int]
    """Messages by label."""
    indices: Mapping[Label, tuple[int, ...]]
    """Log indices by label, in order; messages that are in no log are only counted."""
    same: int
    """Messages that both views show alike."""


def aligned(log: Log, ours: Window, theirs: Window) -> SideBySide:
    """Two windows over one log, message beside message; what stands elsewhere in the other one is `moved`."""
    listed = list(shown_messages(log, ours)), list(shown_messages(log, theirs))
    mine, others = map(_keyed, listed)
    labels = _labels(*listed, mine, others)
    a, b = list(mine), list(others)
    rows: list[Row] = []
    same = 0
    for operation, i, j, k, m in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if operation == "equal":
            rows += [Row(labels.get(x), mine[x], others[x]) for x in a[i:j]]
            same += sum(x not in labels for x in a[i:j])
            continue
        for key in a[i:j]:
            rows.append(Row(labels.setdefault(key, "moved"), mine[key], None))
        for key in b[k:m]:
            rows.append(Row(labels.setdefault(key, "moved"), None, others[key]))
    return SideBySide(rows=tuple(rows), counts=Counter(labels.values()), indices=_indices(labels), same=same)


_Key = tuple[int | str, ...]


def _keyed(messages: Iterable[Shown]) -> dict[_Key, Shown]:
    """Messages by what makes them the same one in both views: log index, or form, role and turn among such."""
    found: dict[_Key, Shown] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for shown in messages:
        if shown.index is not None:
            found[shown.index,] = shown
            continue
        kind = (shown.form, shown.message.role)
        seen[kind] += 1
        found[*kind, seen[kind]] = shown
    return found


def _labels(ours: Sequence[Shown], theirs: Sequence[Shown], mine: Mapping[_Key, Shown],
            others: Mapping[_Key, Shown]) -> dict[_Key, Label]:
    """Labels by key. Inserted messages are told by identity: a difference holds the very message of its view."""
    keys: dict[int, _Key] = {id(s.message): k for side in (others, mine) for k, s in side.items() if s.index is None}
    found: dict[_Key, Label] = {}
    for difference in listed_differences(ours, theirs):
        side = difference.ours or difference.theirs
        if difference.index is not None:
            found[difference.index,] = difference.label
        elif side is not None:
            found[keys[id(side.message)]] = difference.label
    return found


def _indices(labels: Mapping[_Key, Label]) -> dict[Label, tuple[int, ...]]:
    found: dict[Label, list[int]] = {}
    for key, label in labels.items():
        if isinstance(key[0], int):
            found.setdefault(label, []).append(key[0])
    return {label: tuple(sorted(places)) for label, places in found.items()}


def ranges(indices: Sequence[int]) -> str:
    """Sorted numbers in words: `0–411, 413`."""
    parts: list[list[int]] = []
    for index in indices:
        if parts and index == parts[-1][1] + 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ", ".join(f"{a:,}" if a == b else f"{a:,}–{b:,}" for a, b in parts)
