"""What was read and counted before is taken from where it is kept, and never trusted further than it can be checked."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

import evals.execute
import evals.kept.reading
from evals.compare import Comparison, compare
from evals.kept.keys import part_key, sessions_key
from evals.kept.packing import seal, unseal
from evals.kept.store import Kept
from evals.trial import Settings
from replay.find import Found, find, read_found
from replay.policy.base import Capacity
from replay.policy.load import policy

SAMPLES = Path(__file__).resolve().parents[3] / "datasets" / "samples"
SETTINGS = Settings(capacity=Capacity(window=20_000), tokenizer="o200k_base", summariser="extractive")
TABLES = ("steps.parquet", "events.parquet", "trials.parquet")


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    """An empty folder of kept sessions."""
    return Kept(tmp_path / "kept")


def run(out: Path, kept: Kept | None, *names: str) -> dict[str, bytes]:
    """The tables of a run of two bundled sessions."""
    files = tuple(find([str(SAMPLES / "pi"), str(SAMPLES / "codex")]))
    compare(Comparison(files=files, policies=tuple(map(policy, names)), baseline=names[0], settings=SETTINGS, jobs=1,
                       kept=kept), out)
    return {name: (out / name).read_bytes() for name in TABLES}


def entries(kept: Kept) -> list[Path]:
    """The files of a folder."""
    return sorted(p for p in kept.folder.rglob("*") if p.is_file())


def _unwanted(*_: Any) -> Any:
    raise AssertionError("was done again")


def test_the_same_run_again_does_nothing_again(tmp_path: Path, kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run reads no session and replays none, and its tables are those of the first."""
    first = run(tmp_path / "first", kept, "full-history", "decode-adr18")
    monkeypatch.setattr(evals.execute, "run_file", _unwanted)

    assert first == run(tmp_path / "second", kept, "full-history", "decode-adr18")


