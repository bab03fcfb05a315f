"""Outcome labels (D1): precedence, evidence, files, bounds for policies (D3), association (D2)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evals.metrics.base import Measurement
from evals.outcome_files import load_outcomes, sidecar_label
from evals.outcome_report import outcome_lines, outcome_summary
from evals.outcomes import Label, transcript_label
from evals.outcomes_math import cost_per_solved, effectiveness, outcome_bounds, pass_at_k, pass_hat_k, reweighted_mean
from evals.rank_correlation import mid_ranks, spearman
from evals.trial import SessionRow, TrialRow
from replay.cli import main
from replay.errors import ConfigError
from replay.find import find
from replay.testing import Script
from replay.transcript import Outcome, Transcript


def run(script: Script, command: str, text: str) -> Script:
    """A command with its result."""
    return script.call("Bash", json.dumps({"command": command})).result(text, is_error=text.startswith("Exit code"))


def session_of(*pairs: tuple[str, str]) -> Script:
    """A session of test commands."""
    script = Script().user("go")
    for command, text in pairs:
        run(script, command, text)
    return script


FULL, SOME = ("pytest -q", "12 passed in 0.5s"), ("pytest tests/test_a.py", "1 passed in 0.1s")


@pytest.mark.parametrize(("pairs", "value", "source", "message", "confidence"), [
    ((FULL,), "pass", "last full test run", 2, 0.9),
    ((FULL, ("pytest", "Exit code 1\n1 failed, 11 passed in 0.5s")), "partial", "last full test run", 4, 0.9),
    ((("pytest", "Exit code 1\n3 failed in 0.5s"),), "fail", "last full test run", 2, 0.9),
    ((FULL, SOME), "pass", "last full test run", 2, 0.9), ((SOME,), "unknown", "last run of selected tests", 2, 0.45),
    ((("pytest tests/test_a.py", "Exit code 1\n1 failed in 0.1s"),), "fail", "last run of selected tests", 2, 0.45),
    ((("make test", "done"),), "pass", "last full test run", 2, 0.6),
    ((("pytest | grep -v x", "12 passed in 0.5s"),), "pass", "last full test run", 2, 0.54)])
def test_the_last_full_test_run(pairs: tuple[tuple[str, str], ...], value: str, source: str, message: int,
                                confidence: float) -> None:
    """The last run of everything decides, with its message; chosen tests that pass prove nothing about the rest."""
    label = transcript_label(session_of(*pairs).say("All done and verified!").build())

    assert (value, source, message, confidence) == (label.value, label.source, label.message, label.confidence)


def test_changes_after_the_run_lower_confidence() -> None:
    """A file that was changed after the last test run makes its result less certain."""
    script = session_of(FULL).call("Edit", '{"file_path":"/r/a.py"}').result("ok")

    assert ("pass", 0.63) == (transcript_label(script.build()).value, transcript_label(script.build()).confidence)


@pytest.mark.parametrize(("words", "value"), [
    ("Perfect, thanks!", "pass"), ("lgtm", "pass"), ("It is still failing", "fail"), ("that doesn't work", "fail"),
    ("now add a test", "unknown"), ("looks good, but it's not working on main", "fail")])
def test_a_persons_last_words(words: str, value: str) -> None:
    """Plain acceptance or refusal counts where nothing stronger does; other words tell nothing."""
    label = transcript_label(Script().user("go").say("done").user(words).say("ok").build())

    assert value == label.value
    assert ("a person's words" if value != "unknown" else "none") == label.source


def test_the_agents_claim_never_counts() -> None:
    """However sure the agent is, nothing is known."""
    label = transcript_label(Script().user("go").say("All tests pass, the bug is fixed. LGTM!").build())

    assert ("unknown", "none", None) == (label.value, label.source, label.message)
    assert None is label.passed


def test_checks_of_the_commit() -> None:
    """Checks that are done count, a failed one as a failure; pending ones do not."""
    done = run(Script().user("go"), "gh pr checks 7", "build\tpass\t1m\nlint\tfail\t2s")
    pending = run(Script().user("go"), "gh pr checks 7", "build\tpending\t0\n")

    assert ("fail", "checks of the commit") == (transcript_label(done.build()).value, transcript_label(done.build()).source)
    assert "unknown" == transcript_label(pending.build()).value


def with_outcome(transcript: Transcript, value: Any, source: str) -> Transcript:
    """A transcript whose file says how it ended."""
    return replace(transcript, outcome=Outcome(value=value, source=source, detail="d"))


def test_precedence() -> None:
    """A grade beats tests, tests beat checks, checks beat words, words beat how the run broke off."""
    script = run(session_of(("pytest", "Exit code 1\n3 failed in 0.5s")), "gh pr checks", "build\tpass\t1m\n")
    script.user("perfect").say("ok")
    graded = with_outcome(script.build(), "pass", "test_result.report.resolved")
    words = Script().user("go").say("x").user("perfect").say("ok").build()

    assert "graded: test_result.report.resolved" == transcript_label(graded).source
    assert "last full test run" == transcript_label(script.build()).source
    assert "a person's words" == transcript_label(with_outcome(words, "fail", "info.exit_status")).source


@pytest.mark.parametrize(("value", "source", "label"), [
    ("fail", "info.exit_status", "fail"), ("unknown", "info.exit_status", "unknown"), ("partial", "turn_aborted", "unknown"),
    ("pass", "success", "unknown"), ("fail", "success", "unknown")])
def test_how_a_run_broke_off(value: str, source: str, label: str) -> None:
    """An error without a result is a failure; what was handed in, and a model's own verdict, are unknown."""
    assert label == transcript_label(with_outcome(Script().user("go").say("x").build(), value, source)).value


