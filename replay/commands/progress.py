"""A progress bar on stderr for anything over two seconds, on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE_SECONDS = 2.0


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """A function to call after each item; the bar appears once the work has taken two seconds."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    bar = Progress(TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
                   console=Console(stderr=True), transient=True)
    task = bar.add_task(what, total=total)
    started, shown = time.monotonic(), False

    def advance(_: str) -> None:
        nonlocal shown
        bar.advance(task)
        if not shown and time.monotonic() - started > PATIENCE_SECONDS:
            bar.start()
            shown = True

    try:
        yield advance
    finally:
        bar.stop()
