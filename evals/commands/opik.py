"""`rewindow opik`: sessions from Opik, comparisons to it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evals.commands.progress import progress
from replay.commands.output import console, literal, number, print_json, table
from replay.errors import ReadError

if TYPE_CHECKING:
    from evals.sinks.opik import Connection
    from evals.sinks.opik_parcel import Choices, Parcel
    from evals.sinks.opik_pull import Pulled

_KINDS = (("item", "dataset items (sessions)"), ("experiment", "experiments (policies)"), ("trace", "traces"),
          ("span", "spans"), ("score", "feedback scores"), ("entry", "experiment items"))
_project = click.option("--project", metavar="NAME", help="Opik project; default: the one of Opik's configuration.")
_as_json = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")


@click.group(epilog="Example: rewindow opik push runs/demo")
def opik() -> None:
    """Read sessions from Opik, and write comparisons to it.

    Server, workspace, project and key come from Opik's own configuration (`opik configure`, OPIK_URL_OVERRIDE,
    OPIK_WORKSPACE, OPIK_PROJECT_NAME, OPIK_API_KEY). Opik's telemetry, its error reports and its download of prices
    are off unless you turn them on there.
    """


@opik.command(epilog="Example: rewindow opik push runs/demo --traces --redact")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True, type=click.Path(path_type=Path))
@_project
@click.option("--dataset", default="rewindow", show_default=True, metavar="PREFIX",
              help="How the dataset's name begins; the version of the cohort follows.")
@click.option("--traces", is_flag=True, help="Send the recordings too, and every step with its view.")
@click.option("--view-bytes", type=click.IntRange(min=0), default=1_000_000, show_default=True,
              help="Cut the longest texts of views that are larger; 0: never.")
@click.option("--redact", is_flag=True, help="Replace keys, tokens, e-mail and IP addresses and user names.")
@click.option("--yes", is_flag=True, help="Send without asking.")
@_as_json
def push(runs: Sequence[Path], project: str | None, dataset: str, traces: bool, view_bytes: int, redact: bool,
         yes: bool, as_json: bool) -> int:
    """Write stored RUNs as a dataset of sessions and one experiment per policy.

    Says what it will send and how much, and asks. The same run sent again updates what is there.
    """
    from evals.sinks.opik import connect
    from evals.sinks.opik_parcel import Choices
    from evals.sinks.opik_rows import Run

    choices = Choices(traces=traces, view_bytes=view_bytes, redact=redact)
    with connect(project) as connection:
        sent = [_push(Run(folder, dataset), connection, choices, yes) for folder in runs]
    if as_json:
        print_json({"runs": [found for found in sent if found is not None]})
    return 0


def _push(run: Any, connection: Connection, choices: Choices, yes: bool) -> dict[str, Any] | None:
    from evals.sinks.opik_parcel import pack
    from evals.sinks.opik_push import push as send

    with tempfile.TemporaryFile() as file:
        with progress("packing", len(run.summary["trials"])) as advance:
            parcel = pack(run, file, choices, advance)
        _announce(parcel, connection, choices)
        if not yes and not click.confirm("Send this?", err=True):
            click.echo("nothing was sent", err=True)
            return None
        with progress("sending", max(1, parcel.bytes // 3_500_000)) as advance:
            found = send(parcel, connection, advance)
    click.echo(f"sent to dataset {found['dataset']}: {len(found['experiments'])} experiments", err=True)
    return found


def _announce(parcel: Parcel, connection: Connection, choices: Choices) -> None:
    """What is going to be sent, on stderr."""
    lines = [f"To {connection.place}:", f"  dataset {parcel.run.dataset_name}"]
    lines += [f"  {number(parcel.counts[kind])} {what}" for kind, what in _KINDS if parcel.counts[kind]]
    lines.append(f"  {_size(parcel.bytes)} of JSON before compression")
    lines.append(f"  {_contents(choices)}")
    if choices.redact:
        lines.append(f"  redacted: {', '.join(parcel.replaced) or 'nothing was found'}")
    for line in (*lines, *(f"  note: {remark}" for remark in parcel.remarks)):
        click.echo(literal(line), err=True)


def _size(count: int) -> str:
    return f"{number(count / 1000, 1)} kB" if count < 1_000_000 else f"{number(count / 1_000_000, 1)} MB"


def _contents(choices: Choices) -> str:
    if not choices.traces:
        return "names, paths and numbers of sessions; no message of any session"
    return "with the messages of the sessions: every view, and the recordings"


@opik.command(epilog="Example: rewindow opik pull --project my-agent --since 7d --out sessions/opik")
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path, file_okay=False),
              help="Folder for the session files; what is there already is not fetched again.")
@_project
@click.option("--filter", "oql", metavar="OQL", help='Opik\'s query language, e.g. \'tags contains "production"\'.')
@click.option("--since", metavar="WHEN", help="A date, a time, or how long ago: 2026-01-31, 7d, 12h.")
@click.option("--limit", type=click.IntRange(min=1), help="Most sessions, the newest first.")
@click.option("--id", "ids", multiple=True, help="Only this trace or thread; repeat it.")
@click.option("--replays", is_flag=True, help="Lanes too that Rewindow itself pushed.")
@_as_json
def pull(files: Sequence[Path], out: Path, project: str | None, oql: str | None, since: str | None, limit: int | None,
         ids: Sequence[str], replays: bool, as_json: bool) -> int:
    """Write traces and threads of a project as session files, from the server or from exported FILEs.

    A thread is one session, and so is a trace without a thread.
    """
    from evals.sinks.opik import connect
    from evals.sinks.opik_pull import Wanted, moment_of
    from evals.sinks.opik_pull import pull as fetch
    from evals.sinks.opik_stores import Files, Server

    wanted = Wanted(filter=oql, since=moment_of(since) if since else None, limit=limit, ids=tuple(ids), replays=replays)
    with ExitStack() as open_things:
        store = Files(files) if files else Server(open_things.enter_context(connect(project)))
        advance = open_things.enter_context(progress("sessions", limit or 0))
        pulled = fetch(store, wanted, out, advance)
    found = [_read_back(name, path, status) for name, path, status in pulled.files]
    print_json({"sessions": found, "replays_left_out": pulled.replays, "damaged": pulled.damaged}) if as_json \
        else _print_pulled(found, pulled)
    return 0


def _read_back(name: str, path: Path, status: str) -> dict[str, Any]:
    """A session as Rewindow reads it from its new file."""
    from replay.readers import read

    about = {"session": name, "path": str(path), "status": status}
    try:
        found = read(path)
    except ReadError as error:
        return about | {"steps": 0, "messages": 0, "notes": [error.reason]}
    return about | {"steps": sum(len(t.steps) for t in found), "messages": sum(t.message_count for t in found),
                    "notes": [n.text for t in found for n in t.notes]}


def _print_pulled(found: Sequence[dict[str, Any]], pulled: Pulled) -> None:
    screen = console()
    rows = [(f["session"], f["status"], number(f["steps"]), number(f["messages"]), number(len(f["notes"])), f["path"])
            for f in found]
    screen.print(table(("session", "file is", "steps", "messages", "notes", "file"), rows, f"{len(found)} sessions", 2))
    if pulled.replays:
        screen.print(literal(f"{pulled.replays} traces are replays that Rewindow pushed; --replays takes them too"))
    for name in pulled.damaged:
        screen.print(literal(f"warning: {name}: not all of the recording is there; read from its spans instead"))
