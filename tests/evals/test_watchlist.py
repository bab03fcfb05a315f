"""What is watched for in a session, found once and let go with it."""

from __future__ import annotations

import gc
import weakref

from evals.metrics.base import Trial
from evals.metrics.instructions import Instructions
from evals.watchlist import watchlist
from replay.engine import Session
from replay.policy.base import Capacity
from replay.policy.load import policy
from replay.testing import FixedCounter, Script

ROOMY = Capacity(window=1_000_000)


def session() -> Session:
    """A small session with a rule."""
    script = Script().user("Never edit tests/.").call("Read", '{"file_path":"/r/a.py"}').result("x")
    return Session(script.say("done").build(), FixedCounter(()))


def test_one_list_for_a_session() -> None:
    """All metrics and lanes of a session share one list."""
    made = session()

    assert watchlist(made) is watchlist(made)
    assert watchlist(made) is not watchlist(session())


def test_it_goes_with_the_session() -> None:
    """Nothing is kept of a session that is no longer used."""
    made = session()
    list(Instructions().measure(Trial(session=made, lane=made.recorded, capacity=ROOMY)))
    found = weakref.ref(watchlist(made))
    del made
    gc.collect()

    assert None is found()


def test_lanes_that_show_everything_are_measured_once() -> None:
    """A policy that changes nothing gives the very same measurements as the full history."""
    made = session()
    lanes = [made.replay(policy(name), ROOMY) for name in ("full-history", "mycodeagent")]
    whole, other = (Instructions().measure(Trial(session=made, lane=lane, capacity=ROOMY)) for lane in lanes)

    assert whole is other


def test_an_empty_session() -> None:
    """A session without messages or steps has nothing to watch."""
    made = Session(Script().build(), FixedCounter(()))
    found = watchlist(made)

    assert (0, [], 0) == (found.views, found.actions, len(found.mentions))
    assert {"constraints", "tasks", "modified", "read", "failures"} == found.sections.keys()
