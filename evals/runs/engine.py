"""What carries out the work: this process, processes of this machine, or a Dask or Ray cluster, all through joblib."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from replay.errors import ConfigError

T = TypeVar("T")
R = TypeVar("R")
BACKENDS = ("processes", "dask", "ray")
RAY_BATCH = 512
"""Pieces of work that a Ray cluster is given at a time."""


class WorkerEnded(Exception):
    """A worker ended while it had work; which piece it was is for the caller to find out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Where work is done.

    `processes`: fresh processes on this machine; with `jobs` 1 the work is done in this one. `dask` and `ray`: a
    cluster at `address` (None: one that is started on this machine with `jobs` workers).
    """

    backend: str = "processes"
    jobs: int = 1
    address: str | None = None

    def __post_init__(self) -> None:
        """Raises ConfigError for an unknown backend, and for an address where there is nothing to address."""
        if self.backend not in BACKENDS:
            raise ConfigError("--backend", "", f"no backend called {self.backend!r}; known: {', '.join(BACKENDS)}")
        if self.address is not None and self.backend == "processes":
            raise ConfigError("--address", "", "is the place of a cluster; say also --backend dask or --backend ray")

    @property
    def is_local(self) -> bool:
        """The work is done in this very process."""
        return self.backend == "processes" and self.jobs == 1


def each(work: Callable[[T], R], items: Sequence[T], engine: Engine, *, ordered: bool = False) -> Iterator[R]:
    """What the work gives for each item, as it is done or (`ordered`) in the order of the items.

    Raises WorkerEnded when a worker ends before its work does; the same call may then be made again for what is left.
    """
    if engine.is_local or not items:
        yield from map(work, items)
        return
    try:
        yield from _spread(work, items, engine, "generator" if ordered else "generator_unordered")
    except _endings(engine) as error:
        raise WorkerEnded(str(error)) from error


def _spread(work: Callable[[T], R], items: Sequence[T], engine: Engine, order: str) -> Iterator[R]:
    from joblib import Parallel, delayed

    with _context(engine, work):
        # Backends hash the function; work that holds lists has no hash, and this one's is that of its identity.
        work = partial(work)
        if engine.backend == "ray":
            # Ray's backend gives all results of a call at once: some at a time, so that none waits for the last.
            for start in range(0, len(items), RAY_BATCH):
                yield from Parallel(n_jobs=-1)(delayed(work)(item) for item in items[start:start + RAY_BATCH])
            return
        # loky: fresh processes, so a native crash in one cannot take the run with it unnoticed.
        jobs, backend = (engine.jobs, "loky") if engine.backend == "processes" else (-1, None)
        yield from Parallel(n_jobs=jobs, return_as=order, backend=backend)(delayed(work)(item) for item in items)


def _context(engine: Engine, work: Any) -> AbstractContextManager[Any]:
    if engine.backend == "processes":
        return nullcontext()
    from evals.runs.clusters import dask_cluster, ray_cluster

    return dask_cluster(engine, work) if engine.backend == "dask" else ray_cluster(engine)


def _endings(engine: Engine) -> tuple[type[BaseException], ...]:
    """How each engine tells that a worker ended."""
    if engine.backend == "processes":
        return (BrokenProcessPool,)
    from evals.runs.clusters import dask_endings, ray_endings

    return dask_endings() if engine.backend == "dask" else ray_endings()


def cores() -> int:
    """Cores of this machine that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
