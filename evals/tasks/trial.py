"""One trial: a fresh workspace, an agent under one policy, the verifier's word, and a transcript of it all."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from evals.model.asks import Spent
from evals.model.client import Client
from evals.model.summariser import ModelSummariser
from evals.tasks.loop import TOOLS, Agent, Ending, LiveTools, begin
from evals.tasks.task import Task
from evals.tasks.verifier import Value, Verdict, verdict
from evals.tasks.workspace import Limits, Workspace, workspace
from evals.trial import contained
from replay.errors import ConfigError
from replay.live import LiveSession
from replay.policy.base import Capacity, Summariser
from replay.policy.policy import Policy
from replay.policy.summarisers import summariser
from replay.tokens import TokenCounter, tokenizer
from replay.transcript import Outcome, Transcript
from replay.writers.json_lines import json_bytes, output, write_lines
from replay.writers.rewindow import records


@dataclass(frozen=True, slots=True)
class Place:
    """Which trial of an experiment."""

    task: str
    arm: str
    """The policy's name."""
    number: int
    """From 1; the same number is the same sample of the model in every arm."""

    @property
    def name(self) -> str:
        """A name for files."""
        task, arm = ("".join(c if c.isalnum() or c in "-_." else "_" for c in t) for t in (self.task, self.arm))
        return f"{task}--{arm}--{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of a trial."""

    task: str
    arm: str
    number: int
    value: Value
    """`infra`: something failed that is no failure of the agent; counted apart, never as a failure of the task."""
    why: str
    """How the agent's run ended, as `evals.tasks.loop.Why` has it; `error` where it broke off."""
    detail: str
    steps: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    """At the model's price; None where no price is known. What a cache answered counts as if it had been asked."""
    seconds: float = 0.0
    compactions: int = 0
    blankings: int = 0
    """Passes that blanked results without a summary."""
    refusals: int = 0
    """Requests that did not fit."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Of a recording that was run again: how far it was followed, how calls were answered, what was restored."""

    @property
    def graded(self) -> bool:
        """Whether somebody said pass or fail."""
        return self.value in ("pass", "fail")

    @property
    def place(self) -> Place:
        """Which trial it is."""
        return Place(self.task, self.arm, self.number)

    def to_json(self) -> dict[str, Any]:
        """Plain data; `Result(**…)` makes it again."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What all trials of an experiment share."""

    model: str
    capacity: Capacity
    summariser: str = "extractive"
    tokenizer: str
    limits: Limits = field(default_factory=Limits)
    enclosed: bool = True
    steps: int | None = None
    """Model calls of a trial; None: as each task says."""
    seed: int = 0

    def replicate(self, number: int) -> int:
        """The sample of the model that a trial's number stands for."""
        return self.seed * 1000 + number


@dataclass(frozen=True, slots=True)
class TaskWork:
    """Carries out trials of tasks."""

    tasks: Mapping[str, Task]
    setup: Setup

    def __call__(self, place: Place, policy: Policy, client: Client, transcripts: Path) -> Result:
        """One trial. Raises ConfigError where no trial could work."""
        task = self.tasks[place.task]
        return guarded(place, lambda: _tried(task, policy, place, self.setup, client, transcripts))


def guarded(place: Place, work: Callable[[], Result]) -> Result:
    """What the work gives; whatever breaks becomes a result of class `infra`. Raises ConfigError as the work does."""
    def tried() -> Result | ConfigError:
        try:
            return work()
        except ConfigError as error:
            return error

    done = contained(tried)
    if isinstance(done, ConfigError):
        raise done
    if isinstance(done, str):
        return Result(task=place.task, arm=place.arm, number=place.number, value="infra", why="error", detail=done)
    return done


