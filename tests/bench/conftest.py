"""What the benchmarks share: the floor, generated sessions, and a report at the end."""

from __future__ import annotations

import gzip
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import splintr

from replay.testing import Script
from replay.transcript import Transcript

_LINES: list[str] = []


@pytest.fixture(scope="session")
def bench() -> Any:
    """This module: `floor`, `long_session`."""
    return sys.modules[__name__]


@pytest.fixture(scope="session")
def say() -> Iterator[Any]:
    """Collects the lines that are printed when the benchmarks are over."""
    yield _LINES.append
    print("\n\n" + "\n".join(_LINES))  # noqa: T201 - the result of a benchmark is what it prints


def strings_of(value: Any, found: dict[str, None]) -> None:
    """Every distinct string of a JSON value, keys left out."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            found[item] = None
        elif isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def floor(files: list[Path]) -> int:
    """What cannot be avoided: parse every file once with orjson, tokenise every distinct string once."""
    found: dict[str, None] = {}
    for path in files:
        for line in _values(path):
            strings_of(line, found)
    encoder = splintr.Tokenizer.from_pretrained("o200k_base")
    return sum(len(encoder.encode_ordinary(text)) for text in map(_encodable, found))


def _encodable(text: str) -> str:
    """The text without lone surrogates, which the encoder refuses."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _values(path: Path) -> Iterator[Any]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    try:
        yield orjson.loads(data)
        return
    except orjson.JSONDecodeError:
        pass
    for line in data.split(b"\n"):
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError:
            continue


def long_session(steps: int, seed: int = 7) -> Transcript:
    """A generated session: a prompt every 12 steps or so, tool results of 200 to 6,000 characters, edits, errors."""
    draw = random.Random(seed)
    words = [f"word{n}" for n in range(400)]
    script = Script(session_id=f"generated-{steps}")
    for step in range(steps):
        if step % 12 == 0:
            script.user(f"Please do task {step}: " + " ".join(draw.choices(words, k=30)))
        script.call(draw.choice(["Read", "Bash", "Edit"]), f'{{"file_path":"src/file{draw.randrange(60)}.py"}}',
                    text=" ".join(draw.choices(words, k=12)))
        script.result(" ".join(draw.choices(words, k=draw.randint(30, 900))), is_error=draw.random() < 0.05)
        if step % 12 == 11:
            script.say("Done with this part.")
    return script.build()


@pytest.fixture(scope="session")
def real_files(transcripts: Path) -> list[Path]:
    """Every file of the real sessions."""
    return [p for p in sorted(transcripts.rglob("*")) if p.is_file() and p.suffix != ".md"]


