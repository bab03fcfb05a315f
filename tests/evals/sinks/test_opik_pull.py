"""Pulling sessions out of Opik: folded by the reader of traces, resumable, and the same as what was pushed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evals.commands.opik import opik as command
from replay.engine import Session
from replay.errors import ConfigError, ReadError
from replay.policy.base import Capacity
from replay.policy.load import policy
from replay.readers import read
from replay.tokens import TokenCounter, tokenizer
from replay.transcript import Transcript

Row = dict[str, Any]
SAMPLES = Path(__file__).resolve().parents[3] / "datasets" / "samples"
POLICIES = ("recorded", "full-history", "mycodeagent:rounds=1", "decode-adr18")


def call(*arguments: str) -> Any:
    """The result of `rewindow opik …`; errors are raised."""
    return CliRunner().invoke(command, list(arguments), catch_exceptions=False, standalone_mode=False)


def pull(*arguments: str) -> Row:
    """What `rewindow opik pull … --json` says."""
    found: Row = json.loads(call("pull", *arguments, "--json").stdout)
    return found


def trace(number: int, thread: str | None = None, **more: Any) -> Row:
    """A trace; higher numbers are later."""
    return {"id": _id(number), "name": "agent", "project_name": "agents", "thread_id": thread,
            "start_time": f"2026-01-{number % 28 + 1:02}T00:00:00Z", "end_time": None, "input": {"q": "x"}, "output": None,
            "feedback_scores": None, **more}


def spans(number: int, said: str, calls: int = 2) -> list[Row]:
    """Model calls of a trace, the second of which runs a tool that failed."""
    talk: list[Row] = [{"role": "system", "content": "You are an agent."}, {"role": "user", "content": said}]
    found = []
    for step in range(calls):
        called = {"id": f"c{number}-{step}", "type": "function", "function": {"name": "Bash", "arguments": '{"command": "ls"}'}}
        answer = {"role": "assistant", "content": f"step {step}", "tool_calls": [called]}
        found.append({"id": _id(number * 100 + step), "trace_id": _id(number), "parent_span_id": None, "type": "llm",
                      "name": "chat", "start_time": f"2026-01-{number % 28 + 1:02}T00:00:{step * 2:02}Z", "model": "m-1",
                      "end_time": None, "project_name": "agents", "input": {"messages": list(talk)},
                      "output": {"choices": [{"message": answer}]},
                      "usage": {"prompt_tokens": 100 + step, "completion_tokens": 7, "total_tokens": 107 + step}})
        talk += [answer, {"role": "tool", "tool_call_id": called["id"], "content": "exit code 1"}]
    return found


def _id(number: int) -> str:
    return f"0198{number:04x}-0000-7000-8000-{number:012x}"


def fill(server: Any, traces: list[Row], inside: list[Row]) -> None:
    """Put traces and spans on the server."""
    server.traces.update({t["id"]: t for t in traces})
    server.spans.update({s["id"]: s for s in inside})


def test_spans_become_messages_calls_and_usage(opik_server: Any, tmp_path: Path) -> None:
    """A trace is a session: messages, tool calls with results, usage and the model, each once."""
    fill(opik_server, [trace(1)], spans(1, "fix it", 3))
    pull("--out", str(tmp_path / "out"))

    found = read(tmp_path / "out" / f"{_id(1)}.jsonl")[0]
    assert [] == opik_server.invalid
    assert ["system", "user", "assistant", "tool", "assistant", "tool", "assistant"] == [m.role for m in found.messages]
    assert (303, 21) == (found.usage.input_total, found.usage.output)
    assert "m-1" == found.model


def test_a_thread_is_one_session(opik_server: Any, tmp_path: Path) -> None:
    """All traces of a thread go into one file, also those that a filter would not find."""
    fill(opik_server, [trace(1, "th"), trace(2, "th", tags=["x"]), trace(3)], [*spans(1, "a"), *spans(2, "b"), *spans(3, "c")])
    done = pull("--out", str(tmp_path), "--filter", 'tags contains "x"')

    assert ["th"] == [s["session"] for s in done["sessions"]]
    assert 4 == sum(len(thread.steps) for thread in read(tmp_path / "th.jsonl")[0].threads)


def test_all_pages_are_read(opik_server: Any, tmp_path: Path) -> None:
    """A project of many pages of traces, and a trace of many pages of spans, arrive whole."""
    fill(opik_server, [trace(n) for n in range(1, 24)], [s for n in range(1, 24) for s in spans(n, "x", 20 if n == 9 else 1)])
    done = pull("--out", str(tmp_path))

    assert 23 == len(done["sessions"])
    assert {_id(9): 20} == {s["session"]: s["steps"] for s in done["sessions"] if s["steps"] != 1}


def test_limit_since_and_ids(opik_server: Any, tmp_path: Path) -> None:
    """--limit takes the newest sessions, --since those from a time on, --id a trace or a thread."""
    fill(opik_server, [trace(n, "th" if n == 2 else None) for n in range(1, 9)], [])

    def names(*options: str) -> list[str]:
        return [s["session"] for s in pull("--out", str(tmp_path), *options)["sessions"]]

    assert [_id(8), _id(7)] == names("--limit", "2")
    assert [_id(8), _id(7)] == names("--since", "2026-01-08")
    assert [_id(5), "th"] == names("--id", _id(5), "--id", "th")


def test_the_same_import_twice_changes_nothing(opik_server: Any, tmp_path: Path) -> None:
    """A second pull fetches no spans and touches no file."""
    fill(opik_server, [trace(1, "th"), trace(2, "th"), trace(3)], [s for n in (1, 2, 3) for s in spans(n, "x")])
    pull("--out", str(tmp_path))
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.jsonl")}
    opik_server.requests.clear()
    done = pull("--out", str(tmp_path))

    assert {"unchanged"} == {s["status"] for s in done["sessions"]}
    assert before == {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*.jsonl")}
    assert "POST spans/search" not in opik_server.requests


def test_what_grew_is_updated(opik_server: Any, tmp_path: Path) -> None:
    """A thread that goes on gets its new trace; the spans of the old one are not fetched again."""
    fill(opik_server, [trace(1, "th")], spans(1, "x"))
    pull("--out", str(tmp_path))
    fill(opik_server, [trace(2, "th")], spans(2, "y"))
    opik_server.requests.clear()
    done = pull("--out", str(tmp_path))

    assert ["updated"] == [s["status"] for s in done["sessions"]]
    assert 2 == opik_server.requests.count("POST spans/search")
    assert 6 == len((tmp_path / "th.jsonl").read_text().splitlines())


@pytest.mark.parametrize("how", ["lost", "500", "cut"])
def test_a_broken_pull_goes_on(opik_server: Any, tmp_path: Path, how: str) -> None:
    """A pull that breaks off keeps what it has; the next one fetches the rest."""
    from evals.sinks.opik import OpikError

    fill(opik_server, [trace(n) for n in range(1, 6)], [s for n in range(1, 6) for s in spans(n, "x")])
    opik_server.fail("POST spans/search", how, after=4, times=6)
    with pytest.raises(OpikError):
        pull("--out", str(tmp_path))
    assert 2 == len(list(tmp_path.glob("*.jsonl")))
    done = pull("--out", str(tmp_path))

    assert ["unchanged", "unchanged", "new", "new", "new"] == [s["status"] for s in done["sessions"]]
    assert {2} == {s["steps"] for s in done["sessions"]}


def test_rate_limits_are_waited_for(opik_server: Any, tmp_path: Path) -> None:
    """A server that says that it comes too often is asked again after the time that it names."""
    fill(opik_server, [trace(1)], spans(1, "x"))
    opik_server.fail("", "429", after=1, times=2)

    assert [2] == [s["steps"] for s in pull("--out", str(tmp_path))["sessions"]]


@pytest.mark.parametrize("shape", ["lines", "list", "pages", "export"])
def test_exported_files(tmp_path: Path, shape: str) -> None:
    """Lines, a list, pages, and what `opik export` writes give the same session file; twice changes nothing."""
    traces, inside = [trace(1), trace(2)], [*spans(1, "x"), *spans(2, "y")]
    path = tmp_path / "export.json"
    texts = {"lines": "\n".join(map(json.dumps, [*inside, *traces])), "list": json.dumps([*traces, *inside]),
             "pages": json.dumps([{"page": 1, "content": traces}, {"page": 1, "content": inside}]),
             "export": json.dumps([{"trace": t, "spans": [s for s in inside if s["trace_id"] == t["id"]]} for t in traces])}
    path.write_text(texts[shape])
    done = pull(str(path), "--out", str(tmp_path / "out"), "--limit", "1")

    assert [(_id(2), 2, "new")] == [(s["session"], s["steps"], s["status"]) for s in done["sessions"]]
    assert ["unchanged"] == [s["status"] for s in pull(str(path), "--out", str(tmp_path / "out"), "--id", _id(2))["sessions"]]


def test_errors_of_the_call(opik_server: Any, tmp_path: Path) -> None:
    """A filter or a time that cannot be read, a filter on a file, and a file of something else are said in words."""
    path = tmp_path / "other.json"
    path.write_text('{"a": 1}')

    with pytest.raises(ReadError, match="no traces or spans of Opik"):
        pull(str(path), "--out", str(tmp_path))
    with pytest.raises(ConfigError, match="expected a date"):
        pull("--out", str(tmp_path), "--since", "yesterday")
    with pytest.raises(ConfigError, match="--filter"):
        pull("--out", str(tmp_path), "--filter", "nonsense ((")
    path.write_text(json.dumps([trace(1)]))
    with pytest.raises(ConfigError, match="needs a server"):
        pull(str(path), "--out", str(tmp_path), "--filter", 'tags contains "x"')


def test_names_that_are_no_file_names(opik_server: Any, tmp_path: Path) -> None:
    """A thread's name cannot leave the folder, and two names never share a file."""
    fill(opik_server, [trace(1, "../../etc/x"), trace(2, "../../etc:x"), trace(3, "..")], [])
    done = pull("--out", str(tmp_path / "out"))

    files = {Path(s["path"]) for s in done["sessions"]}
    assert 3 == len(files)
    assert {tmp_path / "out"} == {f.parent for f in files}


