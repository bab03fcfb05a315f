"""Commands that ask a model about recorded steps: the comparison of `compare`, with measurements of level L2 added."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evals.commands.compare import with_progress
from evals.commands.leaderboard import print_summary
from evals.commands.model_words import say_bill, say_estimate, spending, with_endpoint
from evals.commands.summaries import keep_lines
from replay.commands.output import print_json

if TYPE_CHECKING:
    from evals.compare import Comparison
    from evals.model.config import Models
    from evals.model.study import Asked, Findings, Study
    from evals.trial import Settings

ANSWERS = "answers.jsonl"
More = Callable[["Findings"], Mapping[str, Any]]


def run_study(paths: Sequence[str], choose: Callable[[Models, Settings], Sequence[Study]], *, as_json: bool,
              html: Path | None, out: str | Path | None, more: More = lambda _: {}, **options: Any) -> int:
    """Compare as `compare` does and ask what the chosen studies ask. `more`: what else the summary is to say."""
    from evals.commands.prepare import comparison, endpoint_models
    from evals.runs.elsewhere import stored

    given = with_endpoint(options)
    job, endpoint = comparison(paths, **given), endpoint_models(given["endpoint"])
    studies = choose(endpoint, job.settings)
    summary = stored(out, lambda folder: _made(job, endpoint, studies, folder, str(out) if out else None, more))
    if html:
        from evals.html import write_html

        write_html(summary, html)
    print_json(summary) if as_json else print_summary(summary)
    return 0


def _made(job: Comparison, endpoint: Models, studies: Sequence[Study], folder: Path | None, place: str | None,
          more: More) -> dict[str, Any]:
    """Replay first, with the model's summaries where they are wanted; ask; then compare with what was measured."""
    from evals.model.client import Client
    from evals.model.study import answer, prepare
    from evals.model.written import load

    written = _summarise(job)
    loaded = load(job.files, job.settings.reader, job.settings.tokenizer)
    asked = prepare(loaded, job.policies, job.settings, studies)
    with spending("questions") as bar:
        client = Client(endpoint, bar)
        say_estimate("questions", client.estimate(_asks(asked)))
        found = answer(asked, client)
    say_bill(client.bill, client.stopped)
    remarks = (*job.remarks, *_remarks(found, client.stopped))
    summary = with_progress(replace(job, extra=found.measured, remarks=remarks), folder, place)
    summary["studies"] = {"bill": client.bill.to_json(), "stopped": client.stopped, "settings": endpoint.to_json(),
                          "summaries_bill": written, **more(found)}
    if folder is not None:
        keep_lines(folder / ANSWERS, found.rows)
        keep_lines(folder / "studies.jsonl", [summary["studies"]])
    return summary


def _summarise(job: Comparison) -> dict[str, Any] | None:
    """Have the summaries written before views are made of them, and give their bill; the comparison finds them kept."""
    if job.endpoint is None:
        return None
    from evals.commands.summaries import write_summaries

    return write_summaries(job, job.endpoint)[2].bill.to_json()


def _asks(asked: Sequence[Asked]) -> list[Any]:
    return [item.ask for a in asked for item in a.items]


def _remarks(found: Findings, stopped: str | None) -> list[str]:
    """What is to be said beside the numbers: questions without an answer, by reason."""
    reasons: dict[str, int] = {}
    for row in found.rows:
        if row["problem"]:
            reasons[row["problem"]] = reasons.get(row["problem"], 0) + 1
    said = [f"{count} of {len(found.rows)} questions have no answer: {reason}" for reason, count in reasons.items()]
    return [*said, *([f"asking was stopped: {stopped}"] if stopped else [])]

