"""`rewindow probe`: does a model still know what it needs, from each policy's view?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from evals.commands.compare import shared_options
from evals.commands.model_words import model_options
from evals.commands.study import run_study


@click.command(epilog="Example: rewindow probe ~/.codex/sessions -p codex -p opencode --window 32000 --model qwen3 "
                      "--base-url http://127.0.0.1:11434/v1 --probes 8 --budget-usd 2")
@click.argument("paths", nargs=-1, required=True)
@shared_options
@click.option("--model", help="The model that is asked; default: answerer of the [model] section.")
@click.option("--probes", type=click.IntRange(1, 1_000), default=8, show_default=True, help="Questions at each place.")
@click.option("--places", type=click.IntRange(1, 1_000), default=3, show_default=True,
              help="Compactions of a session that are asked about under each policy.")
@click.option("--replicates", type=click.IntRange(1, 100), default=1, show_default=True,
              help="Samples of each answer; four or more tell chance from effect.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Other questions.")
@model_options
def probe(paths: Sequence[str], model: str | None, probes: int, places: int, replicates: int, seed: int,
          **options: Any) -> int:
    """Ask a model about what each policy dropped: with its view, with the whole history, and with none.

    Answers are checked by their text, without a judge. The loss is recall with the whole history less recall with
    the view; what is answered without any history is the floor.
    """
    def studies(models: Any, settings: Any) -> list[Any]:
        from evals.model.config import with_role
        from evals.model.probes import Probes

        return [Probes(model=with_role(models, "answerer", model, "--model"), settings=settings, probes=probes,
                       places=places, replicates=replicates, seed=seed, temperature=models.temperature)]

    return run_study(paths, studies, **options)
