"""Test runs in a session: counts of every runner, which commands run everything, how they ended."""

from __future__ import annotations

import json

import pytest

from evals.actions import actions
from evals.suite_counts import Counts, counts
from evals.suite_runs import is_selected, suite_runs
from replay.testing import Script


@pytest.mark.parametrize(("text", "runner", "passed", "failed"), [
    ("=== 3 failed, 10 passed, 1 skipped in 0.12s ===", "pytest", 10, 3),
    ("............\n12 passed in 0.05s", "pytest", 12, 0), ("1 error in 0.10s", "pytest", 0, 1),
    ("========= 2 failed, 1 error in 1.20s =========", "pytest", 0, 3),
    ("Ran 12 tests in 0.001s\n\nOK", "unittest", 12, 0), ("Ran 5 tests in 0.1s\n\nFAILED (failures=1, errors=1)", "unittest", 3, 2),
    ("Ran 5 tests in 0.1s\n\nOK (skipped=2)", "unittest", 3, 0),
    ("test result: ok. 12 passed; 0 failed; 1 ignored;\ntest result: FAILED. 3 passed; 2 failed; 0 ignored;", "cargo", 15, 2),
    ("     Summary [   0.1s] 12 tests run: 11 passed (1 slow), 1 failed, 0 skipped", "nextest", 11, 1),
    ("ok  \ta/b\t0.1s\nFAIL\ta/c\t0.2s\n?   \ta/d\t[no test files]\nFAIL", "go test", 1, 1),
    ("ok  \ta/b\t(cached)\nok  \ta/c\t1.2s", "go test", 2, 0), ("ok  \ta/b\t0.1s [no tests to run]\nok  \ta/c\t1s", "go test", 1, 0), ("FAIL\ta/b [build failed]\nFAIL", "go test", 0, 1),
    ("ok  \ta/c\t1.2s\nFAIL", "go test", 1, 1), ("--- PASS: TestA (0.0s)\n--- FAIL: TestB (0.0s)\n", "go test", 1, 1),
    ("DONE 523 tests, 3 skipped, 2 failures in 3.1s", "go test", 518, 2),
    ("Tests:       1 failed, 12 passed, 13 total\nTime: 2 s", "jest or vitest", 12, 1),
    (" Test Files  1 passed (1)\n      Tests  1 failed | 12 passed (13)", "jest or vitest", 12, 1),
    ("  12 passing (30ms)\n  1 failing\n", "mocha", 12, 1), ("  4 passing (3ms)\n  1 pending\n", "mocha", 4, 0),
    ("Tests run: 3, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 1 s\nTests run: 7, Failures: 1, Errors: 1, Skipped: 1",
     "maven", 4, 2), ("12 tests completed, 1 failed", "gradle", 11, 1), ("12 examples, 1 failure, 2 pending", "rspec", 9, 1),
    ("12 runs, 30 assertions, 1 failures, 1 errors, 2 skips", "minitest", 8, 2), ("OK (12 tests, 30 assertions)", "phpunit", 12, 0),
    ("Tests: 12, Assertions: 30, Errors: 1, Failures: 2.", "phpunit", 9, 3), ("5 tests, 2 failures", "exunit or bats", 3, 2),
    ("Passed!  - Failed:     0, Passed:    12, Skipped:     0, Total:    12", "dotnet", 12, 0),
    ("90% tests passed, 1 tests failed out of 10", "ctest", 9, 1), ("Executed 12 tests, with 1 failure (0 unexpected)", "xctest", 11, 1),
    ("# tests 13\n# pass 12\n# fail 1", "node", 12, 1), (" 12 pass\n 1 fail\n 30 expect() calls", "bun", 12, 1),
    ("26 passed, 10 failed", "counts", 26, 10), ("\x1b[32m12 passed\x1b[0m in 0.05s", "pytest", 12, 0)])
def test_counts(text: str, runner: str, passed: int, failed: int) -> None:
    """Passed and failed tests, errors among the failed, skipped ones in neither."""
    assert Counts(runner, passed, failed) == counts(text)


