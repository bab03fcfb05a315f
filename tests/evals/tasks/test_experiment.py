"""Whole experiments with a scripted model: what a policy does to outcomes is seen, and nothing is lost or paid twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evals.commands.run import run
from evals.store import load_summary, load_table
from evals.tasks.arms import verdicts
from evals.tasks.trial import Result
from evals.tasks.workspace import can_enclose
from replay.engine import Session
from replay.errors import ConfigError, Interrupted
from replay.policy.base import Capacity
from replay.policy.load import policy
from replay.readers import read
from replay.tokens import DEFAULT_TOKENIZER, TokenCounter, tokenizer
from replay.view import render

FORGETS = "decode-adr18:scope=before-step,at=0.25,tail_tokens=300"
ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.skipif(not can_enclose(), reason="this system allows no namespaces")


@pytest.fixture
def arguments(endpoint: Any, agent: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What every experiment here is called with."""
    endpoint.default = agent
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "models.toml").write_text("[model]\nprice_input = 1.0\nprice_output = 2.0\nbackoff = 0.001\nretries = 1\n")
    return ["--model", "tiny", "--base-url", endpoint.url, "--models", str(tmp_path / "models.toml"), "--window", "20000",
            "--summariser", "empty", "--jobs", "2"]


def _run(*arguments: str) -> dict[str, Any]:
    done = CliRunner().invoke(run, ["tasks", *arguments, "--json"], standalone_mode=False)
    if done.exception:
        raise done.exception
    return json.loads(done.output)


def _arm(summary: dict[str, Any], name: str) -> dict[str, Any]:
    return next(a for a in summary["live"]["arms"] if a["arm"] == name)


def test_a_policy_that_forgets_the_instruction_is_seen_to_fail(arguments: list[str], tasks: list[str], tmp_path: Path) -> None:
    """Every task is solved under full history and none when the rule is lost: the difference has its interval."""
    summary = _run(*tasks, "-p", "full-history", "-p", FORGETS, "--trials", "2", "--out", str(tmp_path / "run"), *arguments)
    control, changed = _arm(summary, "full-history"), _arm(summary, FORGETS)

    assert (12, 12, 0) == (control["solved"], control["trials"], control["infra"])
    assert (0, 12, 0) == (changed["solved"], changed["trials"], changed["infra"])
    assert (-1.0, -1.0, pytest.approx(-0.448, abs=0.001)) == (changed["difference"], changed["low"], changed["high"])
    row = next(r for r in summary["pairs"] if r["metric"] == "pass_at_1")
    assert (changed["low"], changed["high"]) == (row["low"], row["high"])
    assert (pytest.approx(0.607, abs=0.001), 1.0) == (control["rate_low"], control["rate_high"])
    assert 0.05 > changed["p"]
    assert (1.0, 0.0) == (control["pass_hat_k"], changed["pass_hat_k"])
    assert 12 / 7 == pytest.approx(changed["elongation"])
    assert changed["elongation_solved"] is None
    assert changed["cost_per_solved"] is None
    assert control["cost_per_solved"] == pytest.approx(control["cost_usd"] / 12)
    assert "solves 100% fewer of the tasks than full-history (95 %: 45% to 100%)" in summary["recommendation"]["why"]


def test_a_run_lies_in_a_folder_like_any_other(arguments: list[str], tasks: list[str], tmp_path: Path) -> None:
    """The run has its tables, its measurements are of level L3, and report, list and terminal show it."""
    out = tmp_path / "runs" / "live"
    _run(*tasks[:2], "-p", "full-history", "-p", FORGETS, "--out", str(out), *arguments)
    summary = load_summary(out)
    trials = load_table(out, "trials")

    assert {"L3"} == {level for t in summary["trials"] for level in t["level"].values()}
    assert [1.0, 0.0] * 2 == list(trials[trials.lane == "alternative"].pass_at_1)
    assert {"full-history", FORGETS} == set(load_table(out, "steps").policy)
    assert 1 <= (load_table(out, "events").kind == "full").sum()
    assert any("no interval of 95 %" in w for w in summary["warnings"])
    for command in (["report", str(out), "--html", str(tmp_path / "r.html"), "--markdown", str(tmp_path / "r.md")],
                    ["runs", "list", str(tmp_path / "runs")]):
        done = subprocess.run([sys.executable, "-m", "replay.cli", *command], capture_output=True, text=True, cwd=ROOT)
        assert 0 == done.returncode, done.stderr
    assert "solved by a single trial" in (tmp_path / "r.html").read_text()
    assert "pass" not in done.stderr


