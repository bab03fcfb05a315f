"""Every reader under mutated files: no crash, no endless loop, no good line lost, a note for every loss."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from replay.engine import Session
from replay.errors import ReadError
from replay.readers import READERS, read, read_bytes
from replay.testing import FixedCounter
from replay.transcript import Message, Transcript
from replay.view import render
from replay.writers.json_lines import json_bytes
from replay.writers.rewindow import session_records

HERE = Path(__file__).resolve().parent
SAMPLES = HERE.parents[2] / "datasets" / "samples"
SHARED = Path(os.environ.get("REWINDOW_SHARED", HERE.parents[3] / "shared"))
FORMATS = sorted(set(READERS) - {"wire"})
"""A capture is a folder; `test_fuzz_wire.py` has it."""
LONGEST_SEED = 20_000
LONGEST_SECONDS = 60
"""For one small file: far more than it takes, far less than for ever."""


@dataclass(frozen=True)
class Seed:
    """A small intact file to mutate, and its messages."""

    name: str
    data: bytes
    texts: frozenset[str]
    """Texts of its messages that stand in it as one JSON string."""
    notes: Counter[str]

    @property
    def is_lines(self) -> bool:
        """The file holds a record a line."""
        return self.data.count(b"\n") > 1 and not self.name.endswith((".json", ".traj"))


@cache
def seeds(format: str) -> tuple[Seed, ...]:
    """Small files of a format: our own, the bundled samples, and real ones cut down where they are there."""
    files = [*sorted(HERE.glob(f"seeds/{format}*")), *sorted((SAMPLES / format).glob("*")),
             *sorted((SHARED / "transcripts" / format).glob("*")), *sorted((SHARED / "bugcases").glob("*.jsonl"))]
    found = [(f.name, shortened(f.read_bytes())) for f in files if not f.name.endswith(".gz")]
    if format == "rewindow":
        found = [(f"{f.name}l", canonical(f)) for f in files if f.parent == HERE / "seeds"]
        found += [(f.name, canonical(f)) for f in sorted(SAMPLES.glob("*/*.jsonl"))]
    read_seeds = ((name, data, attempt(data)) for name, data in found)
    return tuple(Seed(name, data, texts_of(transcripts) & strings_of(data).keys(), notes_of(transcripts))
                 for name, data, transcripts in read_seeds if transcripts and format_of(data, transcripts) == format)


def canonical(path: Path) -> bytes:
    """A file in Rewindow's own format, cut down."""
    return b"".join(json_bytes(cut(record)) + b"\n" for record in list(session_records(read(path)))[:40])


def format_of(data: bytes, transcripts: tuple[Transcript, ...]) -> str:
    """The reader that takes the data."""
    return "rewindow" if b'"type":"rewindow"' in data[:200] else transcripts[0].format


def attempt(data: bytes, format: str | None = None) -> tuple[Transcript, ...]:
    """The sessions of the data; none where they are refused."""
    try:
        return read_bytes(data, "session.jsonl", format)
    except ReadError:
        return ()


def shortened(data: bytes) -> bytes:
    """A file of the same shape with short texts, short lists and few lines, those around compactions among them."""
    lines = [data] if is_json(data) else data.split(b"\n")
    marks = [n for n, line in enumerate(lines) if b"ompact" in line[:2000]][:2]
    kept = sorted({*range(min(20, len(lines))), *(n for mark in marks for n in range(max(0, mark - 6), mark + 6)
                                                  if n < len(lines))})
    for text, items in ((160, 12), (120, 8), (60, 5), (30, 3)):
        short = b"\n".join(short_line(lines[n], text, items) for n in kept)
        if len(short) < LONGEST_SEED:
            break
    return short if len(lines) == 1 else short + b"\n"


def short_line(line: bytes, text: int, items: int) -> bytes:
    """A line with short texts and lists; a broken one cut off."""
    if not is_json(line):
        return line[:400]
    return json.dumps(cut(json.loads(line), text, items), ensure_ascii=False).encode("utf-8", "replace")


