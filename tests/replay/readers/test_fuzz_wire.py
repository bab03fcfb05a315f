"""The reader of captures under mutation: a capture is a folder, so one of its files is mutated at a time."""

from __future__ import annotations

import gzip
import importlib.util
import os
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replay.errors import ReadError
from replay.readers import read

HERE = Path(__file__).resolve().parent
SHARED = Path(os.environ.get("REWINDOW_SHARED", HERE.parents[3] / "shared"))
PARTS = ("config.json", "requests.jsonl", "items.jsonl", "compactions.json")


def _fuzz() -> Any:
    spec = importlib.util.spec_from_file_location("fuzz_of_readers", HERE / "test_fuzz.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FUZZ = _fuzz()


@cache
def captures() -> tuple[dict[str, bytes], ...]:
    """The files of small captures."""
    folders = [folder for folder in sorted((SHARED / "wire").glob("*/*")) if (folder / "requests.jsonl").is_file()]
    found = []
    for folder in folders:
        parts = {}
        for name in PARTS:
            if (folder / name).is_file():
                parts[name] = (folder / name).read_bytes()
            elif (folder / f"{name}.gz").is_file():
                parts[name] = gzip.decompress((folder / f"{name}.gz").read_bytes())
        parts["requests.jsonl"] = b"\n".join(parts["requests.jsonl"].split(b"\n")[:12]) + b"\n"
        parts["items.jsonl"] = b"\n".join(FUZZ.short_line(x, 160, 10) for x in parts["items.jsonl"].split(b"\n"))
        found.append(parts)
    return tuple(sorted(found, key=lambda parts: len(parts["items.jsonl"]))[:4])


def check(parts: dict[str, bytes], name: str, steps: list[tuple[Any, int, int]]) -> None:
    """Read a capture with one mutated file, and render what was read."""
    data = parts[name]
    for mutation, a, b in steps:
        data = mutation(data, a, b) if data else data
    with tempfile.TemporaryDirectory() as scratch, FUZZ.deadline(FUZZ.LONGEST_SECONDS):
        for part, content in parts.items():
            (Path(scratch) / part).write_bytes(data if part == name else content)
        try:
            found = read(Path(scratch) / "requests.jsonl", "wire")
        except ReadError:
            return
        for transcript in found:
            FUZZ.render_all(transcript)


def fuzz(examples: int) -> None:
    """Many cases."""
    intact = captures()
    if not intact:
        pytest.skip("no captures at hand")

    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.integers(0, len(intact) - 1), st.sampled_from(PARTS[:3]), FUZZ.STEPS)
    def case(number: int, name: str, steps: list[tuple[Any, int, int]]) -> None:
        check(intact[number], name, steps)

    case()


def test_mutated_captures() -> None:
    """300 captures with a mutated file are read without a crash or a hang."""
    fuzz(300)


@pytest.mark.nightly
def test_many_mutated_captures() -> None:
    """The same for 20,000."""
    fuzz(20_000)
