"""The labelled difference of two views of one step: missing, added, changed, truncated, moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Literal

from replay.canonical import digest
from replay.log import Log
from replay.transcript import Message
from replay.view import Shown, plain_text, shown_messages
from replay.window import Window

Label = Literal["missing", "added", "changed", "truncated", "moved"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference of view A against view B, seen from A."""

    label: Label
    """`missing`: only B has it; `added`: only A has it; `changed`, `truncated` (A holds a part of B's text),
    `moved` (same message, other order)."""
    index: int | None
    """Log index, where the message is one of the log."""
    ours: Shown | None
    theirs: Shown | None

    def to_json(self) -> dict[str, Any]:
        """Plain data with both texts."""
        side = self.ours or self.theirs
        return {"label": self.label, "message": self.index, "role": side.message.role if side else None,
                "text": plain_text(self.ours.message) if self.ours else None,
                "against": plain_text(self.theirs.message) if self.theirs else None}


def differences(log: Log, ours: Window, theirs: Window) -> list[Difference]:
    """Every difference of two windows over one log, in view order."""
    return listed_differences(list(shown_messages(log, ours)), list(shown_messages(log, theirs)))


def listed_differences(mine: Sequence[Shown], others: Sequence[Shown]) -> list[Difference]:
    """The same for two views whose messages are listed already."""
    return _of_log(mine, others) + _of_inserted(mine, others)


def _of_log(mine: Sequence[Shown], others: Sequence[Shown]) -> list[Difference]:
    a = {s.index: s for s in mine if s.index is not None}
    b = {s.index: s for s in others if s.index is not None}
    moved = _moved([i for i in a if i in b], [i for i in b if i in a])
    found: list[Difference] = []
    for index in sorted({*a, *b}):
        x, y = a.get(index), b.get(index)
        if x is None or y is None:
            found.append(Difference("missing" if x is None else "added", index, x, y))
        elif x.message is not y.message and digest(x.message) != digest(y.message):
            found.append(Difference(_change(x.message, y.message), index, x, y))
        elif index in moved:
            found.append(Difference("moved", index, x, y))
    return found


def _moved(ours: Sequence[int], theirs: Sequence[int]) -> set[int]:
    """Indices that are not in the longest run that both orders share."""
    if list(ours) == list(theirs):
        return set()
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    stay = {ours[i] for block in matcher.get_matching_blocks() for i in range(block.a, block.a + block.size)}
    return set(ours) - stay


def _change(ours: Message, theirs: Message) -> Label:
    a, b = plain_text(ours), plain_text(theirs)
    return "truncated" if len(a) < len(b) and a.strip() and _is_part(a, b) else "changed"


def _is_part(a: str, b: str) -> bool:
    """Whether A is the beginning of B, or B's head and tail with a mark between."""
    head = next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), len(a))
    tail = next((n for n, (x, y) in enumerate(zip(reversed(a), reversed(b), strict=False)) if x != y), len(a))
    return head + tail >= 0.6 * len(a) and head > 0


def _of_inserted(mine: Sequence[Shown], others: Sequence[Shown]) -> list[Difference]:
    """Messages that are in no log, paired in order by role and form."""
    rest = [s for s in others if s.index is None]
    found: list[Difference] = []
    for shown in (s for s in mine if s.index is None):
        twin = next((s for s in rest if s.form == shown.form and s.message.role == shown.message.role), None)
        if twin is None:
            found.append(Difference("added", None, shown, None))
            continue
        rest.remove(twin)
        if digest(twin.message) != digest(shown.message):
            found.append(Difference(_change(shown.message, twin.message), None, shown, twin))
    return found + [Difference("missing", None, None, s) for s in rest]
