"""What many policies, many sessions, two cores and a second run cost, as the command line has it, in ratios of one run."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from replay.policy.load import preset_names

pytestmark = pytest.mark.bench
ALL = ("full-history", *(n for n in preset_names() if n != "full-history"))
TWENTY = ALL[:20]
MB = 1_000_000


def _corpus() -> Any:
    spec = importlib.util.spec_from_file_location("bench_corpus", Path(__file__).with_name("corpus.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Cost(NamedTuple):
    """What a command took."""

    seconds: float
    processor: float
    """Seconds of processor time, worker processes included."""
    peak_mb: float
    """Largest process."""


def compared(paths: Sequence[Path | str], policies: Sequence[str], *more: str, cache: Path | None = None) -> Cost:
    """The cost of `rewindow compare` in a process of its own; `cache` None: without one."""
    words = [w for name in policies for w in ("-p", name)] + list(more) + ([] if cache else ["--no-cache"])
    before, started = os.times(), time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "replay.cli", "compare", *map(str, paths), *words, "--json"],
                               stdout=subprocess.DEVNULL, env=os.environ | {"XDG_CACHE_HOME": str(cache or "/nowhere")})
    peak = _watched(process)
    seconds, after = time.perf_counter() - started, os.times()
    assert 0 == process.returncode
    return Cost(seconds, after.children_user + after.children_system - before.children_user - before.children_system,
                peak / MB)


def _watched(process: subprocess.Popen[bytes]) -> int:
    """The largest resident memory that the process or one of its own ever had, looked at every half second."""
    peak = 0
    while process.poll() is None:
        try:
            family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
            peak = max([peak, *(p.memory_info().rss for p in family)])
        except psutil.Error:
            pass
        time.sleep(0.5)
    return peak


def _is_busy() -> bool:
    return psutil.cpu_percent(interval=2) > 15


def test_twenty_policies_against_one(transcripts: Path, benchmark: Any, say: Any) -> None:
    """20 policies cost at most 3 × what one policy costs, from the start of the command to its end."""
    one = min((compared([transcripts], ALL[:1], "--jobs", "1") for _ in range(3)), key=lambda c: c.processor)
    many = benchmark.pedantic(lambda: compared([transcripts], TWENTY, "--jobs", "1"), rounds=1)
    ratio = many.processor / one.processor
    say(f"real sessions: one policy {one.processor:.1f} s, twenty {many.processor:.1f} s, ratio {ratio:.2f} (at most 3)")

    assert ratio <= 3


def test_a_second_run(transcripts: Path, tmp_path: Path, benchmark: Any, say: Any) -> None:
    """A second run with a warm cache takes at most 0.6 × the first."""
    first = compared([transcripts], TWENTY[:4], "--jobs", "1", cache=tmp_path)
    second = benchmark.pedantic(lambda: compared([transcripts], TWENTY[:4], "--jobs", "1", cache=tmp_path), rounds=1)
    other = compared([transcripts], TWENTY[4:5], "--jobs", "1", cache=tmp_path)
    cold = compared([transcripts], TWENTY[4:5], "--jobs", "1")
    ratio = second.processor / first.processor
    say(f"four policies on real sessions: {first.processor:.1f} s, again {second.processor:.1f} s, ratio {ratio:.2f} (at "
        f"most 0.6); another policy {other.processor:.1f} s, without the cache {cold.processor:.1f} s")

    assert ratio <= 0.6


def test_two_processes(tmp_path: Path, benchmark: Any, say: Any) -> None:
    """Two processes on two free cores are at least 1.7 × as fast as one."""
    if (os.cpu_count() or 1) < 2 or _is_busy():
        pytest.skip("needs two free cores")
    paths = _corpus().write_corpus(tmp_path / "sessions", 120)
    one = compared([paths[0].parent], TWENTY, "--jobs", "1", "--window", "32000")
    two = benchmark.pedantic(lambda: compared([paths[0].parent], TWENTY, "--jobs", "2", "--window", "32000"), rounds=1)
    say(f"120 generated sessions under 20 policies: one process {one.seconds:.1f} s, two {two.seconds:.1f} s, ratio "
        f"{one.seconds / two.seconds:.2f} (at least 1.7)")

    assert one.seconds >= 1.7 * two.seconds


def test_all_presets_on_a_corpus(shared: Path, bench: Any, benchmark: Any, say: Any) -> None:
    """All presets on 90 real sessions with two processes take less than 10 × parsing and tokenising everything once."""
    corpus = shared / "corpus"
    if not corpus.is_dir():
        pytest.skip("no corpus of real sessions")
    started = time.perf_counter()
    bench.floor(sorted(p for p in corpus.rglob("*.gz")))
    floor = time.perf_counter() - started
    taken = benchmark.pedantic(lambda: compared([corpus], ALL, "--jobs", "2"), rounds=1)
    say(f"{len(ALL)} presets on 90 real sessions, two processes: {taken.seconds:.0f} s, floor {floor:.1f} s, ratio "
        f"{taken.seconds / floor:.1f} (under 10); largest process {taken.peak_mb:,.0f} MB")

    assert taken.seconds < 10 * floor


def test_two_thousand_sessions(tmp_path: Path, benchmark: Any, say: Any) -> None:
    """2,000 sessions under 20 policies stay within 1 GB a process; time per session is that of 100, within 15 %."""
    paths = _corpus().write_corpus(tmp_path / "sessions", 2_000)

    def run(count: int, name: str) -> Cost:
        return compared(paths[:count], TWENTY, "--jobs", "2", "--window", "32000", "--out", str(tmp_path / name))

    # What the command costs before its first session is no part of a session.
    start, few = run(2, "start").processor, run(100, "few").processor
    many = benchmark.pedantic(lambda: run(2_000, "many"), rounds=1)
    each_few, each_many = (few - start) / 98, (many.processor - start) / 1_998
    size = sum(p.stat().st_size for p in (tmp_path / "many").iterdir()) / MB
    say(f"2,000 generated sessions under 20 policies: {many.seconds:.0f} s, {each_many * 1e3:.0f} ms of processor time each, "
        f"{each_few * 1e3:.0f} ms of 100; largest process {many.peak_mb:,.0f} MB (at most 1,000); the run {size:.0f} MB")

    assert many.peak_mb <= 1_000
    assert each_many <= 1.15 * each_few
