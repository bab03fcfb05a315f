"""`rewindow runs`: what lies in a folder of runs; go on with one, delete one."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from evals.commands.leaderboard import print_summary
from replay.commands.output import print_json


@click.group(epilog="Example: rewindow runs list runs")
def runs() -> None:
    """List stored runs, go on with one that was stopped, or delete one."""


@runs.command("list", epilog="Example: rewindow runs list runs --json")
@click.argument("folder", type=click.Path(path_type=Path), default=Path("runs"))
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def list_runs(folder: Path, as_json: bool) -> int:
    """The runs in FOLDER (default: runs), whole and unfinished ones."""
    from evals.runs.listing import listing

    found = list(listing(folder))
    if as_json:
        print_json({"runs": [asdict(run) for run in found]})
        return 0
    for run in found:
        what = (f"{run.sessions:,} sessions × {run.policies} policies" if run.state == "done"
                else f"{run.files_done:,} files done")
        click.echo(f"{run.path:<32} {run.state:<11} {what:<32} {run.started or '':<26} {run.size_bytes / 1e6:,.1f} MB")
    if not found:
        click.echo(f"no runs in {folder}; rewindow compare … --out {folder / 'a'} makes one")
    return 0


@runs.command(epilog="Example: rewindow runs resume runs/a")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def resume(run: Path, as_json: bool) -> int:
    """Go on with a RUN that was stopped, with the sessions and settings with which it was begun."""
    from evals.runs.listing import job_of

    job, target = job_of(run), run.absolute()
    if isinstance(job.get("cwd"), str) and Path(job["cwd"]).is_dir():
        os.chdir(job["cwd"])
    summary = _again(job, job.get("place") or target)
    print_json(summary) if as_json else print_summary(summary)
    return 0


def _again(job: dict[str, Any], target: str | Path) -> dict[str, Any]:
    from evals.commands.compare import run as compare
    from evals.commands.sweep import run as sweep

    if job.get("command") in ("run tasks", "run session"):
        return _live_again(job, Path(target))
    options, command = job["options"], sweep if job.get("command") == "sweep" else compare
    return command(job["paths"], target, **options | {"outcomes": Path(o) if (o := options.get("outcomes")) else None})


def _live_again(job: dict[str, Any], target: Path) -> dict[str, Any]:
    from evals.commands.run_session import run as session
    from evals.commands.run_tasks import run as tasks

    paths = {k: Path(v) for k in ("recorded", "models_file", "base") if (v := job["options"].get(k))}
    return (session if job["command"] == "run session" else tasks)(job["paths"], target, **job["options"] | paths)


@runs.command(epilog="Example: rewindow runs delete runs/a")
@click.argument("run", type=click.Path(path_type=Path))
def delete(run: Path) -> int:
    """Delete a RUN, whole or unfinished; what is no run is left alone."""
    from evals.runs.listing import delete as delete_run

    delete_run(run)
    click.echo(f"deleted {run}")
    return 0
