"""Error memory (B12)."""

from __future__ import annotations

import json

import pytest

from evals.metrics.base import Trial
from evals.metrics.errors import ErrorMemory
from evals.shell_results import exit_code, failed, normalised, signature
from replay.engine import Session
from replay.policy.base import Capacity
from replay.policy.load import policy, policy_from
from replay.testing import FixedCounter, Script, summary_message
from replay.transcript import Transcript

ROOMY = Capacity(window=1_000_000)
FAILURE = "Exit code 1\nrunning\nValueError: unconverted data remains"


def run(script: Script, command: str, text: str, is_error: bool = False) -> Script:
    """A shell command with its result."""
    return script.call("Bash", json.dumps({"command": command})).result(text, is_error=is_error)


def measured(transcript: Transcript, name: str = "recorded") -> dict[str, float | None]:
    """The measurements under a policy by name."""
    session = Session(transcript, FixedCounter(()))
    lane = session.recorded if name == "recorded" else session.replay(policy(name), ROOMY)
    return {m.name: m.value for m in ErrorMemory().measure(Trial(session=session, lane=lane, capacity=ROOMY))}


def retried(summary: str | None, again: str = "ok") -> Transcript:
    """A command fails, perhaps a compaction follows, and it is run again."""
    script = run(Script().user("go"), "pytest -q tests/unit", FAILURE, True)
    if summary is not None:
        script.compacted(summary_message(summary))
    return run(script, "cd /r && pytest -q tests/unit 2>&1 | tail -5", again, again != "ok").say("done").build()


@pytest.mark.parametrize(("summary", "kept"), [
    (None, 1), ("", 0), ("It said ValueError: unconverted data remains.", 1), ("pytest -q tests/unit failed.", 1),
    ("pytest -q tests/unit was run.", 0), ("Something failed.", 0)])
def test_what_a_retry_still_knows(summary: str | None, kept: int) -> None:
    """A failure is known by its result, by its error line, or by a sentence that says that this command failed."""
    found = measured(retried(summary))

    assert (1, kept, 1 - kept) == (found["retries"], found["error_memory_retention"], found["retries_hidden"])


def test_repeats_that_fail_again() -> None:
    """Retries that failed once more are counted, and those of them whose earlier failure is hidden."""
    hidden, known = measured(retried("", FAILURE)), measured(retried(None, FAILURE))

    assert (1, 1) == (hidden["repeat_failures"], hidden["repeat_failures_hidden"])
    assert (1, 0) == (known["repeat_failures"], known["repeat_failures_hidden"])


def test_a_blanked_result_hides_a_failure() -> None:
    """Masking the failed result hides it from the retry; the full history never does."""
    transcript = retried(None)
    session = Session(transcript, FixedCounter(()))
    rule = {"use": "keep-newest", "keep": 0}
    lane = session.replay(policy_from({"name": "m", "stages": [{"name": "m", "tool_results": rule}]}), ROOMY)
    masked = {m.name: m.value for m in ErrorMemory().measure(Trial(session=session, lane=lane, capacity=ROOMY))}

    assert 0 == masked["error_memory_retention"]
    assert 1 == measured(transcript, "full-history")["error_memory_retention"]


def test_a_success_in_between_closes_the_matter() -> None:
    """Of three runs of which the first failed only the second tries a failure again."""
    script = run(run(Script().user("go"), "make", FAILURE, True), "make", "ok")

    assert 1 == measured(run(script, "make", "ok").build())["retries"]


def test_calls_side_by_side_are_no_retries() -> None:
    """Two calls of one response cannot know of each other's failure."""
    script = Script().user("go").call("Bash", '{"command":"make"}', count=2)
    found = measured(script.result(FAILURE, 0, True).result(FAILURE, 1, True).say("x").build())

    assert 0 == found["retries"]


def test_the_same_file_again() -> None:
    """Edits and reads are the same attempt when they have the same file."""
    edit = '{"file_path":"/r/a.py"}'
    script = Script().user("go").call("Edit", edit).result("String to replace not found in file.", is_error=True)

    assert 1 == measured(script.call("Edit", edit).result("ok").build())["retries"]


def test_nothing_to_remember() -> None:
    """Without a retry there is no share, and the reason is said."""
    session = Session(Script().user("go").say("x").build(), FixedCounter(()))
    found = list(ErrorMemory().measure(Trial(session=session, lane=session.recorded, capacity=ROOMY)))

    assert [0, 0, None, None, None] == [m.value for m in found]
    assert {"nothing that had failed was tried again"} == {m.reason for m in found if m.value is None}


@pytest.mark.parametrize(("text", "code"), [
    ("Exit code 2\nboom", 2), ("Chunk ID: a\nWall time: 1 s\nProcess exited with code 0\nOutput:\nx", 0),
    ("Exit code: 0\nWall time: 1\nOutput:", 0), ('{"output":"x","metadata":{"exit_code":3}}', 3),
    ("<returncode>1</returncode>\n<output>", 1), ("x\n[The command completed with exit code 4.]\n[cwd]", 4),
    ("x\n\nCommand exited with code 5", 5), ("Output: x\nError: (none)\nExit Code: 6\nSignal: 0", 6),
    ("all fine", None), ("the text says exit code 9 in the middle " + "x" * 600, None), ("", None)])
def test_exit_codes(text: str, code: int | None) -> None:
    """Exit codes in the words of each harness, and only where the harness writes them."""
    assert code == exit_code(text)


def test_failed() -> None:
    """A failure is marked, or has an exit code other than 0."""
    assert [True, True, False] == [failed("x", True), failed("Exit code 1\nx", False), failed("fine", False)]


@pytest.mark.parametrize(("text", "line"), [
    (FAILURE, "ValueError: unconverted data remains"), ("Exit code 1\nnope", "nope"), ("Exit code 1\n", ""), ("", ""),
    ("FAIL a\nok b\n--- FAIL: TestX", "--- FAIL: TestX")])
def test_signatures(text: str, line: str) -> None:
    """The last line that tells of an error, else the first."""
    assert line == signature(text)


@pytest.mark.parametrize(("command", "plain"), [
    ("cd /r && make test", "make test"), ("CI=1 timeout 60 make  test 2>&1 | tail -20", "make test"),
    ("make test; echo $?", "make test"), ("cd '/a b' ; make", "make"), ("make", "make"), ("", "")])
def test_normalised_commands(command: str, plain: str) -> None:
    """What changes between two tries of one command is left out."""
    assert plain == normalised(command)
