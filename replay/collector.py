"""Python's search for cyclic garbage, put off while a lane is replayed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused() -> Iterator[None]:
    """No search meanwhile; afterwards as before.

    A lane makes no cycles but keeps a view for every step, and each search would walk through all of them again.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
