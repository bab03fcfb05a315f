"""Own metrics: by import path, by entry point, and what happens when they fail."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from evals.metrics import METRICS, load
from evals.metrics.base import Measurement, Trial
from replay.cli import main
from replay.engine import Session
from replay.errors import ConfigError
from replay.policy.base import Capacity
from replay.testing import FixedCounter, Script


class Steps:
    """Counts steps."""

    name = "own-steps"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """The number of views."""
        return [Measurement(name="own_steps", value=len(trial.lane.views))]


class Broken:
    """Fails half-way."""

    name = "broken"

    def measure(self, trial: Trial) -> Iterator[Measurement]:
        """One measurement, then an error."""
        yield Measurement(name="half", value=1)
        raise ZeroDivisionError("on purpose")


class Wrong:
    """Answers numbers."""

    name = "wrong"

    def measure(self, trial: Trial) -> Any:
        """No measurement."""
        return [3]


class Greedy:
    """Takes a built-in name."""

    name = "greedy"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """The mean view, as it likes it."""
        return [Measurement(name="mean_view_tokens", value=-1)]


class Nameless:
    """Is no metric."""


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    load.named_metric.cache_clear()
    load._installed.cache_clear()
    sys.modules.setdefault("own_metrics_of_a_test", sys.modules[__name__])
    yield
    load._installed.cache_clear()


def trial() -> Trial:
    """A small trial."""
    session = Session(Script().user("go").say("x").build(), FixedCounter((1, 1)))
    return Trial(session=session, lane=session.recorded, capacity=Capacity(window=100))


def values(*named: str) -> dict[str, tuple[float | None, str | None]]:
    """Value and reason of every measurement."""
    return {m.name: (m.value, m.reason) for m in load.measure_all(trial(), named)}


def test_a_metric_by_import_path() -> None:
    """It measures besides the built-in ones."""
    found = values("own_metrics_of_a_test:Steps")

    assert (1, None) == found["own_steps"]
    assert {"mean_view_tokens", "instruction_retention", "artifacts_modified"} <= found.keys()


def test_a_metric_that_raises_is_a_row() -> None:
    """The reason stands where the number would, nothing half-done is kept, and the other metrics go on."""
    found = values("own_metrics_of_a_test:Broken", "own_metrics_of_a_test:Steps")

    assert (None, "ZeroDivisionError: on purpose") == found["broken"]
    assert "half" not in found
    assert (1, None) == found["own_steps"]


def test_a_wrong_answer_is_a_row() -> None:
    """Something else than measurements is said, not stored."""
    assert (None, "answered int where a Measurement was expected") == values("own_metrics_of_a_test:Wrong")["wrong"]


def test_a_built_in_name_stays_what_it_is() -> None:
    """An own metric cannot replace a built-in number."""
    found = values("own_metrics_of_a_test:Greedy")

    assert 1 == found["mean_view_tokens"][0]
    assert (None, "another metric measures mean_view_tokens already") == found["greedy.mean_view_tokens"]


def test_installed_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points of the group are measured too; one that cannot be loaded is a row with the reason."""
    points = [EntryPoint("a", "own_metrics_of_a_test:Steps", load.GROUP), EntryPoint("b", "no_such_module:X", load.GROUP)]
    monkeypatch.setattr(load, "entry_points", lambda group: points if group == "rewindow.metrics" else [])
    found = values()

    assert (1, None) == found["own_steps"]
    assert None is found["b"][0]
    assert "no_such_module:X cannot be loaded: ModuleNotFoundError" in (found["b"][1] or "")


@pytest.mark.parametrize("target", ["own_metrics_of_a_test:Nameless", "own_metrics_of_a_test:Nope", "no_such:X", "plain"])
def test_what_is_no_metric(target: str) -> None:
    """A name that leads to no metric is an error before the run."""
    with pytest.raises(ConfigError):
        load.named_metric(target)


def test_compare_takes_metrics(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--metric` adds to every trial, a failing one leaves a reason under `missing`, and the run is complete."""
    (tmp_path / "s.jsonl").write_text('{"role":"user","content":"go"}\n{"role":"assistant","content":"x"}\n', encoding="utf-8")
    with pytest.raises(SystemExit) as stopped:
        main(["compare", str(tmp_path / "s.jsonl"), "-p", "full-history", "--metric", "own_metrics_of_a_test:Steps", "--metric",
              "own_metrics_of_a_test:Broken", "--json"])
    made = json.loads(capsys.readouterr().out)["trials"][0]

    assert 0 == int(stopped.value.code or 0)
    assert (True, 1, "ZeroDivisionError: on purpose") == (made["ok"], made["metrics"]["own_steps"], made["missing"]["broken"])


def test_every_missing_measurement_says_why() -> None:
    """All built-in metrics have a level, and a reason where there is no value."""
    for metric in METRICS.values():
        for measurement in metric.measure(trial()):
            assert measurement.level in ("L0", "L1", "L2", "L3")
            assert (measurement.value is None) is (measurement.reason is not None), measurement
