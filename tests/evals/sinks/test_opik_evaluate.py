"""Rewindow inside `opik.evaluate`: a replay as the task, our measurements as scores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = ROOT / "datasets" / "samples" / "openai-chat" / "parcels-review.json"
EVALUATE = """
import json, sys
from evals.sinks.opik_metrics import MeasurementScore, MetricScores, ReplayTask, policy_metrics
from opik.evaluation.metrics import base_metric, score_result
import opik

class Judge(base_metric.BaseMetric):
    def score(self, goal, trajectory, final_result, output, **ignored):
        assert trajectory[0].keys() == {"thought", "action", "observation"} and output and final_result
        return score_result.ScoreResult(name="judge", value=float(len(goal) > 0))

client = opik.Opik()
dataset = client.get_dataset(sys.argv[1])
task = ReplayTask("decode-adr18", window=24_000)
scorers = [*policy_metrics(), MeasurementScore("mean_view_tokens", name="mean"), MeasurementScore("no-such"), Judge()]
found = opik.evaluate(dataset, task, scorers, experiment_name="mine", verbose=0, task_threads=1)
client.end()
print(json.dumps([[r.name, r.value, r.reason, r.scoring_failed] for t in found.test_results for r in t.score_results]))
"""


@pytest.fixture
def pushed(opik_server: Any, tmp_path: Path) -> dict[str, Any]:
    """The summary of a run of one session, whose dataset stands in Opik."""
    from evals.commands.compare import run
    from evals.commands.opik import opik as command

    summary = run([str(SAMPLE)], tmp_path / "run", policies=["decode-adr18"], baseline=None, window=24_000,
                  output_reserve=0, tokenizer="o200k_base", prices=None, cache_model="auto", summariser="extractive", jobs=1)
    done = CliRunner().invoke(command, ["push", str(tmp_path / "run"), "--yes"], catch_exceptions=False)
    assert 0 == done.exit_code
    return summary


def _python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run code beside this test: Opik's client has threads of its own, and changes what is global."""
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False,
                          env=os.environ | {"PYTHONPATH": str(ROOT)})


def test_evaluate_replays_and_scores(pushed: dict[str, Any], opik_server: Any) -> None:
    """`opik.evaluate(dataset, task, metrics)` gives the numbers of the run, with level and place, and takes judges."""
    name = next(iter(opik_server.datasets.values()))["name"]
    done = _python(EVALUATE, name)

    assert 0 == done.returncode, done.stderr
    scores = {row[0]: row[1:] for row in json.loads(done.stdout.splitlines()[-1])}
    metrics = {n: v for n, v in pushed["trials"][0]["metrics"].items() if v is not None}
    assert {n: pytest.approx(v) for n, v in metrics.items()} == {n: scores[n][0] for n in metrics}
    assert scores["mean"][0] == scores["mean_view_tokens"][0]
    assert scores["mean"][1].startswith("L0, counted from the recording; ")
    assert (1.0, True) == (scores["judge"][0], scores["no-such"][2])
    assert [] == opik_server.invalid
    assert "mine" in {e["name"] for e in opik_server.experiments.values()}


def test_unknown_metric_is_an_error(opik_server: Any) -> None:
    """A metric's name that does not exist is said with those that do."""
    from evals.sinks.opik_metrics import MetricScores
    from replay.errors import ConfigError

    with pytest.raises(ConfigError, match="no such metric; known: "):
        MetricScores("no-such")


SWITCHES = """
import os, sys
from evals.sinks.opik import connect
connection = connect()
import opik.config, opik.error_tracking, opik.analytics
import sentry_sdk
config = opik.config.OpikConfig()
print(config.sentry_enable, config.analytics_enable, os.environ.get("LITELLM_LOCAL_MODEL_COST_MAP"),
      sentry_sdk.get_client().is_active(), connection.url, "litellm" in sys.modules)
"""


def test_what_the_library_does_by_itself_is_off(opik_server: Any) -> None:
    """Error reports, usage reports and the price map's download are off after the import; nobody was contacted."""
    words = _python(SWITCHES).stdout.split()

    assert ["False", "False", "True", "False"] == words[:4]
    assert words[4].startswith("http://127.0.0.1:")
    assert [] == opik_server.requests


@pytest.mark.parametrize("where", ["environment", "file"])
def test_a_user_may_turn_it_on(opik_server: Any, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    """What the environment or Opik's configuration file says about reports stays as it is."""
    if where == "environment":
        monkeypatch.setenv("OPIK_ANALYTICS_ENABLE", "true")
    else:
        with (Path(os.environ["HOME"]) / ".opik.config").open("a") as file:
            file.write("analytics_enable = true\n")

    assert ["False", "True"] == _python(SWITCHES).stdout.split()[:2]


def test_configuration_that_cannot_work(opik_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cloud without a key is an error in one line before anything is packed or sent."""
    monkeypatch.setenv("OPIK_URL_OVERRIDE", "https://www.comet.com/opik/api/")
    (Path(os.environ["HOME"]) / ".opik.config").unlink()
    done = _python("from replay.cli import main; main(['opik', 'pull', '--out', 'nowhere'])")

    assert 2 == done.returncode
    assert "API key must be specified" in done.stderr
    assert 1 == len(done.stderr.splitlines())