@pytest.mark.parametrize(("text", "value"), [
    ("session,outcome\na,pass\n", "pass"), ("\ufeffinstance_id,resolved\na,True\n", "pass"), ("task_id,passed\na,0\n", "fail"),
    ("path,outcome\na,partial\n", "partial"), ("id,score\na,0.5\n", "partial"), ("id,value\na,\n", "unknown"),
    ("id,solved\na,1.0\n", "pass"), ("id,success\na,No\n", "fail")])
def test_tables(tmp_path: Path, text: str, value: str) -> None:
    """A CSV names sessions and outcomes in one of several ways."""
    (tmp_path / "t.csv").write_text(text, encoding="utf-8")
    label = load_outcomes(tmp_path / "t.csv").labels["a"]

    assert (value, "table: t.csv", 1.0) == (label.value, label.source, label.confidence)


@pytest.mark.parametrize(("name", "text", "value"), [
    ("t.json", '{"a": true}', "pass"), ("t.json", '[{"session": "a", "outcome": "fail"}]', "fail"),
    ("t.jsonl", '{"session":"a","resolved":false}\n\n{"session":"b","resolved":true}\n', "fail"),
    ("t.json", '{"a": {"outcome": "pass", "confidence": 0.5}}', "pass")])
def test_json_tables(tmp_path: Path, name: str, text: str, value: str) -> None:
    """The same as JSON."""
    (tmp_path / name).write_text(text, encoding="utf-8")

    assert value == load_outcomes(tmp_path / name).labels["a"].value


@pytest.mark.parametrize(("name", "text", "said"), [
    ("t.csv", "name,outcome\na,pass\n", "no column that names the session"), ("t.csv", "session,x\na,1\n", "no column with the outcome"),
    ("t.csv", "session,outcome\na,maybe\n", "found 'maybe'"), ("t.csv", "session,outcome\na,pass\na,fail\n", "one outcome"),
    ("t.json", "{", "not valid JSON"), ("t.csv", "session,outcome,confidence\na,pass,7\n", "a number from 0 to 1")])
def test_broken_tables(tmp_path: Path, name: str, text: str, said: str) -> None:
    """What cannot be meant is an error with file, line and what would be right."""
    (tmp_path / name).write_text(text, encoding="utf-8")

    with pytest.raises(ConfigError, match=said):
        load_outcomes(tmp_path / name)


