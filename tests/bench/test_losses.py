"""What measuring losses costs, against the floor and over the length of a session."""

from __future__ import annotations

import importlib.util
import time
from pathlib import Path
from typing import Any

import pytest

from evals.compare import Comparison, compare
from evals.trial import Settings, run_session
from replay.find import find
from replay.policy.base import Capacity
from replay.policy.load import policy, preset_names
from replay.tokens import TokenCounter, tokenizer

pytestmark = pytest.mark.bench
SETTINGS = Settings(capacity=Capacity(window=128_000), tokenizer="o200k_base", summariser="extractive", losses=True,
                    rows=False)


def _shared() -> Any:
    spec = importlib.util.spec_from_file_location("bench_shared", Path(__file__).with_name("conftest.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SHARED = _shared()


def _seconds(work: Any) -> float:
    """Processor time."""
    started = time.process_time()
    work()
    return time.process_time() - started


def test_all_metrics_of_twenty_policies_against_the_floor(real_files: list[Path], benchmark: Any, say: Any) -> None:
    """20 policies with every metric cost at most 30 × parsing and tokenising everything once; 6 × is what we want."""
    names = ["full-history", *(n for n in preset_names() if n != "full-history")][:20]
    job = Comparison(files=tuple(find([str(p) for p in real_files])), policies=tuple(map(policy, names)),
                     baseline="full-history", settings=SETTINGS, jobs=1)
    floor = min(_seconds(lambda: SHARED.floor(real_files)) for _ in range(3))
    taken = benchmark.pedantic(lambda: _seconds(lambda: compare(job, None)), rounds=1)
    say(f"20 policies with every metric on {len(real_files)} real files: {taken:.1f} s, floor {floor:.2f} s, "
        f"ratio {taken / floor:.1f} (wanted 6, at most 30)")

    assert taken <= 30 * floor


def test_metrics_grow_linearly(benchmark: Any, say: Any) -> None:
    """With every metric a step of a 10,000-step session costs at most 2 × a step of a 1,000-step one."""
    chosen = [policy(n) for n in ("full-history", "decode-adr18", "observation-masking")]

    def per_step(steps: int) -> float:
        transcript = SHARED.long_session(steps)
        return _seconds(lambda: run_session(transcript, 0, chosen, SETTINGS,
                                            TokenCounter(tokenizer("o200k_base")))) / steps

    per_step(1_000)
    short = min(per_step(1_000) for _ in range(2))
    long = benchmark.pedantic(lambda: per_step(10_000), rounds=1)
    say(f"three policies with every metric, time per step: 1,000 steps {short * 1e6:.0f} µs, 10,000 steps "
        f"{long * 1e6:.0f} µs, ratio {long / short:.2f} (at most 2)")

    assert long <= 2 * short
