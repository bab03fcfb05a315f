"""`rewindow dashboard`: Streamlit on 127.0.0.1, with nothing sent anywhere."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path

import click

from evals.browse import check_run
from replay.errors import ConfigError

RUNS_VARIABLE = "REWINDOW_RUNS"
"""Environment variable with the run folders as a JSON list; unset: the runs under `./runs`."""
ADDRESS = "127.0.0.1"
FIRST_PORT = 8501
PORTS_TRIED = 100
APP = Path(__file__).parent / "app.py"
FLAGS = (
    f"--server.address={ADDRESS}", f"--browser.serverAddress={ADDRESS}", "--server.headless=true",
    "--server.fileWatcherType=none", "--server.runOnSave=false", "--runner.magicEnabled=false",
    "--browser.gatherUsageStats=false", "--client.toolbarMode=minimal", "--client.showErrorDetails=none",
    "--client.showErrorLinks=false", "--logger.hideWelcomeMessage=true", "--logger.level=warning",
    "--theme.light.primaryColor=#0072B2", "--theme.dark.primaryColor=#56B4E9",
)
"""What Streamlit is told: this machine only, no browser opened, no statistics, no file watcher, no stack traces."""


@click.command(epilog="Example: rewindow dashboard runs/demo --port 8600")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path))
@click.option("--port", type=click.IntRange(min=1, max=65_535),
              help=f"Port; default: the first free one from {FIRST_PORT}.")
def dashboard(runs: Sequence[Path], port: int | None) -> int:
    """Open the dashboard on stored RUNs; without any, on those under ./runs. Ctrl-C stops it."""
    chosen = port or first_free_port()
    if not is_free(chosen):
        raise ConfigError("--port", "", f"{ADDRESS}:{chosen} is in use; name another, or none to get a free one")
    if runs:
        os.environ[RUNS_VARIABLE] = json.dumps([str(check_run(r).absolute()) for r in runs])
    click.echo(f"rewindow dashboard: http://{ADDRESS}:{chosen} (Ctrl-C stops it)")
    serve(chosen)
    return 0


def serve(port: int) -> None:
    """Run Streamlit in this process until it is stopped."""
    from streamlit.web import cli

    cli.main(["run", str(APP), *FLAGS, f"--server.port={port}"], standalone_mode=False)


def first_free_port() -> int:
    """The first free port from `FIRST_PORT` on. Raises ConfigError where none of a hundred is free."""
    for port in range(FIRST_PORT, FIRST_PORT + PORTS_TRIED):
        if is_free(port):
            return port
    raise ConfigError("--port", "", f"no free port between {FIRST_PORT} and {FIRST_PORT + PORTS_TRIED - 1}; name one")


def is_free(port: int) -> bool:
    """Whether nothing listens on the port of this machine."""
    with socket.socket() as probe:
        return probe.connect_ex((ADDRESS, port)) != 0
