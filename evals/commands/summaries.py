"""A comparison whose summaries a model writes: estimated, written, then compared, with the summaries kept beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evals.commands.model_words import say_bill, say_estimate
from evals.commands.progress import progress

if TYPE_CHECKING:
    from evals.compare import Comparison
    from evals.model.client import Client
    from evals.model.config import Models


def with_summaries(job: Comparison, endpoint: Models, folder: Path | None,
                   compare: Callable[[Comparison], dict[str, Any]]) -> dict[str, Any]:
    """Write all summaries, compare, and keep `summaries.jsonl` with the bill in the run. Raises ConfigError."""
    entries, problems, client = write_summaries(job, endpoint)
    summary = compare(replace(job, remarks=(*job.remarks, *(f"no summary: {p}" for p in problems))))
    summary["model"] = {"bill": client.bill.to_json(), "stopped": client.stopped, "settings": endpoint.to_json()}
    if folder is not None:
        keep_lines(folder / "summaries.jsonl", entries)
        keep_lines(folder / "bill.jsonl", [summary["model"]])
    return summary


def write_summaries(job: Comparison, endpoint: Models) -> tuple[list[dict[str, Any]], list[str], Client]:
    """The entries of all summaries, what went wrong, and the client with its bill; estimated before."""
    from evals.model.client import Client
    from evals.model.written import Writer, load

    client = Client(endpoint)
    writer = Writer(client=client, policies=job.policies, capacity=job.settings.capacity)
    loaded = load(job.files, job.settings.reader, job.settings.tokenizer)
    say_estimate("summaries", writer.foresee(loaded))
    with progress("summaries, sessions", sum(len(sessions) for _, sessions in loaded)) as advance:
        entries, problems = writer.write(loaded, advance)
    say_bill(client.bill, client.stopped)
    return entries, problems, client


def keep_lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as JSON lines; the file appears whole or not at all."""
    import orjson

    from evals.report import write_atomically

    write_atomically(path, "".join(f"{orjson.dumps(row).decode()}\n" for row in rows))
