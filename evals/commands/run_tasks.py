"""`rewindow run tasks`: whole tasks with a hidden verifier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from evals.commands.progress import progress
from replay.commands.output import print_json


class Tasks(click.Group):
    """A group whose first word may be left out: what is no command of its own starts an experiment."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The named command, or `start`."""
        return super().resolve_command(ctx, args if args and args[0] in self.commands else ["start", *args])


@click.group(epilog="Example: rewindow run tasks verify")
def tasks() -> None:
    """Carry out tasks live."""


@tasks.command(epilog="Example: rewindow run tasks verify")
@click.argument("names", metavar="[TASK]…", nargs=-1)
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Tasks at a time.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def verify(names: Sequence[str], jobs: int, as_json: bool) -> int:
    """Prove tasks: the verifier fails on the untouched environment and passes on the solution.

    TASK is the name of a bundled task or a task's folder; without one all bundled tasks are proved. Exit code 1 where
    a proof does not hold.
    """
    from evals.tasks.prove import proofs
    from evals.tasks.workspace import can_enclose, containment

    enclosed = can_enclose()
    found = proofs(names, jobs, enclosed, progress)
    if as_json:
        print_json({"containment": containment(enclosed), "tasks": [asdict(p) | {"holds": p.holds} for p in found]})
    else:
        for proof in found:
            click.echo(f"{proof.task:<24} untouched: {proof.untouched.value:<6} solution: {proof.solved.value:<6} "
                       + ("proved" if proof.holds else "NOT PROVED"))
            if not proof.holds:
                click.echo(f"  untouched: {proof.untouched.detail[-400:]}\n  solution: {proof.solved.detail[-400:]}")
        click.echo(containment(enclosed))
    return 0 if all(proof.holds for proof in found) else 1
