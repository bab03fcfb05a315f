"""Harness read state (B4)."""

from __future__ import annotations

import pytest

from evals.metrics.base import Trial
from evals.metrics.read_state import ReadState
from replay.blocks import Text
from replay.engine import Session
from replay.policy.base import Capacity
from replay.policy.load import policy, policy_from
from replay.testing import FixedCounter, Script, summary_message
from replay.transcript import Message, Transcript

ROOMY = Capacity(window=1_000_000)
FILE = '{"file_path":"/r/src/a.py"}'


def measured(transcript: Transcript, name: str = "recorded") -> dict[str, float | None]:
    """The measurements under a policy by name."""
    session = Session(transcript, FixedCounter(()))
    lane = session.recorded if name == "recorded" else session.replay(policy(name), ROOMY)
    return {m.name: m.value for m in ReadState().measure(Trial(session=session, lane=lane, capacity=ROOMY))}


def read_then(*before_edit: str) -> Script:
    """A file is read, perhaps something happens, and it is edited."""
    script = Script().user("go").call("Read", FILE).result("text of a")
    for what in before_edit:
        if what == "compact":
            script.compacted(summary_message("a was read"))
        elif what == "clear":
            script.compacted(kind="clear")
        else:
            script.call(what, FILE).result("done")
    return script.call("Edit", FILE).result("edited").say("done")


@pytest.mark.parametrize(("before", "unread"), [
    ((), 0), (("compact",), 1), (("compact", "Read"), 0), (("compact", "Write"), 0), (("clear",), 1),
    (("compact", "Read", "compact"), 1)])
def test_a_read_counts_until_the_next_compaction(before: tuple[str, ...], unread: int) -> None:
    """An edit is unread when no read, edit or write of the file came after the last compaction."""
    edits = 1 + before.count("Write")
    found = measured(read_then(*before).build())
    expected = unread + (1 if "Write" in before else 0)

    assert (expected, expected / edits) == (found["unread_edits"], found["unread_edit_share"])


def test_the_policy_decides() -> None:
    """Without the recorded compaction the read still counts."""
    assert 0 == measured(read_then("compact").build(), "full-history")["unread_edits"]


def test_a_read_that_is_still_visible_counts() -> None:
    """A compaction that keeps the read's result verbatim leaves the file read."""
    script = Script().user("go").call("Read", FILE).result("text of a").compacted(summary_message("s"), 1, 2)

    assert 0 == measured(script.call("Edit", FILE).result("edited").build())["unread_edits"]


def test_a_file_that_the_harness_puts_back_counts() -> None:
    """A file that is injected again after a compaction is registered as read."""
    back = Message(index=-1, role="user", origin="injected", blocks=(Text(text="/r/src/a.py\ntext of a"),))
    script = Script().user("go").call("Read", FILE).result("text of a").compacted(summary_message("s"), back)

    assert 0 == measured(script.call("Edit", FILE).result("edited").build())["unread_edits"]


def test_a_blanked_read_stays_registered_without_compaction() -> None:
    """Blanking results is no compaction: the harness's table of read files stays."""
    session = Session(read_then().build(), FixedCounter(()))
    rule = {"use": "keep-newest", "keep": 0}
    lane = session.replay(policy_from({"name": "m", "stages": [{"name": "m", "tool_results": rule}]}), ROOMY)

    assert 0 == next(iter(ReadState().measure(Trial(session=session, lane=lane, capacity=ROOMY)))).value


def test_never_read() -> None:
    """An edit of a file that was never read is unread under every policy; a new file needs no read."""
    script = Script().user("go").call("Edit", FILE).result("edited").call("Write", '{"file_path":"/r/new.py"}').result("ok")
    transcript = script.build()

    assert 1 == measured(transcript)["unread_edits"] == measured(transcript, "full-history")["unread_edits"]
    assert 1 == measured(transcript)["unread_edit_share"]


def test_a_failed_read_registers_nothing() -> None:
    """A read that failed does not count."""
    script = Script().user("go").call("Read", FILE).result("no such file", is_error=True)

    assert 1 == measured(script.call("Edit", FILE).result("edited").build())["unread_edits"]


def test_sessions_without_editing_tools() -> None:
    """Patches through a shell are not guarded: the number is missing and says why."""
    script = Script().user("go").call("exec_command", '{"cmd":"sed -i s/a/b/ a.py"}').result("")
    session = Session(script.build(), FixedCounter(()))
    found = list(ReadState().measure(Trial(session=session, lane=session.recorded, capacity=ROOMY)))

    assert [None, None] == [m.value for m in found]
    assert all("editing tool" in (m.reason or "") for m in found)
