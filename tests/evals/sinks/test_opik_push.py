"""Pushing a run to Opik: what stands there afterwards, and that nothing stands there twice."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evals.commands.opik import opik as command
from evals.store import load_summary

SAMPLES = Path(__file__).resolve().parents[3] / "datasets" / "samples"
POLICIES = ("full-history", "decode-adr18")


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three sessions under two policies, one of whose sessions has compactions."""
    from evals.commands.compare import run

    folder = tmp_path_factory.mktemp("runs") / "three"
    paths = [str(SAMPLES / "openai-chat"), str(SAMPLES / "claude-code" / "rainlog-crash.jsonl"),
             str(SAMPLES / "decode" / "ledger-payees.jsonl")]
    run(paths, folder, policies=POLICIES, baseline=None, window=24_000, output_reserve=0, tokenizer="o200k_base",
        prices=None, cache_model="auto", summariser="extractive", jobs=1)
    return folder


def push(run: Path, *options: str, answer: str | None = None) -> Any:
    """The result of `rewindow opik push`; errors are raised."""
    return CliRunner().invoke(command, ["push", str(run), *options], input=answer, catch_exceptions=False,
                              standalone_mode=False)


def test_one_experiment_a_policy_and_one_item_a_session(run_folder: Path, opik_server: Any) -> None:
    """A push makes a dataset of the sessions, an experiment per policy, and a scored trace per trial."""
    push(run_folder, "--yes")

    counts = opik_server.counts()
    assert [] == opik_server.invalid
    assert {"datasets": 1, "items": 3, "experiments": 2, "traces": 6, "spans": 0, "entries": 6} == {
        name: counts[name] for name in counts if name != "scores"}
    assert {("completed", True)} == {(e["status"], e["finished"]) for e in opik_server.experiments.values()}
    pairs = {(e["experiment_id"], e["dataset_item_id"]) for e in opik_server.entries.values()}
    assert 6 == len(pairs)


def test_scores_are_the_measurements_of_the_run(run_folder: Path, opik_server: Any) -> None:
    """Every measurement with a value is a score whose reason gives its level and its place."""
    push(run_folder, "--yes")

    trial = load_summary(run_folder)["trials"][1]
    trace = next(t for t in opik_server.traces.values() if t["name"] == f"{trial['session']} · {trial['policy']}")
    scores = {name: score for (known, name), score in opik_server.scores.items() if known == trace["id"]}
    assert {name: pytest.approx(value) for name, value in trial["metrics"].items() if value is not None} == {
        name: score["value"] for name, score in scores.items()}
    assert scores["mean_view_tokens"]["reason"].startswith("L0, counted from the recording; ")
    assert trial["metrics"].keys() == trace["output"]["metrics"].keys()


def test_configuration_of_an_experiment_is_the_policy(run_folder: Path, opik_server: Any) -> None:
    """The spec of the policy and the settings of the run are the experiment's configuration."""
    push(run_folder, "--yes")

    policies = {p["name"]: p for p in load_summary(run_folder)["policies"]}
    found = {e["metadata"]["policy"]: e for e in opik_server.experiments.values()}
    assert policies.keys() == found.keys()
    for name, experiment in found.items():
        assert policies[name]["spec"] == experiment["metadata"]["spec"]
        assert 24_000 == experiment["metadata"]["window"]
        assert experiment["metadata"]["cohort"] in experiment["dataset_name"]


def test_without_traces_no_message_leaves(run_folder: Path, opik_server: Any) -> None:
    """A plain push holds numbers, names and paths, but no text of any session."""
    push(run_folder, "--yes")

    sent = repr((opik_server.traces, opik_server.items, opik_server.experiments, opik_server.scores))
    assert "parcels-review.json" in sent
    assert "def " not in sent
    assert "tool_calls'" not in sent.replace("'tool_calls':", "")


def test_pushing_again_updates(run_folder: Path, opik_server: Any) -> None:
    """The same run pushed three times, with more the second time, stands there once."""
    push(run_folder, "--yes")
    first = opik_server.counts()
    push(run_folder, "--yes", "--traces")
    second = opik_server.counts()
    push(run_folder, "--yes", "--traces")

    assert second == opik_server.counts()
    assert {**first, "traces": 9, "spans": second["spans"]} == second
    assert [] == opik_server.invalid


