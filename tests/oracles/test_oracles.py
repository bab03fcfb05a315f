"""The presets against what the harnesses' own code does with thousands of small histories (golden data)."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from replay.blocks import Text, ToolCall, ToolResult
from replay.engine import arrivals
from replay.log import Log
from replay.policy.advance import Setting, advance, start
from replay.policy.base import Capacity, Moment, Refusal, Summary, SummaryRequest
from replay.policy.compact import compact, elide
from replay.policy.load import policy
from replay.policy.policy import Policy, Stage
from replay.policy.proofs import stored_proofs
from replay.policy.requests_kept import REQUESTS
from replay.readers.common import ThreadBuilder
from replay.tokens.bytes_count import ByteCounter
from replay.tokens.calibrated import Figure
from replay.transcript import Transcript
from replay.view import shown_messages
from replay.window import Window

FOLDER = Path(__file__).parent


def _module(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    # `more_histories` imports the other one by its name, as it does where it is run.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


HISTORIES = _module("histories")
MORE = _module("more_histories")
SOURCES = ("histories", "thought", "sessions")


@cache
def made(source: str) -> list[dict[str, Any]]:
    """The histories of a source: of the seeds, of hypothesis, of the real sessions."""
    if source == "thought":
        found: list[dict[str, Any]] = MORE.thought_of()
        return found
    if source == "sessions":
        return list(MORE.of_sessions(MORE.SESSIONS))
    return [HISTORIES.history(seed) for seed in range(HISTORIES.SEEDS)]


def golden(name: str, source: str = "histories") -> list[str]:
    """An oracle's digests in the order of the histories."""
    lines = (FOLDER / f"{name}{'' if source == 'histories' else f'-{source}'}.txt").read_text().splitlines()
    return [digest for line in lines if not line.startswith("#") for digest in line.split()]


@dataclass
class Fixed:
    """Writes a summary of fixed size and keeps what it was given."""

    given: list[list[str]] = field(default_factory=list)
    name: str = "fixed"

    def summarise(self, request: SummaryRequest) -> Summary | None:
        """Eighty letters."""
        indices = [str(i) for s in request.spans for i in range(s.start, s.stop)]
        self.given.append(["S"] * len(request.previous) + indices)
        return Summary(text="s" * 80, by=self.name)


def transcript(made: dict[str, Any]) -> Transcript:
    """A history as a session whose last request is unanswered."""
    builder = ThreadBuilder(id="main")
    for message in made["messages"]:
        text = [Text(text=message["text"])]
        if message["role"] == "user":
            builder.add("user", text, "human")
        elif message["role"] == "tool":
            builder.add("tool", [ToolResult(call_id=message["call"], name="run", text=message["text"])], "tool")
        else:
            builder.respond([*text, *(ToolCall(id=c, name="run", arguments='{"n":1}') for c in message["calls"])])
    builder.fail("error")
    return Transcript(format="oracle", session_id="oracle", path="<oracle>", main=builder.build())


LANGCHAIN = policy("langchain-summarization:trigger.at=0,measure.reports=false")


def langchain_policy(settings: dict[str, Any]) -> Policy:
    """The preset with a history's settings; a file read anew for each of them would take longer than the replay."""
    (stage,) = LANGCHAIN.stages
    trigger, keep = (dict([settings[name]]) for name in ("trigger", "keep"))
    # No response of a history reports its usage, so that nothing is scaled by it.
    unscaled = replace(stage.cut.measure, reports=False)
    return replace(LANGCHAIN, stages=(replace(
        stage, trigger=replace(stage.trigger, **trigger), cut=replace(stage.cut, measure=unscaled, **keep),
        input_limit=replace(stage.input_limit, tokens=settings["trim"])),))


def langchain_outcome(made: dict[str, Any]) -> list[Any]:
    """What our preset does with a history, in the oracle's terms."""
    chosen = langchain_policy(made["settings"])
    session, writer = transcript(made), Fixed()
    log = Log(session.main, ByteCounter())
    setting = Setting(log=log, policy=chosen, capacity=Capacity(window=100_000), summariser=writer, refusals={},
                      figure=lambda _, counted: Figure(counted, "counted"))
    state, views = start(chosen), []
    for arrived in arrivals(session, log):
        done = advance(state, arrived, setting)
        state = done.state
        views.append(["S" if s.index is None else str(s.index) for s in shown_messages(log, done.shown)])
        writer.given += [[] for e in done.events if e.kind == "full" and e.summariser == "fixed sentence"]
    return [views, writer.given]


@pytest.mark.parametrize("source", SOURCES)
def test_langchain_summarises_and_keeps_what_its_own_code_does(source: str) -> None:
    """In every history each view, and what each summary is made from, is LangChain's."""
    assert [] == disagreements("langchain", langchain_outcome, source)


PI = policy("pi-1.6")


def pi_outcome(made: dict[str, Any]) -> list[Any]:
    """Where our preset cuts after every few requests, and what it summarises of history and of a turn that is parted."""
    settings, stage = made["settings"], PI.stages[0]
    stage = replace(stage, cut=replace(stage.cut, tail_tokens=settings["tail"]))
    log, window, steps = Log(transcript(made).main, ByteCounter()), Window(), list[Any]()
    for number, stop in enumerate(HISTORIES.requests(made["messages"]), 1):
        window = window.extended(stop)
        if number % settings["every"]:
            continue
        writer = Fixed()
        moment = Moment(log=log, window=window, capacity=Capacity(window=100_000))
        done = compact(stage, moment, writer, 1)
        if isinstance(done, Refusal):
            steps.append([])
            continue
        window = done.window
        parted = stage.cut.cut(moment).turn_start is not None
        given = [[name for name in names if name != "S"] for names in writer.given]
        history, prefix = ([[]] * (2 - len(given)) + given) if parted else (given[0], [])
        steps.append([str(next(window.indices())), history, prefix])
    return steps


