"""Open-task retention (B7)."""

from __future__ import annotations

import json

import pytest

from evals.metrics.base import Trial
from evals.metrics.tasks import OpenTasks
from evals.watchlist import watchlist
from replay.engine import Session
from replay.policy.base import Capacity
from replay.policy.load import policy
from replay.testing import FixedCounter, Script, summary_message
from replay.transcript import Transcript

ROOMY = Capacity(window=1_000_000)
ITEMS = ("Write the importer for Borea", "Check the golden files again", "Report the yearly budget")


def todo(script: Script, **status: str) -> Script:
    """The agent writes its whole list; items are open unless their number says otherwise."""
    items = [{"content": text, "status": status.get(f"item{n}", "pending")} for n, text in enumerate(ITEMS)]
    return script.call("TodoWrite", json.dumps({"todos": items})).result("ok")


def measured(transcript: Transcript, name: str = "recorded") -> dict[str, float | None]:
    """The measurements under a policy by name."""
    session = Session(transcript, FixedCounter(()))
    lane = session.recorded if name == "recorded" else session.replay(policy(name), ROOMY)
    return {m.name: m.value for m in OpenTasks().measure(Trial(session=session, lane=lane, capacity=ROOMY))}


def test_the_worked_example() -> None:
    """Three open, two visible: .667 at the step after the compaction, and 1 before it."""
    script = todo(Script().user("go")).call("Read").result("x")
    script.compacted(summary_message(f"Open:\n- {ITEMS[0]}\n- {ITEMS[2].lower()}"))
    found = measured(script.say("done").build())

    assert pytest.approx(2 / 3) == found["open_task_retention_last"]
    assert pytest.approx((1 + 2 / 3) / 2) == found["open_task_retention"]


def test_four_fifths_of_the_words_in_a_summary() -> None:
    """An item counts in a summary by its words in one sentence, and not where they are spread."""
    script = todo(Script().user("go"), item1="completed", item2="completed")
    loose = script.compacted(summary_message("importer for Borea: still to write")).say("done").build()
    spread = todo(Script().user("go"), item1="completed", item2="completed")

    assert 1 == measured(loose)["open_task_retention_last"]
    assert 0 == measured(spread.compacted(summary_message("write it.\nimporter.\nBorea.")).say("x").build())[
        "open_task_retention_last"]


def test_closed_items_are_not_asked_for() -> None:
    """What is done or given up may be forgotten; with nothing open the last step has no number."""
    script = todo(Script().user("go"), item0="completed", item1="cancelled", item2="completed")
    found = measured(script.compacted(summary_message("all done")).say("x").build())

    assert None is found["open_task_retention_last"]
    assert None is found["open_task_retention"]


def test_stale_and_absent_plans() -> None:
    """An older plan in view without the latest is stale; none in view is absent."""
    script = todo(Script().user("go"))
    script = todo(script, item0="completed").compacted(summary_message("s"), 1, 2).call("Read").result("x")
    stale = measured(script.say("done").build())
    absent = measured(todo(Script().user("go")).compacted(summary_message("s")).say("done").build())

    assert (pytest.approx(2 / 3), 0) == (stale["plan_stale_share"], stale["plan_absent_share"])
    assert (0, 1) == (absent["plan_stale_share"], absent["plan_absent_share"])


def test_the_full_history_keeps_everything() -> None:
    """Under the full history every open item is visible and no plan is stale."""
    script = todo(todo(Script().user("go")), item0="completed").call("Read").result("x").say("done")
    found = measured(script.build(), "full-history")

    assert [1, 1, 0, 0] == [found[n] for n in ("open_task_retention", "open_task_retention_last", "plan_stale_share",
                                               "plan_absent_share")]


@pytest.mark.parametrize(("tool", "arguments"), [
    ("TodoWrite", {"todos": [{"content": "A b c", "status": "in_progress"}, {"content": "D e f", "status": "completed"}]}),
    ("todowrite", {"todos": [{"content": "A b c", "status": "pending"}]}),
    ("update_plan", {"plan": [{"step": "A b c", "status": "pending"}, {"step": "D e f", "status": "completed"}]}),
    ("write_todos", {"todos": [{"description": "A b c", "status": "pending"}, {"description": "D", "status": "cancelled"}]}),
    ("task_tracker", {"command": "plan", "task_list": [{"title": "A b c", "status": "todo"}]}),
    ("TodoWrite", {"todos": ["A b c", 7, None, {"content": 3, "status": "pending"}, {"content": "D", "status": "done"}]})])
def test_plan_tools(tool: str, arguments: dict[str, object]) -> None:
    """Whole lists of every known tool; items of wrong types are passed over."""
    session = Session(Script().user("go").call(tool, json.dumps(arguments)).result("ok").build(), FixedCounter(()))

    assert [("A b c",)] == [p.open for p in watchlist(session).plans]


def test_tasks_one_by_one() -> None:
    """Tasks that are created and updated one by one make the same kind of plan."""
    script = Script().user("go").call("TaskCreate", '{"subject":"First thing"}').result("Task #1 created successfully")
    script.call("TaskCreate", '{"subject":"Second thing"}').result("Task #2 created successfully")
    script.call("TaskUpdate", '{"taskId":"1","status":"completed"}').result("Updated task #1")
    session = Session(script.build(), FixedCounter(()))

    assert [("First thing",), ("First thing", "Second thing"), ("Second thing",)] == [
        p.open for p in watchlist(session).plans]


def test_no_plan_tool() -> None:
    """Without a todo tool there is no number, and the reason is said."""
    session = Session(Script().user("go").say("x").build(), FixedCounter(()))
    found = list(OpenTasks().measure(Trial(session=session, lane=session.recorded, capacity=ROOMY)))

    assert [None] * 4 == [m.value for m in found]
    assert {"the session has no todo or plan tool"} == {m.reason for m in found}
