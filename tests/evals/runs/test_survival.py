"""Runs that are killed, starved or handed broken trials: nothing is lost, nothing is done twice, nothing differs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from evals.runs.unfinished import place_of
from replay.cli import main

ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}
POLICIES = ("-p", "full-history", "-p", "mycodeagent", "-p", "decode-adr18", "--window", "9000")
TABLES = ("steps.parquet", "events.parquet", "trials.parquet")


def chat(path: Path, rounds: int) -> None:
    """A session with a prompt and a tool call a round."""
    lines: list[dict[str, Any]] = []
    for n in range(rounds):
        call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": json.dumps({"path": f"f{n}"})}}
        lines += [{"role": "user", "content": f"Please look at file {n}."},
                  {"role": "assistant", "content": "", "tool_calls": [call]},
                  {"role": "tool", "tool_call_id": f"c{n}", "content": f"line {n} " * 60},
                  {"role": "assistant", "content": f"File {n} is fine."}]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty sessions, most of them short."""
    folder = tmp_path_factory.mktemp("sessions")
    for n in range(30):
        chat(folder / f"s{n:02}.jsonl", 5 + 3 * (n % 7))
    return folder


def command(sessions: Path, out: Path, *more: str) -> list[str]:
    """A comparison in a process of its own."""
    return [sys.executable, "-m", "replay.cli", "compare", str(sessions), *POLICIES, "--no-cache",
            "--out", str(out), *more]


