"""`rewindow cohort`: freeze a list of sessions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from replay.commands.options import reader_option
from replay.commands.output import literal, print_json


@click.command(epilog="Example: rewindow cohort sessions --include steps>=20 --exclude format=codex --out cohort.json")
@click.argument("paths", nargs=-1, required=True)
@click.option("--include", multiple=True, metavar="RULE",
              help="Only sessions for which it holds: format=pi, steps>=20, model~claude*; repeat it.")
@click.option("--exclude", multiple=True, metavar="RULE", help="No session for which it holds; repeat it.")
@click.option("--tag", "tags", multiple=True, metavar="NAME:RULE", help="Mark the sessions for which it holds.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="File to write.")
@reader_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def cohort(paths: Sequence[str], include: Sequence[str], exclude: Sequence[str], tags: Sequence[str], out: Path,
           reader: str | None, as_json: bool) -> int:
    """Freeze the sessions of PATHS that the rules leave into a hashed list for `rewindow gate --cohort`."""
    import orjson

    from evals.cohort import freeze
    from evals.gate.report import write
    from replay.copies import without_copies
    from replay.find import find

    files, remarks = without_copies(find(paths), reader)
    made = freeze(files, include, exclude, _tags(tags), out.parent, reader)
    write(out, orjson.dumps(made.to_json(), option=orjson.OPT_INDENT_2).decode() + "\n")
    if as_json:
        print_json(made.to_json())
        return 0
    steps = sum(s["steps"] for s in made.sessions)
    click.echo(literal(f"{out}: {len(made.sessions)} sessions, {steps} steps, hash {made.hash}"))
    for remark in remarks:
        click.echo(literal(f"note: {remark}"))
    return 0


def _tags(texts: Sequence[str]) -> dict[str, str]:
    from replay.errors import ConfigError

    found = {}
    for text in texts:
        name, colon, rule = text.partition(":")
        if not colon or not name.strip():
            raise ConfigError("--tag", text, "expected NAME:RULE, such as long:steps>=100")
        found[name.strip()] = rule
    return found
