"""Files × policies: one file's work, and that of many on the cores of this machine or of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from evals.kept.reading import read_counted
from evals.kept.store import Kept
from evals.runs.engine import Engine, cores, each
from evals.runs.part import Part, Task, Work, ended_while_reading, refused
from evals.runs.recover import Recovery
from evals.runs.trying import Trying
from evals.trial import Attempt, FileResult, Settings, run_session
from replay.collector import paused
from replay.errors import ReadError
from replay.find import Found
from replay.policy.policy import Policy
from replay.tokens import TokenCounter, tokenizer

T = TypeVar("T")
PARALLEL_FROM_BYTES = 40_000_000
"""Below this much input starting worker processes costs more than it saves."""


def parts(tasks: Sequence[Task], work: Work, engine: Engine, trying: Path | None = None) -> Iterator[tuple[int, Part]]:
    """Number and part of each task, as they are done, whatever becomes of the workers.

    `trying`: a folder for the marks of what workers are at; None: one that is gone afterwards.
    """
    if engine.is_local:
        yield from ((task.number, work(task)) for task in tasks)
        return
    with TemporaryDirectory(prefix="rewindow-") as scratch:
        marks = Trying(trying or Path(scratch))
        watched = replace(work, trying=marks)
        yield from Recovery(watched, engine, marks, Task.leave_out, ended_while_reading).results(tasks)


def each_file(work: Callable[[Found], T], files: Sequence[Found], jobs: int | None = None) -> Iterator[T]:
    """What the work gives for each file, in their order. `jobs` None: all cores when the input is worth it."""
    return each(work, files, Engine(jobs=jobs or default_jobs(files)), ordered=True)


def default_jobs(files: Sequence[Found]) -> int:
    """One for small inputs, else the number of cores."""
    size = sum(f.path.stat().st_size for f in files if f.path.is_file())
    return 1 if size < PARALLEL_FROM_BYTES or len(files) < 2 else cores()


def run_file(found: Found, policies: Sequence[Policy], settings: Settings,
             attempt: Attempt | None = None, kept: Kept | None = None) -> FileResult:
    """Every session of a file under every policy; `kept`: where sessions are kept that were read before."""
    # What is made lives until the file is done: a search for garbage meanwhile would find next to none.
    with paused():
        return _run_file(found, policies, settings, attempt, kept)


def _run_file(found: Found, policies: Sequence[Policy], settings: Settings, attempt: Attempt | None,
              kept: Kept | None) -> FileResult:
    words = tokenizer(settings.tokenizer)
    try:
        transcripts = read_counted(found, settings.reader, words, kept)
    except ReadError as error:
        return refused(error, found)
    counter: Any = TokenCounter(words)
    rows = tuple(run_session(t, i, policies, settings, counter, attempt) for i, t in enumerate(transcripts))
    words.forget()
    return FileResult(str(found.path), sessions=rows)
