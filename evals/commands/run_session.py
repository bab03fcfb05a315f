"""`rewindow run session`: a recorded session again, from one of its steps on, with a model that really decides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from evals.commands.run_tasks import carried_out, live_options, told
from replay.commands.options import reader_option


@click.command(epilog="Example: rewindow run session runs/live/transcripts/csv-report--full-history--1.jsonl --from 5 "
                      "-p full-history -p decode-adr18 --model qwen3 --base-url http://127.0.0.1:11434/v1 --out runs/b")
@click.argument("paths", metavar="SESSION…", nargs=-1, required=True)
@click.option("-p", "--policy", "policies", multiple=True, required=True,
              help="Preset, TOML file or package.module:attribute; the first is the control; repeat it.")
@click.option("--from", "first", type=click.IntRange(min=1), default=1, show_default=True,
              help="The first step that the model decides anew; those before are taken from the recording.")
@click.option("--tool", "rules", multiple=True, metavar="TOOL=WAY[,WAY…]",
              help="How calls of a tool are answered: recorded, live, fixed:TEXT, stop; tried in order. Default for "
                   "every tool (*): recorded,live,stop. Repeat it.")
@click.option("--workspace", "base", type=click.Path(path_type=Path, exists=True, file_okay=False),
              help="A copy of the session's folder as it was at its start; its own reads and edits are added.")
@click.option("--verify", metavar="COMMAND", help="Run this in the workspace afterwards; exit code 0 is a pass.")
@reader_option
@live_options
def session(paths: Sequence[str], out: Path, as_json: bool, margin: float | None, **options: Any) -> int:
    """Run recorded sessions again from a step on, under several policies, beside what was recorded.

    How long a run goes on as recorded is counted: so far its outcome is identified. Every call that a rule could not
    answer is listed as a miss.
    """
    return told(run(paths, out, **options), as_json, margin)


def run(paths: Sequence[str], out: Path, **options: Any) -> dict[str, Any]:
    """Carry the experiment out with a progress bar on stderr, and give its summary."""
    from evals.tasks.chosen import session_experiment

    return carried_out(session_experiment(paths, **options), out)
