"""The main job through the command line and its functions: runs, stores, warnings, failures."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from evals.store import load_summary, load_table
from replay.cli import main

ROOT = Path(__file__).resolve().parents[2]
KEYS = {"run", "sessions", "policies", "tokenizer", "prices", "cache_model", "summariser", "trials", "leaderboard",
        "pairs", "recommendation", "warnings"}


def chat(path: Path, rounds: int, size: int = 400) -> Path:
    """A session in OpenAI's chat format: one prompt and one tool call a round."""
    lines: list[dict[str, Any]] = []
    for n in range(rounds):
        lines.append({"role": "user", "content": f"Please look at file {n}."})
        lines.append({"role": "assistant", "content": "", "tool_calls": [
            {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": json.dumps({"path": f"f{n}"})}}]})
        lines.append({"role": "tool", "tool_call_id": f"c{n}", "content": f"line {n} " * size})
        lines.append({"role": "assistant", "content": f"File {n} is fine."})
    path.write_text("\n".join(json.dumps(line) for line in lines) + "\n", encoding="utf-8")
    return path


def run(*arguments: str) -> int:
    """The exit code of a command line."""
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    return int(stopped.value.code or 0)


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    """A folder with three sessions of different length."""
    folder = tmp_path / "sessions"
    folder.mkdir()
    for n, rounds in enumerate((3, 8, 20)):
        chat(folder / f"s{n}.jsonl", rounds)
    return folder


def test_json_has_the_promised_keys(sessions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`compare --json` prints one document with every key of the contract and a trial for each pair."""
    code = run("compare", str(sessions), "-p", "full-history", "-p", "decode-adr18", "--window", "20000", "--json")
    document = json.loads(capsys.readouterr().out)

    assert 0 == code
    assert set() == KEYS - document.keys()
    assert 6 == len(document["trials"])
    assert {"L0", "L1"} == {level for t in document["trials"] for level in t["level"].values()}
    assert {"policy", "metric", "value", "low", "high", "n", "rank_low", "rank_high", "p_best", "pareto"} <= set(
        document["leaderboard"][0])
    assert {"policy", "baseline", "metric", "difference", "low", "high", "p", "p_adjusted", "n", "mde"} <= set(
        document["pairs"][0])


def test_a_stored_run_is_complete(sessions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run folder holds summary, three tables and the recipe, and reports the same summary again."""
    out = tmp_path / "runs" / "a"
    run("compare", str(sessions), "-p", "full-history", "-p", "mycodeagent:rounds=2", "--window", "9000", "--out", str(out),
        "--json")
    shown = json.loads(capsys.readouterr().out)
    run("report", str(out), "--json")

    assert shown == json.loads(capsys.readouterr().out) == load_summary(out)
    assert {"summary.json", "trials.parquet", "steps.parquet", "events.parquet", "run.toml"} == {
        p.name for p in out.iterdir()}
    assert [out.name] == [p.name for p in out.parent.iterdir()]
    steps = load_table(out, "steps", ["step", "tokens"], session="s2", policy="full-history")
    assert list(range(1, 41)) == list(steps["step"])


def test_jobs_change_nothing(sessions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two processes give the same document as one."""
    documents = []
    for jobs in ("1", "2"):
        run("compare", str(sessions), "-p", "full-history", "-p", "decode", "--window", "9000", "--jobs", jobs, "--json")
        documents.append(capsys.readouterr().out)

    assert documents[0] == documents[1]


def test_a_run_is_never_overwritten(sessions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An --out folder that exists is refused in one line."""
    (tmp_path / "there").mkdir()

    assert 2 == run("compare", str(sessions), "-p", "full-history", "--out", str(tmp_path / "there"))
    assert "there already" in capsys.readouterr().err


def test_an_ended_run_is_said(sessions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A policy whose request stays refused is named with its sessions, and is not recommended."""
    run("compare", str(sessions), "-p", "full-history", "-p", "decode-adr18", "--window", "4000", "--json")
    document = json.loads(capsys.readouterr().out)
    ended = {t["session"] for t in document["trials"] if t["policy"] == "full-history" and t["ended"]}

    assert {"s1", "s2"} == ended
    assert any(w.startswith("full-history: 2 of 3 sessions end in a refused request") for w in document["warnings"])
    assert "full-history" != document["recommendation"]["policy"]


def test_a_failing_trial_is_a_row(sessions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A policy part that raises costs its trials, not the run."""
    (tmp_path / "broken_part.py").write_text(
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass Broken:\n    def cut(self, moment):\n"
        "        raise RuntimeError('on purpose')\n", encoding="utf-8")
    (tmp_path / "broken.toml").write_text(
        'name = "broken"\n[[stages]]\nname = "full"\ntrigger = "always"\ncut = { use = "broken_part:Broken" }\n',
        encoding="utf-8")
    sys.path.insert(0, str(tmp_path))
    try:
        code = run("compare", str(sessions), "-p", "full-history", "-p", str(tmp_path / "broken.toml"), "--json")
    finally:
        sys.path.remove(str(tmp_path))
    document = json.loads(capsys.readouterr().out)
    failed = [t for t in document["trials"] if not t["ok"]]

    assert 0 == code
    assert 3 == len(failed)
    assert "RuntimeError: on purpose" == failed[0]["error"]
    assert any("on purpose" in w for w in document["warnings"])


@pytest.mark.parametrize(("arguments", "code", "said"), [
    (["-p", "decod"], 2, "did you mean decode"),
    (["-p", "full-history", "--baseline", "decode"], 2, "not among the policies"),
    (["-p", "full-history", "-p", "full-history"], 2, "named twice"),
    (["-p", "full-history", "--tokenizer", "o200k"], 2, "no tokenizer called"),
    (["-p", "full-history", "--summariser", "gpt"], 2, "no summariser called"),
    (["-p", "full-history", "--window", "100", "--output-reserve", "100"], 2, "smaller than the window"),
    (["-p", "decode:trigger.nope=1"], 2, "trigger.nope: unknown key"),
])
def test_wrong_calls_get_one_line(sessions: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int,
                                  said: str) -> None:
    """A call that cannot be meant exits with 2 and says what would be right."""
    assert code == run("compare", str(sessions), *arguments)
    error = capsys.readouterr().err
    assert said in error
    assert 1 == len(error.strip().splitlines())


def test_no_session_is_unreadable_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder without sessions, or a path that does not exist, exits with 3."""
    assert 3 == run("compare", str(tmp_path), "-p", "full-history")
    assert 3 == run("compare", str(tmp_path / "nowhere"), "-p", "full-history")


def test_markdown_and_csv_hold_names_literally(sessions: Path, tmp_path: Path) -> None:
    """Names of sessions reach Markdown and CSV as text: no markup, no formula."""
    chat(sessions / "=cmd()|x.jsonl", 2)
    out = tmp_path / "run"
    run("compare", str(sessions), "-p", "full-history", "-p", "decode", "--window", "9000", "--out", str(out))
    run("report", str(out), "--markdown", str(tmp_path / "a.md"), "--csv", str(tmp_path / "a.csv"))

    assert "| policy |" in (tmp_path / "a.md").read_text(encoding="utf-8")
    assert "\n'=cmd()|x," in (tmp_path / "a.csv").read_text(encoding="utf-8")


def test_the_real_sessions(transcripts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every readable real session has a trial for every policy, none of which fails."""
    folders = [str(transcripts / f) for f in ("claude-code", "codex", "pi", "mycodeagent", "decode", "openai-chat")]
    names = ["full-history", "mycodeagent", "decode", "decode-adr18"]
    code = run("compare", *folders, *(x for n in names for x in ("-p", n)), "--window", "128000", "--json")
    document = json.loads(capsys.readouterr().out)
    pairs = {(t["session"], t["policy"]) for t in document["trials"]}

    assert 0 == code
    assert {(s["session"], n) for s in document["sessions"] for n in names} == pairs
    assert [] == [t for t in document["trials"] if not t["ok"]]
    assert [] == [t for t in document["trials"] if t["metrics"]["pairing_violations"]]
    assert not any("not read" in w for w in document["warnings"])