def test_a_transcript_reads_back_to_what_the_model_was_sent(arguments: list[str], tasks: list[str], tmp_path: Path,
                                                            endpoint: Any) -> None:
    """Our own reader gives the views of a run exactly as they went over the wire, compactions and all."""
    _run(tasks[0], "-p", FORGETS, "--out", str(tmp_path / "run"), *arguments)
    [path] = (tmp_path / "run" / "transcripts").iterdir()
    transcript = read(path)[0]
    session = Session(transcript, TokenCounter(tokenizer(DEFAULT_TOKENIZER)))

    assert [r["messages"] for r in endpoint.requests] == [
        render(session.log, v.window, "openai") for v in session.recorded.views]
    assert ("rewindow", "fail", 1) == (transcript.format, transcript.outcome.value, len(transcript.compactions) > 0)
    replayed = session.replay(policy(FORGETS), Capacity(window=20_000), "empty")
    assert [v.fingerprint for v in session.recorded.views] == [v.fingerprint for v in replayed.views]


def test_the_agent_never_sees_the_verifier(arguments: list[str], tasks: list[str], tmp_path: Path, endpoint: Any) -> None:
    """While the agent works, neither the tests nor the solution lie anywhere that its commands can reach."""
    scripted = [{"calls": [("bash", {"command": "find / -name 'test.sh' -o -name 'solve.sh' 2>/dev/null; ls /; env"})]}]
    endpoint.script = [*scripted, "Done."]
    _run(tasks[0], "-p", "full-history", "--out", str(tmp_path / "run"), *arguments)
    said = endpoint.requests[-1]["messages"][-1]["content"]

    assert "workspace" in said
    assert not {"test.sh", "solve.sh", "tests", "solution", "TESTS"} & set(said.replace("=", "\n").split())


def test_trouble_of_the_endpoint_is_no_failure_of_the_task(arguments: list[str], tasks: list[str], tmp_path: Path,
                                                           endpoint: Any, agent: Callable[..., Any]) -> None:
    """A trial that the endpoint broke is a class of its own: not in any rate, and named among the warnings."""
    def breaks(body: dict[str, Any]) -> Any:
        return {"status": 500} if "<papaya>" in str(body["messages"]) else agent(body)

    endpoint.default = breaks
    summary = _run(*tasks[:2], "-p", "full-history", "--out", str(tmp_path / "run"), *arguments)
    arm = _arm(summary, "full-history")

    assert (1, 1, 1) == (arm["solved"], arm["trials"], arm["infra"])
    assert 1.0 == arm["pass_at_1"]
    assert any("1 of 2 trials were not judged" in w and "status 500" in w for w in summary["warnings"])
    entry = next(t for t in summary["trials"] if "papaya" in t["session"])
    assert (False, None) == (entry["ok"], entry["metrics"]["pass_at_1"])
    assert entry["missing"]["pass_at_1"]


