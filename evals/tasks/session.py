"""A recorded session run again from one of its steps: its history up to there, then a model that really decides."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.model.client import Client
from evals.outcomes import transcript_label
from evals.tasks.follow import Follower, prefill
from evals.tasks.loop import Agent, Ending, LiveTools
from evals.tasks.restore import Restored, restore, write_out
from evals.tasks.rules import Rule, RuledTools, results_from, schemas
from evals.tasks.trial import Place, Result, Setup, guarded, live_session, result, summariser_of, write
from evals.tasks.verifier import Value, Verdict
from evals.tasks.workspace import Workspace, workspace
from replay.errors import ConfigError
from replay.live import LiveSession
from replay.policy.load import RECORDED
from replay.policy.policy import Policy
from replay.transcript import Transcript

STEPS = 40
"""Model calls of a run behind the recorded ones, where nothing else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rerun:
    """A recording and how it is run again."""

    name: str
    transcript: Transcript
    first: int
    """The first step that a model decides anew."""
    rules: Mapping[str, Rule]
    base: Path | None = None
    """A copy of the session's folder as it was at its start."""
    verify: str | None = None
    """Command that tells afterwards, by exit code 0, that the work is done."""

    def __post_init__(self) -> None:
        """Raises ConfigError for a step that the recording does not have, and for a wiped window before it."""
        count = len(self.transcript.steps)
        if not 1 <= self.first <= count:
            raise ConfigError("--from", "", f"{self.name} has the steps 1 to {count}, not {self.first}")
        start = self.transcript.steps[self.first - 1].start
        if any(c.kind == "clear" and c.position <= start for c in self.transcript.compactions):
            raise ConfigError("--from", "", f"{self.name}: a person wiped the window before step {self.first}; what "
                              "a live run would make of that is not known")


@dataclass(frozen=True, slots=True)
class SessionWork:
    """Carries out reruns of recordings."""

    reruns: Mapping[str, Rerun]
    setup: Setup

    def __call__(self, place: Place, policy: Policy, client: Client, transcripts: Path) -> Result:
        """One rerun. Raises ConfigError where none could work."""
        rerun = self.reruns[place.task]
        return guarded(place, lambda: _tried(rerun, policy, place, self.setup, client, transcripts))


def _tried(rerun: Rerun, policy: Policy, place: Place, setup: Setup, client: Client, transcripts: Path) -> Result:
    started, transcript = time.monotonic(), rerun.transcript
    offered = schemas(transcript)
    writer = summariser_of(setup, client, place)
    live = live_session(policy, setup, writer, offered)
    files = restore(transcript, transcript.steps[rerun.first - 1].start, rerun.base)
    with workspace(setup.limits, enclosed=setup.enclosed, name=rerun.name) as room:
        _furnish(rerun, files, room)
        differs = prefill(live, transcript, rerun.first)
        before = len(live.events)
        tools = RuledTools(rerun.rules, LiveTools(room), transcript.cwd,
                           results_from(transcript, transcript.steps[rerun.first - 1].start))
        follower = Follower(transcript, rerun.first)
        ending = _run(rerun, live, tools, follower, setup, client, place)
        found = _verdict(rerun, room, ending)
    write(transcripts / f"{place.name}.jsonl", live, place, found, setup, transcript.cwd)
    about = {"first": rerun.first, "first_other_view": differs, **_followed(follower), **_answered(tools),
             "restored": files.to_json(), "events_before": before}
    return result(place, ending, found, live, client, writer, time.monotonic() - started,
                  steps_before=rerun.first - 1, about=about)


def _furnish(rerun: Rerun, files: Restored, room: Workspace) -> None:
    """The session's folder as far as it is known."""
    if rerun.base is not None:
        room.fill(rerun.base)
    write_out(files, room.folder)
    room.own()


def _run(rerun: Rerun, live: LiveSession, tools: RuledTools, follower: Follower, setup: Setup, client: Client,
         place: Place) -> Ending:
    agent = Agent(live=live, ask=client.ask, tools=tools, model=setup.model, offered=schemas(rerun.transcript),
                  steps=rerun.first - 1 + (setup.steps or STEPS), replicate=setup.replicate(place.number),
                  temperature=client.models.temperature, follower=follower)
    if live.ended:
        return Ending("no-room", f"the policy finds no way past step {len(live.thread.steps)}", agent.spent)
    return agent.run()


def _verdict(rerun: Rerun, room: Workspace, ending: Ending) -> Verdict:
    if ending.why == "infra":
        return Verdict("infra", ending.detail)
    if rerun.verify is None:
        return Verdict("unknown", f"{ending.why}: {ending.detail}")
    done = room.run(["/bin/sh", "-c", rerun.verify])
    if done.ended == "time":
        return Verdict("infra", f"--verify took longer than {room.limits.seconds:g} s")
    return Verdict("fail" if done.code else "pass", done.output.strip()[-2000:])


def _followed(follower: Follower) -> dict[str, Any]:
    return {"followed": follower.followed, "same_words": follower.same_words, "diverged_at": follower.diverged_at,
            "diverged_by": follower.what}


def _answered(tools: RuledTools) -> dict[str, Any]:
    return {"answers": dict(tools.ways), "misses": tools.misses}


def recorded_result(rerun: Rerun, client: Client) -> Result:
    """What the recording itself did from the same step on, as an arm of its own."""
    steps = rerun.transcript.steps[rerun.first - 1:]
    label = transcript_label(rerun.transcript)
    value: Value = "pass" if label.value == "pass" else "fail" if label.value in ("fail", "partial") else "unknown"
    used = [s.usage for s in steps if s.usage is not None]
    said = f"{label.source}: {label.detail or ''}"[:500]
    return Result(task=rerun.name, arm=RECORDED.name, number=1, value=value, why="recorded", detail=said,
                  steps=sum(s.response is not None for s in steps),
                  input_tokens=sum(u.input_total for u in used), output_tokens=sum(u.output for u in used),
                  cost_usd=_cost(steps, client), about={"first": rerun.first, "followed": len(steps)})


def _cost(steps: Any, client: Client) -> float | None:
    """Dollars of the recorded steps by the endpoint's prices; None where a step has no usage."""
    from evals.model.asks import Spent

    if any(s.usage is None for s in steps):
        return None
    parts = [client.bill.tariff.usd(s.model or "", Spent(input=s.usage.input_total, cached=s.usage.cache_read,
                                                         output=s.usage.output)) for s in steps]
    return None if None in parts else sum(p for p in parts if p is not None)
