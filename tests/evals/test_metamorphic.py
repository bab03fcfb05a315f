"""Laws of the measurements that need no expected numbers: other sessions, shards, summaries, later messages."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.metrics.base import Trial
from evals.metrics.load import measure_all
from replay.engine import Session
from replay.policy.base import Capacity
from replay.policy.load import policy_from
from replay.policy.policy import Policy
from replay.testing import FixedCounter, Script
from replay.transcript import Transcript

ROOMY = Capacity(window=10_000_000)
WORDS = ("alpha_one", "beta_two", "gamma_three", "src/a.py", "lib/b.py", "4711", "return compute(alpha_one)")
FULL = policy_from({"name": "full"})
MASK = policy_from({"name": "mask", "stages": [{"name": "mask", "tool_results": {"use": "keep-newest", "keep": 1}}]})
SUMMARISE = policy_from({"name": "summarise", "stages": [{
    "name": "summary", "trigger": {"use": "message-count", "more_than": 5}, "cut": {"use": "tokens", "tail_tokens": 60}}]})
MOVES = st.lists(st.tuples(st.sampled_from(("user", "Read", "Grep", "Bash")), st.sampled_from(WORDS)), min_size=4,
                 max_size=20)
Moves = list[tuple[str, str]]


def transcript(moves: Moves) -> Transcript:
    """A session of a read and then these prompts and calls: two model calls at least."""
    script = Script().user("Never edit lib/b.py. Start with src/a.py and alpha_one.")
    script.call("Read", '{"file_path":"src/a.py"}').result("return compute(alpha_one)")
    for kind, word in moves:
        if kind == "user":
            script.user(word)
        else:
            script.call(kind, f'{{"file_path":"{word}"}}').result(f"{word} and more")
    return script.say("Done.").build()


def session(moves: Moves) -> Session:
    """The session of these moves."""
    return Session(transcript(moves), FixedCounter(tuple(range(7, 407))))


def measured(made: Session, policy: Policy, summariser: str = "empty") -> dict[str, float | None]:
    """Every measurement of a policy's lane, losses included."""
    trial = Trial(session=made, lane=made.replay(policy, ROOMY, summariser), capacity=ROOMY)
    return {m.name: m.value for m in measure_all(trial, (), True)}


@given(MOVES, MOVES)
@settings(max_examples=25, deadline=None)
def test_other_sessions_change_nothing(moves: Moves, others: Moves) -> None:
    """A session measures the same whatever was measured before it in the same process."""
    alone = measured(session(moves), MASK)
    measured(session(others), MASK)

    assert alone == measured(session(moves), MASK)


@given(MOVES)
@settings(max_examples=25, deadline=None)
def test_the_order_of_policies_changes_nothing(moves: Moves) -> None:
    """What is worked out once for a session is not marked by the policy that asked first."""
    made, again = session(moves), session(moves)
    first = [measured(made, p) for p in (FULL, MASK)]

    assert first == [measured(again, p) for p in (MASK, FULL)][::-1]


@given(MOVES)
@settings(max_examples=25, deadline=None)
def test_the_full_history_loses_nothing(moves: Moves) -> None:
    """The full history has no churn, and whatever retention it measures is 1."""
    found = measured(session(moves), FULL)

    assert 0 == found["view_churn"]
    assert {1} >= {found[n] for n in ("evidence_retention", "edit_safety", "instruction_retention")} - {None}


@given(MOVES)
@settings(max_examples=40, deadline=None)
def test_a_summary_keeps_no_less_than_none_and_no_more_than_the_full_history(moves: Moves) -> None:
    """Evidence with empty summaries ≤ with real ones ≤ with everything in view; the ceiling bounds the real ones."""
    made = session(moves)
    empty, real = (measured(made, SUMMARISE, name) for name in ("empty", "extractive"))
    whole = measured(made, FULL)["evidence_retention"]

    assert (empty["evidence_retention"] is None) == (whole is None)
    if whole is not None:
        assert (empty["evidence_retention"] or 0) <= (real["evidence_retention"] or 0) <= whole == 1
    if real["evidence_floor"] is not None:
        assert empty["evidence_retention"] == pytest.approx(real["evidence_floor"])
        assert (real["evidence_retention"] or 0) <= (real["evidence_ceiling"] or 0) + 1e-12


@given(MOVES, MOVES)
@settings(max_examples=25, deadline=None)
def test_appended_messages_change_no_earlier_view(moves: Moves, later: Moves) -> None:
    """The views that both sessions have carry the same fingerprints."""
    short, long = (session(m).replay(MASK, ROOMY).views for m in (moves, moves + later))
    same = len(short) - 1

    assert [v.print.links[-1] for v in short[:same]] == [v.print.links[-1] for v in long[:same]]
