"""An experiment: tasks × policies × trials, interleaved by a seed, within a budget, and gone on with after a crash."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import orjson

from evals.model.client import Client
from evals.model.config import Models
from evals.runs.unfinished import Unfinished, unfinished
from evals.tasks.trial import Place, Result, Setup, from_json
from replay.errors import ConfigError, Interrupted
from replay.policy.load import spec_hash
from replay.policy.policy import Policy
from replay.writers.json_lines import json_bytes

CUT = ("budget", "interrupted", "offline")
"""Ends of a trial that are none of its own: it is tried again when the run goes on."""


class Work(Protocol):
    """Carries a trial out."""

    def __call__(self, place: Place, policy: Policy, client: Client, transcripts: Path) -> Result:
        """The result of one trial, whose transcript is written into a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """What is to be carried out. The first policy is the control: the unchanged run."""

    units: tuple[str, ...]
    """Names of the tasks, or of the recordings that are run again."""
    content: str
    """Digest of what they hold."""
    work: Work
    policies: tuple[Policy, ...]
    trials: int
    setup: Setup
    models: Models
    jobs: int = 1
    recorded: tuple[Result, ...] = ()
    """Results of an earlier run, which are the arm `recorded`."""
    command: Mapping[str, Any] = field(default_factory=dict)
    """How the command line would begin this experiment again."""

    def __post_init__(self) -> None:
        """Raises ConfigError where an arm is named twice or nothing can be compared."""
        names = [p.name for p in self.policies]
        if len(set(names)) != len(names):
            raise ConfigError("--policy", "", f"a policy is named twice: {', '.join(names)}")
        if not names or not self.units:
            raise ConfigError("run tasks", "", "needs at least one policy and one task")

    @property
    def order(self) -> list[Place]:
        """All trials in the order in which they begin: rounds of every task under every policy, shuffled by seed."""
        found: list[Place] = []
        for number in range(1, self.trials + 1):
            chance = random.Random(f"{self.setup.seed}/{number}")  # noqa: S311 - an order that can be made again
            for unit in chance.sample(self.units, len(self.units)):
                arms = chance.sample(self.policies, len(self.policies))
                found += [Place(unit, arm.name, number) for arm in arms]
        return found

    @property
    def identity(self) -> str:
        """What makes two experiments the same run; the budget and the number of jobs do not."""
        policies = [(p.name, spec_hash(p)) for p in self.policies]
        parts = (version("rewindow"), self.units, self.content, policies, self.trials, repr(self.setup),
                 self.models.address, self.models.temperature, [r.to_json() for r in self.recorded])
        return hashlib.sha256(repr(parts).encode()).hexdigest()


def digest(folders: Iterable[Path]) -> str:
    """SHA-256 of everything below some folders, or of single files."""
    found = hashlib.sha256()
    for folder in folders:
        for path in sorted(p for p in (folder, *folder.rglob("*")) if p.is_file()):
            found.update(str(path.relative_to(folder)).encode() + b"\0" + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


Done = Callable[[Result], None]


Finish = Callable[[Sequence[Result], Path, Path], dict[str, Any]]
"""Puts a run together: from all results and the folder of transcripts, in a folder."""


def carry_out(job: Experiment, out: Path, done: Done, finish: Finish) -> dict[str, Any]:
    """Run every trial that is not kept already and give what `finish` makes of them all.

    Raises Interrupted where the work was cut short; what is done by then is kept.
    """
    with unfinished(out, job.identity, job.command) as kept:
        results = _carried_out(job, kept, done)
        made = finish([*job.recorded, *results], kept.folder / "transcripts", kept.run)
        (kept.folder / "transcripts").rename(kept.run / "transcripts")
        return made


def _carried_out(job: Experiment, kept: Unfinished, done: Done) -> list[Result]:
    order = job.order
    found = {n: r for n in range(len(order)) if (r := _kept(kept, n)) is not None}
    for result in found.values():
        done(result)
    (kept.folder / "transcripts").mkdir(exist_ok=True)
    (kept.folder / "parts" / "trials").mkdir(parents=True, exist_ok=True)
    client = Client(_left(job.models, found.values()))
    waiting = [(n, place) for n, place in enumerate(order) if n not in found]
    try:
        for number, result in _spread(job, waiting, client, kept.folder / "transcripts"):
            if not _is_cut(result):
                _keep(kept, number, result)
                found[number] = result
                done(result)
    except ConfigError as error:
        if not found:
            raise
        raise Interrupted(f"{error}; {len(found)} finished trials are kept") from error
    if len(found) < len(order):
        raise Interrupted(_cut_words(client, len(found), len(order)))
    return [found[n] for n in sorted(found)]


def _left(models: Models, results: Any) -> Models:
    """The budget that earlier parts of the same run have left."""
    if models.budget_usd is None:
        return models
    return replace(models, budget_usd=max(0.0, models.budget_usd - sum(r.cost_usd or 0.0 for r in results)))


def _cut_words(client: Client, count: int, total: int) -> str:
    why = "the ceiling of --budget-usd was reached" if client.stopped == "budget" else "it was interrupted"
    return f"{why} after {count} of {total} trials, which are kept: the same command goes on from there"


def _is_cut(result: Result) -> bool:
    return result.value == "infra" and result.detail.partition(":")[0] in CUT


def _spread(job: Experiment, waiting: Sequence[tuple[int, Place]], client: Client,
            transcripts: Path) -> Iterator[tuple[int, Result]]:
    """The trials, some at a time, in threads: they wait for the model and for commands. Ctrl-C lets none begin."""
    policies = {p.name: p for p in job.policies}

    def work(place: Place) -> Result:
        return job.work(place, policies[place.arm], client, transcripts)

    left, running = list(waiting)[::-1], dict[Future[Result], int]()
    with ThreadPoolExecutor(job.jobs) as pool:
        try:
            while left or running:
                while left and len(running) < job.jobs and not client.stopped:
                    number, place = left.pop()
                    running[pool.submit(work, place)] = number
                if not running:
                    return
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        except BaseException:
            client.stop()
            raise


def _keep(kept: Unfinished, number: int, result: Result) -> None:
    path = kept.folder / "parts" / "trials" / f"{number:06}.json"
    scratch = path.with_suffix(".part")
    scratch.write_bytes(json_bytes(result.to_json()))
    scratch.replace(path)


def _kept(kept: Unfinished, number: int) -> Result | None:
    """A trial that is done; None where it is not, or what was written of it is damaged."""
    try:
        return from_json(orjson.loads((kept.folder / "parts" / "trials" / f"{number:06}.json").read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
