"""`rewindow planted`: what a policy keeps of facts that a person states once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from replay.commands.output import console, literal, print_json, table

if TYPE_CHECKING:
    from evals.planted import PolicyResult


@click.command(epilog="Example: rewindow planted session.jsonl -p decode-adr18 -p mycodeagent --window 60000")
@click.argument("session", type=click.Path(path_type=Path))
@click.option("-p", "--policy", "policies", multiple=True, required=True,
              help="Preset, TOML file or package.module:attribute; may carry overrides; repeat it.")
@click.option("--window", type=click.IntRange(min=1), default=200_000, show_default=True,
              help="Context window in tokens; a smaller one makes more compactions.")
@click.option("--output-reserve", type=click.IntRange(min=0), default=0, show_default=True,
              help="Tokens of the window kept free for the answer.")
@click.option("--depth", "depths", type=click.FloatRange(0, 1), multiple=True,
              help="Where facts are planted, from 0 (start) to 1 (end); repeat it.  [default: 0.05, 0.35, 0.65]")
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True,
              help="Compactions to follow; the end of the session is repeated to get there.")
@click.option("--seed", type=int, default=1, show_default=True, help="Chooses sentences and values.")
@click.option("--summariser", default="extractive", show_default=True, help="extractive, empty or length-model.")
@click.option("--tokenizer", default="o200k_base", show_default=True, help="Vocabulary that counts tokens.")
@click.option("--index", type=click.IntRange(min=0), default=0, help="Which session of a file that holds several.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def planted(session: Path, policies: Sequence[str], window: int, output_reserve: int, depths: Sequence[float],
            rounds: int, seed: int, summariser: str, tokenizer: str, index: int, as_json: bool) -> int:
    """Plant facts of five kinds in SESSION and follow them through the compactions of every policy."""
    from evals.planted import DEPTHS, Plan, run_planted, to_json
    from replay.policy.base import Capacity
    from replay.policy.load import policy
    from replay.policy.summarisers import summariser as check_summariser
    from replay.tokens import TokenCounter
    from replay.tokens import tokenizer as load_tokenizer

    check_summariser(summariser)
    plan = Plan(depths=tuple(depths) or DEPTHS, rounds=rounds, seed=seed, summariser=summariser)
    transcript = _transcript(session, index)
    capacity = Capacity(window=window, output_reserve=output_reserve)
    results = run_planted(transcript, [policy(p) for p in policies], capacity, TokenCounter(load_tokenizer(tokenizer)),
                          plan)
    print_json(to_json(transcript, results, plan)) if as_json else _print(results, rounds)
    return 0


def _transcript(path: Path, index: int) -> Any:
    from replay.errors import ConfigError, ReadError
    from replay.readers import read

    found = read(path)
    if not found:
        raise ReadError(str(path), "no session in it")
    if index >= len(found):
        raise ConfigError("--index", "", f"{path} holds {len(found)} sessions; the last is {len(found) - 1}")
    return found[index]


def _print(results: Sequence[PolicyResult], rounds: int) -> None:
    screen = console()
    for result in results:
        columns = ("kind", *(f"round {n}" for n in range(1, rounds + 1)), "collapses")
        screen.print(table(columns, _rows(result, rounds), _title(result)))
        for line in _losses(result):
            screen.print(literal(line))
    screen.print("Kept ÷ followed after each compaction behind a fact; collapses: first round that keeps fewer than "
                 "half. All L0: presence in the view, not use by a model.")


def _title(result: PolicyResult) -> str:
    told = [f"{result.policy}: {result.compactions} compactions"]
    told += [f"the end of the session repeated {result.repeats} times"] if result.repeats else []
    told += [f"the run ends at step {result.ended}: its request stays refused"] if result.ended else []
    return ", ".join(told)


def _rows(result: PolicyResult, rounds: int) -> Iterator[Sequence[str]]:
    found = {(s.kind, s.round): f"{s.kept}/{s.followed}" for s in result.survival()}
    for kind, collapse in result.collapse().items():
        yield (kind, *(found.get((kind, n), "–") for n in range(1, rounds + 1)),
               f"round {collapse}" if collapse else "–")


def _losses(result: PolicyResult) -> Iterator[str]:
    """Facts whose former value alone is left: worse than lost, since the view is wrong."""
    for followed in result.followed:
        if "superseded" in followed.after:
            fact, at = followed.planted.fact, followed.after.index("superseded")
            yield (f"  step {followed.steps[at]}: only the former value {fact.former_value} is left of: {fact.text}")
