"""`rewindow policies verify`: how a preset was proved, and how faithful it is to a user's own sessions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from replay.commands.output import console, literal, number, print_json, table
from replay.errors import ReadError, RewindowError


@click.command("verify", epilog="Example: rewindow policies verify ~/.pi/agent/sessions")
@click.argument("paths", nargs=-1, metavar="[PATH]…")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("--markdown", is_flag=True, help="Only the table of all presets and their stored proof.")
def verify(paths: tuple[str, ...], as_json: bool, markdown: bool) -> None:
    """Compare presets with what harnesses really did.

    PATH: captures of what a harness sent, or sessions with recorded compactions. Without one: the stored verdicts
    on captures that come with Rewindow. The worked examples run each time. Ends with 1 where something is wrong.
    """
    from replay.policy.examples import run_examples
    from replay.policy.proofs import stored_proofs

    if markdown:
        from replay.policy.evidence import table_of_proofs

        for line in table_of_proofs():
            click.echo(line)
        return
    failures, count = run_examples()
    captures, recorded = _judged([Path(p).expanduser() for p in paths])
    stored = stored_proofs()
    told = {"captures": captures if paths else stored["captures"],
            "examples": {"passed": count - len(failures), "failed": len(failures), "failures": failures},
            "oracles": stored["oracles"], "recorded": recorded}
    if as_json:
        print_json(told)
    else:
        _print(told)
    if failures or any(c["wrong"] for c in captures):
        raise click.exceptions.Exit(1)


def _judged(paths: Sequence[Path]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Verdicts on the captures, and on the other sessions."""
    from replay.find import find, read_found
    from replay.policy.recorded import faithfulness
    from replay.policy.verify import capture_folders, verify_capture

    for path in paths:
        if not path.exists():
            raise ReadError(str(path), "no such file or folder")
    folders = list(dict.fromkeys(folder for path in paths for folder in capture_folders(path)))
    captures = [verify_capture(folder).to_json() for folder in folders]
    recorded = []
    for found in find(str(p) for p in paths):
        if found.path.parent in folders:
            continue
        try:
            sessions = read_found(found)
        except RewindowError:
            continue
        recorded += [f.to_json() for t in sessions if (f := faithfulness(t)) is not None]
    return captures, recorded


def _print(told: dict[str, Any]) -> None:
    screen = console()
    if told["captures"]:
        screen.print(_captures(told["captures"]))
    for capture in (c for c in told["captures"] if c["first_wrong"]):
        first = capture["first_wrong"]
        place = f"{capture['harness']} {capture['scenario']}, request {first['request']}"
        screen.print(literal(f"{place}: {first['what']}"))
    for oracle in told["oracles"]:
        equal = f"{number(oracle['equal'])} of {number(oracle['histories'])} histories equal"
        screen.print(f"{oracle['preset']}, by the code of {oracle['package']} {oracle['version']}: {equal}")
    examples = told["examples"]
    screen.print(f"Worked examples: {examples['passed']} passed, {examples['failed']} failed")
    for failure in examples["failures"]:
        screen.print(f"  {failure}")
    if told["recorded"]:
        screen.print(_recorded(told["recorded"]))


def _captures(captures: Sequence[dict[str, Any]]) -> Any:
    rows = [(f"{c['harness']} {c['version']}", c["scenario"], c["preset"] or "no preset", number(c["views"]),
             *((number(c[key]) for key in ("equal", "explained", "wrong")) if c["preset"] else ("–",) * 3))
            for c in captures]
    return table(("harness", "capture", "preset", "views", "equal", "explained", "wrong"), rows,
                 "Captures of what harnesses really sent", left=3)


def _recorded(sessions: Sequence[dict[str, Any]]) -> Any:
    rows = [(Path(r["path"]).name, r["preset"], number(r["window"]), number(r["compactions"]), number(r["same_step"]),
             number(r["not_fired"]), number(r["step_distance"], 1), number(r["kept_overlap"], 2)) for r in sessions]
    columns = ("session", "preset", "window", "compactions", "same step", "not fired", "steps apart", "kept overlap")
    return table(columns, rows, "Recorded compactions", left=2)
