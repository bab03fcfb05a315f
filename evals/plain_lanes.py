"""Lanes in which nothing was changed: what was measured on one holds for every other that shows the same.

On a session that is short against the window most policies never act, so most lanes of a comparison are such lanes.
"""

from __future__ import annotations

from hashlib import sha256

from replay.engine import Lane, View
from replay.window import Span


def plain_key(lane: Lane) -> bytes | None:
    """A digest of all that built-in metrics see of a plain lane; None where a policy changed or added something.

    A lane is plain when every view is one run of the log to its end, shown as recorded. A person may have cleared it.
    """
    if lane.head or lane.ended is not None or any(e.kind != "clear" for e in lane.events):
        return None
    told = sha256(repr([(e.step, e.reason) for e in lane.events]).encode())
    for view in lane.views:
        if not _is_run(view):
            return None
        told.update(f"{view.window.items} {view.window.end} {view.figure} {view.counted}".encode())
        told.update(view.print.fingerprint)
    return told.digest()


def _is_run(view: View) -> bool:
    items = view.window.items
    return len(items) == 1 and isinstance(items[0], Span) and not view.window.marks
