"""Sessions opened and replayed besides the page: a page asks, shows what it has, and asks again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from evals import browse

_WORKERS = 2
_JOBS: dict[tuple[Any, ...], Future[Any]] = {}
_LOCK = Lock()
_POOL = ThreadPoolExecutor(_WORKERS, thread_name_prefix="rewindow")


def done(key: tuple[Any, ...], work: Callable[[], Any], seconds: float) -> bool:
    """Whether a piece of work is done, at the latest after so many seconds; it is begun with the first question.

    Raises what the work raised, once; the next question begins it anew.
    """
    with _LOCK:
        job = _JOBS.get(key) or _JOBS.setdefault(key, _POOL.submit(work))
    try:
        job.result(timeout=seconds)
    except TimeoutError:
        if not job.done():
            return False
        raise
    finally:
        if job.done():
            with _LOCK:
                _JOBS.pop(key, None)
    return True


def opened(run: Path, session: str, policies: Sequence[str], followed: bool, seconds: float) -> bool:
    """Whether a session is open with the lanes of these policies, replayed; `followed`: needs are followed through too.

    Raises what reading the session raises.
    """
    work = partial(_open, run, session, tuple(policies), followed)
    return _is_open(run, session, policies, followed) or done((run, session, *policies, followed), work, seconds)


def _is_open(run: Path, session: str, policies: Sequence[str], followed: bool) -> bool:
    found = browse.kept_session(run, session)
    return found is not None and all(found.has(p, followed) for p in policies)


def _open(run: Path, session: str, policies: tuple[str, ...], followed: bool) -> None:
    found = browse.open_session(run, session)
    for policy in policies:
        found.lane(policy)
    for policy in policies if followed else ():
        found.followed(policy)
