"""Options that name an endpoint, what is said of its bill, and the bar of what it has answered."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from evals.model.bill import Bill, Estimate
    from evals.model.client import Progress

NAMES = ("base_url", "models_file", "concurrency", "budget_usd", "temperature", "offline", "redact")


def model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of everything that asks a model about recordings."""
    for option in reversed((
        click.option("--base-url", help="Address of an OpenAI-compatible endpoint; default: $OPENAI_BASE_URL."),
        click.option("--models", "models_file", type=click.Path(path_type=Path, dir_okay=False),
                     help="TOML file with a [model] section: endpoint, models, prices, retries."),
        click.option("--concurrency", type=click.IntRange(min=1), help="Requests at a time; default: 4."),
        click.option("--budget-usd", type=click.FloatRange(min=0),
                     help="Never spend more than this; estimated before anything is sent."),
        click.option("--temperature", type=click.FloatRange(min=0), help="Of the model's answers; default: 0."),
        click.option("--offline", is_flag=True, default=None, help="Answer from the kept answers alone."),
        click.option("--redact", is_flag=True, default=None,
                     help="Replace keys, addresses and user names before anything is sent."),
    )):
        command = option(command)
    return command


def with_endpoint(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with those of `model_options` together under `endpoint`."""
    endpoint = {name: options[name] for name in NAMES if options.get(name) is not None}
    return {k: v for k, v in options.items() if k not in NAMES} | {"endpoint": endpoint}


def money(usd: float | None) -> str:
    """Dollars as text; a price that is not known says so."""
    return "price unknown" if usd is None else f"${usd:.4f}"


def say_estimate(what: str, found: Estimate) -> None:
    """What is about to be asked, on stderr."""
    if found.requests:
        click.echo(f"{what}: {found.requests:,} requests, {found.cached:,} answers kept; at most "
                   f"{money(found.most_usd)}", err=True)


def say_bill(bill: Bill, stopped: str | None) -> None:
    """What was asked, on stderr, and whether it was all."""
    kept = sum(line.cached for line in bill.lines.values())
    click.echo(f"model: {bill.requests:,} requests, {kept:,} answers kept, {money(bill.usd)}", err=True)
    if stopped:
        why = "the ceiling of --budget-usd was reached" if stopped == "budget" else "interrupted"
        click.echo(f"{why}; what was answered is kept: the same command, with another --out, asks only the rest",
                   err=True)


@contextmanager
def spending(what: str) -> Iterator[Progress | None]:
    """A bar on a terminal with answers, dollars so far and the time left, to be called after each answer."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = TextColumn("{task.fields[spent]}"), TimeRemainingColumn()
    with Bar(TextColumn(what), BarColumn(), MofNCompleteColumn(), *columns, console=Console(stderr=True),
             transient=True) as bar:
        task = bar.add_task(what, total=None, spent="")
        yield lambda done, total, bill: bar.update(task, completed=done, total=total, spent=money(bill.usd))
