"""`rewindow run tasks`: whole tasks with a hidden verifier."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evals.commands.progress import progress
from replay.commands.output import print_json

if TYPE_CHECKING:
    from evals.tasks.experiment import Experiment


class Tasks(click.Group):
    """A group whose first word may be left out: what is no command of its own starts an experiment."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """The named command, or `start`."""
        return super().resolve_command(ctx, args if args and args[0] in self.commands else ["start", *args])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Options without a command belong to `start` too."""
        known = args and (args[0] in self.commands or args[0] in ("-h", "--help"))
        return super().parse_args(ctx, args if known or not args else ["start", *args])


@click.group(cls=Tasks, epilog="Example: rewindow run tasks csv-report letters-ledger -p full-history -p decode-adr18 "
                               "--model qwen3 --base-url http://127.0.0.1:11434/v1 --out runs/live")
def tasks() -> None:
    """Carry out tasks live under several policies; `start` may be left out.

    The first policy is the control. `rewindow run tasks start --help` shows the options.
    """


def live_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that everything takes which lets an agent work."""
    for option in reversed((
        click.option("--model", help="The model that works; default: answerer of the [model] section."),
        click.option("--base-url", help="Address of an OpenAI-compatible endpoint; default: $OPENAI_BASE_URL."),
        click.option("--models", "models_file", type=click.Path(path_type=Path, dir_okay=False),
                     help="TOML file with a [model] section: endpoint, prices, retries."),
        click.option("--budget-usd", type=click.FloatRange(min=0), help="Never spend more than this."),
        click.option("--temperature", type=click.FloatRange(min=0), help="Of the model's answers; default: 0."),
        click.option("--offline", is_flag=True, default=None, help="Answer from the cache alone."),
        click.option("--window", type=click.IntRange(min=1000), default=32_000, show_default=True,
                     help="Context window in tokens, the same for all policies."),
        click.option("--output-reserve", type=click.IntRange(min=0), default=0, show_default=True,
                     help="Tokens of the window kept free for the answer."),
        click.option("--summariser", default="extractive", show_default=True,
                     help="extractive, empty, length-model or llm:MODEL."),
        click.option("--tokenizer", default="o200k_base", show_default=True, help="Vocabulary that counts tokens."),
        click.option("--trials", type=click.IntRange(1, 999), default=1, show_default=True,
                     help="Trials of each task under each policy."),
        click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
                     help="Other samples of the model, and another order."),
        click.option("--steps", type=click.IntRange(min=1), help="Model calls of a trial; default: as each task says."),
        click.option("--command-seconds", type=click.FloatRange(min=0, min_open=True), default=60.0, show_default=True,
                     help="Time that one command of the agent may take."),
        click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Trials at a time."),
        click.option("--unconfined", is_flag=True,
                     help="Run commands with your own rights where they cannot be enclosed. The model decides them."),
        click.option("--gate", "margin", type=click.FloatRange(0, 1), metavar="MARGIN",
                     help="End with 1 unless every changed policy is shown to solve at most MARGIN (0.05: five points) "
                          "less than the control."),
        click.option("--out", type=click.Path(path_type=Path), required=True, help="Store the run in this new folder."),
        click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout."),
    )):
        command = option(command)
    return command


@tasks.command(epilog="Example: rewindow run tasks start csv-report -p full-history -p decode-adr18 --model qwen3 "
                      "--base-url http://127.0.0.1:11434/v1 --trials 3 --out runs/live")
@click.argument("names", metavar="[TASK]…", nargs=-1)
@click.option("-p", "--policy", "policies", multiple=True, required=True,
              help="Preset, TOML file or package.module:attribute; the first is the control; repeat it.")
@click.option("--recorded", type=click.Path(path_type=Path, file_okay=False),
              help="An earlier run of tasks: its control becomes the arm `recorded`.")
@live_options
def start(names: Sequence[str], out: Path, as_json: bool, margin: float | None, **options: Any) -> int:
    """Let an agent work on every task under every policy, and compare how often it succeeds.

    TASK is the name of a bundled task or a task's folder; without one all bundled tasks are taken. What is stopped or
    runs into the budget goes on where it was when the same command is given again.
    """
    return told(run(names, out, **options), as_json, margin)


def told(summary: dict[str, Any], as_json: bool, margin: float | None) -> int:
    """Print a run, with the verdicts of its gate where one is asked for, and give the exit code."""
    from evals.commands.leaderboard import print_summary
    from evals.tasks.summary import gate

    found = {} if margin is None else gate(summary, margin)
    print_json(summary | ({} if margin is None else {"gate": {"margin": margin, "verdicts": found}})) if as_json else \
        print_summary(summary)
    for arm, kind in found.items() if not as_json else ():
        click.echo(f"gate: {arm} is {kind} to the control within {margin:.0%}")
    return int(any(kind != "non-inferior" for kind in found.values()))


def run(names: Sequence[str], out: Path, **options: Any) -> dict[str, Any]:
    """Carry the experiment out with a progress bar on stderr, and give its summary."""
    from evals.tasks.chosen import experiment

    return carried_out(experiment(names, **options), out)


def carried_out(job: Experiment, out: Path) -> dict[str, Any]:
    """The summary of an experiment, carried out with a progress bar on stderr."""
    from evals.tasks.experiment import carry_out
    from evals.tasks.summary import put_together

    with progress("trials", len(job.order)) as advance:
        return carry_out(job, out, lambda result: advance(result.place.name),
                         lambda results, transcripts, place: put_together(job, results, transcripts, place, out))


@tasks.command(epilog="Example: rewindow run tasks verify")
@click.argument("names", metavar="[TASK]…", nargs=-1)
@click.option("--jobs", type=click.IntRange(min=1), default=2, show_default=True, help="Tasks at a time.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def verify(names: Sequence[str], jobs: int, as_json: bool) -> int:
    """Prove tasks: the verifier fails on the untouched environment and passes on the solution.

    TASK is the name of a bundled task or a task's folder; without one all bundled tasks are proved. Exit code 1 where
    a proof does not hold.
    """
    from evals.tasks.prove import proofs
    from evals.tasks.workspace import can_enclose, containment

    enclosed = can_enclose()
    found = proofs(names, jobs, enclosed, progress)
    if as_json:
        print_json({"containment": containment(enclosed), "tasks": [asdict(p) | {"holds": p.holds} for p in found]})
    else:
        for proof in found:
            click.echo(f"{proof.task:<24} untouched: {proof.untouched.value:<6} solution: {proof.solved.value:<6} "
                       + ("proved" if proof.holds else "NOT PROVED"))
            if not proof.holds:
                click.echo(f"  untouched: {proof.untouched.detail[-400:]}\n  solution: {proof.solved.detail[-400:]}")
        click.echo(containment(enclosed))
    return 0 if all(proof.holds for proof in found) else 1
