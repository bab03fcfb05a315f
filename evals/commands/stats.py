"""`rewindow stats`: paired statistics on anybody's results table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from replay.commands.output import console, literal, print_json, table
from replay.errors import ConfigError


@click.command(epilog='Example: rewindow stats results.csv --arm strategy --unit instance_id --baseline raw --outcome '
                      'solved --cost cost+summary_cost')
@click.argument("path", metavar="TABLE.csv", type=click.Path(path_type=Path))
@click.option("--arm", required=True, metavar="COL", help="Column that names the arm (policy, model, strategy).")
@click.option("--unit", required=True, metavar="COL", help="Column that names the unit (task, session).")
@click.option("--baseline", required=True, metavar="ARM", help="Arm that the others are paired against.")
@click.option("--outcome", required=True, metavar="COL", help="Column of outcomes: 0 or 1, true or false, or a score.")
@click.option("--cost", metavar="COL[+COL]", help="Column of costs; several are added up row by row.")
@click.option("--units", type=click.IntRange(min=1), metavar="N",
              help="Units of the study; default: those in the table. Units without a row count as failures.")
@click.option("--where", multiple=True, metavar="COL=VALUE", help="Keep matching rows; * and ? stand for anything.")
@click.option("--only", multiple=True, metavar="ARM", help="Compare this arm and leave others out; repeat it.")
@click.option("--group", metavar="COL", help="Run once for each value of this column.")
@click.option("--cluster", metavar="COL", help="Column whose units belong together (a repository).")
@click.option("--margin", type=click.FloatRange(min=0), default=0.03, show_default=True,
              help="How much lower a rate still counts as no worse.")
@click.option("--interval", type=click.Choice(["percentile", "bca"]), default="percentile", show_default=True,
              help="Kind of bootstrap interval.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def stats(path: Path, baseline: str, where: Sequence[str], only: Sequence[str], group: str | None, units: int | None,
          margin: float, interval: str, as_json: bool, **columns: str | None) -> int:
    """Paired differences, intervals, tests and costs of every arm of TABLE.csv against a baseline.

    Arms are paired unit by unit; a unit without a row counts as a failure of the arm that lacks it.
    """
    rows = _rows(path, where, group, **columns)
    chosen = (baseline, *only) if only else ()
    found = [_study(part, name, baseline, chosen, units, margin, interval == "bca") for name, part in _groups(rows)]
    if as_json:
        print_json({"groups": found} if group else found[0])
        return 0
    for one in found:
        _print(one)
    return 0


def _rows(path: Path, where: Sequence[str], group: str | None, **columns: str | None) -> Any:
    from evals.results_table import Columns, read_rows

    cost = tuple((columns["cost"] or "").split("+")) if columns["cost"] else ()
    if "" in cost:
        raise ConfigError("--cost", "", f"expected COL or COL+COL, found {columns['cost']!r}")
    named = Columns(arm=str(columns["arm"]), unit=str(columns["unit"]), outcome=str(columns["outcome"]), cost=cost,
                    cluster=columns["cluster"], group=group)
    return read_rows(path, named, _filters(where))


def _filters(where: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in where:
        column, equals, value = text.partition("=")
        if not equals or not column or column in found:
            reason = "this column is filtered twice" if column in found else "expected COL=VALUE"
            raise ConfigError("--where", "", f"{reason}: {text!r}")
        found[column] = value
    return found


def _groups(rows: Any) -> list[tuple[str | None, Any]]:
    """Rows by group in the order of their first row; all of them without one."""
    return [(name, rows.of_group(name)) for name in dict.fromkeys(rows.group)] or [(None, rows)]


def _study(rows: Any, name: str | None, baseline: str, only: Sequence[str], units: int | None, margin: float,
           corrected: bool) -> dict[str, Any]:
    from evals.results_table import arrange
    from evals.stats_study import report, study

    try:
        found = report(study(arrange(rows, only), baseline, units, margin, corrected))
    except ConfigError as error:
        if name is None:
            raise
        raise ConfigError(error.where, error.key, f"group {name!r}: {error.reason}") from error
    return found if name is None else {"group": name, **found}


def _print(found: dict[str, Any]) -> None:
    """The tables of one study and the sentences that say what they mean."""
    from evals.stats_words import COST_COLUMNS, RATE_COLUMNS, TEST_COLUMNS, cost_row, rate_row, sentences, tests_row

    screen, arms = console(), found["arms"]
    place = f"{found['group']}: " if "group" in found else ""
    scale = "; differences in percentage points" if found["shares"] else ""
    title = f"{place}{found['units']:,} units, against {found['baseline']}{scale}"
    screen.print(table(RATE_COLUMNS, [rate_row(a, found) for a in arms], title))
    screen.print(table(TEST_COLUMNS, [tests_row(a, found) for a in arms[1:]], "Tests"))
    if any(a["mean_cost"] is not None for a in arms):
        screen.print(table(COST_COLUMNS, [cost_row(a, found) for a in arms], "Costs"))
    for line in sentences(found):
        screen.print(literal(line))
