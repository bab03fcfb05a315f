"""`rewindow serve`: a recorded session as a model endpoint for a real harness."""

from __future__ import annotations

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from replay.commands.options import reader_option
from replay.commands.output import print_json
from replay.errors import ConfigError, ReadError

if TYPE_CHECKING:
    from replay.serving.endpoint import Endpoint
    from replay.transcript import Transcript


@click.command(epilog="Example: rewindow serve session.jsonl --record lane -- my-harness --print {prompt}")
@click.argument("session")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--port", type=click.IntRange(min=0, max=65_535), default=0,
              help="Port on 127.0.0.1; default: a free one.")
@click.option("--record", type=click.Path(path_type=Path, file_okay=False), help="Write what the harness sends there.")
@click.option("-p", "--policy", help="Preset of the harness and its settings; `policies verify` compares with it.")
@click.option("--window", type=click.IntRange(min=1), help="Context window that the harness believes in.")
@click.option("--usage", type=click.Choice(["counted", "bytes/4", "recorded"]), default="counted", show_default=True,
              help="What is reported as usage: tokens counted, bytes of the body, or the session's own.")
@click.option("--summaries", type=click.Choice(["recorded", "extractive"]), default="recorded", show_default=True,
              help="What requests for a summary get.")
@click.option("--summary-words", help="Regular expression that tells a request for a summary; default: built in.")
@click.option("--on-divergence", type=click.Choice(["stop", "closest"]), default="stop", show_default=True,
              help="Where the recording does not have what was sent: refuse, or answer with the closest turn.")
@click.option("--any-result", is_flag=True,
              help="A result that differs from the recorded one is told, but is no divergence.")
@click.option("--limit", type=click.IntRange(min=1), help="Refuse requests of more tokens as too long.")
@click.option("--refuse", multiple=True, metavar="STEP[:TIMES]",
              help="Refuse this step's request as too long; repeat it.")
@click.option("--tools", help="Serve only turns that call these tools (names with commas); others stop.")
@click.option("--tokenizer", default="o200k_base", show_default=True, help="Vocabulary that counts tokens.")
@click.option("--index", type=click.IntRange(min=0), default=0, help="Which session of a file with several, from 0.")
@reader_option
@click.option("--json", "as_json", is_flag=True, help="At the end one JSON document on stdout.")
def serve(session: str, command: Sequence[str], port: int, index: int, reader: str | None, as_json: bool,
          **options: Any) -> int:
    """Answer a harness from SESSION: a model endpoint on 127.0.0.1 (OpenAI chat and responses, Anthropic).

    With -- COMMAND the harness is run against it, once for each recorded prompt where an argument is {prompt}; else it
    serves until Ctrl-C. The harness really executes the recorded tool calls: run it in a sandbox (docs/serve.md).
    Exit code 1: the harness failed or sent what the recording does not have.
    """
    from replay.serving.app import address, listening
    from replay.serving.build import build

    transcript = _transcript(session, index, reader)
    listener = listening(port)
    try:
        endpoint = build(transcript, _settings(**options), lambda line: click.echo(f"rewindow serve: {line}", err=True))
        _greet(transcript, address(listener), as_json)
        failed = _run(endpoint, transcript, listener, command)
    finally:
        listener.close()
    if endpoint.recording is not None:
        endpoint.recording.close()
    print_json(endpoint.state()) if as_json else _report(endpoint)
    return 1 if failed or endpoint.tally.divergences else 0


def _transcript(path: str, index: int, reader: str | None) -> Transcript:
    from replay.find import Found, read_found

    found = read_found(Found(Path(path).expanduser(), named=True), reader)
    if not found:
        raise ReadError(path, "no session in it")
    if index >= len(found):
        raise ConfigError("--index", "", f"{path} holds {len(found)} sessions; the last is {len(found) - 1}")
    return found[index]


def _settings(refuse: Sequence[str], tools: str | None, any_result: bool, summary_words: str | None,
              **options: Any) -> Any:
    from replay.serving.build import Settings
    from replay.serving.kinds import SUMMARY_WORDS

    named = frozenset(name.strip() for name in tools.split(",") if name.strip()) if tools is not None else None
    return Settings(refuse=_refusals(refuse), tools=named, strict_results=not any_result,
                    summary_words=summary_words or SUMMARY_WORDS, **options)


def _refusals(given: Sequence[str]) -> Mapping[int, int]:
    found = {}
    for words in given:
        step, _, times = words.partition(":")
        if not step.isdecimal() or not (times or "1").isdecimal():
            raise ConfigError("--refuse", words, "expected STEP or STEP:TIMES, such as 12 or 12:3")
        found[int(step)] = int(times or 1)
    return found


def _greet(transcript: Transcript, address: str, quiet: bool) -> None:
    from replay.serving.build import recorded_calls

    told = ", ".join(f"{name} {count}" for name, count in recorded_calls(transcript).most_common())
    if told:
        click.echo(f"rewindow serve: the harness will really run these recorded calls: {told}. Run it in a sandbox, "
                   "in a copy of the workspace; --tools limits them (docs/serve.md)", err=True)
    click.echo(f"rewindow serve: {address}/v1 for OpenAI's protocols, {address} for Anthropic's (Ctrl-C stops it)",
               err=quiet)


def _run(endpoint: Endpoint, transcript: Transcript, listener: Any, command: Sequence[str]) -> int:
    """Serve until the command has ended, or until an interrupt."""
    from replay.serving import app, child
    from replay.serving.build import prompts_of

    if command:
        with app.served(endpoint, listener) as address:
            return child.run(command, prompts_of(transcript), endpoint, address)
    # The server raises the signal that ended it once more; a person ends it so, and then wants the report.
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        app.serve(endpoint, listener)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0


def _report(endpoint: Endpoint) -> None:
    state = endpoint.state()
    kinds = ", ".join(f"{count} {kind}" for kind, count in state["by_kind"].items()) or "none"
    click.echo(f"requests: {state['requests']} ({kinds}); recorded steps served: {state['steps_served']} of "
               f"{state['steps']}; summaries: {_counts(state['summaries'])}")
    click.echo(f"divergences: {len(state['divergences'])}; differing results let pass: {len(state['notes'])}")
    if endpoint.recording is not None:
        click.echo(f"recorded in {endpoint.recording.folder}: rewindow show {endpoint.recording.folder}/requests.jsonl")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"
