"""What reading costs: time against parsing alone, and memory against the size of a folder."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from replay.errors import ReadError
from replay.readers import read_bytes
from replay.readers.source import parse_source

pytestmark = pytest.mark.bench

ROOT = Path(__file__).resolve().parents[2]
FILES, TURNS = 100, 320


@pytest.fixture(scope="module")
def real_data(shared: Path) -> list[tuple[str, bytes]]:
    """Every real session's name and plain bytes: all formats, and the corpus."""
    paths = [p for p in sorted((shared / "transcripts").rglob("*")) if p.is_file() and p.suffix != ".md"]
    paths += sorted((shared / "corpus").rglob("*.gz"))
    found = []
    for path in paths:
        data = path.read_bytes()
        found.append((str(path), gzip.decompress(data) if path.suffix == ".gz" else data))
    return found


def parsed(data: bytes) -> int:
    """Parse a document, or each line, with orjson and nothing else; how many values it were."""
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return sum(map(_parses, data.split(b"\n")))
    return 1


def _parses(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def read_one(name: str, data: bytes) -> None:
    """Read a file; one that holds no session costs what telling that costs."""
    try:
        read_bytes(data, name)
    except ReadError:
        return


def best(work: Callable[[], Any], rounds: int = 3) -> float:
    """Shortest of several runs in seconds."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def test_reading_against_parsing(real_data: list[tuple[str, bytes]], benchmark: Any, say: Any) -> None:
    """Reading all real sessions costs at most 6 × parsing the same lines with orjson."""
    floor = sum(best(lambda data=data: parsed(data)) for _, data in real_data)
    lines = sum(best(lambda data=data: parse_source(data, "x")) for _, data in real_data)
    benchmark.pedantic(lambda: [read_one(name, data) for name, data in real_data], rounds=1)
    reading = sum(best(lambda n=name, d=data: read_one(n, d)) for name, data in real_data)
    size = sum(len(data) for _, data in real_data) / 1e6
    say(f"reading {len(real_data)} real files of {size:.0f} MB: {reading:.2f} s, parsing their lines {floor:.2f} s, "
        f"ratio {reading / floor:.2f} (at most 6); of that into records {lines / floor:.2f}")

    assert reading / floor <= 6


def test_each_format_against_parsing(real_data: list[tuple[str, bytes]], say: Any, benchmark: Any) -> None:
    """The ratio of each format's real files; small files pay for telling the format, so it is only printed."""
    formats = sorted({Path(name).parent.name for name, _ in real_data})
    ratios = {}
    for name_of in formats:
        ours = [(name, data) for name, data in real_data if Path(name).parent.name == name_of]
        floor = sum(best(lambda data=data: parsed(data)) for _, data in ours)
        ratios[name_of] = sum(best(lambda n=name, d=data: read_one(n, d)) for name, data in ours) / floor
    benchmark.pedantic(lambda: None, rounds=1)
    say("reading by format: " + ", ".join(f"{name} {ratio:.1f}" for name, ratio in ratios.items()))

    assert set(formats) == set(ratios)


def session_text(turns: int) -> bytes:
    """A generated session of Claude Code of about 3 MB, with a mark where the session's name belongs."""
    draw, rows, parent = random.Random(5), [], None
    words = [f"word{n}" for n in range(400)]
    for turn in range(turns):
        for kind in ("user", "assistant"):
            uuid = f"{kind[0]}{turn:07}-SESSION-4aaa-8aaa-aaaaaaaaaaaa"
            text = " ".join(draw.choices(words, k=600))
            message = {"role": kind, "content": [{"type": "text", "text": text}]}
            if kind == "assistant":
                message |= {"id": f"msg_SESSION_{turn}", "model": "m", "usage": {"input_tokens": 9, "output_tokens": 1}}
            rows.append({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "SESSION", "message": message,
                         "requestId": f"req_SESSION_{turn}", "timestamp": "2026-01-01T00:00:00Z"})
            parent = uuid
    return "\n".join(map(json.dumps, rows)).encode()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_memory_does_not_grow_with_the_folder(tmp_path: Path, say: Any, benchmark: Any) -> None:
    """`detect` over a folder ten times as large peaks higher by at most 2 % of what it has more; only ids are kept."""
    template, size = session_text(TURNS), 0
    for number in range(FILES):
        folder = tmp_path / ("few" if number < FILES // 10 else "many")
        folder.mkdir(exist_ok=True)
        size += (folder / f"{number:08}.jsonl").write_bytes(template.replace(b"SESSION", f"{number:08}".encode()))
    # The high-water mark of the process itself: what getrusage gives begins with that of the process that started it.
    code = ("import sys\nfrom pathlib import Path\nfrom replay.find import find\n"
            "from replay.importing import import_files\nimported = import_files(find(sys.argv[1:]))\n"
            "status = dict(line.split(':') for line in Path('/proc/self/status').read_text().splitlines())\n"
            "print(sum(s['usage']['requests'] for s in imported.sessions), int(status['VmHWM'].split()[0]) // 1024)")

    def peak(*paths: Path) -> tuple[int, int]:
        done = subprocess.run([sys.executable, "-c", code, *map(str, paths)], capture_output=True, text=True, check=True,
                              cwd=ROOT)
        requests, megabytes = done.stdout.split()
        return int(requests), int(megabytes)

    few = peak(tmp_path / "few")
    many = benchmark.pedantic(lambda: peak(tmp_path), rounds=1)
    say(f"peak memory of reading {size / 1e6:.0f} MB in {FILES} files: {many[1]} MB, of a tenth of them {few[1]} MB "
        "(the difference may be 2 % of the files' size)")

    assert (FILES // 10 * TURNS, FILES * TURNS) == (few[0], many[0])
    assert many[1] - few[1] <= size / 1e6 * 0.02