def views(transcript: Transcript, name: str) -> list[str]:
    """The fingerprints of all views of a session under a policy."""
    session = Session(transcript, TokenCounter(tokenizer("o200k_base")))
    return [v.fingerprint for v in session.replay(policy(name), Capacity(window=24_000)).views]


@pytest.mark.parametrize("sample", ["decode/ledger-payees.jsonl", "claude-code/rainlog-crash.jsonl",
                                    "codex/ledger-saldo.jsonl", "mycodeagent/rainlog-rounds.jsonl"])
def test_round_trip(opik_server: Any, tmp_path: Path, sample: str) -> None:
    """A session that was pushed with traces and pulled again has the same views under every policy."""
    from evals.commands.compare import run

    run([str(SAMPLES / sample)], tmp_path / "run", policies=["full-history"], baseline=None, window=24_000,
        output_reserve=0, tokenizer="o200k_base", prices=None, cache_model="auto", summariser="extractive", jobs=1)
    call("push", str(tmp_path / "run"), "--traces", "--yes")
    done = pull("--out", str(tmp_path / "out"))

    native, pulled = read(SAMPLES / sample)[0], read(next((tmp_path / "out").glob("*.jsonl")))[0]
    assert (1, 1) == (len(done["sessions"]), done["replays_left_out"])
    assert [] == opik_server.invalid
    for name in POLICIES:
        assert views(native, name) == views(pulled, name), name
    assert native.usage == pulled.usage