def test_sidecars(tmp_path: Path) -> None:
    """A file beside the session says how it ended, for one session or by id; it is no session file itself."""
    (tmp_path / "s.jsonl").write_text("{}", encoding="utf-8")
    (tmp_path / "s.outcome.json").write_text('{"resolved": true, "detail": "42 of 42"}', encoding="utf-8")
    (tmp_path / "m.jsonl.outcome.json").write_text('{"x": "fail", "y": "pass"}', encoding="utf-8")

    assert ("pass", "42 of 42") == ((found := sidecar_label(str(tmp_path / "s.jsonl"), "x")) and (found.value, found.detail))
    assert "fail" == (sidecar_label(str(tmp_path / "m.jsonl"), "x") or Label(value="unknown", source="")).value
    assert None is sidecar_label(str(tmp_path / "m.jsonl"), "z")
    assert None is sidecar_label(str(tmp_path / "other.jsonl"), "x")
    assert [tmp_path / "s.jsonl"] == [f.path for f in find([str(tmp_path)])]


def row(name: str, outcome: Label, same: bool, steps: int = 5, ok: bool = True, ended: int | None = None) -> SessionRow:
    """A session with one trial whose views equal the record, or do not."""
    share = Measurement(name="identified_share", value=1.0 if same else 0.4)
    return SessionRow(session=name, path=f"/x/{name}.jsonl", format="test", position=0, harness_version=None, model=None,
                      steps=steps, messages=9, notes=(), recorded_compactions=0, calibration_factor=1.0,
                      calibration_overhead=None, calibration_error=None, outcome=outcome,
                      trials=(TrialRow(policy="p", ok=ok, measurements=(share,), ended=ended),))


PASS, FAIL, OPEN = (Label(value=v, source="s") for v in ("pass", "fail", "unknown"))  # type: ignore[arg-type]


def test_bounds_of_a_replayed_policy() -> None:
    """Ten sessions, four of them identical to the record, three of those passed: between 0.3 and 0.9."""
    rows = [row(f"s{n}", PASS if n < 3 else FAIL, n < 4) for n in range(10)]
    found = outcome_summary(rows, ["p"])["policies"][0]

    assert (0.3, 0.9) == (found["low"], found["high"])
    assert (10, 4, 3) == (found["n"], found["identified"], found["identified_passed"])
    assert outcome_bounds([1, 1, 1, 0] + [1] * 6, [True] * 4 + [False] * 6) is not None


def test_unknown_outcomes_and_failed_trials_identify_nothing() -> None:
    """A session without a label, a failed trial and a run that ended widen the bounds."""
    rows = [row("a", PASS, True), row("b", OPEN, True), row("c", PASS, True, ok=False), row("d", PASS, True, ended=3)]
    found = outcome_summary(rows, ["p"])

    assert (0.25, 1.0) == (found["policies"][0]["low"], found["policies"][0]["high"])
    assert 0.25 == found["unknown_share"]
    assert (0.75, 1.0) == (found["recorded"]["low"], found["recorded"]["high"])


def test_no_success_rate_is_ever_printed_for_a_policy() -> None:
    """The sentences say that a policy's rate is not identified, and give bounds alone."""
    lines = outcome_lines(outcome_summary([row("a", PASS, True), row("b", FAIL, False)], ["p"]))

    assert "Outcomes: 1 of 2 labelled sessions passed as recorded; 0% of 2 are unknown" in lines[0]
    assert "  p: not identified by replay; between 50% and 100% (1 of 2 sessions have the recorded views throughout)." == lines[1]
    assert [] == outcome_lines(outcome_summary([row("a", OPEN, True)], ["p"]))


