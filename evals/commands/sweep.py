"""`rewindow sweep`: a grid or a search over a policy's parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from evals.commands.compare import shared_options, with_progress
from evals.commands.sweep_words import print_sweep
from replay.commands.output import print_json


@click.command(epilog="Example: rewindow sweep ~/.codex/sessions -p decode-adr18 --set trigger.at=0.5:0.9:0.1 "
                      "--set tail_tokens=8000,20000 --out runs/sweep")
@click.argument("paths", nargs=-1, required=True)
@click.option("--set", "given", multiple=True, required=True,
              help="part.field=a,b,c or part.field=lo:hi:step (hi included); repeat it for a grid.")
@click.option("--where", multiple=True, help="Constraint, such as 'tail_tokens < trigger.tokens'; repeat it.")
@click.option("--trials", type=click.IntRange(min=1), help="Search so many settings with Optuna; default: the grid.")
@click.option("--objective", help="Metric that is to be best; default: the bill, with repairs under --losses.")
@shared_options
def sweep(paths: Sequence[str], as_json: bool, html: Path | None, out: str | Path | None, **options: Any) -> int:
    """Replay every session of PATHS under every setting of a policy, and choose the best on half of the sessions.

    The other half, of other repositories, puts the choice to the test.
    """
    summary = run(paths, out, **options)
    if html:
        from evals.html import write_html

        write_html(summary, html)
    print_json(summary) if as_json else print_sweep(summary)
    return 0


def run(paths: Sequence[str], out: str | Path | None, *, given: Sequence[str], where: Sequence[str] = (),
        trials: int | None = None, objective: str | None = None, **options: Any) -> dict[str, Any]:
    """Do the sweep with a progress bar on stderr, and give the run's summary; other options are those of `compare`."""
    from dataclasses import replace

    from evals.commands.prepare import comparison
    from evals.runs.elsewhere import stored
    from evals.sweep.effects import objective as objective_of
    from evals.sweep.grid import parameter
    from evals.sweep.run import swept
    from evals.sweep.where import Constraint
    from replay.errors import ConfigError

    policies = options["policies"]
    if len(policies) != 1:
        raise ConfigError("--policy", "", "a sweep is of one policy")
    parameters, constraints = [parameter(text) for text in given], [Constraint(text) for text in where]
    base = comparison(paths, **options)
    job = swept(base, policies[0], parameters, constraints, objective_of(objective, base.settings.losses), trials)
    again = {"given": list(given), "where": list(where), "trials": trials, "objective": objective}
    job = replace(job, command=_again(job.command, again))
    return stored(out, lambda folder: with_progress(job, folder, str(out) if out else None))


def _again(command: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """What an unfinished run needs to go on, with the sweep's own options."""
    return {**command, "command": "sweep", "options": {**command["options"], **more}}