@pytest.mark.parametrize("text", ["", "all fine", "no tests ran in 0.01s", "0 passed, 0 failed", "I ran 3 tests and they passed"])
def test_no_counts(text: str) -> None:
    """Prose and empty runs have none."""
    assert None is counts(text)


@pytest.mark.parametrize("command", [
    "pytest", "pytest -q", "python -m pytest tests/ -x", "cd sub && pytest", "go test ./...", "go test -race -count=1 ./... 2>&1",
    "cargo test", "cargo test --workspace", "npm test", "npm run test", "yarn test --coverage", "make test", "mise run test:ci",
    "python -m unittest", "mvn -q test", "./gradlew test", "bundle exec rspec", "python tests/run.py -v", "npx vitest run"])
def test_full_runs(command: str) -> None:
    """Commands that run all tests."""
    assert not is_selected(command)


@pytest.mark.parametrize("command", [
    "pytest tests/test_a.py", "pytest -k dates", "pytest tests/test_a.py::test_b", "pytest -m slow", "go test ./internal/sem",
    "go test ./... -run TestA", "go test", "cargo test parse_date", "cargo test -p core", "npm test -- src/a.test.ts",
    "npx jest -t dates", "mise run test:integration", "make test-unit", "python tests/run.py batch", "mvn test -Dtest=A", "ls"])
def test_chosen_tests(command: str) -> None:
    """Commands that choose some."""
    assert is_selected(command)


def runs(*pairs: tuple[str, str], tool: str = "Bash") -> list[tuple[str, bool]]:
    """Value and fullness of the runs in a session of commands with their outputs."""
    script = Script().user("go")
    for command, text in pairs:
        script.call(tool, json.dumps({"command": command})).result(text, is_error=text.startswith("Exit code"))
    return [(r.value, r.full) for r in suite_runs(actions(script.build().main))]


def test_values() -> None:
    """All passed, some failed, all failed; by counts before the exit code."""
    assert [("pass", True), ("partial", True), ("fail", True), ("fail", True), ("pass", True)] == runs(
        ("pytest", "3 passed in 1.0s"), ("pytest", "Exit code 1\n1 failed, 3 passed in 1.0s"),
        ("pytest", "Exit code 1\n2 failed in 1.0s"), ("make test", "Exit code 2\nmake: *** no rule"), ("make test", "done"))


def test_an_exit_code_of_something_else_tells_nothing() -> None:
    """Behind a pipe or another command the exit code is not that of the tests."""
    assert [] == runs(("make test | tail -3", "done"), ("make test || true", "done"), ("make test; ls", "Exit code 1\nx"))
    assert [("pass", True)] == runs(("pytest 2>&1 | tail -3", "3 passed in 1.0s"))


def test_what_did_not_run_to_its_end() -> None:
    """A person's refusal and a command that still runs are no results."""
    script = Script().user("go").call("Bash", '{"command":"make test"}').result("The tool use was rejected.", is_error=True)
    script.call("Bash", '{"command":"make test"}').result("Command running in background with ID: 7")

    assert [] == list(suite_runs(actions(script.build().main)))


def test_other_commands_run_no_tests() -> None:
    """Names of tests in other commands are no runs."""
    assert [] == runs(("cat tests/test_a.py", "3 passed in 1.0s"), ("grep pytest setup.cfg", "x"), ("git commit -m 'pytest'", "x"))


def test_output_that_comes_later() -> None:
    """A run that was started before counts where the waiting call gets its output, by the command named there."""
    script = Script().user("go").call("exec_command", '{"cmd":"go test ./..."}')
    script.result("Process running with session ID 7\nOutput:\n").call("write_stdin", '{"session_id":7,"chars":""}')
    script.result("Command: /bin/zsh -lc 'go test ./...'\nProcess exited with code 0\nOutput:\nok  \ta/b\t1.0s")
    found = list(suite_runs(actions(script.build().main)))

    assert [(4, "pass", True)] == [(r.message, r.value, r.full) for r in found]


def test_wrapped_output() -> None:
    """Output inside a JSON object is read as text."""
    assert [("partial", True)] == runs(("pytest", json.dumps({"status": "error", "text": "x\n1 failed, 2 passed in 0.1s"})))