def test_the_order_is_interleaved_and_seeded() -> None:
    """Each round holds every task under every policy once, and the same seed gives the same order."""
    from evals.model.config import Models
    from evals.tasks.experiment import Experiment
    from evals.tasks.task import bundled_tasks
    from evals.tasks.trial import Setup, TaskWork

    def order(seed: int) -> list[Any]:
        setup = Setup(model="m", capacity=Capacity(window=1000), tokenizer=DEFAULT_TOKENIZER, seed=seed)
        arms = (policy("full-history"), policy("decode"))
        tasks = {t.name: t for t in bundled_tasks()}
        return Experiment(units=tuple(tasks), content="", work=TaskWork(tasks, setup), policies=arms, trials=3, setup=setup,
                          models=Models()).order

    first = order(1)
    assert first == order(1) != order(2)
    assert [1] * 24 + [2] * 24 + [3] * 24 == [p.number for p in first]
    assert all(24 == len(set(first[n:n + 24])) for n in (0, 24, 48))
    assert [2] * 12 == [len({p.arm for p in first[n:n + 2]}) for n in range(0, 24, 2)]


def test_the_budget_stops_a_run_that_then_goes_on(arguments: list[str], tasks: list[str], tmp_path: Path) -> None:
    """At the ceiling no further request is made; with a higher one the same command does what is left."""
    out = str(tmp_path / "run")
    common = [*tasks[:4], "-p", "full-history", "--out", out, *arguments]
    with pytest.raises(Interrupted, match=r"--budget-usd was reached after [0-3] of 4 trials"):
        _run(*common, "--budget-usd", "0.06")
    summary = _run(*common, "--budget-usd", "10")

    assert 4 == _arm(summary, "full-history")["solved"]


def test_a_killed_run_goes_on_without_repeating_a_trial(arguments: list[str], tasks: list[str], tmp_path: Path,
                                                        endpoint: Any, agent: Callable[..., Any]) -> None:
    """After kill -9 the same command, with nothing in its cache, asks no question of a finished trial again."""
    def slow(body: dict[str, Any]) -> Any:
        return {**agent(body), "delay": 0.05}

    endpoint.default = slow
    out = tmp_path / "run"
    command = [sys.executable, "-m", "replay.cli", "run", "tasks", *tasks[:5], "-p", "full-history", "--out", str(out),
               *arguments, "--jobs", "1"]
    first = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL)
    parts = tmp_path / ".run.unfinished" / "parts" / "trials"
    until = time.monotonic() + 60
    while time.monotonic() < until and len(list(parts.glob("*.json"))) < 2:
        time.sleep(0.02)
    first.send_signal(signal.SIGKILL)
    first.wait()
    finished = {p.name: json.loads(p.read_bytes()) for p in parts.glob("*.json")}
    asked = len(endpoint.requests)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False,
                          env=os.environ | {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "other")})

    assert 0 == done.returncode, done.stderr
    assert 2 <= len(finished) < 5
    assert 7 * (5 - len(finished)) == len(endpoint.requests) - asked
    live = load_summary(out)["live"]
    assert 5 == live["arms"][0]["solved"]
    assert all(trial in live["trials"] for trial in finished.values())
    assert not (tmp_path / ".run.unfinished").exists()


def test_an_earlier_run_is_the_recorded_arm(arguments: list[str], tasks: list[str], tmp_path: Path) -> None:
    """Three arms: the control of an earlier run as recorded, the unchanged control, the changed policy."""
    _run(*tasks[:2], "-p", "full-history", "--out", str(tmp_path / "old"), *arguments)
    summary = _run(*tasks[:2], "-p", "full-history", "-p", FORGETS, "--recorded", str(tmp_path / "old"), "--out",
                   str(tmp_path / "new"), *arguments)

    assert ["recorded", "full-history", FORGETS] == [a["arm"] for a in summary["live"]["arms"]]
    assert [2, 2, 0] == [a["solved"] for a in summary["live"]["arms"]]
    assert 0.0 == _arm(summary, "recorded")["difference"]


@pytest.mark.parametrize(("wrong", "said"), [
    (["-p", "recorded"], "decides nothing live"), (["-p", "full-history", "--summariser", "recorded"], "no recorded summaries"),
    (["-p", "full-history", "-p", "full-history"], "named twice"), (["-p", "decoed"], "did you mean decode"),
    (["-p", "operator:add"], "cannot run live")])
