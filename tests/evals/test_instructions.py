"""Instruction retention (B6), with the worked example and the golden session."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from evals.metrics.base import Trial
from evals.metrics.instructions import Instructions, fates
from replay.engine import Lane, Session
from replay.policy.base import Capacity
from replay.policy.load import policy, policy_from
from replay.testing import FixedCounter, Script, summary_message
from replay.transcript import Transcript

ROOMY = Capacity(window=1_000_000)


def golden() -> Any:
    """The module of the golden session."""
    path = Path(__file__).resolve().parents[1] / "replay" / "test_golden_fixture.py"
    spec = importlib.util.spec_from_file_location("golden_fixture", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measured(session: Session, lane: Lane) -> dict[str, float | None]:
    """The measurements by name."""
    return {m.name: m.value for m in Instructions().measure(Trial(session=session, lane=lane, capacity=ROOMY))}


def recorded(transcript: Transcript) -> dict[str, float | None]:
    """The measurements of the recorded lane."""
    session = Session(transcript, FixedCounter(()))
    return measured(session, session.recorded)


def compacted(summary: str, keep: int = 0) -> Transcript:
    """Two constraints in two prompts, four steps that know both, a compaction after two of them."""
    script = Script().user("Never edit tests/.").say("ok").user("Always answer in French.")
    script.call("Read").result("x").call("Read").result("y")
    script.compacted(*([keep] if keep else []), summary_message(summary))
    return script.call("Read").result("z").call("Read").result("w").build()


def test_the_worked_example() -> None:
    """Two constraints over four steps each, one lost for the last two: 6 of 8, one permanent loss."""
    script = Script().user("Never edit tests/. Always answer in French.").call("Read").result("x").call("Read").result("y")
    script.compacted(summary_message("The person wants: never edit tests/."))
    found = recorded(script.call("Read").result("z").call("Read").result("w").build())

    assert 0.75 == found["instruction_retention"]
    assert 1 == found["instruction_permanent_losses"]
    assert 2 == found["constraints"]


@pytest.mark.parametrize("name", ["full", "mask"])
def test_the_golden_session(name: str) -> None:
    """`Never edit tests/` is in view at every step, under the full history and under masking."""
    module = golden()
    session = Session(module.golden(), FixedCounter(module.SIZES, {module.STUB: 10}))
    lane = session.replay(getattr(module, name)(), module.ROOMY)
    found = measured(session, lane)

    assert 1 == found["instruction_retention"] == found["instruction_verbatim_share"]
    assert 0 == found["instruction_permanent_losses"]
    assert ["Never edit tests/."] == [f.constraint.rule.text for f in fates(Trial(session=session, lane=lane, capacity=ROOMY))]


@pytest.mark.parametrize(("summary", "verbatim", "anchored"), [
    ("never edit tests/", 4, 0), ("- Do not edit anything in tests.", 2, 2), ("The tests were edited.", 2, 0), ("", 2, 0)])
def test_verbatim_anchored_lost(summary: str, verbatim: int, anchored: int) -> None:
    """After a compaction a constraint stands verbatim, in other words with its polarity, or not at all."""
    script = Script().user("Never edit tests/.").call("Read").result("x").call("Read").result("y")
    transcript = script.compacted(summary_message(summary)).call("Read").result("z").call("Read").result("w").build()
    session = Session(transcript, FixedCounter(()))
    fate = next(fates(Trial(session=session, lane=session.recorded, capacity=ROOMY)))

    assert (4, verbatim, anchored) == (fate.steps, fate.verbatim, fate.anchored)
    assert (4 - verbatim - anchored) == fate.lost
    assert (3 if fate.lost else None) == fate.first_lost
    assert fate.permanently_lost is (fate.lost > 0)


def test_a_constraint_holds_from_the_step_after_it() -> None:
    """Steps before a constraint was said do not ask for it; the recorded compaction loses the second alone."""
    session = Session(compacted("never edit tests/"), FixedCounter(()))
    trial = Trial(session=session, lane=session.recorded, capacity=ROOMY)

    assert [(5, 0), (4, 2)] == [(f.steps, f.lost) for f in fates(trial)]
    assert pytest.approx(7 / 9) == measured(session, session.recorded)["instruction_retention"]


def test_superseded_constraints_leave_the_set() -> None:
    """Once taken back a constraint is not asked for, so losing it afterwards is no loss."""
    script = Script().user("Never edit tests/.").call("Read").result("x").say("ok").user("You may edit tests/ now.")
    script.compacted(summary_message("nothing"))
    found = recorded(script.call("Read").result("y").say("done").build())

    assert 1 == found["instruction_retention"]
    assert 0 == found["instruction_permanent_losses"]


def test_a_cleared_window_starts_anew() -> None:
    """A person who clears the window gives up what was said before, so the full history keeps everything."""
    script = Script().user("Never edit tests/.").call("Read").result("x").say("ok").compacted(kind="clear")
    transcript = script.user("Something else now.").call("Read").result("y").say("done").build()
    session = Session(transcript, FixedCounter(()))

    assert 1 == measured(session, session.replay(policy("full-history"), ROOMY))["instruction_retention"]
    assert 1 == recorded(transcript)["instruction_retention"]


def test_without_constraints_there_is_no_number() -> None:
    """No constraint is no retention of 1: the number is missing and says why."""
    session = Session(Script().user("Fix it.").say("ok").build(), FixedCounter(()))
    found = list(Instructions().measure(Trial(session=session, lane=session.recorded, capacity=ROOMY)))

    assert [0, None, None, None, None] == [m.value for m in found]
    assert {"no standing constraint was found"} == {m.reason for m in found if m.value is None}
    assert {"L0"} == {m.level for m in found}


def test_a_pinned_rule_is_never_lost() -> None:
    """System messages are kept by every policy, and so are rules in them, whatever else goes."""
    script = Script().system("# AGENTS.md\nAlways run `make check` first.").user("Never edit tests/.")
    session = Session(script.call("Read").result("x").call("Read").result("y").say("ok").build(), FixedCounter(()))
    lane = session.replay(policy_from({"name": "c", "stages": [{"name": "c", "cut": "nothing"}]}), ROOMY, "empty")
    kept, lost = fates(Trial(session=session, lane=lane, capacity=ROOMY))

    assert (0, "rule file") == (kept.lost, kept.constraint.source)
    assert lost.permanently_lost


def test_the_full_history_keeps_every_constraint(transcripts: Path) -> None:
    """On every real session the full history retains all constraints."""
    from replay.find import find
    from replay.readers import read

    for file in find([str(transcripts / "claude-code"), str(transcripts / "pi"), str(transcripts / "openai-chat")]):
        for transcript in read(file.path):
            session = Session(transcript, FixedCounter((1,) * len(transcript.messages)))
            found = measured(session, session.replay(policy("full-history"), ROOMY))
            assert found["instruction_retention"] in (None, 1), file.path
