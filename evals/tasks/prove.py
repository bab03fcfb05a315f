"""Proofs of several tasks at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager

from evals.tasks.task import Task, find_tasks
from evals.tasks.verifier import Proof, prove

Progress = Callable[[str, int], AbstractContextManager[Callable[[str], None]]]
"""Opens a progress bar: of what, and how many."""


def proofs(names: Sequence[str], jobs: int, enclosed: bool, progress: Progress) -> list[Proof]:
    """The proof of each named task (none: all bundled ones), in their order."""
    chosen = find_tasks(names)
    with progress("tasks", len(chosen)) as advance, ThreadPoolExecutor(jobs) as pool:
        def work(task: Task) -> Proof:
            proof = prove(task, enclosed=enclosed)
            advance(task.name)
            return proof

        return list(pool.map(work, chosen))
