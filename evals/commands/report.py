"""`rewindow report`: tables and charts of a stored run."""

from __future__ import annotations

from pathlib import Path

import click

from evals.commands.leaderboard import print_summary
from replay.commands.output import print_json


@click.command(epilog="Example: rewindow report runs/demo --html demo.html")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--html", type=click.Path(path_type=Path), help="Write a self-contained HTML page.")
@click.option("--markdown", type=click.Path(path_type=Path), help="Write the tables as Markdown.")
@click.option("--csv", type=click.Path(path_type=Path), help="Write one row a trial as CSV.")
@click.option("--json", "as_json", is_flag=True, help="The run's summary as one JSON document.")
def report(run: Path, html: Path | None, markdown: Path | None, csv: Path | None, as_json: bool) -> int:
    """Show a stored RUN again, and write it as HTML, Markdown or CSV."""
    from evals.store import load_summary

    summary = load_summary(run)
    if html:
        from evals.html import write_html

        write_html(summary, html, run)
    if markdown:
        from evals.report import write_markdown

        write_markdown(summary, markdown)
    if csv:
        from evals.report import write_csv

        write_csv(summary, csv)
    print_json(summary) if as_json else print_summary(summary)
    return 0
