"""Artifact trail (B8): which files a session touched, and whether a view still names them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from evals.actions import actions
from evals.artifacts import artifacts, distinct
from evals.metrics.artifacts import ArtifactTrail, lost_files
from evals.metrics.base import Trial
from evals.shell_paths import shell_touches
from replay.engine import Session
from replay.policy.base import Capacity
from replay.policy.load import policy
from replay.testing import FixedCounter, Script, summary_message
from replay.transcript import Transcript

ROOMY = Capacity(window=1_000_000)


def edits(*paths: str) -> Script:
    """One edit of each file."""
    script = Script().user("go")
    for path in paths:
        script.call("Edit", json.dumps({"file_path": path})).result("ok")
    return script


def trial(transcript: Transcript, name: str = "recorded") -> Trial:
    """A trial under a policy by name, the session in /r."""
    session = Session(replace(transcript, cwd="/r"), FixedCounter(()))
    lane = session.recorded if name == "recorded" else session.replay(policy(name), ROOMY)
    return Trial(session=session, lane=lane, capacity=ROOMY)


def measured(made: Trial) -> dict[str, float | None]:
    """The measurements by name."""
    return {m.name: m.value for m in ArtifactTrail().measure(made)}


def test_the_worked_example() -> None:
    """Modified a, b and c, of which the summary names a and c: .667."""
    script = edits("/r/src/a.py", "/r/src/b.py", "/r/src/c.py").compacted(summary_message("Changed src/a.py and c.py."))
    made = trial(script.say("done").build())
    found = measured(made)

    assert pytest.approx(2 / 3) == found["artifact_recall_modified_last"]
    assert 3 == found["artifacts_modified"]
    assert ["/r/src/b.py"] == lost_files(made)
    assert pytest.approx((1 + 1 + 2 / 3) / 3) == found["artifact_recall_modified"]


def test_reads_are_a_number_of_their_own() -> None:
    """Read files are counted apart from modified ones; the full history names everything."""
    script = edits("/r/a.py").call("Read", '{"file_path":"/r/b.py"}').result("text").compacted(summary_message("a.py"))
    transcript = script.say("done").build()
    found = measured(trial(transcript))

    assert (1, 0) == (found["artifact_recall_modified_last"], found["artifact_recall_read_last"])
    assert 1 == measured(trial(transcript, "full-history"))["artifact_recall_read"]


def test_a_renamed_file_is_one_file() -> None:
    """Old and new name are aliases: naming either keeps the file."""
    script = edits("/r/old.py").call("Bash", '{"command":"git mv old.py new.py"}').result("")
    script.call("Edit", '{"file_path":"new.py"}').result("ok").compacted(summary_message("new.py was renamed"))
    made = trial(script.say("done").build())

    assert (1, 1) == (measured(made)["artifacts_modified"], measured(made)["artifact_recall_modified_last"])


@pytest.mark.parametrize("path", [
    "/r/node_modules/x/index.js", "/r/dist/a.js", "/r/.venv/lib/a.py", "/r/src/__pycache__/a.pyc", "/tmp/scratch.py"])
def test_generated_files_do_not_count(path: str) -> None:
    """What tools generate, and scratch files, are no artifacts."""
    found = list(ArtifactTrail().measure(trial(edits(path).say("x").build())))

    assert 0 == found[0].value
    assert "no file was modified before a step" == found[1].reason


def test_failed_edits_change_nothing() -> None:
    """An edit that failed modified no file."""
    script = Script().user("go").call("Edit", '{"file_path":"/r/a.py"}').result("text not found", is_error=True).say("x")

    assert 0 == measured(trial(script.build()))["artifacts_modified"]


@pytest.mark.parametrize(("tool", "arguments", "touched"), [
    ("Read", {"file_path": "a.py"}, [("read", "a.py")]), ("read_file", {"path": "./a.py"}, [("read", "a.py")]),
    ("MultiEdit", {"file_path": "a.py", "edits": []}, [("edit", "a.py")]), ("write", {"filePath": "a.py"}, [("write", "a.py")]),
    ("replace_in_file", {"path": "a.py"}, [("edit", "a.py")]), ("mcp__fs__read_file", {"path": "a.py"}, [("read", "a.py")]),
    ("str_replace_editor", {"command": "view", "path": "a.py"}, [("read", "a.py")]),
    ("str_replace_editor", {"command": "create", "path": "a.py"}, [("write", "a.py")]),
    ("apply_patch", {"input": "*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n*** Add File: c.py\n"},
     [("edit", "a.py"), ("rename", "a.py"), ("write", "c.py")]),
    ("exec_command", {"cmd": "cat x.py", "workdir": "sub"}, [("read", "sub/x.py")]),
    ("shell", {"command": ["bash", "-lc", "cat x.py"]}, [("read", "x.py")]),
    ("Grep", {"path": "a.py"}, []), ("Read", {"file_path": 3}, []), ("Read", {}, [])])
def test_tools(tool: str, arguments: dict[str, object], touched: list[tuple[str, str]]) -> None:
    """What each tool touches, by its own name for the path."""
    made = actions(Script().user("go").call(tool, json.dumps(arguments)).result("ok").build().main)

    assert touched == [(t.kind, t.path) for t in made[0].touches]


@pytest.mark.parametrize(("command", "touched"), [
    ("cat a.py b/c.py", [("read", "a.py"), ("read", "b/c.py")]), ("cd src && cat a.py", [("read", "src/a.py")]),
    ("sed -n '1,20p' a.py", [("read", "a.py")]), ("sed -i 's/x/y/' a.py", [("edit", "a.py")]),
    ("head -n 5 a.py | grep x", [("read", "a.py")]), ("rm -f a.py", [("delete", "a.py")]), ("echo x > out/a.txt", [("write", "out/a.txt")]),
    ("cat > a.py <<'EOF'\nrm b.py\nEOF", [("write", "a.py")]), ("ls 2>/dev/null", []), ("awk '{ if ($1 > 5) print }' f", []),
    ("mv $f x.py", []), ("cat 'unclosed", []), ("make test", []), ("mv a.py lib/b.py", [("rename", "a.py")])])
def test_shell_commands(command: str, touched: list[tuple[str, str]]) -> None:
    """The commands that agents read and change files with; what is not understood touches nothing."""
    assert touched == [(kind, path) for kind, path, _ in shell_touches(command)]


def test_relative_and_absolute_paths_are_one_file() -> None:
    """The session's folder makes a relative path the same as its absolute one."""
    made = actions(edits("/r/src/a.py", "src/a.py", "./src/a.py").build().main)

    assert [["/r/src/a.py"]] == [a.paths for a in distinct(artifacts(made, "/r"))]
