"""`rewindow run`: carry out tasks and sessions live, with a model."""

from __future__ import annotations

import click

from evals.commands.run_tasks import tasks


@click.group(epilog="Example: rewindow run tasks verify")
def run() -> None:
    """Carry out tasks live under several policies (with a model), or prove that they can be carried out."""


run.add_command(tasks)