def test_wrong_calls_are_refused_before_anything_is_asked(wrong: list[str], said: str, arguments: list[str],
                                                          tmp_path: Path, endpoint: Any) -> None:
    """What cannot be meant is one line, and no request is made."""
    with pytest.raises(ConfigError, match=said):
        _run("csv-report", *arguments, *wrong, "--out", str(tmp_path / "run"))
    assert [] == endpoint.requests


def test_the_terminal_shows_outcomes_costs_and_what_could_be_found(arguments: list[str], tasks: list[str], tmp_path: Path) -> None:
    """Without --json there are two tables, the containment in words, and the recommendation with its reason."""
    done = CliRunner().invoke(run, ["tasks", *tasks[:2], "-p", "full-history", "-p", FORGETS, "--out", str(tmp_path / "run"),
                                    *arguments], standalone_mode=False, env={"COLUMNS": "200"})
    words = " ".join(done.output.split())

    assert "2 tasks × 1 trials, tiny, window 20,000 tokens; control: full-history" in words
    assert "2 of 2 100%" in words
    assert "0 of 2 0%" in words
    assert "-100%" in words
    assert "no network" in words
    assert "2 tasks: fewer than 6 allow no interval of 95 %" in words
    assert "recommendation: none" in words


def test_the_page_on_outcomes_has_the_librarys_own_numbers() -> None:
    """Each number of the sample-size tables is what `evals.stats_power` gives."""
    from math import sqrt

    from evals.stats_power import mde_binary, units_for, units_for_binary

    text = (ROOT / "docs" / "outcomes.md").read_text(encoding="utf-8")
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
    numbers = {row[0]: [int(c.replace(",", "")) for c in row[1:]] for row in rows if row[-1].replace(",", "").isdigit()}
    effects = (0.05, 0.1, 0.2, 0.3)

    assert numbers == {
        **{f"{d:.0%}".replace("%", " %"): [units_for_binary(e, d) for e in effects] for d in (0.1, 0.2, 0.3, 0.4)},
        **{str(t): [units_for(e, sqrt(0.4 / t + 0.15 ** 2)) for e in effects] for t in (1, 3, 5, 10)}}
    assert "from 26 points (10 % come out differently) to 51 (40 %)" in text
    assert [0.26, 0.51] == [round(mde_binary(d, 12), 2) for d in (0.1, 0.4)]


