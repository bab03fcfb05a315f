"""`rewindow gate`: a regression test of the model views of recorded sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from replay.commands.options import reader_option
from replay.commands.output import print_json

_DEFAULTS: dict[str, Any] = {"window": 200_000, "output_reserve": 0, "summariser": "extractive", "reader": None}


@click.command(epilog="Example: rewindow gate sessions -p decode-adr18 --golden golden --accept")
@click.argument("paths", nargs=-1)
@click.option("-p", "--policy", help="Policy: preset, TOML file or package.module:attribute; may carry overrides.")
@click.option("--golden", type=click.Path(path_type=Path, file_okay=False), help="Folder of golden views.")
@click.option("--accept", is_flag=True, help="Make the golden folder hold what is found now.")
@click.option("--reason", help="Why; recorded with old and new hash. Needed where a golden folder would change.")
@click.option("--candidate", help="Instead of a golden folder: the policy of the new revision …")
@click.option("--baseline", help="… and of the old one; only what differs is reported.")
@click.option("--cohort", type=click.Path(path_type=Path, dir_okay=False),
              help="Frozen list of sessions (`rewindow cohort`) in the place of PATHS.")
@click.option("--tag", "tags", multiple=True, help="Only the sessions of the cohort with this tag; repeat it.")
@click.option("--session", "only", multiple=True, help="Only the session of this id; repeat it.")
@click.option("--tier", "tiers", multiple=True, type=click.Choice(["views", "counts", "costs", "tolerance"]),
              help="Only this tier; repeat it. Default: those of the golden folder, or all.")
@click.option("--margin", "margins", multiple=True, metavar="METRIC=NUMBER",
              help="How much worse still passes in the tier with tolerances; repeat it.")
@click.option("--window", type=click.IntRange(min=1),
              help="Context window in tokens; default: the golden's, or 200,000.")
@click.option("--output-reserve", type=click.IntRange(min=0), help="Tokens kept free for the answer.")
@click.option("--tokenizer", default="o200k_base", show_default=True, help="Vocabulary that counts tokens.")
@click.option("--prices", help="Model whose prices are used; default: the model that each session recorded.")
@click.option("--cache-model", default="auto", show_default=True, help="Prompt-cache semantics; auto: by the model.")
@click.option("--summariser", help="extractive, recorded, empty or length-model; default: the golden's, or extractive.")
@click.option("--strict", is_flag=True, help="Fail also on warnings: tiers not checked, parted pairs, overflow.")
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), help="Write JUnit XML.")
@click.option("--markdown", type=click.Path(path_type=Path, dir_okay=False), help="Write a summary for pull requests.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; default: all cores for large inputs.")
@click.option("--cache/--no-cache", default=True, show_default=True,
              help="Keep sessions as read and counted in ~/.cache/rewindow, and take them from there.")
@reader_option
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def gate(paths: Sequence[str], as_json: bool, strict: bool, junit: Path | None, markdown: Path | None,
         **options: Any) -> int:
    """Compare the model views of every session of PATHS with golden ones; exit code 1 where something differs."""
    from evals.gate import report

    verdict = run(paths, **options)
    if junit:
        report.write(junit, report.junit(verdict))
    if markdown:
        report.write(markdown, report.markdown(verdict))
    print_json(verdict.to_json()) if as_json else click.echo(report.text(verdict))
    return 0 if verdict.passed and not (strict and verdict.warnings) else 1


def run(paths: Sequence[str], **options: Any) -> Any:
    """Do what the options ask, with a progress bar on stderr, and give the verdict."""
    from evals.commands.progress import progress
    from evals.gate.gate import gate as compare

    call = call_of(paths, **options)
    with progress("sessions", len(call.files)) as advance:
        return compare(call, lambda result: advance(Path(result.path).name))


def call_of(paths: Sequence[str], *, policy: str | None = None, golden: Path | None = None, accept: bool = False,
            reason: str | None = None, candidate: str | None = None, baseline: str | None = None,
            cohort: Path | None = None, tags: Sequence[str] = (), only: Sequence[str] = (), tiers: Sequence[str] = (),
            margins: Sequence[str] = (), jobs: int | None = None, cache: bool = False, **settings: Any) -> Any:
    """The gate's call from options as the command line gives them. Raises ConfigError."""
    from evals.gate.gate import Call
    from evals.gate.golden import load
    from evals.gate.record import TIERS
    from evals.gate.sessions import chosen_files
    from evals.kept.reading import reading
    from evals.kept.store import Kept, default_folder
    from replay.policy.load import policy as load_policy

    name, other = _sides(policy, golden, candidate, baseline, accept)
    known = load(golden) if golden is not None else None
    held = known.settings if known is not None else {}
    kept = Kept(default_folder()) if cache else None
    asked = _settings(held, **settings)
    files, remarks, chosen = chosen_files(paths, cohort, tags, settings.get("reader"), reading(kept, asked.tokenizer))
    return Call(files=files, policy=load_policy(name), policy_name=name, golden=golden,
                baseline=load_policy(other) if other else None, baseline_name=other or "",
                settings=asked, kept=kept, margins=margins, only=only, accept=accept, reason=reason,
                tiers=tuple(t for t in TIERS if t in (tiers or held.get("tiers", TIERS))), jobs=jobs,
                remarks=remarks, cohort=chosen)


def _sides(policy: str | None, golden: Path | None, candidate: str | None, baseline: str | None,
           accept: bool) -> tuple[str, str | None]:
    """The policy and, without a golden folder, the one that it is compared with."""
    from replay.errors import ConfigError

    if (candidate is None) != (baseline is None):
        raise ConfigError("gate", "", "--candidate and --baseline go together")
    if candidate is not None:
        if policy or golden or accept:
            raise ConfigError("gate", "--candidate", "compares two revisions: leave out -p, --golden and --accept")
        return candidate, baseline
    if not policy or golden is None:
        raise ConfigError("gate", "", "say -p POLICY and --golden FOLDER, or --candidate and --baseline")
    return policy, None


def _settings(held: Mapping[str, Any], *, tokenizer: str = "o200k_base", prices: str | None = None,
              cache_model: str = "auto", **given: Any) -> Any:
    """Settings of the call; what it leaves open is as the golden folder says, else the default."""
    from evals.caches import cache_model as check_cache_model
    from evals.costing import Pricing
    from evals.prices import price as check_price
    from evals.trial import Settings
    from replay.errors import ConfigError
    from replay.policy.base import Capacity
    from replay.policy.summarisers import summariser as check_summariser
    from replay.readers.registry import reader as check_reader
    from replay.tokens import tokenizer as check_tokenizer

    taken: dict[str, Any] = {name: given.get(name) if given.get(name) is not None else held.get(name, default)
                             for name, default in _DEFAULTS.items()}
    if taken["output_reserve"] >= taken["window"]:
        raise ConfigError("--output-reserve", "", f"must be smaller than the window of {taken['window']:,} tokens")
    check_summariser(taken["summariser"])
    check_tokenizer(tokenizer)
    if taken["reader"] is not None:
        check_reader(taken["reader"])
    if cache_model != "auto":
        check_cache_model(cache_model)
    if prices:
        check_price(prices)
    capacity = Capacity(window=taken["window"], output_reserve=taken["output_reserve"])
    return Settings(capacity=capacity, tokenizer=tokenizer, summariser=taken["summariser"], rows=False, losses=True,
                    pricing=Pricing(cache=cache_model, prices=prices), reader=taken["reader"])