def test_another_policy_parses_nothing_again(tmp_path: Path, kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions that were read for one policy are there for another, and give what reading anew gives."""
    alone = run(tmp_path / "alone", None, "decode-adr18")
    run(tmp_path / "first", kept, "full-history")
    monkeypatch.setattr(evals.kept.reading, "read_found", _unwanted)

    assert alone == run(tmp_path / "second", kept, "decode-adr18")


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b[:40], lambda b: b"", lambda b: b[:99] + b"?" + b[100:],
                                    lambda b: b"\0" * len(b)])
def test_a_damaged_entry_is_made_anew(damage: Callable[[bytes], bytes], tmp_path: Path, kept: Kept) -> None:
    """Entries that were cut or changed are as if they were not there, and whole ones take their place."""
    first = run(tmp_path / "first", kept, "full-history")
    whole = {p: p.read_bytes() for p in entries(kept)}
    for path, data in whole.items():
        path.write_bytes(damage(data))

    assert first == run(tmp_path / "second", kept, "full-history")
    assert whole == {p: p.read_bytes() for p in entries(kept)}


def test_an_entry_cannot_run_anything(tmp_path: Path, kept: Kept) -> None:
    """An entry with a right checksum that names a function of Python is damaged, and the function is not called."""
    class Hostile:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "made"),)

    data = zstandard.compress(pickle.dumps(Hostile()))
    kept.put("ab" * 32, "honest")
    entries(kept)[0].write_bytes(hashlib.sha256(data).digest() + data)

    assert kept.get("ab" * 32) is None
    assert not (tmp_path / "made").exists()
    assert [] == entries(kept)


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*/*.jsonl"))[::4], ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_sessions_come_back_as_they_were(path: Path) -> None:
    """Sessions of every bundled format equal what was sealed, extra fields included."""
    sessions = read_found(Found(path, True))

    assert sessions == unseal(seal(sessions))
    assert [dict(s.extra) for s in sessions] == [dict(s.extra) for s in unseal(seal(sessions))]


@given(st.recursive(st.none() | st.integers() | st.text() | st.binary(), lambda inner: st.lists(inner) | st.dictionaries(
    st.text(), inner), max_leaves=8), st.data())
def test_a_changed_byte_is_noticed(value: Any, data: st.DataObject) -> None:
    """Plain data comes back as it was; with one byte changed it does not come back at all."""
    sealed = seal(value)
    place = data.draw(st.integers(0, len(sealed) - 1))
    changed = sealed[:place] + bytes([sealed[place] ^ data.draw(st.integers(1, 255))]) + sealed[place + 1:]

    assert value == unseal(sealed)
    assert unseal(changed) is None


class TestKeys:
    """What makes an entry another one."""

    def test_bytes(self, tmp_path: Path) -> None:
        """A session that grew by a line is another session."""
        path = tmp_path / "s.jsonl"
        path.write_text('{"role": "user", "content": "a"}\n', encoding="utf-8")
        before = sessions_key(Found(path, True), None, "o200k_base")
        with path.open("a", encoding="utf-8") as file:
            file.write('{"role": "assistant", "content": "b"}\n')

        assert before is not None
        assert before != sessions_key(Found(path, True), None, "o200k_base")

    @pytest.mark.parametrize("change", ["reader", "tokenizer"])
    def test_reading(self, change: str) -> None:
        """Another reader or vocabulary reads and counts something else."""
        found = find([str(SAMPLES / "pi")])[0]
        other = {"reader": ("pi", "o200k_base"), "tokenizer": (None, "cl100k_base")}[change]

        assert sessions_key(found, None, "o200k_base") != sessions_key(found, *other)

    def test_policies(self) -> None:
        """Another policy, or another setting of it, comes to something else."""
        found = find([str(SAMPLES / "pi")])[0]
        keys = [part_key(found, [policy(n)], SETTINGS) for n in ("pi-1.6", "pi-0.74", "pi-1.6:tail_tokens=9000")]

        assert 3 == len({k for k in keys if k is not None})

    def test_how_the_session_ended(self, tmp_path: Path) -> None:
        """A label that is put beside a session makes its outcome another."""
        path = tmp_path / "s.jsonl"
        path.write_bytes(next((SAMPLES / "pi").glob("*.jsonl")).read_bytes())
        before = part_key(Found(path, True), [policy("full-history")], SETTINGS)
        (tmp_path / "s.jsonl.outcome.json").write_text('{"outcome": "pass"}', encoding="utf-8")

        assert before != part_key(Found(path, True), [policy("full-history")], SETTINGS)

    def test_code_that_is_not_ours(self) -> None:
        """What own readers, parts and metrics do may change any day: it is not kept."""
        from tests.evals.runs.awkward import ENDLESS

        found = find([str(SAMPLES / "pi")])[0]
        own_metric = Settings(capacity=Capacity(window=9), tokenizer="o200k_base", summariser="extractive",
                              metrics=("mine:Metric",))

        assert sessions_key(found, "mine:Reader", "o200k_base") is None
        assert part_key(found, [ENDLESS], SETTINGS) is None
        assert part_key(found, [policy("full-history")], own_metric) is None


def test_many_writers_at_once(kept: Kept) -> None:
    """Writers of one key and readers of it never see half an entry."""
    value = ["text " * 2000, 7]
    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(lambda n: kept.put("cd" * 32, value) if n % 2 else kept.get("cd" * 32), range(200)))

    assert all(found in (None, value) for found in seen)
    assert value == kept.get("cd" * 32)
    assert 1 == len(entries(kept))


def test_no_more_than_the_limit(kept: Kept) -> None:
    """The entries that were used longest ago go first."""
    for n, name in enumerate("abcd"):
        kept.put(name * 64, os.urandom(400_000))
        os.utime(kept.folder / (name * 2) / f"{name * 64}.kept", (n, n))
    kept.get("a" * 64)
    Kept(kept.folder, limit_mb=1).shrink()

    assert {"a", "d"} == {p.name[0] for p in entries(kept)}


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """Where nothing can be kept the run is made all the same."""
    (tmp_path / "file").write_text("no folder", encoding="utf-8")

    assert run(tmp_path / "a", None, "full-history") == run(tmp_path / "b", Kept(tmp_path / "file"), "full-history")
