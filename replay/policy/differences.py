"""What tells a replayed view from the request that was really sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import takewhile, zip_longest

from replay.blocks import Text
from replay.log import Log
from replay.policy.policy import Explained
from replay.readers.wire_sent import Part
from replay.view import Shown, shown_messages
from replay.window import Inserted, Item, Window

_SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference of a request: its kind in kebab-case, and in words."""

    request: int
    what: str
    """`missing`, `added`, `order`, `text`, `role`, `summary`, `inserted`, `not-fired`, `fired`, `summary-input`."""
    words: str
    reason: str | None = None
    """Why it is no error of the preset; None: it is one."""


def view_difference(request: int, sent: Sequence[Part], window: Window, log: Log) -> Difference | None:
    """The first difference of a view, message by message; None where both are equal."""
    ours = parts_of(window, log)
    theirs = [p for p in sent if p.kind != "layer"]
    same = sum(1 for _ in takewhile(lambda pair: equal(*pair), zip(theirs, ours, strict=False)))
    if same == len(theirs) == len(ours):
        return None
    what, words = _kind(theirs, ours, same)
    return Difference(request, what, f"place {same + 1}: {words}")


def parts_of(window: Window, log: Log) -> list[Part]:
    """A view in the terms of a capture, without the system messages that a policy puts in front."""
    shown = list(shown_messages(log, Window(_without_layers(window), window.marks, window.end)))
    return [part for s in shown for part in _parts(s, log)]


def _without_layers(window: Window) -> tuple[Item, ...]:
    items = window.items
    layers = sum(1 for _ in takewhile(lambda i: isinstance(i, Inserted) and i.kind == "injected"
                                      and i.message.role == "system", items))
    return items[layers:]


def _parts(shown: Shown, log: Log) -> list[Part]:
    message = shown.message
    if shown.index is not None:
        kind = "log" if shown.form == "verbatim" or message == log.messages[shown.index] else "changed"
        return [Part(role=message.role, text=message.text, kind=kind, index=shown.index)]  # type: ignore[arg-type]
    kind = "summary" if shown.form == "summary" else "inserted"
    texts = [b.text for b in message.blocks if isinstance(b, Text)] or [message.text]
    return [Part(role=message.role, text=text, kind=kind) for text in texts]  # type: ignore[arg-type]


def equal(theirs: Part, ours: Part) -> bool:
    """Whether both stand for the same message in the same form.

    Inserted texts are compared without white space at the ends of lines: where a harness reads a file from disk ours
    is what its read tool showed of the file, and such tools leave that out.
    """
    if theirs.index != ours.index or theirs.role != ours.role:
        return False
    if theirs.kind == ours.kind == "log" or theirs.text == ours.text:
        return True
    return theirs.kind == ours.kind == "inserted" and _bare(theirs.text) == _bare(ours.text)


def _bare(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()]


def _kind(theirs: Sequence[Part], ours: Sequence[Part], place: int) -> tuple[str, str]:
    pair = next((a, b) for i, (a, b) in enumerate(zip_longest(theirs, ours)) if i == place)
    sent, shown = pair
    if sent is None or shown is None:
        rest = (theirs if shown is None else ours)[place:]
        return ("missing" if shown is None else "added", f"{describe(rest[0])} and {len(rest) - 1} more")
    if sent.index is not None and sent.index == shown.index:
        return ("role" if sent.role != shown.role else "text"), f"sent {describe(sent)}, ours {describe(shown)}"
    their_indices, our_indices = {p.index for p in theirs}, {p.index for p in ours}
    words = f"sent {describe(sent)}, ours {describe(shown)}"
    if sent.index is not None and sent.index not in our_indices:
        return "missing", words
    if shown.index is not None and shown.index not in their_indices:
        return "added", words
    if sent.index is None and shown.index is None:
        return ("summary" if "summary" in (sent.kind, shown.kind) else "inserted"), words
    return "order", words


def describe(part: Part) -> str:
    """A part in a few words."""
    text = " ".join(part.text.split())
    clipped = text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"
    name = f"message {part.index}" if part.index is not None else part.kind
    return f"{name} ({part.role}{', changed' if part.kind == 'changed' else ''}) “{clipped}”"


def explained(difference: Difference, scenario: str, reasons: Sequence[Explained]) -> Difference:
    """The difference with the stated reason that covers it, if there is one."""
    for entry in reasons:
        low, high = entry.requests if len(entry.requests) == 2 else (0, difference.request)
        named = fnmatch(difference.what, entry.what) and fnmatch(scenario, entry.scenario)
        if named and low <= difference.request <= high:
            return Difference(difference.request, difference.what, difference.words, entry.reason)
    return difference
