"""`rewindow convert`: a session in Rewindow's own format, as OpenAI chat messages or as an ATIF trajectory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import click

from replay.commands.options import reader_option
from replay.errors import ConfigError, ReadError
from replay.find import STANDARD_INPUT, Found, read_found
from replay.redact import Redactor
from replay.transcript import Transcript
from replay.writers.atif import trajectory, trajectory_losses
from replay.writers.json_lines import json_bytes, output, write_lines
from replay.writers.openai import chat, chat_losses
from replay.writers.rewindow import session_records


@click.command(epilog="Example: rewindow convert session.jsonl --to rewindow --redact --out session.rewindow.jsonl")
@click.argument("session")
@click.option("--to", "target", type=click.Choice(["rewindow", "openai", "atif"]), required=True,
              help="rewindow keeps everything; the others what they have a place for.")
@click.option("--redact", is_flag=True, help="Replace keys, tokens, e-mail and IP addresses and user names.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file; default: stdout.")
@click.option("--index", type=click.IntRange(min=0), help="Only this session of a file with several, from 0.")
@reader_option
def convert(session: str, target: str, redact: bool, out: Path | None, index: int | None, reader: str | None) -> int:
    """Write SESSION in another format.

    What the format has no place for is listed on stderr, and so is what --redact replaced.
    """
    transcripts = _chosen(session, index, reader)
    if target == "atif" and len(transcripts) > 1:
        raise ConfigError("--to atif", "", f"a document holds one session; {session} holds {len(transcripts)}: choose "
                                           "one with --index")
    redactor = Redactor() if redact else None
    if redactor is not None:
        redactor.learn([t.cwd for t in transcripts])
        for value in _values(transcripts, target):
            redactor.learn(value)
    with output(out) as file:
        _write(file, (redactor.value(v) if redactor else v for v in _values(transcripts, target)), target)
    _report(transcripts, target, redactor)
    return 0


def _chosen(session: str, index: int | None, reader: str | None) -> Sequence[Transcript]:
    found = read_found(Found(STANDARD_INPUT if session == "-" else Path(session).expanduser(), named=True), reader)
    if not found:
        raise ReadError(session, "no session in it")
    if index is None:
        return found
    if index >= len(found):
        raise ConfigError("--index", "", f"{session} holds {len(found)} sessions; the last is {len(found) - 1}")
    return found[index:index + 1]


def _values(transcripts: Sequence[Transcript], target: str) -> Iterator[Any]:
    """The lines or documents to write."""
    if target == "rewindow":
        return session_records(transcripts)
    return ((chat if target == "openai" else trajectory)(t) for t in transcripts)


def _write(file: IO[bytes], values: Iterator[Any], target: str) -> None:
    if target == "atif":
        file.writelines(json_bytes(value) + b"\n" for value in values)
    else:
        write_lines(values, file)


def _report(transcripts: Sequence[Transcript], target: str, redactor: Redactor | None) -> None:
    told: Mapping[str, Callable[[Transcript], Sequence[str]]] = {"openai": chat_losses, "atif": trajectory_losses}
    losses = told.get(target)
    for transcript in transcripts:
        for loss in losses(transcript) if losses else ():
            click.echo(f"rewindow: {transcript.session_id}: not part of {target}: {loss}", err=True)
    if redactor is not None:
        click.echo(f"rewindow: redacted: {', '.join(redactor.report()) or 'nothing was found'}", err=True)
