"""Summaries: invented specifics, bounds with empty and ideal summaries, efficiency."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evals.metrics.base import Trial
from evals.metrics.retention import Retention
from evals.metrics.summary_quality import Groundedness, SummaryBounds, oracle, specifics, ungrounded
from evals.needs import Need, evidence, use_needs
from evals.spans import TextSpan
from replay.engine import Session
from replay.events import Event
from replay.policy.base import Capacity
from replay.policy.load import policy_from
from replay.testing import FixedCounter, Script, summary_message
from replay.window import Inserted, Span

ROOMY = Capacity(window=10_000_000)


def compacted(summary: str, filler: int = 4) -> Session:
    """A session whose recorded compaction leaves only this summary, followed by one more call."""
    script = Script().user("start with src/alpha.py and port 8080")
    for n in range(filler):
        script.call("Bash", json.dumps({"command": f"run {n}"})).result(f"out_word_{n} 4711")
    script.compacted(summary_message(summary), summary=summary)
    return Session(script.call("Grep", "{}").result("x").build(), FixedCounter((10,) * 60))


def trial(session: Session) -> Trial:
    """The recorded lane as a trial."""
    return Trial(session=session, lane=session.recorded, capacity=ROOMY)


def values(made: Trial, *metrics: object) -> dict[str, float | None]:
    """Measurements by name."""
    return {m.name: m.value for metric in metrics for m in metric.measure(made)}  # type: ignore[attr-defined]


def event(text: str, *covers: Span) -> Event:
    """A compaction that put a summary in the place of these messages."""
    return Event(kind="full", step=1, stage="", reason="", added=Inserted(
        message=summary_message(text), kind="summary", covers=covers))


def test_one_of_ten_specifics_is_invented() -> None:
    """Ten specifics, one of which stands nowhere: 0.1."""
    said = "src/a1.py src/a2.py src/a3.py src/a4.py 1001 1002 1003 name_one name_two"
    script = Script().user(said).say("ok")
    made = evidence(Session(script.build(), FixedCounter((10,) * 9)))

    assert (1, 10) == ungrounded(made, event(f"{said} src/invented.py", Span(0, 1)))


def test_only_what_was_summarised_grounds() -> None:
    """A specific that stands elsewhere in the log was not in the summary's input; pinned messages and layers are."""
    script = Script().system("system says 7001").user("early 7002").user("late 7003").say("ok")
    made = evidence(Session(script.build(), FixedCounter((10,) * 9)))
    found = event("7001 7002 7003 7004", Span(1, 2))

    assert (2, 4) == ungrounded(made, found)
    assert (1, 4) == ungrounded(made, found, besides="layer 7004")


def test_specifics_are_what_can_be_checked() -> None:
    """Paths, numbers, rare code names; prose, common names and pieces that were cut off are not."""
    script = Script().user("common_name").user("common_name").user("common_name").user("common_name").say("ok")
    made = evidence(Session(script.build(), FixedCounter((10,) * 9)))
    text = "Goal: rework common_name using rareName in src/a.py at 12345, ~/.REDACTED.txt, then /very/long/pa…"

    assert ["rareName", "src/a.py", "12345"] == [s.text for s in specifics(made, text)]


def test_groundedness_of_a_recorded_summary() -> None:
    """The recorded summary's specifics are looked up in what it replaced."""
    found = values(trial(compacted("worked on src/alpha.py, port 8080, saw 9999")), Groundedness())

    assert (3, pytest.approx(1 / 3)) == (found["summary_specifics"], found["summary_ungrounded_share"])


def test_without_specifics_there_is_no_rate() -> None:
    """A summary that names nothing, or no summary, gives no rate but a reason."""
    for text in ("all is well", ""):
        found = {m.name: m for m in Groundedness().measure(trial(compacted(text)))}

        assert None is found["summary_ungrounded_share"].value
        assert found["summary_ungrounded_share"].reason


def test_oracle_is_a_fractional_knapsack() -> None:
    """Values 6, 3, 1 at 10 tokens each with 20 to spend: 9; with 10 of 20 retained the bounds are 0.5 and 0.95."""
    assert 9 == oracle([6, 3, 1], [10, 10, 10], 20)
    assert (0.5, 0.95) == (10 / 20, (10 + oracle([6, 3, 1], [10, 10, 10], 20)) / 20)
    assert 7.5 == oracle([6, 3, 1], [10, 10, 10], 15)
    assert 0 == oracle([6], [10], 0)


@given(st.lists(st.tuples(st.floats(0.1, 9), st.integers(1, 30)), max_size=12), st.integers(0, 100))
def test_oracle_never_beats_everything(items: list[tuple[float, int]], budget: int) -> None:
    """No budget buys more than all values, and more budget never buys less."""
    spent = [oracle([v for v, _ in items], [c for _, c in items], b) for b in (0, budget, budget + 10, 10_000)]

    assert spent == sorted(spent)
    assert spent[-1] == pytest.approx(sum(v for v, _ in items))


TAIL = policy_from({"name": "tail", "stages": [{
    "name": "tail", "trigger": {"use": "message-count", "more_than": 5}, "cut": {"use": "tokens", "tail_tokens": 10}}]})


def bounded(summariser: str) -> dict[str, float | None]:
    """Retention and bounds of a lane with a summariser, for two needs that only a summary can hold and one in view."""
    script = Script().user("start with src/alpha.py and budget_word").user("filler")
    for n in range(4):
        script.call("Read", json.dumps({"file_path": f"src/file{n}.py"})).result("word " * 20)
    made = Session(script.call("Grep", "{}").result("x").build(), FixedCounter((10,) * 60))
    step = len(made.log.steps) - 1
    use_needs(made, [Need(step=step, span=TextSpan("path", "src/alpha.py"), weight=2.0),
                     Need(step=step, span=TextSpan("identifier", "budget_word"), weight=1.0),
                     Need(step=step, span=TextSpan("path", "src/file3.py"), weight=1.0)])
    found = Trial(session=made, lane=made.replay(TAIL, ROOMY, summariser), capacity=ROOMY)
    return values(found, Retention(), SummaryBounds())


def test_bounds_of_a_lane() -> None:
    """An empty summary gives the floor; a real one lies between floor and ceiling."""
    empty, real = bounded("empty"), bounded("extractive")

    assert empty["evidence_retention"] == empty["evidence_floor"] == real["evidence_floor"]
    assert (real["evidence_floor"] or 0) <= (real["evidence_retention"] or 0) <= (real["evidence_ceiling"] or 0) <= 1
    assert 0 <= (real["summary_efficiency"] or 0) <= 1
    assert (empty["evidence_retention"] or 0) < (real["evidence_retention"] or 0)


def test_bounds_without_a_summary_are_missing() -> None:
    """Where no summary came into view there is nothing to bound."""
    session = Session(Script().user("hi").say("ok").build(), FixedCounter((1, 1)))
    found = list(SummaryBounds().measure(trial(session)))

    assert {None} == {m.value for m in found}
    assert {"no summary in this lane"} == {m.reason for m in found}
