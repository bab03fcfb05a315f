"""Ratios of speed and memory, each measured within one run."""

from __future__ import annotations

import importlib.util
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evals.compare import Comparison, compare
from evals.trial import Settings
from replay.engine import Session
from replay.find import find
from replay.policy.base import Capacity
from replay.policy.load import policy, preset_names
from replay.readers import read
from replay.tokens import TokenCounter, Tokenizer, tokenizer
from replay.view import render

pytestmark = pytest.mark.bench

POLICIES = ("full-history", "mycodeagent", "decode", "decode-adr18")
CAPACITY = Capacity(window=128_000)
GUARD = 8
"""What the mean preset must not exceed while it misses its limit."""


def _conftest() -> Any:
    spec = importlib.util.spec_from_file_location("bench_conftest", Path(__file__).with_name("conftest.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SHARED = _conftest()


def _best(work: Callable[[], Any], rounds: int = 5) -> float:
    """Shortest of several runs in seconds: the machine's other work only ever adds."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def _alternately(works: dict[Any, Callable[[], Any]], rounds: int = 5) -> dict[Any, float]:
    """Shortest processor time of each work in seconds. They take turns: a machine's speed changes within a minute."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            tokenizer("o200k_base").forget()
            started = time.process_time()
            work()
            best[name] = min(best[name], time.process_time() - started)
    return best


def test_four_policies_against_the_floor(real_files: list[Path], benchmark: Any, say: Any) -> None:
    """Comparing four policies costs at most 3 × parsing and tokenising everything once."""
    files = tuple(find([str(p) for p in real_files]))
    settings = Settings(capacity=CAPACITY, tokenizer="o200k_base", summariser="extractive")
    job = Comparison(files=files, policies=tuple(map(policy, POLICIES)), baseline="full-history", settings=settings,
                     jobs=1)
    compare(job, None)
    best = benchmark.pedantic(lambda: _alternately({"floor": lambda: SHARED.floor(real_files),
                                                    "compare": lambda: compare(job, None)}), rounds=1)
    ratio = best["compare"] / best["floor"]
    say(f"four policies on {len(real_files)} real files: {best['compare']:.2f} s, floor {best['floor']:.2f} s, "
        f"ratio {ratio:.2f} (at most 3)")

    assert ratio <= 3


def test_time_per_step_stays_flat(benchmark: Any, say: Any) -> None:
    """A step of a 10,000-step session costs at most 1.3 × a step of a 1,000-step one."""
    sessions = {steps: SHARED.long_session(steps) for steps in (1_000, 3_000, 10_000)}
    best = benchmark.pedantic(lambda: _alternately({n: lambda t=t: _replay(t) for n, t in sessions.items()}), rounds=1)
    per_step = {steps: seconds / steps / len(POLICIES) for steps, seconds in best.items()}
    shown = ", ".join(f"{steps:,} steps {seconds * 1e6:.0f} µs" for steps, seconds in per_step.items())
    ratio = per_step[10_000] / per_step[1_000]
    say(f"time per step and policy: {shown}; ratio {ratio:.2f} (at most 1.3)")

    assert ratio <= 1.3


def _replay(transcript: Any) -> None:
    session = Session(transcript, TokenCounter(tokenizer("o200k_base")))
    for name in POLICIES:
        session.replay(policy(name), CAPACITY)


@pytest.mark.xfail(raises=AssertionError, strict=True, reason="the mean preset costs about 3 to 4 × full history")
def test_the_mean_preset_against_full_history(benchmark: Any, say: Any) -> None:
    """On a 10,000-step session the mean preset's lane costs at most 1.5 × that of full history per step."""
    session = Session(SHARED.long_session(10_000), TokenCounter(tokenizer("o200k_base")))
    lane_seconds(session, "full-history")
    floor_seconds = min(lane_seconds(session, "full-history") for _ in range(3))
    ratios = {name: lane_seconds(session, name) / floor_seconds for name in preset_names()}
    benchmark.pedantic(lambda: lane_seconds(session, "full-history"), rounds=1)
    mean = statistics.fmean(ratios.values())
    slow = ", ".join(f"{name} {ratios[name]:.1f}" for name in sorted(ratios, key=lambda n: -ratios[n])[:5])
    say(f"lane of the mean of {len(ratios)} presets against full history on 10,000 steps: {mean:.2f} (at most 1.5, not reached); "
        f"slowest {slow}")

    if mean > GUARD:
        raise RuntimeError(f"the mean preset costs {mean:.1f} × full history, more than the {GUARD} that it had reached")
    assert mean <= 1.5


def lane_seconds(session: Session, name: str) -> float:
    """Processor time of one lane, what it computes from the log for the first time included."""
    chosen = policy(name)
    started = time.process_time()
    session.replay(chosen, CAPACITY)
    return time.process_time() - started


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_memory_of_a_long_session(say: Any, benchmark: Any) -> None:
    """Replaying 10,000 steps under four policies stays below 600 MB."""
    code = ("import importlib.util, sys\n"
            "spec = importlib.util.spec_from_file_location('bench', sys.argv[1])\n"
            "bench = importlib.util.module_from_spec(spec); spec.loader.exec_module(bench)\n"
            "bench._replay(bench.SHARED.long_session(10_000))\n"
            # What getrusage gives begins with the peak of the process that started this one.
            "status = dict(line.split(':') for line in open('/proc/self/status'))\n"
            "print(int(status['VmHWM'].split()[0]))\n")
    done = benchmark.pedantic(lambda: subprocess.run([sys.executable, "-c", code, __file__], capture_output=True,
                                                     text=True, check=True), rounds=1)
    peak_mb = int(done.stdout.split()[-1]) / 1024
    say(f"peak memory of a 10,000-step replay under four policies: {peak_mb:.0f} MB (at most 600)")

    assert peak_mb <= 600


def test_help_is_instant(benchmark: Any, say: Any) -> None:
    """`rewindow --help` costs at most 6 × the start of a bare interpreter."""
    command = [str(Path(sys.executable).with_name("rewindow")), "--help"]
    if not Path(command[0]).exists():
        command = [sys.executable, "-m", "replay.cli", "--help"]
    bare = statistics.median(_run_seconds([sys.executable, "-c", "pass"]) for _ in range(15))
    benchmark.pedantic(lambda: _run_seconds(command), rounds=15)
    ratio = benchmark.stats.stats.median / bare
    say(f"rewindow --help: {benchmark.stats.stats.median * 1e3:.0f} ms, bare interpreter {bare * 1e3:.0f} ms, "
        f"ratio {ratio:.1f} (at most 6)")

    assert ratio <= 6


def _run_seconds(command: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True)
    return time.perf_counter() - started


def test_show_costs_little_more_than_reading(transcripts: Path, benchmark: Any, say: Any) -> None:
    """Showing a step of a 4 MB session costs at most 3 × reading and counting it."""
    path = transcripts / "claude-code" / "three-compactions.jsonl"

    def read_and_count() -> None:
        transcript = read(path)[0]
        TokenCounter(Tokenizer("o200k_base")).tokens(transcript.messages)

    def show() -> None:
        transcript = read(path)[0]
        session = Session(transcript, TokenCounter(Tokenizer("o200k_base")))
        lane = session.replay(policy("decode-adr18"), CAPACITY)
        render(session.log, lane.views[-1].window, "openai")

    read_and_count()
    base = _best(read_and_count)
    benchmark.pedantic(show, rounds=5)
    ratio = benchmark.stats.stats.min / base
    say(f"show of a 4 MB session: {benchmark.stats.stats.min * 1e3:.0f} ms, reading and counting {base * 1e3:.0f} ms, "
        f"ratio {ratio:.2f} (at most 3)")

    assert ratio <= 3
