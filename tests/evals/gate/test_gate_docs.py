"""Every command of docs/gate.md runs, in the order in which a reader meets them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from replay.cli import group

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "gate.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_every_command_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ends with 0, but the one that compares a longer tail with the golden of a shorter one may end with 1."""
    (tmp_path / "datasets").symlink_to(ROOT / "datasets")
    monkeypatch.chdir(tmp_path)
    lines = [line for block in _blocks("sh") for line in block.splitlines()]

    assert 8 == len(lines)
    for line in lines:
        done = CliRunner().invoke(group, shlex.split(line)[1:], standalone_mode=False)
        assert done.exception is None, (line, done.exception)
        assert done.return_value in ((0, 1) if "--tier tolerance" in line else (0,)), (line, done.output)


def test_the_workflow_calls_the_gate_as_it_is() -> None:
    """The example for GitHub Actions uses options that the command has."""
    line = next(x for x in _blocks("yaml")[0].splitlines() if "rewindow gate" in x)
    done = CliRunner().invoke(group, [*shlex.split(line.partition("rewindow ")[2])], standalone_mode=False)

    assert str(done.exception).startswith("tests/cohort.json: no such cohort file")
