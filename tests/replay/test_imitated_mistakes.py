"""A mistake that a preset imitates on purpose is an event with a sentence that a user understands."""

from __future__ import annotations

from pathlib import Path

from replay.engine import Lane, Session
from replay.events import Event
from replay.policy.base import Capacity
from replay.policy.example_tools import replay, session
from replay.policy.load import policy
from replay.testing import FixedCounter, Script
from replay.transcript import Usage

STALE = """
[[stages]]
name = "blank"
trigger = "always"
tool_results = { use = "keep-newest", keep = 0 }

[[stages]]
name = "full"
measure = { use = "report", fields = ["input"], after_change = "keep" }
trigger = { use = "threshold", at = 0.5 }
cut = { use = "messages", messages = 1 }
"""


def fulls(lane: Lane) -> list[Event]:
    """The compactions of a lane."""
    return [e for e in lane.events if e.kind == "full"]


def test_pi_058_says_that_the_first_tail_is_lost() -> None:
    """The second compaction of Pi 0.58 drops what the first one kept, and says so; the first one does not."""
    turns = [m for n in range(1, 7) for m in (("u", 10), ("a", 10, 1_000 * n), ("t", 500), ("s", 10, 9_000))]
    first, second, *_ = fulls(replay(session(*turns), "pi-0.58:reserve=2000,tail_tokens=600", 10_000))

    assert ("kept_tail_lost" not in first.faults, "kept_tail_lost" in second.faults) == (True, True)
    assert "what that one kept is neither kept nor summarised" in second.sentence


def test_later_pi_has_nothing_to_say() -> None:
    """Pi 1.6 begins with the tail that it kept: no fault in the same session."""
    turns = [m for n in range(1, 7) for m in (("u", 10), ("a", 10, 1_000 * n), ("t", 500), ("s", 10, 9_000))]

    assert {()} == {e.faults for e in fulls(replay(session(*turns), "pi-1.6:reserve=2000,tail_tokens=600", 10_000))}


def test_mycodeagent_says_that_one_turn_is_one_round() -> None:
    """One prompt with many steps cannot be cut: the skipped compaction explains it, and so does the end of the run."""
    rounds = [m for _ in range(40) for m in (("a", 100, 70_000), ("t", 2_000))]
    lane = Session(session(("u", 10), *rounds), FixedCounter([2_000] * 100)).replay(
        policy("mycodeagent"), Capacity(window=60_000))
    said = {e.kind: e.sentence for e in lane.events if e.sentence}

    assert "A round begins at each prompt" in said["skipped"]
    assert "could not take anything away" in said["end"]


def test_usage_from_before_a_change_is_named(tmp_path: Path) -> None:
    """A stage that still trusts the report from before the stage ahead of it blanked results says that it is too high."""
    path = tmp_path / "stale.toml"
    path.write_text(STALE, encoding="utf-8")
    script = Script(format="").user("start")
    for _ in range(3):
        script.call("Read", usage=Usage(input_uncached=900, output=1)).result("x" * 4_000)
    told = script.say("done").build()
    lane = Session(told, FixedCounter([300] * len(told.messages))).replay(policy(str(path)), Capacity(window=1_000))

    assert any("stale_usage" in e.faults and "so it is too high" in e.sentence for e in fulls(lane))


def test_langchain_says_when_no_model_is_asked() -> None:
    """A long tool loop leaves nothing of the summary call's input: the fixed sentence and the loss are named."""
    rounds = [m for _ in range(30) for m in (("a", 10), ("t", 2_000))]
    found = fulls(replay(session(("u", 10), *rounds), "langchain-summarization:trigger.at=0,trigger.messages=30", 10_000))

    assert ("nothing_summarised",) == found[0].faults
    assert "a fixed sentence stands for all of it" in found[0].sentence
    assert found[0].dropped
