"""Would a harness that demands a read before an edit have refused the edit (B4)?

Such harnesses keep a table of the files that were read and clear it when they compact. An edit is unread when the file
was not read, edited or written since the lane's last full compaction, and no earlier read of it is still shown intact.
This says nothing about whether the edit's text is visible; products and versions differ in the rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from evals.actions import Action
from evals.artifacts import Artifact, absolute
from evals.metrics.base import Measurement, Trial, missing
from evals.phrase_kinds import FilePath
from evals.phrases import Prepared, searchable
from evals.presence import intact
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
    known: tuple[Action, ...]
    """Earlier calls that read, edited or wrote the file."""


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
        unread = len(list(unread_edits(trial, found, edits)))
        return [Measurement(name=NAMES[0], value=unread), Measurement(name=NAMES[1], value=unread / len(edits))]


def guarded_edits(found: Watchlist, cwd: str | None) -> Sequence[GuardedEdit]:
    """Edits through editing tools, and writes over files that the session knew; the policy does not matter."""
    if "guarded" not in found.notes:
        found.notes["guarded"] = list(_guarded_edits(found, cwd))
    edits: Sequence[GuardedEdit] = found.notes["guarded"]
    return edits


def _guarded_edits(found: Watchlist, cwd: str | None) -> Iterator[GuardedEdit]:
    for action in found.actions:
        for touch in (t for t in action.touches if t.guarded):
            path = absolute(touch.path, cwd)
            known = _known(found.files.get(path), action)
            if touch.kind == "edit" or known:
                yield GuardedEdit(found.position(action.message), action.message, path, known)


def _known(artifact: Artifact | None, before: Action) -> tuple[Action, ...]:
    known = artifact.known if artifact else []
    return tuple(a for a in known if a.result is not None and a.message < before.message)


def unread_edits(trial: Trial, found: Watchlist, edits: Sequence[GuardedEdit]) -> Iterator[GuardedEdit]:
    """The edits that the harness's table would not hold in this lane."""
    views = trial.lane.views
    compacted = [n for n, v in enumerate(views) if any(e.kind in ("full", "clear") for e in v.events)]
    for edit in edits:
        since = max((n for n in compacted if n <= edit.position), default=0)
        registered = any(found.position(a.message) >= since for a in edit.known)
        if not registered and not _shown(views[edit.position], edit, trial.session.log):
            yield edit


def _shown(view: View, edit: GuardedEdit, log: Log) -> bool:
    """Whether a read is still visible, or the harness put the file back."""
    if any(a.result is not None and intact(view, a.result, log) for a in edit.known):
        return True
    given = [i.message for i in view.window.items if isinstance(i, Inserted) and i.kind == "injected"]
    return any(FilePath((edit.path,)).grade(Prepared(searchable(m)), False) for m in given)
