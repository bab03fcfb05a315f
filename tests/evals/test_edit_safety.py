"""Edit safety: what an edit can be typed from, line by line and rule by rule."""

from __future__ import annotations

import json

import pytest

from evals.metrics.base import Trial
from evals.metrics.edit_safety import EditSafety
from evals.watch import watched
from replay.engine import Session
from replay.policy.base import Capacity
from replay.policy.load import policy_from
from replay.policy.policy import Policy
from replay.testing import FixedCounter, Script

ROOMY = Capacity(window=10_000_000)
BODY = "def total(items):\n    count = len(items)\n    return sum(items) / count\n\n\ndef other():\n    return None\n"


def full() -> Policy:
    """Every message, always."""
    return policy_from({"name": "full"})


def mask(keep: int = 1) -> Policy:
    """Only the newest results."""
    rule = {"use": "keep-newest", "keep": keep}
    return policy_from({"name": "mask", "stages": [{"name": "mask", "tool_results": rule}]})


def tail(tokens: int) -> Policy:
    """The newest messages alone, of four characters a token."""
    return policy_from({"name": "tail", "stages": [{"name": "tail", "cut": {"use": "tokens", "tail_tokens": tokens}}]})


def read(script: Script, text: str = BODY, path: str = "src/a.py") -> Script:
    """A read of a file."""
    return script.call("Read", json.dumps({"file_path": path})).result(text)


def edit(script: Script, old: str, new: str = "pass", path: str = "src/a.py", failed: bool = False,
         **more: object) -> Script:
    """An edit of a file."""
    arguments = {"file_path": path, "old_string": old, "new_string": new, **more}
    return script.call("Edit", json.dumps(arguments)).result("error" if failed else "ok", is_error=failed)


def pause(script: Script, rounds: int = 3) -> Script:
    """Other work, whose results push older ones out."""
    for n in range(rounds):
        script.call("Bash", json.dumps({"command": f"echo {n}"})).result(f"{n}" * 40)
    return script


def verdicts(script: Script, policy: Policy) -> list[str]:
    """Verdict of every edit under a policy."""
    made = Session(script.build(), FixedCounter((10,) * 200))
    trial = Trial(session=made, lane=made.replay(policy, ROOMY, "empty"), capacity=ROOMY)
    return list(watched(trial).verdicts)


def measured(script: Script, policy: Policy) -> dict[str, float | None]:
    """Measurements by name."""
    made = Session(script.build(), FixedCounter((10,) * 200))
    trial = Trial(session=made, lane=made.replay(policy, ROOMY, "empty"), capacity=ROOMY)
    return {m.name: m.value for m in EditSafety().measure(trial)}


def test_an_edit_of_a_visible_read_is_exact() -> None:
    """Old text in one visible text of the file; masked, the line is gone and the edit unsafe."""
    script = edit(pause(read(Script().user("go"))), "    return sum(items) / count")

    assert ["exact"] == verdicts(script, full())
    assert ["unsafe"] == verdicts(script, mask())
    assert (1, 0) == (measured(script, full())["edit_safety"], measured(script, mask())["edit_safety"])


def test_lines_from_anywhere_are_enough() -> None:
    """Lines that stand scattered in other results are safe, though not exact."""
    script = Script().user("go")
    difference = "-    return sum(items) / count\n ...\n+    count = len(items)"
    script.call("Bash", '{"command":"git diff"}').result(difference)
    edit(script, "    count = len(items)\n    return sum(items) / count")

    assert ["lines"] == verdicts(script, full())


def test_one_missing_line_makes_it_unsafe() -> None:
    """Every long line must be visible."""
    script = read(Script().user("go"))
    pause(script).call("Bash", '{"command":"git diff"}').result("-    count = len(items)")

    assert ["unsafe"] == verdicts(edit(script, "    count = len(items)\n    return sum(items) / count"), mask())


def test_another_file_is_no_exact_source() -> None:
    """The same text in a read of another file holds its lines, no more."""
    script = read(Script().user("go"), path="src/b.py")
    edit(script, "    return sum(items) / count")

    assert ["lines"] == verdicts(script, full())


def test_short_old_text_needs_the_file() -> None:
    """Without a long line only the file itself tells."""
    script = edit(pause(read(Script().user("go"), "x = 1\ny = 2\n")), "x = 1")

    assert ["exact"] == verdicts(script, full())
    assert ["unsafe"] == verdicts(script, mask())


@pytest.mark.parametrize("shown", [
    "     1→x = 1\n     2→y = 2\n", "     1\tx = 1\n     2\ty = 2", "1: x = 1\n2: y = 2", "00001| x = 1\n00002| y = 2",
    "[File: a.py (2 lines)]\n1:x = 1\n2:y = 2\n(end)"])
def test_line_numbers_are_left_out(shown: str) -> None:
    """Numbers that a tool puts in front of lines do not stand in the file."""
    assert ["exact"] == verdicts(edit(read(Script().user("go"), shown), "x = 1\ny = 2"), full())


