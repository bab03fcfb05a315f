"""Limits of time and memory for a piece of work."""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from replay.errors import RewindowError


class TimeLimit(RewindowError):
    """A trial took longer than its limit."""


@contextmanager
def time_limit(seconds: float | None, what: str) -> Iterator[None]:
    """Ends the block with TimeLimit after so many seconds; None: no limit.

    In the main thread an alarm also wakes what sleeps or waits; in a cluster's worker thread the error is put between
    two instructions, so a call into native code ends first.
    """
    if seconds is None:
        yield
    elif threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer"):
        yield from _by_alarm(seconds, what)
    else:
        yield from _by_thread(seconds, what)


def _by_alarm(seconds: float, what: str) -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeLimit(_words(seconds, what))

    before = signal.signal(signal.SIGALRM, late)
    # Again and again: what catches every error would otherwise go on for ever.
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _by_thread(seconds: float, what: str) -> Iterator[None]:
    thread, late = threading.get_ident(), threading.Event()

    def interrupt() -> None:
        late.set()
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(TimeLimit))

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    except TimeLimit:
        # What is put into another thread carries no words.
        raise TimeLimit(_words(seconds, what)) from None
    finally:
        timer.cancel()


def _words(seconds: float, what: str) -> str:
    return f"{what} took longer than its limit of {seconds:g} s (--time-limit)"


@contextmanager
def memory_limit(megabytes: int | None) -> Iterator[None]:
    """Memory that the process may use for its data within the block, in MB; beyond it Python raises MemoryError.

    None: no limit. Where the system knows no such limit (it is Linux's), the block runs without one.
    """
    if megabytes is None or not sys.platform.startswith("linux"):
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = megabytes << 20
    resource.setrlimit(resource.RLIMIT_DATA, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def memory_words(megabytes: int | None) -> str:
    """What to do where memory did not suffice."""
    limit = f"the limit of {megabytes:,} MB (--memory-limit)" if megabytes else "the memory of this machine"
    return f"needs more than {limit}: raise it, take fewer --jobs, or leave the session out"
