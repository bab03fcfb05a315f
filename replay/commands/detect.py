"""`rewindow detect`: what each file is, and what was odd about it."""

from __future__ import annotations

from typing import Any

import click

from replay.commands.options import reader_option
from replay.commands.output import console, literal, number, print_json, table
from replay.commands.progress import progress
from replay.find import find
from replay.import_report import FATES, Tally, fate_of, grouped
from replay.importing import Imported, import_files

_PIPED_WIDTH = 140
"""Columns of the table where the output is no terminal."""


@click.command(epilog="Example: rewindow detect ~/.codex/sessions --json")
@click.argument("paths", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
@click.option("--strict", is_flag=True, help="Exit 1 when any file is damaged or holds unknown records.")
@reader_option
def detect(paths: tuple[str, ...], as_json: bool, strict: bool, reader: str | None) -> int:
    """Say what each file is, what was repaired or left out, and why.

    A folder is searched for sessions. Sub-agents belong to the session that started them, and what several
    files hold is counted in one of them, so that usage sums up to what was billed.
    """
    files = find(paths)
    with progress("files", len(files)) as advance:
        imported = import_files(files, reader, lambda found: advance(found.path.name))
    print_json(_document(imported)) if as_json else _print(imported)
    if imported.is_named_unreadable or not imported.sessions:
        return 3
    return 1 if strict and (imported.unreadable or imported.tally.is_faulty) else 0


def _document(imported: Imported) -> dict[str, Any]:
    for session in imported.sessions:
        for note in session["notes"]:
            note["fate"] = fate_of(note["code"])
    tally = imported.tally
    summary = {"files": tally.files, "sessions": tally.sessions, "notes": tally.notes,
               "skipped": len(imported.skipped), "unreadable": len(imported.unreadable)}
    return {"sessions": imported.sessions, "unreadable": imported.unreadable, "skipped": imported.skipped,
            "summary": summary}


def _print(imported: Imported) -> None:
    rows = [(s["path"].rsplit("/", 1)[-1], s["format"], number(s["messages"]), number(s["steps"]),
             number(s["tool_calls"]), number(len(s["compactions"])), number(s["peak_input_tokens"]),
             number(len(s["notes"]))) for s in imported.sessions]
    screen = console()
    columns = ("file", "format", "messages", "steps", "calls", "compactions", "peak input", "notes")
    screen.print(table(columns, rows, left=2), width=None if screen.is_terminal else _PIPED_WIDTH, crop=False)
    lines = [line for session in imported.sessions for line in _remarks(session)]
    lines += [f"{entry['path']}: no session: {entry['reason']}" for entry in imported.skipped]
    lines += [f"{entry['path']}: not read: {entry['reason']}" for entry in imported.unreadable]
    for line in [*lines, _total(imported)]:
        screen.print(literal(line), soft_wrap=True)


def _remarks(session: dict[str, Any]) -> list[str]:
    """What is to be said about one session, under a line with its path."""
    lines = [f"  {FATES[fate]}: {group}" for fate, groups in grouped(session["notes"]) for group in groups]
    other = session["counted_elsewhere"]
    if other is not None:
        lines.append(f"  counted elsewhere: {number(other['requests'])} requests are also in {other['path']} "
                     f"({other['session_id']}) and are billed there")
    return [session["path"], *lines] if lines else []


def _total(imported: Imported) -> str:
    tally: Tally = imported.tally
    parts = [f"{_counted(tally.sessions, 'session')} in {_counted(tally.files, 'file')}"]
    parts += [f"{_counted(count, 'note')}: {FATES[fate]}" for fate, count in tally.notes.items() if count]
    parts += [f"{_counted(len(found), 'file')} {what}" for found, what in (
        (imported.skipped, "without a session"), (imported.unreadable, "not read")) if found]
    return "; ".join(parts) + "."


def _counted(count: int, what: str) -> str:
    return f"{number(count)} {what}{'' if count == 1 else 's'}"
