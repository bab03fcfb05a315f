"""`rewindow judge`: a model judges summaries, and people judge the judge."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from evals.commands.compare import shared_options
from evals.commands.model_words import model_options
from evals.commands.study import run_study


@click.command(epilog="Example: rewindow judge ~/.codex/sessions -p codex -p opencode --window 32000 --model qwen3 "
                      "--base-url http://127.0.0.1:11434/v1 --summariser llm:qwen3 --labels labels.jsonl")
@click.argument("paths", nargs=-1, required=True)
@shared_options
@click.option("--model", help="The model that judges; default: judge of the [model] section. Take another family.")
@click.option("--places", type=click.IntRange(1, 1_000), default=3, show_default=True,
              help="Summaries of a session that are judged under each policy.")
@click.option("--labels", "labels_file", type=click.Path(path_type=Path, dir_okay=False),
              help="People's answers as JSON lines: request (as in answers.jsonl) and label (true, false).")
@model_options
def judge(paths: Sequence[str], model: str | None, places: int, labels_file: Path | None, **options: Any) -> int:
    """Have a model judge summaries: are the claims true, do they hold what came next, which of two is better?

    Pairs are judged in both orders; a verdict that the order decides is a tie. With --labels the judge is held
    against people, and its rates are corrected by what that shows.
    """
    def studies(models: Any, _: Any) -> list[Any]:
        from evals.model.config import with_role
        from evals.model.judges import Judges

        return [Judges(model=with_role(models, "judge", model, "--model"), places=places,
                       temperature=models.temperature)]

    people = _people(labels_file)
    return run_study(paths, studies, more=lambda found: _calibration(found, people), **options)


def _people(file: Path | None) -> dict[str, bool] | None:
    from evals.model.calibration import labels

    return labels(file) if file else None


def _calibration(found: Any, people: dict[str, bool] | None) -> dict[str, Any]:
    """For each kind of question: an answer is a yes where at least half of its claims or needs are supported."""
    from evals.model.calibration import calibrate

    if people is None:
        return {}
    made = {}
    for role in ("faithful", "grounded"):
        judged = {r["request"]: r["score"] >= 0.5 for r in found.rows if r["role"] == role and r["score"] is not None}
        made[role] = calibrate(judged, people).to_json()
    return {"calibration": made}
