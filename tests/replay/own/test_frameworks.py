"""Objects of frameworks as black boxes over the bundled sessions."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from evals.trial import Settings, run_trial
from replay.engine import Lane
from replay.policy.base import Capacity, Summary, SummaryRequest
from replay.policy.load import policy
from replay.readers import read
from tests.replay.own.test_functions import WIDE, session, talk

HERE = "tests.replay.own.framework_objects"
SAMPLES = sorted((Path(__file__).resolve().parents[3] / "datasets" / "samples").glob("*/*.jsonl"))
needs_langchain = pytest.mark.skipif(find_spec("langchain") is None,
                                     reason="the extra `adapters` is not installed")
needs_pydantic = pytest.mark.skipif(find_spec("pydantic_ai") is None,
                                    reason="the extra `adapters` is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")


def black_box(path: Path, name: str) -> Lane:
    """The lane of an object over a bundled session."""
    return session(read(path)[0]).replay(policy(name), WIDE)


class Numbered:
    """The summaries that the object's own model writes."""

    name = "numbered"

    def __init__(self) -> None:
        self.count = 0

    def summarise(self, request: SummaryRequest) -> Summary:
        """The next one."""
        self.count += 1
        return Summary(text=f"Summary number {self.count}.", by=self.name)


def preset(path: Path) -> Lane:
    """The preset of LangChain's summarisation with the object's settings; no usage is reported to a black box."""
    name = "langchain-summarization:trigger.at=0,trigger.tokens=6000,cut.messages=12,measure.reports=false,most=1.0"
    return session(read(path)[0]).replay(policy(name), WIDE, Numbered())


@needs_langchain
def test_langchain_s_summarisation_is_its_preset() -> None:
    """Over 154 steps and 63 compactions the object shows the very messages that the preset shows."""
    path = next(p for p in SAMPLES if p.stem == "long-refactoring")
    own, ours = black_box(path, f"langchain:{HERE}:summarization"), preset(path)

    assert (154, 63) == (len(own.views), sum(e.kind == "full" for e in own.events))
    assert [list(v.window.indices()) for v in ours.views] == [list(v.window.indices()) for v in own.views]


@needs_langchain
@pytest.mark.parametrize("path", SAMPLES[::4], ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_langchain_s_summarisation(path: Path) -> None:
    """Over any session its summaries are known as such; where its fixed sentence stays, what goes is dropped."""
    own = black_box(path, f"langchain:{HERE}:summarization")
    full = [e for e in own.events if e.kind == "full"]

    assert full
    assert all(not e.dropped for e in full if e.added is not None and "Summary number" in e.added.message.text)
    assert abs(len(full) - sum(e.kind == "full" for e in preset(path).events)) <= 2


@needs_langchain
@pytest.mark.parametrize("path", SAMPLES[::4], ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_langchain_s_context_editing(path: Path) -> None:
    """It clears results and nothing else: no message is dropped, and what is cleared stands for its message."""
    own = black_box(path, f"langchain:{HERE}:editing")

    assert {"micro"} >= {e.kind for e in own.events if e.kind != "clear"}
    assert any(e.elided for e in own.events)


@needs_pydantic
@pytest.mark.parametrize("name", ["last_four", "last_four_later"])
def test_a_history_processor_of_pydantic_ai(name: str) -> None:
    """Plain and asynchronous processors keep what they keep, and the messages are the log's own."""
    found = session(talk(5)).replay(policy(f"pydantic-ai:{HERE}:{name}"), WIDE)

    assert list(range(15, 19)) == list(found.views[-1].window.indices())[-4:]
    assert not [i for v in found.views for i in v.window.items if getattr(i, "kind", "") == "truncated"]


def test_an_engine_with_mycodeagent_s_interface() -> None:
    """It is told what calls used, compacts, and its summary is known as one."""
    found = session(talk(14)).replay(policy(f"context-engine:{HERE}:Engine"), WIDE)
    first = next(e for e in found.events if e.kind == "full")

    assert first.added is not None
    assert "Archived" in first.added.message.text
    assert first.dropped == ()


def test_an_engine_is_asked_when_a_request_is_refused() -> None:
    """A refused request is compacted by the engine's reactive way."""
    found = session(talk(9)).replay(policy(f"context-engine:{HERE}:Engine"), Capacity(window=1_500))

    assert found.ended is None
    assert "retried" in {e.kind for e in found.events}


@needs_langchain
def test_every_metric_works_on_a_black_box() -> None:
    """Losses too are measured, since what left the view is known."""
    settings = Settings(capacity=Capacity(window=30_000), tokenizer="o200k_base", summariser="extractive", losses=True)
    found = session(read(SAMPLES[0])[0])
    own, full = (run_trial(found, policy(n), settings) for n in (f"langchain:{HERE}:summarization", "full-history"))

    assert (True, True) == (own.ok, full.ok), own.error
    assert [m.name for m in full.measurements] == [m.name for m in own.measurements]


@pytest.mark.parametrize("name", ["langchain", "pydantic-ai", "context-engine"])
def test_an_object_that_is_not_there(name: str) -> None:
    """A target that cannot be imported is told by name."""
    with pytest.raises(Exception, match="cannot import"):
        session(talk(1)).replay(policy(f"{name}:no.such.module:thing"), WIDE)

