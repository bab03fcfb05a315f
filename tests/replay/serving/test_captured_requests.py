"""Requests of real harnesses: what each is for, and which recorded turn it asks for."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replay.readers.wire import read_capture
from replay.readers.wire_items import ItemTable
from replay.serving.kinds import Kinds
from replay.serving.script import Line, line_of

HARNESSES = ("cline", "codex", "deepagents", "gemini", "langchain", "mycodeagent", "opencode", "pi", "pydantic-ai", "qwen")
REAL = {"basic-one-turn": ["order"] * 5, "noprofile-overflow-once": ["result"]}
"""Cline's basic mode makes its first result again at each compaction, and drops the newest steps; Deep Agents cuts a
result short when its request was refused."""


def rows(path: Path) -> Iterator[Any]:
    """The lines of a file that may be packed."""
    with path.open() if path.exists() else gzip.open(f"{path}.gz", "rt") as file:
        yield from map(json.loads, file)


def followed(folder: Path) -> tuple[list[int], list[int], list[str]]:
    """Requests whose kind, or whose turn, was told wrong, and the kinds of divergences of those that were answered."""
    table = ItemTable({r["id"]: r["item"] for r in rows(folder / "items.jsonl")})
    kinds, line, heads = Kinds(), line_of(read_capture(folder).main), []
    wrong_kinds, wrong_turns, found = [], [], []
    for row in rows(folder / "requests.jsonl"):
        pieces = table.pieces(row["items"])
        holds = any(h in pieces[-1].text for h in heads)
        kind = kinds.kind(pieces, bool(row["tools"] and row["tools"]["names"]), line.expects, holds)
        wrong_kinds += [row["index"]] if kind != row["kind"] else []
        answered = row["response"]["status"] == 200
        if row["kind"] == "summary" and answered:
            heads.append(row["response"]["text"][:40])
        if row["kind"] == "step" and answered:
            wrong, divergences = turn_of(line, pieces, row, heads)
            wrong_turns += wrong
            found += divergences
    return wrong_kinds, wrong_turns, found


def turn_of(line: Line, pieces: list[Any], row: Any, heads: list[str]) -> tuple[list[int], list[str]]:
    """The request if it was told wrong, and its divergences; the line goes on."""
    place = line.place(pieces, lambda: any(h in p.text for h in heads for p in pieces))
    assert place.turn is not None
    line.told(place.turn, pieces)
    right = line.turns[place.turn].message.text == row["response"]["text"]
    return [] if right else [row["index"]], [d.what for d in place.divergences]


@pytest.mark.parametrize("harness", HARNESSES)
def test_requests_of_real_harnesses_are_followed(shared: Path, harness: str) -> None:
    """Every request is known for what it is, and gets the turn that the harness got, without a false divergence."""
    for folder in sorted((shared / "wire").glob(f"{harness}-*/*/")):
        kinds, turns, divergences = followed(folder)

        assert ([], []) == (kinds, turns), folder
        assert REAL.get(folder.name, []) == divergences, folder