def test_visible_later_edits_are_applied() -> None:
    """Text that an edit brought in is known from the edit; text that it took out is not there any more."""
    script = read(Script().user("go"), "one = 1\ntwo = 2\n")
    edit(script, "two = 2", "three = 3")

    assert ["exact", "exact"] == verdicts(edit(script, "one = 1\nthree = 3"), full())
    assert ["exact", "exact", "unseen"] == verdicts(edit(script, "one = 1\ntwo = 2"), full())


def test_an_edit_that_is_out_of_view_is_not_applied() -> None:
    """With the later edit dropped the view still shows the text from before it."""
    script = read(Script().user("go"), "one = 1\ntwo = 2\n")
    edit(script, "two = 2", "three = 3")
    read(pause(script), "one = 1\nthree = 3\n")
    made = verdicts(edit(script, "one = 1\nthree = 3"), tail(25))

    assert "exact" == made[-1]


def test_what_the_agent_wrote_itself_counts_while_the_call_is_visible() -> None:
    """The body of a written file, and new text of an edit, are read from the call."""
    script = Script().user("go")
    script.call("Write", json.dumps({"file_path": "src/a.py", "content": BODY})).result("ok")
    edit(pause(script), "    return sum(items) / count")

    assert ["exact"] == verdicts(script, mask())
    assert ["unsafe"] == verdicts(script, tail(10))


def test_a_failed_edit_is_not_applied() -> None:
    """An edit that was refused leaves the text as it was, and is judged like any other."""
    script = read(Script().user("go"), "one = 1\ntwo = 2\n")
    edit(script, "two = 2", "three = 3", failed=True)

    assert ["exact", "exact"] == verdicts(edit(script, "two = 2"), full())


def test_all_places_may_be_replaced() -> None:
    """`replace_all` changes every place."""
    script = edit(read(Script().user("go"), "a = old\nb = old\n"), "old", "new", replace_all=True)

    assert ["exact", "exact"] == verdicts(edit(script, "a = new\nb = new"), full())


def test_every_part_of_a_multi_edit_is_judged() -> None:
    """Parts count one by one, each after the parts before it."""
    script = read(Script().user("go"), "one = 1\ntwo = 2\n")
    parts = [{"old_string": "one = 1", "new_string": "uno = 1"}, {"old_string": "nowhere to see", "new_string": "x"}]
    script.call("MultiEdit", json.dumps({"file_path": "src/a.py", "edits": parts})).result("ok")

    assert ["exact", "unseen"] == verdicts(script, full())


def test_writes_and_inserts_are_not_assessable() -> None:
    """A whole-file write and an edit without old text replace nothing; text from nowhere is counted apart."""
    script = read(Script().user("go"))
    script.call("Write", json.dumps({"file_path": "src/b.py", "content": "x"})).result("ok")
    edit(edit(script, "", "inserted"), "a text that nobody ever saw")
    found = measured(script, full())

    assert None is found["edit_safety"]
    assert (2, 1, 0) == (found["edits_not_assessable"], found["edits_unseen"], found["edits_assessable"])


def test_line_ends_are_normalised_and_flagged() -> None:
    """Carriage returns and spaces at line ends do not matter, and are counted."""
    script = edit(read(Script().user("go"), "x = 1  \r\ny = 2\r\n"), "x = 1\ny = 2")
    other = edit(read(Script().user("go"), "x = 1\ny = 2\n"), "x = 1  \r\ny = 2")

    assert (["exact"], ["exact"]) == (verdicts(script, full()), verdicts(other, full()))
    assert (0, 1) == (measured(script, full())["edits_normalised"], measured(other, full())["edits_normalised"])


def test_a_patch_is_judged_hunk_by_hunk() -> None:
    """Hunks of a patch are edits; files read by a command are sources."""
    script = Script().user("go").call("exec_command", json.dumps({"cmd": "sed -n '1,2p' src/a.py"}))
    hunks = "@@\n one = 1\n-two = 2\n+two = 3\n@@\n-never = 0\n"
    patch = f"*** Begin Patch\n*** Update File: src/a.py\n{hunks}*** End Patch"
    script.result("one = 1\ntwo = 2")
    script.call("apply_patch", json.dumps({"input": patch})).result("ok")

    assert ["exact", "unseen"] == verdicts(script, full())


def test_an_old_read_that_was_overwritten_is_no_source() -> None:
    """After a write of the whole file only the new body counts."""
    script = read(Script().user("go"), "one = 1\n")
    script.call("Write", json.dumps({"file_path": "src/a.py", "content": "two = 2\n"})).result("ok")

    assert ["unseen"] == verdicts(edit(script, "one = 1"), full())


def test_relative_and_absolute_paths_are_one_file() -> None:
    """An edit by the absolute path is typed from a read by the relative one."""
    script = edit(read(Script().user("go"), "x = 1\n"), "x = 1", path="/repo/src/a.py")

    assert ["exact"] == verdicts(script, full())
