"""From the options of a command to the experiment that they ask for, every one of them checked before work begins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evals.model.client import Client
from evals.model.config import Models, models, need
from evals.store import load_summary
from evals.tasks.experiment import Experiment, digest
from evals.tasks.rules import parse_rules
from evals.tasks.session import Rerun, SessionWork, recorded_result
from evals.tasks.task import find_tasks
from evals.tasks.trial import Result, Setup, TaskWork, from_json, with_arm
from evals.tasks.workspace import Limits, can_enclose
from replay.errors import ConfigError, ReadError
from replay.find import find, read_found
from replay.policy.base import Capacity
from replay.policy.load import RECORDED, policy
from replay.policy.policy import Policy
from replay.policy.summarisers import summariser as check_summariser
from replay.tokens import tokenizer as check_tokenizer


def experiment(names: Sequence[str], *, policies: Sequence[str], trials: int, jobs: int, recorded: Path | None = None,
               **options: Any) -> Experiment:
    """The experiment of these options. Raises ConfigError and ReadError for what cannot be meant."""
    endpoint, setup = live_setup(**options)
    given = {"policies": list(policies), "trials": trials, "jobs": jobs, "recorded": recorded, **options}
    chosen = find_tasks(names)
    earlier = _recorded(recorded, [t.name for t in chosen]) if recorded else ()
    return Experiment(
        units=tuple(t.name for t in chosen), content=digest(t.folder for t in chosen),
        work=TaskWork({t.name: t for t in chosen}, setup), setup=setup, models=endpoint, jobs=jobs, trials=trials,
        policies=tuple(live_policy(p) for p in policies), recorded=earlier,
        command={"command": "run tasks", "paths": [str(n) for n in names] or [t.name for t in chosen],
                 "cwd": str(Path.cwd()), "options": _plain(given)})


def session_experiment(paths: Sequence[str], *, policies: Sequence[str], trials: int, jobs: int, first: int,
                       rules: Sequence[str], base: Path | None, verify: str | None, reader: str | None,
                       **options: Any) -> Experiment:
    """The experiment that runs recordings again. Raises ConfigError and ReadError for what cannot be meant."""
    endpoint, setup = live_setup(**options)
    found = find(paths)
    given = {"policies": list(policies), "trials": trials, "jobs": jobs, "first": first, "rules": list(rules),
             "base": base, "verify": verify, "reader": reader, **options}
    reruns = [Rerun(name=t.session_id, transcript=t, first=first, rules=parse_rules(rules), base=base, verify=verify)
              for f in found for t in read_found(f, reader)]
    if len({r.name for r in reruns}) < len(reruns):
        raise ConfigError("session", "", "two of these recordings have the same name")
    client = Client(endpoint)
    return Experiment(
        units=tuple(r.name for r in reruns), work=SessionWork({r.name: r for r in reruns}, setup), setup=setup,
        content=digest([*(f.path for f in found), *([base] if base else [])]) + repr((first, rules, verify)),
        models=endpoint, jobs=jobs, trials=trials, policies=tuple(live_policy(p) for p in policies),
        recorded=tuple(recorded_result(r, client) for r in reruns),
        command={"command": "run session", "paths": list(paths), "cwd": str(Path.cwd()), "options": _plain(given)})


def live_setup(*, model: str | None, base_url: str | None, models_file: Path | None, budget_usd: float | None,
               temperature: float | None, offline: bool | None, window: int, output_reserve: int, summariser: str,
               tokenizer: str, seed: int, steps: int | None, command_seconds: float,
               unconfined: bool) -> tuple[Models, Setup]:
    """The endpoint and what all trials share. Raises ConfigError."""
    if output_reserve >= window:
        raise ConfigError("--output-reserve", "", f"must be smaller than the window of {window:,} tokens")
    check_tokenizer(tokenizer)
    if not summariser.startswith("llm:"):
        check_summariser(summariser)
    if summariser == "recorded":
        raise ConfigError("--summariser", "", "a live run has no recorded summaries; take extractive or llm:MODEL")
    written = summariser.removeprefix("llm:") if summariser.startswith("llm:") else None
    found = models(models_file, {"answerer": model, "base_url": base_url, "budget_usd": budget_usd, "offline": offline,
                                 "temperature": temperature, "summariser": written or None})
    if not can_enclose() and not unconfined:
        raise ConfigError("run", "", "this system allows no enclosure for commands (Linux namespaces); --unconfined "
                          "runs what the model asks for with your own rights over your files and your network")
    return found, Setup(
        model=need(found, "answerer", "--model"), tokenizer=tokenizer, summariser=summariser, seed=seed, steps=steps,
        capacity=Capacity(window=window, output_reserve=output_reserve), enclosed=can_enclose(),
        limits=Limits(seconds=command_seconds))


def live_policy(name: str) -> Policy:
    """A policy that can decide requests as they come. Raises ConfigError for the recorded lane and for own code."""
    found = policy(name)
    if found.own is not None:
        raise ConfigError("--policy", "", f"{name} is context code of your own, which is replayed but cannot run live; "
                          "take a policy of stages")
    if found.name == RECORDED.name:
        raise ConfigError("--policy", "", "`recorded` is what a harness sent once; it decides nothing live")
    return found


def _recorded(run: Path, tasks: Sequence[str]) -> tuple[Result, ...]:
    """The control's trials of an earlier run, as the arm `recorded`."""
    live = load_summary(run).get("live")
    if not isinstance(live, dict):
        raise ReadError(str(run), "no run of tasks: it holds replays; see rewindow run tasks --help")
    found = [with_arm(from_json(t), RECORDED.name) for t in live["trials"]
             if t["arm"] == live["control"] and t["task"] in tasks]
    if not found:
        raise ReadError(str(run), "its control ran none of these tasks")
    return tuple(found)


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Path) else value for name, value in options.items()}
