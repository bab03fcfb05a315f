"""A part of a run: what came of one file, ready to be stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evals.kept.store import Kept
from evals.runs.limits import memory_limit, memory_words
from evals.runs.recover import ENDED
from evals.runs.rows import light
from evals.runs.tables import COLUMNS, encode
from evals.runs.trying import Place, Trying
from evals.trial import FileResult, Settings, TrialRow
from replay.errors import NotASession, ReadError
from replay.find import Found
from replay.policy.policy import Policy


@dataclass(frozen=True, slots=True)
class Task:
    """A file to replay under every policy."""

    number: int
    """Its place among the files of the run."""
    found: Found
    without: frozenset[Place] = frozenset()
    """Trials that ended the process that tried them."""

    def leave_out(self, place: Place) -> Task:
        """The task without one more trial."""
        return replace(self, without=self.without | {place})


@dataclass(frozen=True, slots=True)
class Part:
    """What came of a file."""

    result: FileResult
    """Without step and event rows."""
    tables: Mapping[str, bytes] = field(default_factory=dict)
    """Those rows, as Parquet, by the name of the table; empty where none are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Makes the part of a task; it travels to workers."""

    policies: Sequence[Policy]
    settings: Settings
    trying: Trying | None = None
    memory_mb: int | None = None
    kept: Kept | None = None
    """Where what was done before is kept; None: everything is done anew."""

    def __call__(self, task: Task) -> Part:
        """Read the file, replay its sessions, and keep what is to be stored."""
        if self.trying is None:
            return self._part(task)
        with self.trying.item(task.number):
            return self._part(task)

    def _part(self, task: Task) -> Part:
        from evals.kept.trials import kept_or_made

        # Where trials are left out the rest is no whole outcome.
        kept = None if task.without else self.kept
        with memory_limit(self.memory_mb):
            return Part(*kept_or_made(task.found, self.policies, self.settings, kept, lambda: self._outcome(task)))

    def _outcome(self, task: Task) -> tuple[FileResult, Mapping[str, bytes]]:
        from evals.execute import run_file

        try:
            result = run_file(task.found, self.policies, self.settings, _Watched(self, task), self.kept)
        except MemoryError:
            result = FileResult(str(task.found.path), unreadable=memory_words(self.memory_mb))
        tables = {n: encode(result.sessions, n) for n in COLUMNS} if self.settings.rows and result.sessions else {}
        return light(result), tables


@dataclass(frozen=True, slots=True)
class _Watched:
    """A trial whose place is written down while it is tried."""

    work: Work
    task: Task

    def __call__(self, position: int, policy: Policy, make: Callable[[], TrialRow]) -> TrialRow:
        place = Place(position, policy.name)
        if place in self.task.without:
            return TrialRow(policy=policy.name, ok=False, error=ENDED)
        if self.work.trying is not None:
            self.work.trying.at(self.task.number, place)
        row = make()
        if row.error is not None and row.error.startswith("MemoryError"):
            return replace(row, error=memory_words(self.work.memory_mb))
        return row


def ended_while_reading(task: Task) -> Part:
    """The part of a file whose reading ends the process."""
    return Part(FileResult(str(task.found.path), unreadable=ENDED.replace("replayed", "read")))


def refused(error: ReadError, found: Found) -> FileResult:
    """The result of a file that cannot be read; one that was only found in a folder may be no session at all."""
    is_beside_the_point = isinstance(error, NotASession) and not found.named
    return FileResult(str(found.path), unreadable=None if is_beside_the_point else error.reason)
