"""Work beside the page: it asks, shows what it has, and asks again; no answer keeps a visitor waiting."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from evals import browse

_WORKERS = 2
RESULTS_KEPT = 32
"""Answers that stay in memory; the one asked for longest ago goes first."""
_JOBS: OrderedDict[tuple[Any, ...], Future[Any]] = OrderedDict()
_LOCK = Lock()
_POOL = ThreadPoolExecutor(_WORKERS, thread_name_prefix="rewindow")


def result(key: tuple[Any, ...], work: Callable[[], Any], seconds: float) -> Any:
    """What the work gives, which is kept under the key; None where it takes longer than so many seconds from now.

    It is begun with the first question. What it raises is raised, and the next question begins it anew.
    """
    with _LOCK:
        job = _JOBS.get(key) or _JOBS.setdefault(key, _POOL.submit(work))
        _JOBS.move_to_end(key)
        while len(_JOBS) > RESULTS_KEPT:
            _JOBS.popitem(last=False)
    try:
        return job.result(timeout=seconds)
    except TimeoutError:
        if job.done():
            raise
        return None
    finally:
        if job.done() and job.exception() is not None:
            _forget(key)


def _forget(key: tuple[Any, ...]) -> None:
    with _LOCK:
        _JOBS.pop(key, None)


def opened(run: Path, session: str, policies: Sequence[str], seconds: float) -> bool:
    """Whether a session is open, with the lanes of these policies replayed and their needs followed through.

    Raises what reading the session raises.
    """
    if _is_open(run, session, policies):
        return True
    key = ("open", run, session, *policies)
    if result(key, partial(_open, run, session, tuple(policies)), seconds) is None:
        return False
    _forget(key)
    return True


def _is_open(run: Path, session: str, policies: Sequence[str]) -> bool:
    found = browse.kept_session(run, session)
    return found is not None and all(found.has(p, followed=True) for p in policies)


def _open(run: Path, session: str, policies: tuple[str, ...]) -> bool:
    found = browse.open_session(run, session)
    for policy in policies:
        found.followed(policy)
    return True
