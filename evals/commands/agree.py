"""`rewindow agree`: next actions by a model, from each policy's views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from evals.commands.compare import shared_options
from evals.commands.model_words import model_options
from evals.commands.study import run_study

if TYPE_CHECKING:
    from evals.model.config import Models
    from evals.model.study import Study


@click.command(epilog="Example: rewindow agree ~/.codex/sessions -p codex -p full-history --window 32000 --model qwen3 "
                      "--base-url http://127.0.0.1:11434/v1 --steps 20 --budget-usd 2")
@click.argument("paths", nargs=-1, required=True)
@shared_options
@click.option("--model", help="The model that is asked; default: answerer of the [model] section.")
@click.option("--swap", "swaps", multiple=True, help="Ask this model about the same steps as well; repeat it.")
@click.option("--steps", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Sampled steps a session.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Another sample of steps.")
@click.option("--likelihood", is_flag=True,
              help="Ask also how likely the recorded actions are (needs prompt log-probabilities, such as vLLM's).")
@model_options
def agree(paths: Sequence[str], model: str | None, swaps: Sequence[str], steps: int, seed: int, likelihood: bool,
          **options: Any) -> int:
    """Ask a model for the next action at sampled steps, from the view of each policy and from the whole history.

    Agreement with the recorded action (tool, target, arguments) stands beside that of the whole history, the model's
    agreement with itself, and chance. A different action may be as good: read the differences.
    """
    return run_study(paths, lambda models, _: _studies(models, model, swaps, steps, seed, likelihood), **options)


def _studies(models: Models, model: str | None, swaps: Sequence[str], steps: int, seed: int,
             likelihood: bool) -> list[Study]:
    from evals.model.agree import Agreement
    from evals.model.config import with_role
    from evals.model.likelihood import Likelihood

    first = with_role(models, "answerer", model, "--model")
    more = [Agreement(model=m, steps=steps, seed=seed, temperature=models.temperature, suffix=f"@{m}") for m in swaps]
    shift = [Likelihood(model=first, steps=steps, seed=seed)] if likelihood else []
    return [Agreement(model=first, steps=steps, seed=seed, temperature=models.temperature), *more, *shift]
