"""`rewindow serve` as a process: alone until it is interrupted, and around a harness."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
SERVE = [sys.executable, "-m", "replay.cli", "serve"]
HARNESS = '''"""A harness of twenty lines: one prompt, results as the file says, its history kept between processes."""
import json, os, sys, urllib.request
from pathlib import Path

kept, results = Path("history.json"), json.loads(Path("results.json").read_text())
messages = json.loads(kept.read_text()) if kept.exists() else []
messages.append({"role": "user", "content": sys.argv[1]})
while True:
    body = json.dumps({"model": "m", "messages": messages, "tools": [{"type": "function", "function": {"name": "read"}}]})
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body.encode())
    with urllib.request.urlopen(request) as response:
        said = json.load(response)["choices"][0]["message"]
    messages.append(said)
    if not said.get("tool_calls"):
        break
    messages += [{"role": "tool", "tool_call_id": c["id"], "content": results[c["id"]]} for c in said["tool_calls"]]
kept.write_text(json.dumps(messages))
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A session of two prompts, the small harness, and what its tool gives."""
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}}
    messages = [{"role": "user", "content": "Look at a."}, {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": "alpha"}, {"role": "assistant", "content": "It is alpha."},
                {"role": "user", "content": "--dashed prompt; $(touch run)"}, {"role": "assistant", "content": "Fine."}]
    (tmp_path / "session.json").write_text(json.dumps({"messages": messages}))
    (tmp_path / "harness.py").write_text(HARNESS)
    (tmp_path / "results.json").write_text(json.dumps({"c1": "alpha"}))
    return tmp_path


def serve(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return subprocess.run([*SERVE, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=60,
                          env=os.environ | {"PYTHONPATH": str(ROOT)})


def test_harness_runs_once_for_each_recorded_prompt(folder: Path) -> None:
    """Prompts go as one argument, never through a shell; the processes stand in the recording."""
    done = serve(folder, "session.json", "--record", "lane", "--json", "--", sys.executable, "harness.py", "{prompt}")
    config = json.loads((folder / "lane" / "config.json").read_text())
    told = json.loads(done.stdout)

    assert 0 == done.returncode, done.stderr
    assert (3, 3, []) == (told["requests"], told["steps_served"], told["divergences"])
    assert [2, 3] == [c["requests_so_far"] for c in config["commands"]]
    assert ["Look at a.", "--dashed prompt; $(touch run)"] == config["prompts"]
    assert not (folder / "run").exists()
    assert "will really run these recorded calls: read 1" in done.stderr


def test_divergence_makes_the_exit_code_one(folder: Path) -> None:
    """The line on stderr names step and kind; the harness that failed is not run again."""
    (folder / "results.json").write_text(json.dumps({"c1": "beta"}))
    done = serve(folder, "session.json", "--", sys.executable, "harness.py", "{prompt}")

    assert 1 == done.returncode
    assert "step 2: result: the result of read is not the recorded one: 4 characters, recorded 5" in done.stderr
    assert "divergences: 1;" in done.stdout
    assert 1 == done.stderr.count("Traceback")


def test_differing_results_may_pass(folder: Path) -> None:
    """With --any-result the run goes on, and the report counts what was let pass."""
    (folder / "results.json").write_text(json.dumps({"c1": "beta"}))
    done = serve(folder, "session.json", "--any-result", "--", sys.executable, "harness.py", "{prompt}")

    assert 0 == done.returncode, done.stderr
    assert "differing results let pass: 1" in done.stdout


@pytest.mark.parametrize(("words", "error"), [
    (["session.json", "--", "no-such-program"], "no-such-program: no such program"),
    (["session.json", "--refuse", "x"], "--refuse: x: expected STEP or STEP:TIMES"),
    (["session.json", "--summary-words", "("], "--summary-words: no regular expression"),
    (["session.json", "--index", "4"], "holds 1 sessions"),
    (["session.json", "-p", "no-such-preset"], "no-such-preset"),
])
def test_wrong_calls_get_one_line(folder: Path, words: list[str], error: str) -> None:
    """What is wrong and what would be right, before anything is served."""
    done = serve(folder, *words)

    assert 2 == done.returncode
    assert error in done.stderr
    assert "Traceback" not in done.stderr


@pytest.fixture
def running(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server without a command, and its address."""
    process = subprocess.Popen([*SERVE, "session.json", "--record", "lane"], cwd=folder, stdout=subprocess.PIPE, text=True,
                               stderr=subprocess.PIPE, env=os.environ | {"PYTHONPATH": str(ROOT)})
    assert process.stdout and process.stderr
    line = process.stdout.readline()
    yield process, line.split()[2].removesuffix("/v1")
    process.kill()
    process.wait()
    process.stdout.close()
    process.stderr.close()


def fetch(url: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """Status and JSON of a request."""
    request = urllib.request.Request(url, json.dumps(body).encode() if body is not None else None, headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_serves_until_it_is_interrupted(running: Any, folder: Path, stop: signal.Signals) -> None:
    """An interrupt ends it with the report, and the recording is whole."""
    process, url = running
    asked = {"model": "m", "messages": [{"role": "user", "content": "Look at a."}]}
    status, said = fetch(f"{url}/v1/chat/completions", asked)
    process.send_signal(stop)

    assert (200, "c1") == (status, said["choices"][0]["message"]["tool_calls"][0]["id"])
    assert 0 == process.wait(timeout=30)
    assert "requests: 1 (1 step)" in process.stdout.read()
    assert "." == json.loads((folder / "lane" / "config.json").read_text())["kinds"]


def test_pages_of_other_hosts_get_nothing(running: Any) -> None:
    """A page may not move the session on, nor read it under a name that it points at this machine."""
    _, url = running
    asked = {"messages": [{"role": "user", "content": "Look at a."}]}
    page = fetch(f"{url}/v1/chat/completions", asked, Origin="https://example.org")
    rebound = fetch(f"{url}/v1/chat/completions", asked, Host="example.org")

    assert (403, 400) == (page[0], rebound[0])
    assert (200, 0) == (lambda s: (s[0], s[1]["requests"]))(fetch(f"{url}/rewindow/state"))
    assert "recorded" == fetch(f"{url}/v1/models")[1]["data"][0]["id"]


def test_new_process_can_be_told(running: Any, folder: Path) -> None:
    """A harness that is started by hand begins anew where its driver says so."""
    _, url = running
    asked = {"messages": [{"role": "user", "content": "Look at a."}]}
    fetch(f"{url}/v1/chat/completions", asked)
    fetch(f"{url}/rewindow/process", {})

    assert [1] == [c["requests_so_far"] for c in json.loads((folder / "lane" / "config.json").read_text())["commands"]]
