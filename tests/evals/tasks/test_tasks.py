"""The bundled tasks: each is proved by its own verifier, and the long ones do not fit into a window of 32k."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from evals.commands.run import run
from evals.tasks.task import Task, bundled_tasks, find_tasks, load_task
from evals.tasks.verifier import prove
from evals.tasks.workspace import can_enclose
from replay.errors import ConfigError, ReadError, UnknownName
from replay.tokens import DEFAULT_TOKENIZER, tokenizer

TASKS = bundled_tasks()


@pytest.mark.parametrize("task", TASKS, ids=lambda t: t.name)
def test_the_verifier_tells_solved_from_unsolved(task: Task) -> None:
    """The verifier fails on the untouched environment and passes on the solution."""
    proof = prove(task, enclosed=can_enclose())

    assert ("fail", "pass") == (proof.untouched.value, proof.solved.value), proof


def test_there_are_enough_tasks() -> None:
    """There are at least ten tasks, at least four of them long."""
    assert 10 <= len(TASKS)
    assert 4 <= len([t for t in TASKS if t.reads])


@pytest.mark.parametrize("task", [t for t in TASKS if t.reads], ids=lambda t: t.name)
def test_what_a_long_task_makes_one_read_fills_a_window(task: Task) -> None:
    """The files that cannot be left unread have more tokens than a window of 32k."""
    words = tokenizer(DEFAULT_TOKENIZER)
    files = [f for pattern in task.reads for f in (task.folder / "environment").glob(pattern)]

    assert 32_768 < sum(words.count(f.read_text(encoding="utf-8")) for f in files)


@pytest.mark.parametrize("task", TASKS, ids=lambda t: t.name)
def test_the_environment_holds_neither_tests_nor_solution(task: Task) -> None:
    """No line of the verifier or of the solution's programs lies in what the agent gets."""
    there = "\n".join(f.read_text(encoding="utf-8") for f in (task.folder / "environment").rglob("*") if f.is_file())
    check = (task.folder / "tests" / "check.py.txt").read_text(encoding="utf-8")

    assert "expect(" not in there
    assert not any(line in there for line in check.splitlines() if len(line) > 60)


def test_tasks_are_proved_where_nothing_can_be_enclosed() -> None:
    """On a system without namespaces the proofs run with the limits alone."""
    proof = prove(find_tasks(["csv-report"])[0], enclosed=False)

    assert ("fail", "pass") == (proof.untouched.value, proof.solved.value), proof


def test_verify_says_what_is_proved() -> None:
    """The command proves the named tasks, says what keeps commands apart, and ends with 0."""
    done = CliRunner().invoke(run, ["tasks", "verify", "csv-report", "--json"], standalone_mode=False)
    told = json.loads(done.output)

    assert 0 == done.return_value
    assert [("csv-report", True)] == [(t["task"], t["holds"]) for t in told["tasks"]]
    assert "enclosed" in told["containment"]


def test_verify_fails_for_a_task_that_is_solved_from_the_start(tmp_path: Path) -> None:
    """A verifier that passes on the untouched environment proves nothing: exit code 1, and the task is named."""
    folder = _copy(tmp_path, "easy")
    (folder / "tests" / "test.sh").write_text("exit 0\n")
    done = CliRunner().invoke(run, ["tasks", "verify", str(folder)], standalone_mode=False)

    assert 1 == done.return_value
    assert "easy" in done.output
    assert "NOT PROVED" in done.output


@pytest.mark.parametrize(("script", "value"), [("exit 3", "infra"), ("exit 1", "fail"), ("kill -9 $$", "infra"), ("exit 0", "pass")])
def test_a_verifier_that_breaks_is_no_failure_of_the_task(script: str, value: str, tmp_path: Path) -> None:
    """Exit code 1 says unsolved; any other end but 0 is the verifier's own trouble."""
    folder = _copy(tmp_path, "odd")
    (folder / "tests" / "test.sh").write_text(script + "\n")

    assert value == prove(load_task(folder), enclosed=can_enclose()).solved.value


def _copy(tmp_path: Path, name: str) -> Path:
    return Path(shutil.copytree(find_tasks(["csv-report"])[0].folder, tmp_path / name))


def test_wrong_tasks_are_refused_with_the_place(tmp_path: Path) -> None:
    """A name that is no task, a folder that lacks a part, and a setting that cannot be meant are named."""
    with pytest.raises(UnknownName, match="did you mean csv-report"):
        find_tasks(["csv-reports"])
    with pytest.raises(UnknownName):
        find_tasks(["../tasks/csv-report"])
    folder = _copy(tmp_path, "half")
    (folder / "task.toml").write_text("[agent]\nmax_steps = 0\n")
    with pytest.raises(ConfigError, match=r"agent\.max_steps"):
        load_task(folder)
    shutil.rmtree(folder / "solution")
    with pytest.raises(ReadError, match=r"solution/solve\.sh"):
        load_task(folder)