def cut(value: Any, text: int = 120, items: int = 8) -> Any:
    """A value with short texts and lists."""
    if isinstance(value, str):
        return value[:text]
    if isinstance(value, list):
        return [cut(item, text, items) for item in value[:items]]
    if isinstance(value, dict):
        return {key: cut(item, text, items) for key, item in list(value.items())[:40]}
    return value


_DEEP = "so deep: "
_DEEP_TEXT = re.compile(rb'"so deep: (\d+)"')

# Mutations: each takes the bytes and two numbers that choose the place and the kind.
Mutation = Callable[[bytes, int, int], bytes]
_BYTES = (b"\x00", b"\xff", b'"', b"{", b"}", b"[", b"]", b"\\", b"\n", b",", b"\xe2\x80\xa8", b"\r", b"\xc3",
          b"\\ud800", b"0", b" ", b"\x1b[0m", b"NaN")
_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 7, 1 << 70, -(1 << 70), 1.5, 1e308, "", "x", "0", "NaN", [], {}, [None], [[]], {"a": None},
    [1, "x", {}], "a" * 3000, "2026-13-99T99:99:99Z", "{\"a\":1}", "[1]", {"type": "text"},
    [{"type": "text", "text": 5}], "\ud800", "\x00")
_LINES = (b"", b"   \r", b"null", b"[]", b"{}", b"5", b'"text"', b"not json", b"{", b'{"type": "zz-new", "zz": 1}',
          b'{"type":"user"}', b'{"type":"message","payload":[]}', b"\x00" * 40)


def flip(data: bytes, a: int, b: int) -> bytes:
    """Another byte at a place."""
    at = a % len(data)
    return data[:at] + bytes([(data[at] + 1 + b % 255) % 256]) + data[at + 1:]


def insert(data: bytes, a: int, b: int) -> bytes:
    """A few bytes put in."""
    at = a % (len(data) + 1)
    return data[:at] + _BYTES[b % len(_BYTES)] + data[at:]


def drop(data: bytes, a: int, b: int) -> bytes:
    """A range of bytes gone."""
    at = a % len(data)
    return data[:at] + data[at + 1 + b % 200:]


def truncate(data: bytes, a: int, _: int) -> bytes:
    """The end gone."""
    return data[:a % (len(data) + 1)]


def encode(data: bytes, a: int, b: int) -> bytes:
    """Another encoding or packing, perhaps cut."""
    text = data.decode("utf-8", "replace")
    kinds = ("utf-8-sig", "utf-16", "utf-16-be", "utf-32-le", "latin-1", "cp1252")
    made = [text.encode(k, "replace") for k in kinds] + [data.replace(b"\n", b"\r\n"), data.replace(b"\n", b"\r"),
                                                         gzip.compress(data, mtime=0)]
    chosen = made[a % len(made)]
    return chosen if b % 3 else chosen[:1 + b % len(chosen)]


def on_lines(change: Callable[[list[bytes], int, int], None]) -> Mutation:
    """A mutation of the list of lines."""
    def mutated(data: bytes, a: int, b: int) -> bytes:
        lines = data.split(b"\n")
        change(lines, a % len(lines), b)
        return b"\n".join(lines)
    mutated.__name__ = change.__name__
    return mutated


def remove_line(lines: list[bytes], at: int, _: int) -> None:
    """One line gone."""
    del lines[at]


def repeat_line(lines: list[bytes], at: int, b: int) -> None:
    """One line again, somewhere."""
    lines.insert(b % (len(lines) + 1), lines[at])


def swap_lines(lines: list[bytes], at: int, b: int) -> None:
    """Two lines in each other's place."""
    other = b % len(lines)
    lines[at], lines[other] = lines[other], lines[at]


def cut_line(lines: list[bytes], at: int, b: int) -> None:
    """One line cut."""
    lines[at] = lines[at][:b % (len(lines[at]) + 1)]


def glue_lines(lines: list[bytes], at: int, b: int) -> None:
    """Two lines on one, the first perhaps cut."""
    if at + 1 < len(lines):
        first = lines[at][:b % (len(lines[at]) + 1)] if b % 2 else lines[at]
        lines[at:at + 2] = [first + lines[at + 1]]