def finish(sessions: Path, out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """A comparison that is let run to its end."""
    done = subprocess.run(command(sessions, out, *more), capture_output=True, text=True, env=ENVIRONMENT, cwd=ROOT,
                          timeout=300, check=False)
    assert 0 == done.returncode, done.stderr
    return done


@pytest.fixture(scope="module")
def undisturbed(sessions: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run that nobody disturbs."""
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    finish(sessions, out, "--jobs", "1")
    return out


def started(arguments: list[str]) -> subprocess.Popen[str]:
    """A comparison that goes on in the background, in a group of its own."""
    # A shell starts what runs in the background with Ctrl-C ignored, and tests may be run there.
    return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT,
                            cwd=ROOT, start_new_session=True,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))


def wait_for(ready: Callable[[], Any], process: subprocess.Popen[str]) -> None:
    """Wait until something is so while the process runs."""
    deadline = time.monotonic() + 120
    while not ready():
        assert process.poll() is None, "the run was over before it could be disturbed"
        assert time.monotonic() < deadline
        time.sleep(0.005)


def parts(out: Path) -> list[Path]:
    """The parts that are kept so far."""
    return sorted(place_of(out).glob("parts/*/*.json"))


def kill_early(sessions: Path, out: Path, sent: signal.Signals) -> tuple[int, str]:
    """Start a run, stop it once three parts are kept, and say how it ended."""
    process = started(command(sessions, out, "--jobs", "1"))
    wait_for(lambda: len(parts(out)) >= 3, process)
    os.killpg(process.pid, sent)
    message = process.communicate(timeout=60)[1]
    return process.returncode, message


def same_tables(run: Path, other: Path) -> None:
    """Both runs hold the same bytes, but for their own place."""
    for name in TABLES:
        assert (other / name).read_bytes() == (run / name).read_bytes(), name
    summaries = [json.loads((r / "summary.json").read_bytes()) | {"run": None} for r in (other, run)]
    assert summaries[0] == summaries[1]


class TestKilled:
    """The main process or a worker is killed."""

    def test_main_process(self, sessions: Path, undisturbed: Path, tmp_path: Path) -> None:
        """After SIGKILL the same command goes on: what was done is not done again, and the run is the same."""
        out = tmp_path / "run"
        kill_early(sessions, out, signal.SIGKILL)
        before = {p: p.stat().st_mtime_ns for p in parts(out)}
        assert not out.exists()
        process = started(command(sessions, out, "--jobs", "1"))
        wait_for(lambda: len(parts(out)) > len(before), process)
        assert before == {p: p.stat().st_mtime_ns for p in before}

        process.communicate(timeout=120)
        assert 0 == process.returncode
        same_tables(out, undisturbed)
        assert [out] == list(tmp_path.iterdir())

    def test_a_person_stops_it(self, sessions: Path, undisturbed: Path, tmp_path: Path) -> None:
        """Ctrl-C says what is kept and how to go on; `runs resume` does."""
        out = tmp_path / "run"
        code, message = kill_early(sessions, out, signal.SIGINT)

        assert 130 == code, message
        assert f"finished files are kept: the same command, or rewindow runs resume {out}, goes on" in message
        with pytest.raises(SystemExit) as stopped:
            main(["runs", "resume", str(out)])
        assert 0 == stopped.value.code
        same_tables(out, undisturbed)

    def test_a_worker(self, sessions: Path, undisturbed: Path, tmp_path: Path) -> None:
        """A worker that is killed costs nothing but time."""
        out = tmp_path / "run"
        process = started(command(sessions, out, "--jobs", "2"))
        wait_for(lambda: len(parts(out)) >= 2, process)
        workers = [p for p in psutil.Process(process.pid).children(recursive=True) if "loky" in " ".join(p.cmdline())
                   and "tracker" not in " ".join(p.cmdline())]
        workers[0].kill()
        message = process.communicate(timeout=120)[1]

        assert 0 == process.returncode, message
        same_tables(out, undisturbed)

    def test_a_broken_part(self, sessions: Path, undisturbed: Path, tmp_path: Path) -> None:
        """A kept part that is not what was written is made again."""
        out = tmp_path / "run"
        kill_early(sessions, out, signal.SIGKILL)
        first, second = parts(out)[:2]
        first.write_bytes(first.read_bytes()[:-20])
        table = second.with_name(second.name.replace(".json", ".steps.parquet"))
        table.write_bytes(table.read_bytes()[:-8] + b"not what")
        finish(sessions, out, "--jobs", "1")

        same_tables(out, undisturbed)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KB in memory."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = shutil.which("mount")
    if mount is None or subprocess.run([mount, "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)],
                                       capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a small file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


class TestStarved:
    """Space, time or memory is short."""

    def test_a_full_disk(self, sessions: Path, undisturbed: Path, small_disk: Path) -> None:
        """A full disk is one clear line; with more space the same command goes on."""
        out = small_disk / "run"
        done = subprocess.run(command(sessions, out, "--jobs", "1"), capture_output=True, text=True, env=ENVIRONMENT,
                              cwd=ROOT, timeout=120, check=False)
        assert (2, True) == (done.returncode, "no space left on the disk" in done.stderr), done.stderr
        assert 1 == len(done.stderr.strip().splitlines())
        subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
        finish(sessions, out, "--jobs", "1")

        same_tables(out, undisturbed)

    @pytest.mark.parametrize(("name", "reason"), [
        ("ENDLESS", "took longer than its limit of 0.5 s"), ("HUNGRY", "needs more than"),
        ("CRASHING", "the process that replayed it ended")])
    def test_a_broken_trial(self, name: str, reason: str, sessions: Path, tmp_path: Path) -> None:
        """A trial that never ends, that wants all memory or that ends its process is a failed row; the run goes on."""
        few = tmp_path / "few"
        few.mkdir()
        for n in (0, 1, 2, 6):
            shutil.copy(sessions / f"s{n:02}.jsonl", few)
        out = tmp_path / "run"
        finish(few, out, "-p", f"tests.evals.runs.awkward:{name}", "--time-limit", "0.5", "--jobs", "2")
        trials = json.loads((out / "summary.json").read_bytes())["trials"]
        failed = [t for t in trials if not t["ok"]]

        assert {name.lower()} == {t["policy"] for t in failed}
        assert all(reason in t["error"] for t in failed)
        assert 12 == sum(t["ok"] for t in trials if t["policy"] != name.lower())


class TestTwoRuns:
    """Two runs for one folder."""

    def test_at_the_same_time(self, sessions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A second run into a folder that is being written is refused in one line."""
        out = tmp_path / "run"
        process = started(command(sessions, out, "--jobs", "1"))
        wait_for(lambda: parts(out), process)
        os.killpg(process.pid, signal.SIGSTOP)
        with pytest.raises(SystemExit) as stopped:
            main(command(sessions, out)[3:])
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=120)

        assert 2 == stopped.value.code
        assert f"{out}: another process is writing this run" in capsys.readouterr().err

    def test_of_other_settings(self, sessions: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """An unfinished run of other settings is not gone on with, and says how to finish or delete it."""
        out = tmp_path / "run"
        kill_early(sessions, out, signal.SIGKILL)
        arguments = command(sessions, out)[3:]
        with pytest.raises(SystemExit) as stopped:
            main([*arguments, "--output-reserve", "100"])
        assert 2 == stopped.value.code
        assert f"rewindow runs delete {out}" in capsys.readouterr().err

        with pytest.raises(SystemExit):
            main(["runs", "delete", str(out)])
        assert [] == list(tmp_path.iterdir())


class TestListing:
    """`rewindow runs`."""

    def test_list(self, sessions: Path, undisturbed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """Whole and unfinished runs are listed with what they hold."""
        shutil.copytree(undisturbed, tmp_path / "a")
        kill_early(sessions, tmp_path / "b", signal.SIGKILL)
        with pytest.raises(SystemExit):
            main(["runs", "list", str(tmp_path), "--json"])
        found = {Path(r["path"]).name: r for r in json.loads(capsys.readouterr().out)["runs"]}

        assert ("done", 30, 3) == tuple(found["a"][k] for k in ("state", "sessions", "policies"))
        assert ("unfinished", 3) == (found["b"]["state"], min(3, found["b"]["files_done"]))

    def test_delete_spares_what_is_no_run(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        """A folder that holds no run is left alone."""
        (tmp_path / "mine").mkdir()
        with pytest.raises(SystemExit) as stopped:
            main(["runs", "delete", str(tmp_path / "mine")])

        assert 3 == stopped.value.code
        assert (tmp_path / "mine").is_dir()
