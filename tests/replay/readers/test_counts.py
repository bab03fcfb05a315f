"""Real files of every format against the counts that were taken of them independently."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from replay.detected import describe
from replay.readers import read

DAMAGE = frozenset({"cut-tail", "bad-json", "bad-escape", "glued-values"})


class Counts(NamedTuple):
    """Counts of one file over all its sessions."""

    messages: int
    tool_calls: int
    compactions: int
    damaged_lines: int


DIFFERENT: dict[str, tuple[Counts, str]] = {
    "claude-code/inline-sidechain-small.jsonl": (
        Counts(25, 21, 0, 0), "the table counts the lines of the sub-agent among the messages"),
    "claude-code/tool-result-image.jsonl": (
        Counts(107, 94, 0, 0), "calls of sub-agents that only progress lines tell of are calls of the file"),
    "openai-chat/codex-derived-messages.json": (
        Counts(905, 411, 0, 0), "the table counts calls and results: each call is named in both"),
    "openai-chat/messages-array-per-line.jsonl": (
        Counts(80, 38, 0, 0), "each line repeats the ones before it: the table adds up what is said once"),
    "pi/v3-bad-escapes.jsonl": (
        Counts(144, 78, 0, 1), "the line with the invalid escape is repaired and holds a message"),
    "pi/v3-branching-fixture.jsonl": (
        Counts(4, 0, 0, 0), "two of the six messages are on the branch that was left"),
    "swe-agent/function-calling-simple.traj": (
        Counts(12, 5, 0, 0), "the table counts the steps of trajectories; this file has a history alone"),
}
"""What the definitions give where the table counts otherwise, with the reason."""


def table(transcripts: Path) -> dict[str, Counts]:
    """The rows of the table that came with the files."""
    rows: dict[str, Counts] = {}
    for line in (transcripts / "README.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if len(cells) == 8 and "/" in cells[0] and cells[2].isdigit():
            damaged = re.search(r"(\d+) unparseable", cells[6])
            compactions = int(cells[4]) if cells[4].isdigit() else 0
            damaged_lines = int(damaged[1]) if damaged else 0
            rows[cells[0]] = Counts(int(cells[2]), int(cells[3]), compactions, damaged_lines)
    return rows


def counted(path: Path) -> Counts:
    """What our reader finds in a file."""
    sessions: list[dict[str, Any]] = [describe(transcript) for transcript in read(path)]
    notes = Counter(note["code"] for session in sessions for note in session["notes"])
    full = sum(c["kind"] == "full" for session in sessions for c in session["compactions"])
    return Counts(sum(s["messages"] for s in sessions), sum(s["tool_calls"] for s in sessions), full,
                  sum(notes[code] for code in DAMAGE))


def test_every_file_has_the_counts_of_its_row(transcripts: Path) -> None:
    """Messages, tool calls, full compactions and damaged lines, file by file; differences are listed with a reason."""
    rows = table(transcripts)
    expected = rows | {name: counts for name, (counts, _) in DIFFERENT.items()}
    found = {name: counted(transcripts / name) for name in rows}

    assert 51 == len(rows)
    assert {} == {name: (expected[name], found[name]) for name in rows if expected[name] != found[name]}


def test_differences_are_real(transcripts: Path) -> None:
    """A row that is listed as different is different."""
    rows = table(transcripts)

    assert [] == [name for name, (counts, _) in DIFFERENT.items() if rows[name] == counts]


@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_a_real_corpus_has_no_unknown_records(shared: Path, name: str) -> None:
    """90 packed sessions: all are read, no record is of an unknown type, every note names something that is so."""
    files = sorted((shared / "corpus" / name).glob("*.gz"))
    if not files:
        pytest.skip("no corpus beside the transcripts")
    notes = Counter(note.code for path in files for transcript in read(path) for note in transcript.notes)

    assert {"claude-code": 78, "codex": 12}[name] == len(files)
    assert {"claude-code": {"missing-parent": 8, "duplicate": 1, "glued-values": 1}, "codex": {}}[name] == dict(notes)
