"""`rewindow detect`: what each file is, and what was odd about it."""

from __future__ import annotations

import sys
from typing import Any

import click

from replay.commands.output import console, literal, number, print_json, table
from replay.detected import describe
from replay.errors import ReadError
from replay.find import STANDARD_INPUT, Found, find
from replay.transcript import Transcript

_FAULTS = {"bad-json", "cut-tail", "cut-archive", "bad-utf8", "bad-escape", "nul-bytes", "not-an-object",
           "unknown-type", "malformed"}
"""Notes that `--strict` counts as faults."""


@click.command(epilog="Example: rewindow detect ~/.codex/sessions --json")
@click.argument("paths", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("--strict", is_flag=True, help="Exit 1 when any file is damaged or holds unknown records.")
def detect(paths: tuple[str, ...], as_json: bool, strict: bool) -> int:
    """Say what each file is and what was odd about it."""
    sessions, unreadable = [], []
    named_unreadable = False
    for found in find(paths):
        try:
            sessions += [describe(t) for t in _read(found)]
        except ReadError as error:
            unreadable.append({"path": str(found.path), "reason": error.reason})
            named_unreadable |= found.named
    if as_json:
        print_json({"sessions": sessions, "unreadable": unreadable})
    else:
        _print(sessions, unreadable)
    if named_unreadable or not sessions:
        return 3
    faulty = unreadable or any(n["code"] in _FAULTS for s in sessions for n in s["notes"])
    return 1 if strict and faulty else 0


def _read(found: Found) -> tuple[Transcript, ...]:
    from replay.readers import read, read_bytes

    if found.path == STANDARD_INPUT:
        return read_bytes(sys.stdin.buffer.read(), "<stdin>")
    return read(found.path)


def _print(sessions: list[dict[str, Any]], unreadable: list[dict[str, str]]) -> None:
    rows = [(s["path"].rsplit("/", 1)[-1], s["format"], number(s["messages"]), number(s["steps"]),
             number(s["tool_calls"]), number(len(s["compactions"])), number(s["peak_input_tokens"]),
             number(len(s["notes"]))) for s in sessions]
    screen = console()
    columns = ("file", "format", "messages", "steps", "calls", "compactions", "peak input", "notes")
    screen.print(table(columns, rows, left=2))
    for session in sessions:
        for note in session["notes"]:
            place = f"{session['path']}:{note['line']}" if note["line"] else session["path"]
            screen.print(literal(f"{place}: {note['code']}: {note['text']}"))
    for entry in unreadable:
        screen.print(literal(f"{entry['path']}: not read: {entry['reason']}"))
