"""Rewindow's own format: what is written reads back equal, byte for byte and view for view."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from replay.blocks import Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from replay.engine import Session
from replay.errors import ReadError
from replay.find import find
from replay.policy.base import Capacity
from replay.policy.load import policy
from replay.readers import read, read_bytes
from replay.tokens import TokenCounter, tokenizer
from replay.transcript import (
    Message,
    Outcome,
    ReadNote,
    RecordedCompaction,
    Step,
    Thread,
    Transcript,
    Usage,
)
from replay.writers.json_lines import write_lines
from replay.writers.rewindow import session_records

ROOT = Path(__file__).resolve().parents[3]
POLICIES = ("recorded", "full-history", "decode-adr18")


def written(*transcripts: Transcript) -> bytes:
    """Sessions in our own format."""
    file = io.BytesIO()
    write_lines(session_records(transcripts), file)
    return file.getvalue()


def again(data: bytes) -> tuple[Transcript, ...]:
    """Our own format read back."""
    return read_bytes(data, "copy.jsonl")


def rich() -> Transcript:
    """A session that uses every field of the model."""
    calls = (ToolCall(id="c1", name="Read", arguments='{"a":1}'), ToolCall(id="c2", name="Run", arguments="ls", is_object=False))
    image = Image(mime="image/png", size_bytes=3, sha256="ab")
    log = (
        Message(index=0, role="developer", origin="system", blocks=(Text(text="Be careful."),), detail="rules"),
        Message(index=1, role="user", origin="human", id="u1", time=1.5, line=3, blocks=(Text(text=""), image)),
        Message(index=2, role="assistant", origin="model", id="m1", time=2.25, line=4,
                blocks=(Reasoning(text="Hm \u2028 ü", opaque_bytes=9), Text(text="Reading."), *calls),
                extra={"native": {"x": [1, None, 2.5]}}),
        Message(index=3, role="tool", origin="tool", blocks=(
            ToolResult(call_id="c1", text="out", name="Read", images=(image,), is_error=True), ToolResult(call_id="c2", text=""))),
        Message(index=4, role="user", origin="nudge", blocks=(Opaque(label="audio", size_bytes=7),)))
    usage = Usage(input_uncached=1, cache_read=2, cache_write_5m=3, cache_write_1h=4, output=5, reasoning=1,
                  side=Usage(input_uncached=10, output=3))
    summary = Message(index=-1, role="user", origin="summary", blocks=(Text(text="So far."),), time=3.0)
    steps = (Step(number=1, start=2, response=2, usage=usage, model="m", time=2.5, request_id="r1"),
             Step(number=2, start=5, response=None, error="overloaded"))
    compactions = (
        RecordedCompaction(position=4, kind="micro", elided=(3,), placeholder="[gone]", trigger="auto"),
        RecordedCompaction(position=5, kind="full", window=(0, summary, 4), counter_before=90, counter_after=9,
                           summary="So far.", summary_readable=True, line=9, extra={"k": "v"}),
        RecordedCompaction(position=5, kind="clear"))
    agent = Thread(id="agent-1", parent_call="c1", messages=(Message(index=0, role="user", origin="human", blocks=()),))
    left = Thread(id="left", steps=(Step(number=1, start=0, response=None, usage=Usage(output=1)),))
    return Transcript(
        format="codex", session_id="s1", path="native.jsonl", parent_session="s0", harness_version="1.2", model="m",
        window=1000, cwd="/srv/x", system_prompt="You help.", message_count=4, extra={"git": {"branch": "main"}},
        main=Thread(id="main", messages=log, steps=steps, compactions=compactions), subagents=(agent,), abandoned=(left,),
        notes=(ReadNote(code="cut-tail", text="cut", line=8, byte=99),), outcome=Outcome(value="fail", source="x", detail="y"))


def plain(value: Any) -> Any:
    """What a test compares: extra fields too, which equality of messages leaves out."""
    return [(m.index, dict(m.extra)) for m in value.messages]


def test_every_field_survives() -> None:
    """A session with every field set reads back equal but for the path, which is that of the new file."""
    (back,) = again(written(rich()))

    assert rich() == Transcript(**{n: getattr(back, n) for n in back.__dataclass_fields__} | {"path": "native.jsonl"})
    assert plain(rich()) == plain(back)
    assert (dict(rich().extra), "copy.jsonl") == (dict(back.extra), back.path)


def test_records_are_laid_out_as_documented() -> None:
    """A header, the notes, then each thread; what happened before a message stands before it."""
    kinds = [(r["type"], r.get("thread", 0)) for r in map(json.loads, written(rich()).splitlines())]

    assert [("rewindow", 0), ("note", 0), ("thread", 0), ("message", 0), ("message", 0), ("step", 0), ("message", 0),
            ("message", 0), ("compaction", 0), ("message", 0), ("compaction", 0), ("compaction", 0), ("step", 0),
            ("thread", 1), ("message", 1), ("thread", 2), ("step", 2)] == kinds


def test_sessions_of_one_file_stay_apart() -> None:
    """Several sessions in one file, also of one name."""
    data = written(rich(), rich(), rich())

    assert 3 == len(again(data))
    assert data == written(*again(data))


@pytest.mark.parametrize("value", [
    float("nan"), 1 << 80, {"a": {1, 2}}, "half \ud83d pair", (1, (2, 3)), {1: "one"}, b"bytes", float("inf")])
def test_odd_native_values_are_made_writable(value: Any) -> None:
    """What JSON cannot hold is replaced once, so that a second copy is the same."""
    first = written(Transcript(format="x", session_id="s", path="p", main=Thread(id="main"), extra={"odd": value}))

    assert first == written(*again(first))
    assert "odd" in again(first)[0].extra


def test_deep_native_values_are_made_writable() -> None:
    """Nesting that no encoder follows becomes text."""
    value: Any = 1
    for _ in range(600):
        value = [value]
    first = written(Transcript(format="x", session_id="s", path="p", main=Thread(id="main"), extra={"odd": value}))

    assert first == written(*again(first))


LOST: list[tuple[str, Callable[[list[dict[str, Any]]], list[dict[str, Any]]], list[str]]] = [
    ("a message", lambda rows: [r for r in rows if r.get("index") != 1], ["missing-message"]),
    ("the header", lambda rows: rows[1:], ["no-header"]),
    ("a thread's record", lambda rows: [r for r in rows if r["type"] != "thread"], []),
    ("a repeated message", lambda rows: [*rows, rows[4]], ["bad-record"]),
    ("an unknown record", lambda rows: [*rows, {"type": "zz"}, {"type": ["x"]}], ["unknown-type", "unknown-type"]),
    ("a newer version", lambda rows: [rows[0] | {"version": 2}, *rows[1:]], ["unknown-version"]),
    ("a bad role", lambda rows: [r | {"role": "king"} if r.get("index") == 4 else r for r in rows], ["bad-record"]),
    ("a bad block", lambda rows: [r | {"blocks": [{"kind": "zz"}]} if r.get("index") == 4 else r for r in rows],
     ["bad-record"]),
    ("another order", lambda rows: [rows[0], *rows[:0:-1]], []),
    ("a bad step", lambda rows: [r | {"start": "x"} if r["type"] == "step" else r for r in rows], ["bad-record"] * 3)]


@pytest.mark.parametrize(("change", "codes"), [case[1:] for case in LOST], ids=[case[0] for case in LOST])
def test_damaged_copies_are_read_as_far_as_they_go(change: Any, codes: Sequence[str]) -> None:
    """What is left is read and renumbered; every loss is a note."""
    rows = change([json.loads(line) for line in written(rich()).splitlines()])
    (found,) = again("\n".join(map(json.dumps, rows)).encode())

    assert ["cut-tail", *codes] == [n.code for n in found.notes]
    assert list(range(len(found.messages))) == [m.index for m in found.messages]
    assert all(s.response is None or found.messages[s.response].role == "assistant" for s in found.steps)


def test_what_points_to_a_lost_message_points_no_more() -> None:
    """Steps, windows and blanked results follow the messages that are left."""
    rows = [r for r in map(json.loads, written(rich()).splitlines()) if r.get("index") not in (0, 3) or r["type"] != "message"]
    (found,) = again("\n".join(map(json.dumps, rows)).encode())
    micro, full, _ = found.compactions

    assert [(1, 1, 1), (2, 3, None)] == [(s.number, s.start, s.response) for s in found.steps]
    assert (2, ()) == (micro.position, micro.elided)
    assert [-1, 2] == [part if isinstance(part, int) else part.index for part in full.window]


def sources(folder: Path) -> list[Path]:
    """The files below a folder that hold sessions."""
    found = []
    for file in find([str(folder)]):
        try:
            read(file.path)
        except ReadError:
            continue
        found.append(file.path)
    return found


def fingerprints(transcript: Transcript, counter: TokenCounter) -> list[list[str]]:
    """The fingerprints of every view under each policy."""
    session = Session(transcript, counter)
    lanes = [session.replay(policy(name), Capacity(window=60_000)) for name in POLICIES]
    return [[lane.kind, *(view.fingerprint for view in lane.views)] for lane in lanes]


def check_round_trip(path: Path, counter: TokenCounter) -> None:
    """Native, canonical and canonical again."""
    native = read(path)
    data = written(*native)
    copies = read_bytes(data, str(path))

    assert data == written(*copies), path
    assert native == copies, path
    for original, copy in zip(native, copies, strict=True):
        assert fingerprints(original, counter) == fingerprints(copy, counter), path


def test_bundled_sessions_make_the_round_trip() -> None:
    """Native to canonical to views equals native to views, and canonical to canonical is the same bytes."""
    counter = TokenCounter(tokenizer())
    for path in [*sources(ROOT / "datasets" / "samples"), *sources(ROOT / "tests" / "replay" / "readers" / "seeds")]:
        check_round_trip(path, counter)


@pytest.mark.parametrize("part", ["transcripts", "bugcases"])
def test_real_sessions_make_the_round_trip(shared: Path, part: str) -> None:
    """The same for real files of every format."""
    counter = TokenCounter(tokenizer())
    paths = sources(shared / part)
    for path in paths:
        check_round_trip(path, counter)

    assert len(paths) >= {"transcripts": 50, "bugcases": 15}[part]


def test_the_documented_example_is_what_is_written() -> None:
    """The example of the documentation reads without a note of its own and is written as the same lines."""
    text = (ROOT / "docs" / "canonical-format.md").read_text(encoding="utf-8")
    example = text.split("```jsonl\n")[1].split("```")[0].encode()
    (found,) = again(example)

    assert example == written(found)
    assert (["cut-tail"], 2, 4) == ([n.code for n in found.notes], len(found.steps), len(found.messages))


def test_every_field_is_documented() -> None:
    """Each field of each part of the model is named in the documentation, in code type."""
    text = (ROOT / "docs" / "canonical-format.md").read_text(encoding="utf-8")
    parts = (Message, Step, RecordedCompaction, ReadNote, Usage, Outcome, Text, Reasoning, ToolCall, ToolResult, Image, Opaque)
    names = {name for part in parts for name in part.__dataclass_fields__}
    names |= set(Transcript.__dataclass_fields__) - {"main", "subagents", "abandoned", "notes", "path"}
    missing = [name for name in sorted(names) if not any(f"{mark}{name}" in text for mark in ("`", "{", ", "))]

    assert [] == missing
