"""`rewindow validate`: how far the offline numbers deserve trust, measured on the user's own sessions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from replay.commands.output import console, literal, print_json, table


@click.command(epilog="Example: rewindow validate ~/.claude/projects")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…", type=click.Path(path_type=Path))
@click.option("--only", "chosen", multiple=True, type=click.Choice(["V0", "V1", "V2"]),
              help="Run this experiment; repeat it.  [default: all three]")
@click.option("--tokenizer", default="o200k_base", show_default=True, help="Vocabulary that counts tokens.")
@click.option("--jobs", type=click.IntRange(min=1), help="Worker processes; default: all cores for large inputs.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def validate(paths: Sequence[Path], chosen: Sequence[str], tokenizer: str, jobs: int | None, as_json: bool) -> int:
    """Check the measurements against what really happened in the sessions of PATH.

    V0: does the cache model explain the recorded cache reads? V1: do compactions make agents read again just what
    the metrics call lost? V2: do edits that the metrics call unsafe fail more often? Each says when the sessions
    are too few for a verdict.
    """
    from evals.commands.progress import progress
    from evals.validity import EXPERIMENTS, gather, validity_report
    from evals.validity_words import blocks
    from replay.find import find
    from replay.tokens import tokenizer as load_tokenizer

    load_tokenizer(tokenizer)
    experiments = tuple(e for e in EXPERIMENTS if not chosen or e in chosen)
    files = tuple(find([str(p) for p in paths]))
    found = []
    with progress("Reading sessions", len(files)) as advance:
        for one in gather(files, experiments, tokenizer, jobs):
            found.append(one)
            advance(one.path)
    report = validity_report(found, experiments)
    print_json(report) if as_json else _print(blocks(report), report)
    return 0 if report["sessions"] else 3


def _print(parts: Sequence[Any], report: dict[str, Any]) -> None:
    screen = console()
    screen.print(f"{report['sessions']:,} sessions")
    for unreadable in report["unreadable"]:
        screen.print(literal(f"not read: {unreadable['path']}: {unreadable['reason']}"))
    for part in parts:
        screen.print(table(part.columns, part.rows, part.title))
        for line in part.sentences:
            screen.print(literal(line))
