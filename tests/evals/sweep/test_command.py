"""`rewindow sweep` on the bundled sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evals.store import load_table
from replay.cli import main

SAMPLES = Path(__file__).resolve().parents[3] / "datasets" / "samples"
SWEEP = ("sweep", str(SAMPLES), "-p", "decode-adr18", "--set", "trigger.at=0.3,0.6", "--set", "tail_tokens=2000:6000:2000",
         "--where", "tail_tokens < 6000", "--window", "64000", "--jobs", "1")


def run(*arguments: str) -> int:
    """The exit code of a command line."""
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    return int(stopped.value.code or 0)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of a sweep of four settings."""
    out = tmp_path_factory.mktemp("sweep") / "run"
    assert 0 == run(*SWEEP, "--out", str(out))
    return out


def summary(out: Path) -> dict[str, Any]:
    """The summary of a run."""
    found: dict[str, Any] = json.loads((out / "summary.json").read_bytes())
    return found


def test_every_setting_is_a_policy(swept: Path) -> None:
    """The run holds the unchanged policy and each setting, with the values and a paired difference."""
    found = summary(swept)

    assert [{"trigger.at": a, "tail_tokens": t} for a in (0.3, 0.6) for t in (2000, 4000)] == [
        p["values"] for p in found["sweep"]["points"]]
    assert ["decode-adr18", *(p["policy"] for p in found["sweep"]["points"])] == [p["name"] for p in found["policies"]]
    assert {p["policy"] for p in found["sweep"]["points"]} == {p["policy"] for p in found["pairs"]}


def test_swept_parameters_are_columns(swept: Path) -> None:
    """The trials' table has a column for each parameter, empty for the unchanged policy."""
    trials = load_table(swept, "trials", ["policy", "set.tail_tokens", "set.trigger.at"])
    at = dict(zip(trials["policy"], trials["set.trigger.at"], strict=True))

    assert 0.3 == at["decode-adr18:trigger.at=0.3,tail_tokens=2000"]
    assert at["decode-adr18"] != at["decode-adr18"]


def test_one_at_a_time(swept: Path) -> None:
    """Each parameter's line changes it alone, around the best setting."""
    lines = {s["parameter"]: s for s in summary(swept)["sweep"]["sensitivity"]}

    assert [2000, 4000] == [r["value"] for r in lines["tail_tokens"]["rows"]]
    assert [0.3, 0.6] == [r["value"] for r in lines["trigger.at"]["rows"]]
    assert {"tail_tokens"} == set(lines["trigger.at"]["others"])


def test_a_search(tmp_path: Path) -> None:
    """--trials tries so many settings of the space."""
    pytest.importorskip("optuna", reason="the extra `search` is not installed")
    assert 0 == run(*SWEEP, "--trials", "2", "--out", str(tmp_path / "run"))

    assert 2 == len(summary(tmp_path / "run")["sweep"]["points"])


@pytest.mark.parametrize(("more", "message"), [
    (["--set", "no.such=1,2"], "no.such"), (["--objective", "nonsense"], "nonsense"), (["-p", "decode"], "a sweep is of one policy")])
def test_wrong_calls(more: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What cannot be meant is one line."""
    assert 2 == run(*SWEEP, *more)
    assert message in capsys.readouterr().err


def test_words(swept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The terminal shows each parameter's effect, the settings, and the choice with its reason."""
    from evals.commands.sweep_words import print_sweep

    print_sweep(summary(swept))
    shown = capsys.readouterr().out

    assert "tail_tokens alone" in shown
    assert "best setting:" in shown
