"""The verifier's word on a workspace, and the proof that a task's verifier tells solved from unsolved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evals.tasks.task import Task
from evals.tasks.workspace import Bind, Limits, Workspace, copy_sources, workspace

Value = Literal["pass", "fail", "infra", "unknown"]
"""`unknown`: nobody was asked."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the verifier says."""

    value: Value
    """`infra`: it could not do its work, which is nobody's failure."""
    detail: str
    """The end of what it wrote."""


@dataclass(frozen=True, slots=True)
class Proof:
    """A task's verifier on the untouched environment and on the solution."""

    task: str
    untouched: Verdict
    solved: Verdict

    @property
    def holds(self) -> bool:
        """Whether the one fails and the other passes."""
        return (self.untouched.value, self.solved.value) == ("fail", "pass")


def verdict(task: Task, room: Workspace) -> Verdict:
    """Run the task's verifier on a workspace, where it appears only now.

    Exit code 0 is a pass, 1 a failure, everything else `infra`.
    """
    tests = _beside(room, task.folder / "tests")
    done = room.run(["/bin/sh", f"{_place(room, tests)}/test.sh"], binds=[Bind(tests, "/tests")],
                    seconds=task.verifier_seconds)
    if done.ended == "time":
        return Verdict("infra", f"the verifier took longer than {task.verifier_seconds:g} s")
    value: Value = "pass" if done.code == 0 else "fail" if done.code == 1 and done.ended is None else "infra"
    return Verdict(value, done.output.strip()[-2000:])


def solve(task: Task, room: Workspace) -> None:
    """Apply the task's solution to a workspace."""
    solution = _beside(room, task.folder / "solution")
    room.run(["/bin/sh", f"{_place(room, solution)}/solve.sh"], binds=[Bind(solution, "/solution")])


def _beside(room: Workspace, source: Path) -> Path:
    """A readable copy of a task's folder outside of the workspace."""
    target = room.base / source.name
    if not target.is_dir():
        copy_sources(source, target)
    target.chmod(0o755)
    return target


def _place(room: Workspace, folder: Path) -> str:
    return f"/{folder.name}" if room.enclosed else str(folder)


def prove(task: Task, *, enclosed: bool) -> Proof:
    """Run the verifier on the untouched environment and on the solution, each in a fresh workspace."""
    return Proof(task.name, *(_tried(task, solved, enclosed) for solved in (False, True)))


def _tried(task: Task, solved: bool, enclosed: bool) -> Verdict:
    with workspace(Limits(), enclosed=enclosed) as room:
        room.fill(task.folder / "environment")
        if solved:
            solve(task, room)
        return verdict(task, room)