def test_a_table_comes_first(tmp_path: Path) -> None:
    """The table's label beats the session's own; rows without a session are named."""
    (tmp_path / "t.csv").write_text("session,outcome\na,fail\nb,fail\nzzz,pass\n", encoding="utf-8")
    found = outcome_summary([row("a", PASS, True), row("b~2", PASS, True)], ["p"], load_outcomes(tmp_path / "t.csv"))

    assert ["fail", "fail"] == [label["value"] for label in found["labels"]]
    assert ["zzz"] == found["unmatched"]


def test_association_needs_ten_sessions() -> None:
    """Longer sessions that fail: a rank correlation of −1 halves, never from fewer than ten labelled sessions."""
    rows = [row(f"s{n}", PASS if n < 5 else FAIL, True, steps=n) for n in range(10)]
    few = outcome_summary(rows[:9], ["p"])["associations"]
    steps = next(a for a in outcome_summary(rows, ["p"])["associations"] if a["descriptor"] == "steps")

    assert [] == few
    assert pytest.approx(-0.8704, abs=1e-4) == steps["rank_correlation"]


def test_rank_correlation() -> None:
    """Ties share their mean rank; a constant has no correlation."""
    assert [1.5, 3, 1.5, 4] == mid_ranks([2, 5, 2, 9])
    assert 1 == spearman([1, 2, 3], [10, 20, 99])
    assert None is spearman([1, 2], [3, 3])
    assert None is spearman([], [])


def test_worked_examples_of_the_arithmetic() -> None:
    """pass@k, pass^k, cost per solved, effectiveness and the refusal of degenerate weights."""
    assert pytest.approx(0.6) == pass_hat_k(5, 4, 2)
    assert pytest.approx(0.4) == pass_hat_k(5, 4, 3)
    assert 1 == pass_at_k(5, 4, 2)
    assert None is cost_per_solved([1, 2], 0)
    assert pytest.approx(1.3 / 3) == effectiveness([1, 1, 0], [0.2, 0.5, 0.1], 1)
    assert None is reweighted_mean([1, 0, 1, 0], [8, 1, 0.5, 0.5])[0]
    assert "1.53" in reweighted_mean([1, 0, 1, 0], [8, 1, 0.5, 0.5])[1]


def chat(path: Path) -> Path:
    """A small session whose tests pass."""
    call = {"id": "c", "type": "function", "function": {"name": "bash", "arguments": '{"command":"pytest"}'}}
    lines = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "", "tool_calls": [call]},
             {"role": "tool", "tool_call_id": "c", "content": "3 passed in 0.1s"}, {"role": "assistant", "content": "ok"}]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    return path


def compare(*arguments: str) -> int:
    """Exit code of a comparison."""
    with pytest.raises(SystemExit) as stopped:
        main(["compare", *arguments])
    return int(stopped.value.code or 0)


def test_compare_takes_outcomes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Labels come from the transcript, a sidecar or `--outcomes`; the summary has bounds and no rate for policies."""
    chat(tmp_path / "s.jsonl")
    (tmp_path / "t.csv").write_text("session,outcome\ns,fail\n", encoding="utf-8")
    values = []
    for more in ((), ("--outcomes", str(tmp_path / "t.csv"))):
        assert 0 == compare(str(tmp_path / "s.jsonl"), "-p", "full-history", "--losses", "--json", *more)
        found = json.loads(capsys.readouterr().out)["outcomes"]
        values.append((found["labels"][0]["value"], found["labels"][0]["source"], found["policies"][0]["low"]))
    (tmp_path / "s.outcome.json").write_text('"unknown"', encoding="utf-8")
    compare(str(tmp_path / "s.jsonl"), "-p", "full-history", "--json")
    beside = json.loads(capsys.readouterr().out)["outcomes"]["labels"][0]

    assert [("pass", "last full test run", 1.0), ("fail", "table: t.csv", 0.0)] == values
    assert ("unknown", "sidecar: s.outcome.json") == (beside["value"], beside["source"])
    assert 2 == compare(str(tmp_path / "s.jsonl"), "-p", "full-history", "--outcomes", str(tmp_path / "none.csv"))
