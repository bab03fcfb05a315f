"""What a gate costs: time against the floor of parsing and counting, and the size of a golden folder."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evals.bundled import sample_paths
from evals.commands.gate import gate
from replay.readers import read

pytestmark = pytest.mark.bench

SESSIONS = 200


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 sessions: the bundled ones, again and again under other ids."""
    made = tmp_path_factory.mktemp("sessions")
    paths = sample_paths()
    for number in range(SESSIONS):
        source = Path(paths[number % len(paths)])
        name, text = read(str(source))[0].session_id, source.read_text(encoding="utf-8")
        other = f"{number:08}{name[8:]}"
        (made / f"{number:03}{source.suffix}").write_text(text.replace(name, other), encoding="utf-8")
    return made


def _gate(*words: str) -> tuple[int, float]:
    """Exit code and seconds of processor time, worker processes included."""
    before = os.times()
    done = CliRunner().invoke(gate, [*words, "-p", "decode-adr18:scope=before-step", "--jobs", "1", "--json"],
                              standalone_mode=False)
    after = os.times()
    assert done.exception is None, done.exception
    return int(done.return_value), sum(after[:4]) - sum(before[:4])


def test_a_gate_over_200_sessions(folder: Path, tmp_path: Path, say: Any, benchmark: Any) -> None:
    """At most 6 × the processor time of reading the files (seconds are printed); the golden folder is under 2 MB."""
    # Named one by one: in a folder those that repeat others under another name would be left out.
    golden, files = tmp_path / "golden", [str(path) for path in sorted(folder.iterdir())]
    _gate(*files, "--golden", str(golden), "--window", "64000", "--accept")
    started = time.process_time()
    for path in files:
        read(path)
    reading = time.process_time() - started
    code, seconds = benchmark.pedantic(lambda: _gate(*files, "--golden", str(golden)), rounds=1)
    size = sum(p.stat().st_size for p in golden.rglob("*") if p.is_file())
    on_disk = sum(-(-p.stat().st_size // 4096) * 4096 for p in golden.rglob("*") if p.is_file())
    say(f"gate over {SESSIONS} sessions: {seconds:.1f} s of processor time, reading them {reading:.1f} s, ratio "
        f"{seconds / reading:.1f} (at most 6); golden folder {size / 1e6:.2f} MB, {on_disk / 1e6:.2f} MB in blocks "
        "(under 2)")

    assert 0 == code
    assert SESSIONS == len(list(golden.glob("sessions/*.golden")))
    assert on_disk < 2e6
    assert seconds / reading <= 6