def foreign_line(lines: list[bytes], at: int, b: int) -> None:
    """A line that is no record."""
    lines.insert(at, _LINES[b % len(_LINES)])


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container and key in a value."""
    found: list[tuple[Any, Any]] = []
    stack = [value]
    while stack:
        item = stack.pop()
        keys = list(item) if isinstance(item, dict) else range(len(item))
        found += [(item, key) for key in keys]
        stack += [item[key] for key in keys if isinstance(item[key], (dict, list))]
    return found


def on_json(change: Callable[[Any, Any, int], None]) -> Mutation:
    """A mutation of one record's or of the document's structure."""
    def mutated(data: bytes, a: int, b: int) -> bytes:
        lines = [data] if is_json(data) else data.split(b"\n")
        at = a % len(lines)
        if not is_json(lines[at]):
            return data
        value = json.loads(lines[at])
        if isinstance(value, (dict, list)) and (found := places(value)):
            holder, key = found[(a // len(lines) + b) % len(found)]
            change(holder, key, b)
            lines[at] = _DEEP_TEXT.sub(lambda m: b"[" * int(m[1]) + b"]" * int(m[1]), json.dumps(value).encode())
        return b"\n".join(lines)
    mutated.__name__ = change.__name__
    return mutated


def is_json(data: bytes) -> bool:
    """Whether the data are one JSON value."""
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def retype(holder: Any, key: Any, b: int) -> None:
    """Another value, mostly of another type."""
    holder[key] = _VALUES[b % len(_VALUES)]


def forget(holder: Any, key: Any, _: int) -> None:
    """A field gone."""
    if isinstance(holder, dict):
        del holder[key]


def forget_entry(holder: Any, key: Any, _: int) -> None:
    """An entry of a list gone."""
    if isinstance(holder, list):
        del holder[key]


def wrap(holder: Any, key: Any, b: int) -> None:
    """A value in a list, in an object, or deep below."""
    value = holder[key]
    holder[key] = [value] if b % 3 == 0 else {"value": value} if b % 3 == 1 else f"{_DEEP}{b % 2500}"


def reorder(holder: Any, key: Any, b: int) -> None:
    """Entries turned round, or doubled."""
    value = holder[key]
    if isinstance(value, list):
        holder[key] = value[::-1] if b % 2 else value * 2
    elif isinstance(value, dict):
        holder[key] = dict(reversed(list(value.items())))


LINE_MUTATIONS = [on_lines(f) for f in (remove_line, repeat_line, swap_lines, cut_line, glue_lines, foreign_line)]
JSON_MUTATIONS = [on_json(f) for f in (retype, forget, forget_entry, wrap, reorder)]
KEEPING = [m for m in LINE_MUTATIONS if m.__name__ not in ("repeat_line", "swap_lines")]
"""Those that take nothing back in a log whose lines replace and withdraw earlier ones."""
QUIET_MUTATIONS = JSON_MUTATIONS[:2]
"""After which a message that is gone although its text is in the file needs a note."""
MUTATIONS: list[Mutation] = [flip, insert, drop, truncate, encode, *LINE_MUTATIONS, *JSON_MUTATIONS]
_NUMBER = st.integers(0, 1 << 40)
STEPS = st.lists(st.tuples(st.sampled_from(MUTATIONS), _NUMBER, _NUMBER), min_size=1, max_size=3)


@contextmanager
def deadline(seconds: int) -> Iterator[None]:
    """Fails what takes longer, where the system has alarms."""
    def late(*_: Any) -> None:
        raise TimeoutError(f"not done after {seconds} s")
    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def texts_of(transcripts: tuple[Transcript, ...]) -> frozenset[str]:
    """Every text, result and summary of the sessions, wherever it stands."""
    found: set[str] = set()
    for thread in (t for transcript in transcripts for t in transcript.threads):
        windows = [part for c in thread.compactions for part in c.window if isinstance(part, Message)]
        found.update(b.text for m in (*thread.messages, *windows) for b in m.blocks if getattr(b, "text", ""))
    return frozenset(found)


def notes_of(transcripts: tuple[Transcript, ...]) -> Counter[str]:
    """The notes that the sessions carry."""
    return Counter(f"{note.code}: {note.text}" for transcript in transcripts for note in transcript.notes)


def strings_of(data: bytes) -> Counter[str]:
    """Every JSON string of a document, or of the intact lines."""
    found: Counter[str] = Counter()
    for line in [data] if is_json(data) else data.split(b"\n"):
        if is_json(line):
            stack = [json.loads(line)]
            while stack:
                item = stack.pop()
                if isinstance(item, str):
                    found[item] += 1
                elif isinstance(item, (dict, list)):
                    stack.extend(item.values() if isinstance(item, dict) else item)
    return found


def written(transcripts: tuple[Transcript, ...]) -> bytes:
    """Sessions in our own format."""
    return b"".join(json_bytes(record) + b"\n" for record in session_records(transcripts))


def render_all(transcript: Transcript) -> None:
    """Render the recorded view of every step in each shape."""
    session = Session(transcript, FixedCounter((10,) * len(transcript.messages)))
    for view in session.recorded.views:
        for shape in ("text", "openai", "anthropic"):
            json_bytes(render(session.log, view.window, shape))


def check(seed: Seed, format: str, steps: list[tuple[Mutation, int, int]]) -> None:
    """One case: read the mutated file as what it seems to be and as what it was, and render what was read."""
    data = seed.data
    for mutation, a, b in steps:
        data = mutation(data, a, b) if data else data
    with deadline(LONGEST_SECONDS):
        for transcript in (*attempt(data), *(found := attempt(data, format))):
            render_all(transcript)
        copy = written(found)
        assert copy == written(attempt(copy, "rewindow") if found else ())
    if len(steps) > 1:
        return
    if seed.is_lines and steps[0][0] in (KEEPING if b'"$rewindTo"' in seed.data else LINE_MUTATIONS):
        assert set() == lost_lines(seed, data, found)
    if steps[0][0] in QUIET_MUTATIONS and not notes_of(found) - seed.notes:
        assert set() == lost_values(seed, data, found)


def lost_lines(seed: Seed, data: bytes, found: tuple[Transcript, ...]) -> set[str]:
    """Texts that stand on untouched lines alone, and are in no message any more."""
    left = Counter(data.split(b"\n"))
    touched = [line for line, count in (Counter(seed.data.split(b"\n")) - left).items() for _ in range(count)]
    gone = {text for line in touched for text in strings_of(line)}
    shown = texts_of(found)
    # Pieces of one text may now stand beside others of it.
    return {text for text in seed.texts - gone - shown if not any(text in longer for longer in shown)}


def lost_values(seed: Seed, data: bytes, found: tuple[Transcript, ...]) -> set[str]:
    """Texts that stand in the file as often as before, and are in no message any more."""
    before, after = strings_of(seed.data), strings_of(data)
    shown = texts_of(found)
    longer = [*(before - after), *shown]
    return {text for text in seed.texts - shown if before[text] == after[text] and not any(text in x for x in longer)}


def fuzz(format: str, examples: int) -> None:
    """Many cases of one format."""
    intact = seeds(format)
    if not intact:
        pytest.skip(f"no file of {format} at hand")

    # Every run of the short suite tries the same cases; the long one tries new ones each night.
    @settings(max_examples=examples, deadline=None, database=None, derandomize=examples < 1000,
              suppress_health_check=list(HealthCheck))
    @given(st.integers(0, len(intact) - 1), STEPS)
    def case(number: int, steps: list[tuple[Mutation, int, int]]) -> None:
        check(intact[number], format, steps)

    case()


@pytest.mark.parametrize("format", FORMATS)
def test_mutated_files(format: str) -> None:
    """300 mutated files of each format are read without a crash, a hang, a lost line or a silent loss."""
    fuzz(format, 300)


@pytest.mark.nightly
@pytest.mark.parametrize("format", FORMATS)
def test_many_mutated_files(format: str) -> None:
    """The same for 20,000."""
    fuzz(format, 20_000)


@pytest.mark.parametrize("format", FORMATS)
def test_seeds_are_read_whole(format: str) -> None:
    """Each format has intact files to mutate, with texts by which a loss would be seen."""
    assert seeds(format)
    assert any(seed.texts for seed in seeds(format))