def test_the_dashboard_opens_a_run_of_tasks(arguments: list[str], tasks: list[str], tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaderboard, curves of a task and its steps are drawn from a live run like from any other."""
    from streamlit.testing.v1 import AppTest

    from dashboard.launch import RUNS_VARIABLE

    _run(*tasks[:2], "-p", "full-history", "-p", FORGETS, "--out", str(tmp_path / "run"), *arguments)
    monkeypatch.setenv(RUNS_VARIABLE, json.dumps([str(tmp_path / "run")]))
    app = AppTest.from_file(str(ROOT / "dashboard" / "app.py"), default_timeout=60).run()
    pages = [app, *(app.switch_page(f"views/{name}.py").run() for name in ("session", "step", "compactions"))]

    assert [[]] * 4 == [[e.value for e in page.exception] for page in pages]


def test_the_dashboard_says_that_agents_really_ran(arguments: list[str], tasks: list[str], tmp_path: Path,
                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    """The leaderboard of a live run has its outcomes with their level, and reads as means over tasks."""
    from streamlit.testing.v1 import AppTest

    from dashboard.launch import RUNS_VARIABLE

    _run(*tasks[:1], "-p", "full-history", "-p", FORGETS, "--out", str(tmp_path / "run"), *arguments)
    monkeypatch.setenv(RUNS_VARIABLE, json.dumps([str(tmp_path / "run")]))
    app = AppTest.from_file(str(ROOT / "dashboard" / "app.py"), default_timeout=60).run()
    page = "\n".join(piece.proto.body for piece in app.get("html"))

    assert "solved by a single trial" in page
    assert "on-policy: an agent really ran" in page


def test_a_gate_needs_proof(arguments: list[str], tasks: list[str], tmp_path: Path) -> None:
    """Too few tasks prove nothing: the verdict is undecided and the exit code 1."""
    done = CliRunner().invoke(run, ["tasks", *tasks[:2], "-p", "full-history", "-p", "decode-adr18", "--gate", "0.05", "--out",
                                    str(tmp_path / "run"), *arguments, "--json"], standalone_mode=False)

    assert 1 == done.return_value
    assert {"margin": 0.05, "verdicts": {"decode-adr18": "undecided"}} == json.loads(done.output)["gate"]


@pytest.mark.parametrize(("solved", "kind"), [(0, "inferior"), (20, "undecided"), (40, "non-inferior")])
def test_a_gate_tells_worse_from_no_worse(solved: int, kind: str) -> None:
    """Of forty tasks that the control solves an arm solves none, half, or all."""
    def result(arm: str, number: int, passed: bool) -> Result:
        return Result(task=f"t{number}", arm=arm, number=1, value="pass" if passed else "fail", why="finished", detail="")

    results = [result("control", n, True) for n in range(40)] + [result("changed", n, n < solved) for n in range(40)]

    assert {"changed": kind} == verdicts(results, ["control", "changed"], "control", 0.5 if solved == 20 else 0.1)


def test_a_stopped_run_is_listed_and_resumed(arguments: list[str], tasks: list[str], tmp_path: Path) -> None:
    """`rewindow runs` shows a run of tasks that ran into its budget, and goes on with it."""
    out = tmp_path / "runs" / "live"
    with pytest.raises(Interrupted):
        _run(*tasks[:3], "-p", "full-history", "--out", str(out), *arguments, "--jobs", "1", "--budget-usd", "0.05")
    note = tmp_path / "runs" / ".live.unfinished" / "job.json"
    job = json.loads(note.read_text())
    job["job"]["options"]["budget_usd"] = 10.0
    note.write_text(json.dumps(job))
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    listed, resumed = (subprocess.run([sys.executable, "-m", "replay.cli", "runs", *words], capture_output=True, text=True,
                                      check=False, env=environment)
                       for words in (["list", str(out.parent), "--json"], ["resume", str(out), "--json"]))

    assert [("unfinished", 1)] == [(r["state"], r["files_done"]) for r in json.loads(listed.stdout)["runs"]]
    assert 0 == resumed.returncode, resumed.stderr
    assert 3 == json.loads(resumed.stdout)["live"]["arms"][0]["solved"]


def test_a_models_summary_that_keeps_the_rule_saves_the_task(arguments: list[str], tasks: list[str], tmp_path: Path,
                                                             endpoint: Any, agent: Callable[..., Any]) -> None:
    """With summaries by a model the same policy solves the task, and what they cost is part of the trial."""
    def answer(body: dict[str, Any]) -> Any:
        if "tools" in body:
            return agent(body)
        return {"text": "Goal: write <mango> after STEP 5 of 5.", "usage": (1000, 100)}

    endpoint.default = answer
    policy_name = "decode-adr18:scope=before-step,at=0.25,tail_tokens=2500"
    summary = _run(tasks[0], "-p", policy_name, "--out", str(tmp_path / "run"), *arguments, "--summariser", "llm:tiny")
    [trial] = summary["live"]["trials"]
    written = [r for r in endpoint.requests if "tools" not in r]

    assert "pass" == trial["value"]
    assert 1 <= len(written) == trial["compactions"]
    agents = (trial["input_tokens"] + 2 * trial["output_tokens"]) / 1e6
    assert trial["cost_usd"] == pytest.approx(agents + len(written) * (1000 + 2 * 100) / 1e6)