def test_a_copy_of_a_run_updates_too(run_folder: Path, opik_server: Any, tmp_path: Path) -> None:
    """A run that was copied without its times has the same identifiers in Opik."""
    import os
    import shutil

    push(run_folder, "--yes")
    before = opik_server.counts()
    copy = tmp_path / "copy"
    shutil.copytree(run_folder, copy)
    os.utime(copy / "summary.json", (1_500_000_000, 1_500_000_000))
    next(iter(opik_server.experiments.values()))["name"] = "renamed by somebody"
    push(copy, "--yes")

    assert before == opik_server.counts()
    assert "renamed by somebody" in {e["name"] for e in opik_server.experiments.values()}


def test_identifiers_are_uuids_of_version_7(run_folder: Path, opik_server: Any) -> None:
    """Opik takes no other identifiers."""
    from opik.id_helpers import is_valid_uuid_v7

    push(run_folder, "--yes", "--traces")

    held = [opik_server.datasets, opik_server.items, opik_server.experiments, opik_server.traces, opik_server.spans,
            opik_server.entries]
    assert all(is_valid_uuid_v7(known) for rows in held for known in rows)


def test_a_span_a_step_with_the_view(run_folder: Path, opik_server: Any) -> None:
    """Traces hold one span a step, with the view, its tokens and what happened to the window."""
    push(run_folder, "--yes", "--traces")

    sessions = {s["session"]: s["steps"] for s in load_summary(run_folder)["sessions"]}
    by_trace: dict[str, list[Any]] = {}
    for span in opik_server.spans.values():
        if span["type"] == "llm":
            by_trace.setdefault(span["trace_id"], []).append(span)
    assert sorted(3 * list(sessions.values())) == sorted(map(len, by_trace.values()))
    facts = [s["metadata"]["rewindow"] for s in opik_server.spans.values() if s["type"] == "llm"]
    assert all(f["view_tokens"] > 0 for f in facts)
    assert any(e["kind"] == "full" for f in facts for e in f["events"])
    assert all(s["input"]["messages"] for s in opik_server.spans.values() if s["type"] == "llm")


def test_large_views_are_cut(run_folder: Path, opik_server: Any) -> None:
    """A view above the bound loses the middles of its longest texts and says so."""
    import json

    push(run_folder, "--yes", "--traces", "--view-bytes", "20000")

    spans = [s for s in opik_server.spans.values() if s["type"] == "llm"]
    cut = [s for s in spans if s["metadata"]["rewindow"]["view_cut"]]
    assert 0 < len(cut) < len(spans)
    assert all(22_000 > len(json.dumps(s["input"])) for s in spans)
    assert all("characters left out" in json.dumps(s["input"], ensure_ascii=False) for s in cut)


def test_redacted_before_it_leaves(opik_server: Any, tmp_path: Path) -> None:
    """With --redact no key, address or user name of a session is sent."""
    import json

    from evals.commands.compare import run

    secret, person = "sk-ant-REDACTED-" + "b7" * 12, "ottoline.quux"
    talk = [{"role": "user", "content": f"My key is {secret}, I am in /home/{person}/work"},
            {"role": "assistant", "content": f"Noted, {person}."}]
    path = tmp_path / f"home-{person}.json"
    path.write_text(json.dumps({"messages": talk}))
    run([str(path)], tmp_path / "run", policies=["full-history"], baseline=None, window=24_000, output_reserve=0,
        tokenizer="o200k_base", prices=None, cache_model="auto", summariser="extractive", jobs=1)
    push(tmp_path / "run", "--yes", "--traces", "--redact")

    sent = repr(vars(opik_server))
    assert secret not in sent
    assert person not in sent
    assert opik_server.spans


def test_says_what_it_will_send_and_asks(run_folder: Path, opik_server: Any) -> None:
    """Without --yes the counts and the size are shown, and a no sends nothing at all."""
    done = push(run_folder, answer="n\n")

    assert "2 experiments (policies)" in done.stderr
    assert "3 dataset items (sessions)" in done.stderr
    assert re.search(r"[\d,.]+ [kM]B of JSON", done.stderr)
    assert "no message of any session" in done.stderr
    assert "nothing was sent" in done.stderr
    assert [] == opik_server.requests


def test_no_key_is_written(run_folder: Path, opik_server: Any, tmp_path: Path) -> None:
    """The key of Opik's configuration is used, and stands in no file, no output and no row."""
    done = push(run_folder, "--yes", "--traces", "--json")

    written = [p for root in (run_folder.parent, tmp_path) for p in root.rglob("*") if p.is_file()]
    holding = [p.name for p in written if b"must-not-be-written" in p.read_bytes()]
    assert [".opik.config"] == holding
    assert {"a-key-that-must-not-be-written-down"} == opik_server.keys
    assert "must-not-be-written" not in done.output + repr((opik_server.traces, opik_server.spans))


