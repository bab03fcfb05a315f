"""`rewindow compare`: the main job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evals.commands.leaderboard import print_summary
from evals.commands.model_words import model_options, with_endpoint
from evals.commands.places import RunPlace
from evals.commands.progress import progress
from replay.commands.options import reader_option
from replay.commands.output import print_json

if TYPE_CHECKING:
    from evals.compare import Comparison


def shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that every command takes which replays sessions under policies."""
    for option in reversed((
        click.option("-p", "--policy", "policies", multiple=True, required=True,
                     help="Preset, TOML file or package.module:attribute; may carry overrides; repeat it."),
        click.option("--baseline", help="Policy that the others are paired against; default: the first."),
        click.option("--window", type=click.IntRange(min=1), default=200_000, show_default=True,
                     help="Context window in tokens, the same for all policies."),
        click.option("--output-reserve", type=click.IntRange(min=0), default=0, show_default=True,
                     help="Tokens of the window kept free for the answer."),
        click.option("--tokenizer", default="o200k_base", show_default=True, help="Vocabulary that counts tokens."),
        click.option("--prices", help="Model whose prices are used; default: the model that each session recorded."),
        click.option("--cache-model", default="auto", show_default=True,
                     help="Prompt-cache semantics, or FILE.toml:NAME; auto: by the recorded model."),
        click.option("--summariser", default="extractive", show_default=True,
                     help="extractive, recorded, empty, length-model; compare also takes llm:MODEL."),
        click.option("--losses", is_flag=True,
                     help="Measure also what was lost that the agent later used; takes about as long again."),
        click.option("--metric", "metrics", multiple=True,
                     help="Own metric as package.module:Class, besides the built-in and installed ones; repeat it."),
        click.option("--outcomes", type=click.Path(path_type=Path, dir_okay=False),
                     help="Table (CSV, JSON) of how sessions ended; default: sidecar files and the transcripts."),
        click.option("--out", type=RunPlace(), help="Store the run in this new folder, or at a URL such as s3://…"),
        click.option("--html", type=click.Path(path_type=Path), help="Write a self-contained HTML report."),
        reader_option,
        click.option("--jobs", type=click.IntRange(min=1), help="Processes; default: all cores for large inputs."),
        click.option("--backend", type=click.Choice(("processes", "dask", "ray")), default="processes",
                     show_default=True, help="Who works: processes of this machine, or a Dask or Ray cluster."),
        click.option("--address", help="Where the cluster is; default: one on this machine for this run."),
        click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), default=600.0, show_default=True,
                     help="Seconds that one session may take under one policy; beyond it the trial has failed."),
        click.option("--memory-limit", "memory_mb", type=click.IntRange(min=64),
                     help="MB of data that a worker may hold; a session that needs more has failed."),
        click.option("--cache/--no-cache", default=True, show_default=True,
                     help="Keep sessions as read and counted in ~/.cache/rewindow, and take them from there."),
        click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout."),
    )):
        command = option(command)
    return command


@click.command(epilog="Example: rewindow compare ~/.codex/sessions -p full-history -p decode-adr18 --out runs/a")
@click.argument("paths", nargs=-1, required=True)
@shared_options
@model_options
def compare(paths: Sequence[str], as_json: bool, html: Path | None, out: str | Path | None,
            **options: Any) -> int:
    """Replay every session of PATHS under every policy, measure, store and rank.

    With --summariser llm:MODEL an OpenAI-compatible endpoint writes the summaries; the options below name it.
    """
    summary = run(paths, out, **with_endpoint(options))
    if html:
        from evals.html import write_html

        write_html(summary, html)
    print_json(summary) if as_json else print_summary(summary)
    return 0


def run(paths: Sequence[str], out: str | Path | None, **options: Any) -> dict[str, Any]:
    """Do the comparison with a progress bar on stderr, and give its summary; `options` as `comparison` takes them."""
    from evals.commands.prepare import comparison
    from evals.runs.elsewhere import stored

    job = comparison(paths, **options)
    return stored(out, lambda folder: with_progress(job, folder, str(out) if out else None))


def with_progress(job: Comparison, folder: Path | None, place: str | None) -> dict[str, Any]:
    """Do a comparison in a folder with a progress bar; `place`: where its run will be."""
    if job.endpoint is not None:
        from evals.commands.summaries import with_summaries

        return with_summaries(job, job.endpoint, folder, lambda job: _replayed(job, folder, place))
    return _replayed(job, folder, place)


def _replayed(job: Comparison, folder: Path | None, place: str | None) -> dict[str, Any]:
    from evals.compare import compare as compare_sessions

    with progress("sessions", len(job.files)) as advance:
        return compare_sessions(job, folder, lambda result: advance(Path(result.path).name), place)