@pytest.mark.parametrize("source", SOURCES)
def test_pi_cuts_and_summarises_where_its_own_code_does(source: str) -> None:
    """In every history each cut, and what is summarised of history and of a parted turn, is Pi's."""
    assert [] == disagreements("pi", pi_outcome, source)


def moments(made: dict[str, Any]) -> Iterator[Moment]:
    """The moment before each request of a history, with all of it in the window."""
    log = Log(transcript(made).main, ByteCounter())
    for stop in HISTORIES.requests(made["messages"]):
        yield Moment(log=log, window=Window().extended(stop), capacity=Capacity(window=100_000))


def cut_at(stage: Stage, moment: Moment) -> int:
    """Log index where a stage cuts; 0 where it does not."""
    if not stage.trigger.decide("", stage.measure.tokens(moment), moment).fires:
        return 0
    cut = stage.cut.cut(moment) if stage.cut is not None else Refusal("no_cut")
    return 0 if isinstance(cut, Refusal) else cut.keep_from


def disagreements(name: str, outcome: Callable[[dict[str, Any]], Any], source: str) -> list[int]:
    """The places of the histories for which our outcome differs from an oracle's golden data."""
    if source == "sessions" and not MORE.SESSIONS.is_dir():
        pytest.skip("no shared transcripts beside the project")
    found = golden(name, source)
    assert len(made(source)) == len(found)
    return [n for n, (one, expected) in enumerate(zip(made(source), found, strict=True))
            if expected != HISTORIES.digest(outcome(one))]


EDITING = policy("langchain-context-editing").stages[0]


def edited(made: dict[str, Any]) -> list[list[str]]:
    """The results that the preset has cleared before each request."""
    settings = made["settings"]
    trigger = replace(EDITING.trigger, tokens=settings["trim"])
    rule = replace(EDITING.tool_results, keep=settings["every"] - 2,
                   at_least=settings["tail"] if made["seed"] % 2 else 0)
    views, marks = [], ()
    for moment in moments(made):
        moment = moment._replace(window=moment.window._replace(marks=marks))
        if trigger.decide("", EDITING.measure.tokens(moment), moment).fires:
            marks = elide(replace(EDITING, tool_results=rule), moment)
            marks = moment.window.marks if isinstance(marks, Refusal) else marks.window.marks
        below = Window((), marks).rendered_to(rule.placeholder)
        views.append([str(i) for i in range(below) if moment.log.messages[i].role == "tool"])
    return views


@pytest.mark.parametrize("source", SOURCES)
def test_langchain_clears_the_results_that_its_own_edit_does(source: str) -> None:
    """In every history the same results are cleared before each request."""
    assert [] == disagreements("langchain-editing", edited, source)


DEEP = policy("deepagents:trigger.at=0,measure.reports=false,measure.beyond=0,cut.share=0.0,tool_results.share=0.0").stages


def deep(made: dict[str, Any]) -> list[list[int]]:
    """Where the preset cuts, and below which message it shortens arguments."""
    settings = made["settings"]
    arguments = replace(DEEP[0].tool_results, **dict([settings["keep"]]))
    full = replace(DEEP[1], trigger=replace(DEEP[1].trigger, **dict([settings["trigger"]])),
                   cut=replace(DEEP[1].cut, **dict([settings["keep"]])))
    return [[cut_at(full, m), arguments.place(m)] for m in moments(made)]


@pytest.mark.parametrize("source", SOURCES)
def test_deep_agents_cuts_and_shortens_where_its_own_code_does(source: str) -> None:
    """In every history both places are the same before each request."""
    assert [] == disagreements("deepagents", deep, source)


PYDANTIC = policy("summarization-pydantic-ai:trigger.tokens=0").stages[0]


def pydantic(made: dict[str, Any]) -> list[int]:
    """How many requests and responses the preset cuts."""
    settings = made["settings"]
    stage = replace(PYDANTIC, trigger=replace(PYDANTIC.trigger, **dict([settings["trigger"]])),
                    cut=replace(PYDANTIC.cut, **dict([settings["keep"]])))
    return [m.log.sums(REQUESTS)[cut_at(stage, m)] for m in moments(made)]


@pytest.mark.parametrize("source", SOURCES)
def test_pydantic_ai_cuts_where_its_own_code_does(source: str) -> None:
    """In every history as many requests and responses are cut before each request."""
    assert [] == disagreements("pydantic-ai", pydantic, source)


def test_the_stored_proof_names_every_oracle() -> None:
    """`policies verify` shows what these tests find: all histories of each oracle, whatever their source, are equal."""
    titles = [path for path in FOLDER.glob("*.txt") if path.name not in ("requirements.txt", "thought.txt")]
    found: dict[tuple[str, ...], int] = {}
    for path in titles:
        oracle = path.stem.removesuffix("-thought").removesuffix("-sessions")
        first, *lines = path.read_text().splitlines()
        key = (oracle, *first.replace(":", "").split()[1:3])
        found[key] = found.get(key, 0) + sum(len(line.split()) for line in lines)

    assert sorted((package, version, count, count) for (_, package, version), count in found.items()) == sorted(
        (o["package"], o["version"], o["histories"], o["equal"]) for o in stored_proofs()["oracles"])
