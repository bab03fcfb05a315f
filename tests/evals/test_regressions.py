"""Two stored runs of the same sessions: what changed, by how much, on which sessions, from which step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evals.compare import Comparison, compare
from evals.regressions import SAME, moved_words, regression
from evals.trial import Settings
from replay.errors import ConfigError
from replay.find import Found
from replay.policy.base import Capacity
from replay.policy.load import policy

EARLY, LATE = "decode-adr18:trigger.at=0.4,tail_tokens=200", "decode-adr18:trigger.at=0.7,tail_tokens=200"


def session(path: Path, turns: int) -> Path:
    """A session in OpenAI's shape whose turns each read a file."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You are a coding agent."}]
    for n in range(turns):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "read_file", "arguments": f'{{"path": "m{n}.py"}}'}}
        messages += [{"role": "user", "content": f"Look at module {n}."},
                     {"role": "assistant", "content": "I read it.", "tool_calls": [call]},
                     {"role": "tool", "tool_call_id": f"c{n}", "content": f"line of m{n}\n" * 40},
                     {"role": "assistant", "content": f"Module {n} is fine."}]
    path.write_text("".join(json.dumps(m) + "\n" for m in messages), encoding="utf-8")
    return path


def run(out: Path, files: list[Path], *policies: str, window: int = 1_500) -> Path:
    """A stored run."""
    settings = Settings(capacity=Capacity(window=window), tokenizer="o200k_base", summariser="extractive")
    compare(Comparison(files=tuple(Found(f, True) for f in files), policies=tuple(map(policy, policies)),
                       baseline=policies[0], settings=settings, jobs=1), out)
    return out


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A session too short for any change, and a long one."""
    folder = tmp_path_factory.mktemp("sessions")
    return [session(folder / "short.jsonl", 1), session(folder / "long.jsonl", 6)]


@pytest.fixture(scope="module")
def runs(files: list[Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The same sessions twice: compacted early, and late."""
    folder = tmp_path_factory.mktemp("runs")
    return run(folder / "before", files, EARLY), run(folder / "after", files, LATE)


def test_a_run_is_the_same_as_itself(runs: tuple[Path, Path]) -> None:
    """Nothing is reported to have changed, and every verdict says so."""
    found = regression(runs[0], runs[0], EARLY, EARLY)

    assert ((), (), 2) == (found.settings, found.sessions, found.unchanged)
    assert {SAME} == {c.verdict for c in found.changes}


def test_the_first_differing_step_is_named(runs: tuple[Path, Path]) -> None:
    """Only the long session differs, from the step on at which the early policy compacts."""
    import pandas as pd

    found = regression(*runs, EARLY, LATE)
    steps = [pd.read_parquet(r / "steps.parquet").query("session == 'long' and policy != 'recorded'") for r in runs]
    prints = [list(s.sort_values("step")["fingerprint"]) for s in steps]
    first = next(n for n, pair in enumerate(zip(*prints, strict=True), start=1) if pair[0] != pair[1])

    assert [("long", first)] == [(s.session, s.step) for s in found.sessions]
    assert found.sessions[0].what.startswith("what the model sees")
    assert 1 == found.unchanged


def test_changes_are_paired_over_sessions(runs: tuple[Path, Path]) -> None:
    """The later compaction sends larger views: the change, and how many sessions went which way."""
    found = regression(*runs, EARLY, LATE)
    change = next(c for c in found.changes if c.metric == "mean_view_tokens")

    assert change.difference is not None
    assert change.difference > 0
    assert ("1", "0", "1") == change.words[5:8]
    assert moved_words(found.worst("mean_view_tokens")[0], "mean_view_tokens")[2].startswith("+")


def test_settings_that_differ_are_named(runs: tuple[Path, Path]) -> None:
    """Only what differs is listed, by its place in the policy, with both values."""
    found = regression(*runs, EARLY, LATE)

    assert ("stages.full.trigger.at: 0.4 → 0.7",) == found.settings


def test_unlike_runs_are_refused(runs: tuple[Path, Path], files: list[Path], tmp_path: Path) -> None:
    """Another window or other sessions: one sentence says what differs."""
    other = run(tmp_path / "wide", files, EARLY, window=3_000)
    fewer = run(tmp_path / "fewer", files[:1], EARLY)

    with pytest.raises(ConfigError, match=r"different context windows: 1500 and 3000"):
        regression(runs[0], other, EARLY, EARLY)
    with pytest.raises(ConfigError, match=r"different cohorts: 1 sessions in both, 1 only in the first \(long\)"):
        regression(runs[0], fewer, EARLY, EARLY)
