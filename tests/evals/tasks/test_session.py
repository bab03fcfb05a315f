"""Recorded sessions run again: as recorded as long as the model decides alike, by stated rules where it does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evals.commands.run import run
from evals.store import load_summary
from evals.tasks.restore import restore
from evals.tasks.rules import parse_rules
from evals.tasks.workspace import can_enclose
from replay.engine import Session
from replay.errors import ConfigError
from replay.readers import read
from replay.testing import Script
from replay.tokens import DEFAULT_TOKENIZER, TokenCounter, tokenizer
from replay.transcript import Transcript

FORGETS = "decode-adr18:scope=before-step,at=0.25,tail_tokens=300"
SAMPLES = Path(__file__).resolve().parents[3] / "datasets" / "samples"

pytestmark = pytest.mark.skipif(not can_enclose(), reason="this system allows no namespaces")


@pytest.fixture
def arguments(endpoint: Any, agent: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What every run here is called with."""
    endpoint.default = agent
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "models.toml").write_text("[model]\nprice_input = 1.0\nprice_output = 2.0\nbackoff = 0.001\nretries = 1\n")
    return ["--model", "tiny", "--base-url", endpoint.url, "--models", str(tmp_path / "models.toml"), "--window", "20000",
            "--summariser", "empty"]


def _run(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(run, [*arguments, "--json"], standalone_mode=False)
    if done.exception:
        raise done.exception
    return json.loads(done.output)


@pytest.fixture
def recording(arguments: list[str], tasks: list[str], tmp_path: Path) -> Path:
    """A recorded run that solved its task."""
    _run("tasks", tasks[0], "-p", "full-history", "--out", str(tmp_path / "rec"), *arguments)
    return next((tmp_path / "rec" / "transcripts").iterdir())


def _trial(summary: dict[str, Any], arm: str) -> dict[str, Any]:
    return next(t for t in summary["live"]["trials"] if t["arm"] == arm)


def _views(path: Path) -> list[str]:
    session = Session(read(path)[0], TokenCounter(tokenizer(DEFAULT_TOKENIZER)))
    return [v.fingerprint for v in session.recorded.views]


@pytest.mark.parametrize("first", [1, 4])
def test_a_control_equals_the_recording_step_by_step(first: int, recording: Path, arguments: list[str], tmp_path: Path,
                                                     tasks: list[str], endpoint: Any) -> None:
    """With the same model and policy every action, every result and every view is the recorded one."""
    asked, environment = len(endpoint.requests), str(Path(tasks[0]) / "environment")
    out = tmp_path / "again"
    summary = _run("session", str(recording), "--from", str(first), "-p", "full-history", "--workspace", environment,
                   "--out", str(out), *arguments)
    control = _trial(summary, "full-history")

    assert ("finished", 8 - first, None) == (control["why"], control["about"]["followed"], control["about"]["diverged_at"])
    assert [] == control["about"]["misses"]
    assert {"recorded": 7 - first} == control["about"]["answers"]
    assert _views(recording) == _views(next((out / "transcripts").iterdir()))
    assert 0 == len(endpoint.requests) - asked
    assert 8 - first == _trial(summary, "recorded")["steps"] == control["steps"]


def test_three_arms_show_what_the_policy_changed(recording: Path, arguments: list[str], tmp_path: Path,
                                                 tasks: list[str]) -> None:
    """The recorded run and the control pass, the forgetful policy leaves the recording and fails."""
    summary = _run("session", str(recording), "-p", "full-history", "-p", FORGETS, "--workspace",
                   str(Path(tasks[0]) / "environment"), "--verify", 'test "$(cat answer.txt)" = mango', "--tool",
                   "bash=live", "--tool", "write=live", "--out", str(tmp_path / "again"), *arguments)
    changed = _trial(summary, FORGETS)

    assert [("recorded", "pass"), ("full-history", "pass"), (FORGETS, "fail")] == [
        (a, _trial(summary, a)["value"]) for a in ("recorded", "full-history", FORGETS)]
    assert 7 == _trial(summary, "full-history")["about"]["followed"]
    assert 1 < changed["about"]["diverged_at"] <= 6
    assert "action" == changed["about"]["diverged_by"]
    assert changed["about"]["diverged_at"] - 1 == changed["about"]["followed"]
    assert any("followed_steps" == r["metric"] for r in summary["leaderboard"])
    assert load_summary(tmp_path / "again")["live"]["control"] == "full-history"


def test_a_call_that_the_recording_lacks_is_a_miss(recording: Path, arguments: list[str], tmp_path: Path,
                                                   endpoint: Any, agent: Callable[..., Any]) -> None:
    """A new call is answered by the next way of its rule; each way that had no answer is an event with its step."""
    def wanders(body: dict[str, Any]) -> Any:
        last = str(body["messages"][-1].get("content"))
        if "STEP 2 of 5" in last:
            return {"calls": [("bash", {"command": "echo elsewhere"})]}
        return {"calls": [("list", {})]} if last.startswith("elsewhere") else agent(body)

    endpoint.default = wanders
    summary = _run("session", str(recording), "-p", "full-history", "--tool", "list=recorded,stop", "--seed", "1", "--out",
                   str(tmp_path / "again"), *arguments)
    trial = _trial(summary, "full-history")

    assert ("stopped", 3, 2) == (trial["why"], trial["about"]["diverged_at"], trial["about"]["followed"])
    assert [(3, "bash", "recorded"), (4, "list", "recorded")] == [
        (m["step"], m["tool"], m["way"]) for m in trial["about"]["misses"]]
    assert {"recorded": 2, "live": 1, "stop": 1} == trial["about"]["answers"]
    assert "unknown" == trial["value"]


def test_a_fixed_answer_is_given_and_told_as_another_result(recording: Path, arguments: list[str], tmp_path: Path) -> None:
    """Where the rule gives something else than the recording had, the run leaves the recording by its result."""
    summary = _run("session", str(recording), "-p", "full-history", "--tool", "bash=fixed:nothing here", "--steps", "2",
                   "--out", str(tmp_path / "again"), *arguments)
    trial = _trial(summary, "full-history")

    assert (1, 1, "result") == (trial["about"]["followed"], trial["about"]["diverged_at"], trial["about"]["diverged_by"])
    assert {"fixed": 2} == trial["about"]["answers"]


def _edited() -> Transcript:
    script = Script().user("Fix it.")
    script.call("Read", '{"file_path": "/repo/a.py"}').result("     1→one\n     2→two\n     3→three")
    script.call("Edit", '{"file_path": "/repo/a.py", "old_string": "two", "new_string": "2"}').result("ok")
    script.call("Write", '{"file_path": "/repo/sub/b.py", "content": "new\\n"}').result("ok")
    script.call("Read", '{"file_path": "/repo/c.py", "offset": 5, "limit": 2}').result("     5→x\n     6→y")
    script.call("Edit", '{"file_path": "/repo/d.py", "old_string": "p", "new_string": "q"}').result("ok")
    script.call("Read", '{"file_path": "/etc/hosts"}').result("     1→localhost\n     2→z")
    script.call("Edit", '{"file_path": "/repo/a.py", "old_string": "three", "new_string": "3"}').result("no", is_error=True)
    script.call("Bash", '{"command": "cat e.txt"}').result("later")
    made = script.say("Done.").build()
    return Transcript(format=made.format, session_id="s", path="", main=made.main, cwd="/repo")


def test_files_are_restored_from_reads_and_edits() -> None:
    """Whole reads, writes and edits that fit give the text; parts, edits of unknown text and other folders do not."""
    transcript = _edited()
    found = restore(transcript, len(transcript.messages) - 3)

    assert {"a.py": "one\n2\nthree", "sub/b.py": "new\n", "e.txt": "later"} == found.texts
    assert {"a.py": "read", "sub/b.py": "written", "c.py": "partly-read", "d.py": "lost", "/etc/hosts": "outside",
            "e.txt": "read-later"} == found.how
    assert 0.5 == found.coverage


def test_files_are_those_of_the_moment() -> None:
    """Before an edit a file is as it was read; a file that the session makes later is not there yet."""
    transcript = _edited()
    found = restore(transcript, 1)

    assert "one\ntwo\nthree" == found.texts["a.py"]
    assert "sub/b.py" not in found.how


def test_a_given_folder_is_the_start(tmp_path: Path) -> None:
    """With a copy of the folder edits apply to what stands there."""
    (tmp_path / "d.py").write_text("a p b")
    found = restore(_edited(), 100, tmp_path)

    assert ("a q b", "base") == (found.texts["d.py"], found.how["d.py"])


@pytest.mark.parametrize("name", ["claude-code/parcels-oversize.jsonl", "codex/ledger-saldo.jsonl", "pi/rainlog-missing.jsonl"])
def test_sessions_of_other_harnesses_run_again(name: str, arguments: list[str], tmp_path: Path, endpoint: Any) -> None:
    """A recorded step of any harness is run again with its own tools; what was restored is told."""
    endpoint.default = lambda _: {"text": "I stop here.", "usage": (1000, 5)}
    summary = _run("session", str(SAMPLES / name), "--from", "6", "-p", "full-history", "--window", "200000", "--out",
                   str(tmp_path / "again"), *arguments[:6], "--summariser", "extractive")
    trial = _trial(summary, "full-history")

    assert "finished" == trial["why"]
    assert 6 == trial["about"]["diverged_at"]
    assert 0 < trial["about"]["restored"]["coverage"] <= 1
    offered = {t["function"]["name"] for t in endpoint.requests[-1]["tools"]}
    assert {c.name for c in read(SAMPLES / name)[0].main.tool_calls()} == offered
    assert {"pass", "unknown", "fail"} >= {t["value"] for t in summary["live"]["trials"]}


@pytest.mark.parametrize(("rules", "said"), [(["bash"], "expected TOOL=WAY"), (["bash=guess"], "no such way guess"),
                                            (["bash=fixed"], "no such way fixed"), (["bash="], "no such way")])
def test_a_rule_that_cannot_be_meant_is_refused(rules: list[str], said: str) -> None:
    """A wrong rule names the tool and what would be right."""
    with pytest.raises(ConfigError, match=said):
        parse_rules(rules)


def test_a_step_that_is_not_there_is_refused(recording: Path, arguments: list[str], tmp_path: Path) -> None:
    """A start beyond the recording is one line with the steps that there are."""
    with pytest.raises(ConfigError, match="has the steps 1 to 7, not 99"):
        _run("session", str(recording), "--from", "99", "-p", "full-history", "--out", str(tmp_path / "x"), *arguments)
