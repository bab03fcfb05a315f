"""Files × policies on the cores of this machine, in the order of the files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from evals.trial import SessionRow, Settings, run_session
from replay.collector import paused
from replay.errors import NotASession, ReadError
from replay.find import Found, read_found
from replay.policy.policy import Policy
from replay.tokens import TokenCounter, tokenizer

T = TypeVar("T")
PARALLEL_FROM_BYTES = 40_000_000
"""Below this much input starting worker processes costs more than it saves."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """What came of one file: its sessions, or the reason why it could not be read."""

    path: str
    sessions: tuple[SessionRow, ...] = ()
    unreadable: str | None = None


def run_files(files: Sequence[Found], policies: Sequence[Policy], settings: Settings,
              jobs: int | None = None) -> Iterator[FileResult]:
    """Results in the order of the files. `jobs` None: all cores when the input is worth it."""
    return each_file(partial(run_file, policies=policies, settings=settings), files, jobs)


def each_file(work: Callable[[Found], T], files: Sequence[Found], jobs: int | None = None) -> Iterator[T]:
    """What the work gives for each file, in their order. `jobs` None: all cores when the input is worth it."""
    jobs = jobs or default_jobs(files)
    if jobs == 1:
        return map(work, files)
    from joblib import Parallel, delayed

    # loky: fresh processes, so a native crash in one cannot take the run with it unnoticed.
    results: Iterator[T] = Parallel(n_jobs=jobs, return_as="generator")(delayed(work)(f) for f in files)
    return results


def default_jobs(files: Sequence[Found]) -> int:
    """One for small inputs, else the number of cores."""
    size = sum(f.path.stat().st_size for f in files if f.path.is_file())
    return 1 if size < PARALLEL_FROM_BYTES or len(files) < 2 else os.cpu_count() or 1


def run_file(found: Found, policies: Sequence[Policy], settings: Settings) -> FileResult:
    """Every session of a file under every policy."""
    # What is made lives until the file is done: a search for garbage meanwhile would find next to none.
    with paused():
        return _run_file(found, policies, settings)


def _run_file(found: Found, policies: Sequence[Policy], settings: Settings) -> FileResult:
    try:
        transcripts = read_found(found, settings.reader)
    except ReadError as error:
        is_beside_the_point = isinstance(error, NotASession) and not found.named
        return FileResult(str(found.path), unreadable=None if is_beside_the_point else error.reason)
    words = tokenizer(settings.tokenizer)
    counter: Any = TokenCounter(words)
    rows = tuple(run_session(t, i, policies, settings, counter) for i, t in enumerate(transcripts))
    words.forget()
    return FileResult(str(found.path), sessions=rows)
