"""Programs as policies: JSON lines both ways, and every way in which a program can misbehave."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evals.compare import Comparison, compare
from evals.trial import Settings
from replay.find import find
from replay.own.base import OwnCodeError
from replay.own.child import ChildProcess
from replay.policy.base import Capacity
from replay.policy.load import policy
from replay.policy.policy import Policy
from replay.testing import Script
from replay.transcript import Transcript
from tests.replay.own.test_functions import WIDE, lane, prints, session, talk

ROOT = Path(__file__).resolve().parents[3]
HELLO = "import json,sys,time\nprint(json.dumps({'protocol': 1}), flush=True)\nsys.stdin.readline()\n"
NODE = shutil.which("node")


def program(folder: Path, body: str) -> str:
    """The command of a Python program that has said hello."""
    path = folder / "program.py"
    path.write_text(HELLO + body, encoding="utf-8")
    return f"{sys.executable} {path}"


def replayed(transcript: Transcript, command: str, timeout: float = 20.0) -> list[bytes]:
    """The fingerprints of a program's views."""
    own = ChildProcess(command=command, timeout=timeout)
    return prints(session(transcript).replay(Policy(name="program", own=own), WIDE))


def test_the_python_example() -> None:
    """The program in the documentation blanks old results."""
    found = session(talk(6)).replay(policy(f"command:{sys.executable} {ROOT / 'docs/examples/own_policy.py'}"), WIDE)

    assert [("micro", (2,)), ("micro", (6,)), ("micro", (10,))] == [(e.kind, e.elided) for e in found.events]


@pytest.mark.skipif(NODE is None, reason="Node is not installed")
def test_the_typescript_example(tmp_path: Path) -> None:
    """So does the one in TypeScript."""
    done = subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(tmp_path), "typescript@5"],
                          capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        pytest.skip(f"TypeScript cannot be installed: {done.stderr[-200:]}")
    source = ROOT / "docs" / "examples" / "own_policy.ts"
    made = subprocess.run([str(tmp_path / "node_modules" / ".bin" / "tsc"), "--module", "esnext", "--target", "es2022",
                           "--strict", "--noCheck", "--outDir", str(tmp_path), str(source)], capture_output=True, text=True,
                          timeout=60, check=False)
    assert 0 == made.returncode, made.stdout
    script = (tmp_path / "own_policy.js").rename(tmp_path / "own_policy.mjs")
    found = session(talk(6)).replay(policy(f"command:{NODE} {script}"), WIDE)

    assert [("micro", (2,)), ("micro", (6,)), ("micro", (10,))] == [(e.kind, e.elided) for e in found.events]


def test_a_function_in_another_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function is run by another interpreter, which needs nothing of Rewindow; what it prints does no harm."""
    (tmp_path / "mine.py").write_text("def newest(messages, state):\n    print('hello')\n    return messages[-1:]\n",
                                      encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    found = session(talk(3)).replay(policy(f"python@{sys.executable}:mine:newest"), WIDE)

    assert {1} == {v.window.message_count() for v in found.views}


def test_one_process_serves_all_sessions(tmp_path: Path) -> None:
    """A program is started once, however many sessions it is asked about."""
    log = tmp_path / "starts"
    command = program(tmp_path, f"open({str(log)!r}, 'a').write('started ')\n"
                                "for line in sys.stdin:\n    q = json.loads(line)\n"
                                "    if q['type'] == 'step': print(json.dumps({'messages': q['messages']}), flush=True)\n")

    assert [replayed(talk(n), command) for n in (2, 3)] == [prints(lane(talk(n), "same")) for n in (2, 3)]
    assert "started " == log.read_text(encoding="utf-8")


def test_large_messages_block_nobody(tmp_path: Path) -> None:
    """Thirty megabytes each way, while the program chatters on its standard error."""
    script = Script().user("Read it.")
    for _ in range(3):
        script.call("Read", "{}").result("x" * 10_000_000)
    command = program(tmp_path, "for line in iter(sys.stdin.readline, ''):\n    q = json.loads(line)\n"
                                "    if q['type'] != 'step': continue\n    print('e' * 300_000, file=sys.stderr)\n"
                                "    text = json.dumps({'messages': q['messages']})\n"
                                "    for i in range(0, len(text), 1 << 16): sys.stdout.write(text[i:i + (1 << 16)])\n"
                                "    print(flush=True)\n")
    transcript = script.say("Done.").build()

    assert prints(lane(transcript, "same")) == replayed(transcript, command, 60.0)


@pytest.mark.parametrize(("body", "words"), [
    ("sys.exit('out of luck')", r"step 1: it ended with code 1; it said: out of luck"),
    ("time.sleep(60)", r"step 1: no answer within 2 s"),
    ("print('{oops', flush=True); time.sleep(60)", r"step 1: its answer is no JSON .*\{oops"),
    ("print('{\"error\": \"no budget\"}', flush=True); time.sleep(60)", r"step 1: answered 'no budget'"),
    ("print('7', flush=True); time.sleep(60)", r"step 1: answered '7'"),
    ("print('{\"messages\": 3}', flush=True); time.sleep(60)", r"gave int and not a list of messages")])
def test_misbehaviour_is_one_clear_line(body: str, words: str, tmp_path: Path) -> None:
    """What the program did, at which step, and what it said last."""
    started = time.monotonic()
    with pytest.raises(OwnCodeError, match=words):
        replayed(talk(2), program(tmp_path, "sys.stdin.readline(); sys.stdin.readline(); " + body), 2.0)

    assert time.monotonic() - started < 30


def test_a_line_too_many_is_refused(tmp_path: Path) -> None:
    """A program that prints more than its answers would be a step late from then on: it is ended instead."""
    command = program(tmp_path, "for line in sys.stdin:\n    q = json.loads(line)\n    if q['type'] != 'step': continue\n"
                                "    print(json.dumps({'messages': q['messages']}) + '\\nDone with it.', flush=True)\n")
    transcript = talk(60)

    with pytest.raises(OwnCodeError, match=r"step \d+: (a line that was not asked for|its answer is no JSON).*Done with it"):
        replayed(transcript, command)


@pytest.mark.parametrize(("command", "words"), [
    ("no-such-program-anywhere", "cannot be started"), ("'unclosed", "cannot be split"), ("", "names no program"),
    (f"{sys.executable} -c pass", "ended with code 0")])
def test_a_program_that_does_not_start(command: str, words: str) -> None:
    """A command that is none is told before any step."""
    with pytest.raises(Exception, match=words):
        replayed(talk(1), command)


def test_a_run_goes_on_where_a_program_dies(tmp_path: Path) -> None:
    """The sessions in which it died have failed, the others are measured by a new process."""
    folder = tmp_path / "sessions"
    folder.mkdir()
    for name, text in (("a", "fine"), ("b", "deadly"), ("c", "fine")):
        rows = [{"role": "user", "content": text}, {"role": "assistant", "content": "Yes."}]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    command = program(tmp_path, "for line in sys.stdin:\n    q = json.loads(line)\n    if 'deadly' in line: sys.exit(3)\n"
                                "    if q['type'] == 'step': print(json.dumps({'messages': q['messages']}), flush=True)\n")
    settings = Settings(capacity=Capacity(window=9_000), tokenizer="o200k_base", summariser="extractive")
    own = policy(f"command:{command}")
    summary = compare(Comparison(files=tuple(find([str(folder)])), policies=(own,), baseline=own.name, settings=settings,
                                 jobs=1), None)

    assert [True, False, True] == [t["ok"] for t in summary["trials"]]
    assert "it ended with code 3" in summary["trials"][1]["error"]