FAULTS = [("POST spans/batch", "lost", 1), ("POST spans/batch", "cut", 0), ("PUT traces/feedback-scores", "lost", 0),
          ("POST experiments$", "cut", 0), ("POST datasets$", "cut", 0), ("POST experiments/items", "500", 0)]


@pytest.mark.parametrize(("pattern", "how", "after"), FAULTS)
def test_a_broken_push_goes_on(run_folder: Path, opik_server: Any, monkeypatch: pytest.MonkeyPatch, pattern: str,
                               how: str, after: int) -> None:
    """A push that breaks anywhere, sent again, leaves exactly one of everything, and repeats no request that was taken."""
    from evals.sinks.opik import OpikError

    monkeypatch.setattr("evals.sinks.opik_push.MOST_ROWS", 40)
    options = ("--yes", "--traces") if "spans" in pattern else ("--yes",)
    opik_server.fail(pattern, how, after, times=6)
    with pytest.raises(OpikError):
        push(run_folder, *options)
    broken = len(opik_server.requests)
    push(run_folder, *options)

    assert _whole(run_folder, "spans" in pattern) == opik_server.counts()
    assert [] == opik_server.invalid
    assert [] == list(run_folder.parent.glob(".*opik-sent"))
    if after:
        again = opik_server.requests[broken:]
        assert 0 == again.count("PUT datasets/items")


@pytest.mark.parametrize(("pattern", "how", "after"), [*FAULTS, ("", "429", 0), ("", "429", 9), ("", "cut", 3)])
def test_one_fault_is_got_over(run_folder: Path, opik_server: Any, pattern: str, how: str, after: int) -> None:
    """A call that fails, is refused for its rate, or whose answer is lost, is made again."""
    opik_server.fail(pattern, how, after, times=3)
    push(run_folder, "--yes", *(("--traces",) if "spans" in pattern else ()))

    assert _whole(run_folder, "spans" in pattern) == opik_server.counts()
    assert [] == opik_server.invalid


def _whole(run: Path, with_traces: bool) -> dict[str, int]:
    """What stands in Opik after a whole push; with traces every lane's steps, and a recording in one part."""
    summary = load_summary(run)
    sessions, policies = summary["sessions"], len(summary["policies"])
    steps = sum(s["steps"] for s in sessions)
    values = [v for t in summary["trials"] for v in t["metrics"].values() if v is not None]
    return {"datasets": 1, "items": len(sessions), "experiments": policies, "scores": len(values), "entries": len(sessions) * policies,
            "traces": len(sessions) * (policies + with_traces),
            "spans": (steps * (policies + 1) + len(sessions)) * with_traces}


def test_a_server_that_was_emptied_gets_everything(run_folder: Path, opik_server: Any) -> None:
    """What a broken push had sent is sent again where the server has lost it."""
    from evals.sinks.opik import OpikError

    opik_server.fail("POST experiments/items", "lost", times=6)
    with pytest.raises(OpikError):
        push(run_folder, "--yes")
    for name in opik_server.counts():
        getattr(opik_server, name).clear()
    push(run_folder, "--yes")

    assert _whole(run_folder, with_traces=False) == opik_server.counts()


def test_a_refused_key_is_said_in_words(run_folder: Path, opik_server: Any) -> None:
    """A key that the server does not know is an error that says what to do, at once."""
    from evals.sinks.opik import OpikError

    opik_server.fail("", "401", times=9)
    with pytest.raises(OpikError, match="does not know the key: set OPIK_API_KEY"):
        push(run_folder, "--yes")
    assert 1 == len(opik_server.requests)


def test_a_run_whose_sessions_are_gone_is_pushed_as_numbers(opik_server: Any, tmp_path: Path) -> None:
    """Where a session's file is gone its trials are still pushed, and the push says what is missing."""
    import shutil

    from evals.commands.compare import run

    path = tmp_path / "gone.json"
    shutil.copy(SAMPLES / "openai-chat" / "parcels-review.json", path)
    run([str(path)], tmp_path / "run", policies=["full-history"], baseline=None, window=24_000, output_reserve=0,
        tokenizer="o200k_base", prices=None, cache_model="auto", summariser="extractive", jobs=1)
    path.unlink()
    done = push(tmp_path / "run", "--yes", "--traces")

    assert "numbers only" in done.stderr
    assert (1, 0) == (len(opik_server.traces), len(opik_server.spans))
