"""The README's commands for Opik, run against a server on this machine."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_commands_of_the_readme(opik_server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each line of the README that begins with `rewindow opik` does what stands beside it."""
    from evals.commands.compare import run
    from evals.commands.opik import opik as command

    monkeypatch.chdir(tmp_path)
    run([str(ROOT / "datasets" / "samples" / "openai-chat")], Path("runs/tour"), policies=["full-history"],
        baseline=None, window=24_000, output_reserve=0, tokenizer="o200k_base", prices=None, cache_model="auto",
        summariser="extractive", jobs=1)
    opik_server.traces["019b0000-0000-7000-8000-000000000001"] = {
        "id": "019b0000-0000-7000-8000-000000000001", "project_name": "my-agent", "start_time": "2999-01-01T00:00:00Z",
        "input": {"messages": [{"role": "user", "content": "hello"}]}, "output": {"text": "hi"}, "thread_id": "talk"}
    lines = re.findall(r"^rewindow opik (.*?)(?:\s+#.*)?$", README, re.MULTILINE)
    for line in lines:
        done = CliRunner().invoke(command, shlex.split(line), input="y\n", catch_exceptions=False)
        assert 0 == done.exit_code, done.output

    assert ["pull", "push"] == [line.split()[0] for line in lines]
    assert [] == opik_server.invalid
    assert [Path("sessions/opik/talk.jsonl")] == list(Path("sessions").rglob("*.jsonl"))
    assert {"my-agent"} == {t["project_name"] for t in opik_server.traces.values()}
    assert {"completed"} == {e["status"] for e in opik_server.experiments.values()}


def test_python_of_the_readme_names_what_exists() -> None:
    """The names that the README imports from the sink are there."""
    names = re.findall(r"^from evals\.sinks\.opik_metrics import (.*?)(?:\s+#.*)?$", README, re.MULTILINE)
    source = (ROOT / "evals" / "sinks" / "opik_metrics.py").read_text(encoding="utf-8")

    assert ["ReplayTask, policy_metrics"] == names
    assert all(re.search(rf"^(class|def) {name}\b", source, re.MULTILINE) for name in names[0].split(", "))


def test_json_says_where_things_stand(opik_server: Any, tmp_path: Path) -> None:
    """`push --json` prints one document with the dataset, the experiments and what was sent."""
    from evals.commands.compare import run
    from evals.commands.opik import opik as command

    run([str(ROOT / "datasets" / "samples" / "openai-chat")], tmp_path / "run", policies=["full-history"],
        baseline=None, window=24_000, output_reserve=0, tokenizer="o200k_base", prices=None, cache_model="auto",
        summariser="extractive", jobs=1)
    done = CliRunner().invoke(command, ["push", str(tmp_path / "run"), "--yes", "--json"], catch_exceptions=False)

    found = json.loads(done.stdout)["runs"][0]
    assert {e["id"] for e in found["experiments"]} == set(opik_server.experiments)
    assert found["cohort"] in found["dataset"]
    assert 1 == found["sent"]["trace"]
