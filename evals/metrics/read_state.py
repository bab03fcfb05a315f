"""Would a harness that demands a read before an edit have refused the edit (B4)?

Such harnesses keep a table of the files that were read and clear it when they compact. An edit is unread when the file
was not read, edited or written since the lane's last full compaction, and no earlier read of it is still shown intact.
This says nothing about whether the edit's text is visible; products and versions differ in the rule.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from evals.actions import Action
from evals.artifacts import Artifact, absolute
from evals.metrics.base import Measurement, Trial, missing
from evals.phrase_kinds import FilePath
from evals.phrases import Prepared, searchable
from evals.presence import covered, intact
from evals.watchlist import Watchlist, watchlist
from replay.engine import View
from replay.log import Log
from replay.window import Inserted

NAMES = ("unread_edits", "unread_edit_share")


@dataclass(frozen=True, slots=True)
class GuardedEdit:
    """An edit through an editing tool that a harness might refuse."""

    position: int
    """Position of the view that the edit answered."""
    message: int
    """Log index."""
    path: str
    results: Sequence[int]
    """Log indices of all results that gave the agent the file's content, in order."""
    latest: int | None
    """Position of the view that the latest of those calls before the edit answered; None: there was none."""


@dataclass(frozen=True)
class ReadState:
    """Edits of files that the lane no longer counts as read."""

    name: str = "read-state"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """Number of unread edits and their share of all edits through editing tools."""
        found = watchlist(trial.session)
        edits = guarded_edits(found, trial.session.transcript.cwd)
        if not edits:
            return [missing(n, "no edit through an editing tool of a file that was there before") for n in NAMES]
        unread = len(list(unread_edits(trial, edits)))
        return [Measurement(name=NAMES[0], value=unread), Measurement(name=NAMES[1], value=unread / len(edits))]


def guarded_edits(found: Watchlist, cwd: str | None) -> Sequence[GuardedEdit]:
    """Edits through editing tools, and writes over files that the session knew; the policy does not matter."""
    if "guarded" not in found.notes:
        found.notes["guarded"] = list(_guarded_edits(found, cwd))
    edits: Sequence[GuardedEdit] = found.notes["guarded"]
    return edits


def _guarded_edits(found: Watchlist, cwd: str | None) -> Iterator[GuardedEdit]:
    results: dict[str, list[int]] = {}
    for action in found.actions:
        for touch in (t for t in action.touches if t.guarded):
            path = absolute(touch.path, cwd)
            artifact = found.files.get(path)
            if path not in results:
                results[path] = sorted(a.result for a in artifact.known if a.result is not None) if artifact else []
            latest = _latest(artifact, action, found) if artifact else None
            if touch.kind == "edit" or latest is not None:
                yield GuardedEdit(found.position(action.message), action.message, path, results[path], latest)


def _latest(artifact: Artifact, edit: Action, found: Watchlist) -> int | None:
    """The position of the last call before an edit that read or changed its file."""
    count = bisect_left(artifact.known, edit.message, key=lambda a: a.message)
    return found.position(artifact.known[count - 1].message) if count else None


def unread_edits(trial: Trial, edits: Sequence[GuardedEdit]) -> Iterator[GuardedEdit]:
    """The edits that the harness's table would not hold in this lane."""
    views = trial.lane.views
    compacted = [n for n, v in enumerate(views) if any(e.kind in ("full", "clear") for e in v.events)]
    for edit in edits:
        before = bisect_right(compacted, edit.position)
        since = compacted[before - 1] if before else 0
        registered = edit.latest is not None and edit.latest >= since
        if not registered and not _shown(views[edit.position], edit, trial.session.log):
            yield edit


def _shown(view: View, edit: GuardedEdit, log: Log) -> bool:
    """Whether a read is still visible, or the harness put the file back."""
    for start, stop in covered(view.window.items):
        inside = edit.results[bisect_left(edit.results, start):bisect_left(edit.results, min(stop, edit.message))]
        if any(intact(view, index, log) for index in reversed(inside)):
            return True
    given = [i.message for i in view.window.items if isinstance(i, Inserted) and i.kind == "injected"]
    return any(FilePath((edit.path,)).grade(Prepared(searchable(m)), False) for m in given)
