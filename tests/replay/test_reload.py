"""What a new process of a harness makes of the session that it loads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest

from replay.engine import Session
from replay.policy.base import Capacity
from replay.policy.load import policy
from replay.testing import FixedCounter, Script
from replay.view import shown_messages

LOST = "Tool execution result was not recorded"


def last_result(extra: Mapping[str, object]) -> str:
    """The result that was pending at a compaction by Qwen Code's rules, as the last step's view shows it."""
    script = Script(format="qwen-code").user("start").call("run").result("x" * 2_000).call("run").result("y" * 2_000)
    told = script.say("done").user("go on").say("yes").build()
    session = Session(replace(told, extra=MappingProxyType(dict(extra))), FixedCounter([500] * len(told.messages)))
    chosen = policy("qwen-code-0.24:trigger.at=0.5,room=0,accept=all")
    lane = session.replay(chosen, Capacity(window=5_000), "length-model", refusals={})
    assert [3] == [e.step for e in lane.events if e.kind == "full"]
    return next(s.message.results[0].text for s in shown_messages(session.log, lane.views[-1].window) if s.index == 4)


@pytest.mark.parametrize(("extra", "start"), [({}, "yyy"), ({"resumed": (4,)}, LOST),
                                              ({"resumed": (4,), "stored": (4,)}, "yyy"),
                                              ({"resumed": (4,), "stored": (2,)}, LOST)])
def test_pending_result_is_lost_unless_it_was_stored(extra: Mapping[str, object], start: str) -> None:
    """Qwen Code 0.24: a new process finds a result that a compaction found pending only where it was stored in time."""
    assert last_result(extra).startswith(start)