@pytest.mark.parametrize("sample", ["openai-chat/parcels-review.json", "codex/ledger-saldo.jsonl"])
def test_spans_alone_give_the_same_views(opik_server: Any, tmp_path: Path, sample: str) -> None:
    """Where the whole history was sent, the spans without the recording are enough for the same views."""
    from evals.commands.compare import run

    run([str(SAMPLES / sample)], tmp_path / "run", policies=["full-history"], baseline=None, window=200_000,
        output_reserve=0, tokenizer="o200k_base", prices=None, cache_model="auto", summariser="extractive", jobs=1)
    call("push", str(tmp_path / "run"), "--traces", "--yes")
    for row in opik_server.traces.values():
        row["metadata"] = {}
    pull("--out", str(tmp_path / "out"))

    native = read(SAMPLES / sample)[0]
    for path in (tmp_path / "out").glob("*.jsonl"):
        pulled = read(path)[0]
        assert "otel" == pulled.format
        for name in ("recorded", "full-history", "decode-adr18"):
            assert views(native, name) == views(pulled, name), name


def test_a_damaged_recording_is_read_from_its_spans(opik_server: Any, tmp_path: Path) -> None:
    """Where a part of the recording is missing the steps are read instead, and the pull says so."""
    from evals.commands.compare import run

    run([str(SAMPLES / "openai-chat")], tmp_path / "run", policies=["full-history"], baseline=None, window=200_000,
        output_reserve=0, tokenizer="o200k_base", prices=None, cache_model="auto", summariser="extractive", jobs=1)
    call("push", str(tmp_path / "run"), "--traces", "--yes")
    for known in [k for k, s in opik_server.spans.items() if s["type"] == "general"]:
        del opik_server.spans[known]
    done = pull("--out", str(tmp_path / "out"))

    assert 1 == len(done["damaged"])
    assert [23] == [s["steps"] for s in done["sessions"]]
