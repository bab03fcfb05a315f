"""`rewindow run`: carry out tasks and sessions live, with a model."""

from __future__ import annotations

import click

from evals.commands.run_session import session
from evals.commands.run_tasks import tasks


@click.group(epilog="Example: rewindow run tasks verify")
def run() -> None:
    """Carry out tasks, or recorded sessions again, live under several policies (with a model)."""


run.add_command(tasks)
run.add_command(session)