def _tried(task: Task, policy: Policy, place: Place, setup: Setup, client: Client, transcripts: Path) -> Result:
    started = time.monotonic()
    writer = summariser_of(setup, client, place)
    live = live_session(policy, setup, writer)
    with workspace(setup.limits, enclosed=setup.enclosed, name=task.name) as room:
        room.fill(task.folder / "environment")
        begin(live, task.instruction, room.shown)
        agent = Agent(live=live, ask=client.ask, tools=LiveTools(room), model=setup.model,
                      steps=setup.steps or task.steps, replicate=setup.replicate(place.number),
                      temperature=client.models.temperature)
        ending = agent.run()
        found = judged(task, room, ending)
    write(transcripts / f"{place.name}.jsonl", live, place, found, setup, room.shown)
    return result(place, ending, found, live, client, writer, time.monotonic() - started)


def judged(task: Task, room: Workspace, ending: Ending) -> Verdict:
    """The verifier's word; none is asked where the run broke off through nobody's fault."""
    return Verdict("infra", ending.detail) if ending.why == "infra" else verdict(task, room)


def summariser_of(setup: Setup, client: Client, place: Place) -> Summariser:
    """A trial's own summariser."""
    if setup.summariser.startswith("llm:"):
        return ModelSummariser(client=client, session=place.name, replicate=setup.replicate(place.number))
    return summariser(setup.summariser)


def live_session(policy: Policy, setup: Setup, writer: Summariser,
                 tools: Sequence[Mapping[str, Any]] = TOOLS) -> LiveSession:
    """An empty session under a policy."""
    words = tokenizer(setup.tokenizer)
    return LiveSession(policy=policy, capacity=setup.capacity, summariser=writer, counter=TokenCounter(words),
                       overhead_tokens=words.count(json_bytes(list(tools)).decode()))


def result(place: Place, ending: Ending, found: Verdict, live: LiveSession, client: Client, writer: Summariser,
           seconds: float, *, steps_before: int = 0, about: Mapping[str, Any] | None = None) -> Result:
    """Everything that is kept of a trial in numbers; steps that it did not make itself do not count."""
    kinds = [e.kind for e in live.events if e.step > steps_before]
    made = live.thread.steps[steps_before:]
    cost = _cost(ending.spent, live, client, writer)
    said = found.detail if found.value == "infra" or ending.why == "finished" else f"{ending.detail}; {found.detail}"
    return Result(task=place.task, arm=place.arm, number=place.number, value=found.value, why=ending.why,
                  detail=said[-500:], steps=sum(s.response is not None for s in made), about=about or {},
                  input_tokens=ending.spent.input, output_tokens=ending.spent.output, cost_usd=cost,
                  seconds=round(seconds, 3), compactions=kinds.count("full"), blankings=kinds.count("micro"),
                  refusals=kinds.count("refused"))


def _cost(spent: Spent, live: LiveSession, client: Client, writer: Summariser) -> float | None:
    """Dollars of the agent's answers and of the summaries that the policy asked for."""
    parts = [client.bill.tariff.usd(live.thread.steps[0].model or "", spent)] if live.thread.steps else [0.0]
    if isinstance(writer, ModelSummariser):
        parts += [client.bill.tariff.usd(writer.model, Spent(input=m["input_tokens"], output=m["output_tokens"]))
                  for m in writer.made]
    return None if any(p is None for p in parts) else sum(p for p in parts if p is not None)


def write(path: Path, live: LiveSession, place: Place, found: Verdict, setup: Setup, cwd: str | None) -> None:
    """Write a trial's transcript; the file appears whole or not at all."""
    thread = live.thread.build()
    value = found.value if found.value in ("pass", "fail") else "unknown"
    made = Transcript(
        format="rewindow", session_id=place.name, path="", main=thread, model=setup.model, window=setup.capacity.window,
        harness_version=version("rewindow"), message_count=len(thread.messages), cwd=cwd,
        outcome=Outcome(value=value, source="verifier resolved", detail=found.detail[-300:] or None),
        extra={"harness": "rewindow-live", **asdict(place)})
    with output(path) as file:
        write_lines(records(made), file)


def with_arm(found: Result, arm: str) -> Result:
    """The same result as another arm's."""
    return replace(found, arm=arm)


def from_json(native: Mapping[str, Any]) -> Result:
    """A result again. Raises TypeError for what `to_json` did not write."""
    return Result(**native)
