"""How long requests would take: the published rates, and rates fitted to a session's own times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evals.latency import REFERENCE, Latency, not_negative, session_latency
from evals.metrics.base import Trial
from evals.metrics.latency import ModelTime
from replay.engine import Session
from replay.policy.base import Capacity
from replay.policy.load import policy_from
from replay.testing import FixedCounter, Script
from replay.transcript import Transcript, Usage

ROOMY = Capacity(window=1_000_000)
FULL = policy_from({"name": "full"})


def test_worked_example() -> None:
    """50,000 tokens in and 300 out take 5.09 s by the published rates, cached or not."""
    assert 5.09 == pytest.approx(REFERENCE.seconds(50_000, 0, 300), abs=0.005)
    assert REFERENCE.seconds(50_000, 0, 300) == pytest.approx(REFERENCE.seconds(10_000, 40_000, 300))


def timed(steps: int, rates: Latency) -> Transcript:
    """A session whose responses took exactly as long as the rates say."""
    script = Script().user("go")
    used = [Usage(input_uncached=100 * (n % 7), cache_read=1_000 * n, output=10 * (n % 5)) for n in range(1, steps + 1)]
    for usage in used:
        script.call("Read", usage=usage).result("x")
    made = script.build()
    clock, moments, messages = 0.0, [], list(made.messages)
    for step, usage in zip(made.steps, used, strict=True):
        messages[step.start - 1] = replace(messages[step.start - 1], time=clock)
        clock += rates.seconds(usage.input_uncached, usage.cache_read, usage.output)
        moments.append(replace(step, time=clock))
        clock += 60.0
    return replace(made, main=replace(made.main, messages=tuple(messages), steps=tuple(moments)))


def test_thirty_timed_steps_give_the_sessions_own_rates() -> None:
    """From 30 steps on the rates that made the times are found again; with 29 the published ones stand."""
    rates = Latency(base=2.0, uncached=1e-3, cached=1e-5, output=0.02)
    fitted = session_latency(Session(timed(30, rates), FixedCounter((10,) * 200)))

    assert (30, 0) == (fitted.steps, session_latency(Session(timed(29, rates), FixedCounter((10,) * 200))).steps)
    assert (2.0, 1e-3, 1e-5, 0.02) == pytest.approx((fitted.base, fitted.uncached, fitted.cached, fitted.output))


def test_no_token_takes_less_than_no_time() -> None:
    """A column that would get a negative weight is left out, and the rest fitted without it."""
    columns = np.array([[1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])

    assert [4.0, 0.0] == pytest.approx(not_negative(columns, np.array([5.0, 4.0, 3.0])))


def test_a_lane_waits_for_every_request() -> None:
    """Two requests of 30 and 50 tokens without a cache and 20 tokens out: two times the base and each token's rate."""
    script = Script().user("go").call("Read").result("x").say("done")
    session = Session(script.build(), FixedCounter((30, 10, 10, 10)))
    trial = Trial(session=session, lane=session.replay(FULL, ROOMY), capacity=ROOMY)
    found = {m.name: m.value for m in ModelTime().measure(trial)}

    assert 2 * 1.457 + 80 * 4.266e-5 + 20 * 4.999e-3 == pytest.approx(found["latency_seconds"])
    assert 0 == found["latency_fitted_steps"]


def test_no_call_takes_no_time() -> None:
    """A session without a model call has no duration but a reason."""
    session = Session(Script().user("hi").build(), FixedCounter((1,)))
    found = list(ModelTime().measure(Trial(session=session, lane=session.replay(FULL, ROOMY), capacity=ROOMY)))

    assert {None} == {m.value for m in found}
    assert {"the session has no model call"} == {m.reason for m in found}
