"""Sessions and runs that lie elsewhere, through fsspec's own file systems."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replay.cli import main
from replay.errors import ReadError
from replay.find import find

fsspec = pytest.importorskip("fsspec", reason="the extra `remote` is not installed")
SAMPLES = Path(__file__).resolve().parents[2] / "datasets" / "samples"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A store in memory with two sessions, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    system = fsspec.filesystem("memory")
    for number, path in enumerate(sorted((SAMPLES / "pi").glob("*.jsonl"))[:2]):
        system.pipe(f"/bucket/sessions/{number}.jsonl", path.read_bytes())
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def run(*arguments: str) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    return int(stopped.value.code or 0)


@pytest.mark.parametrize(("place", "names"), [
    ("memory://bucket/sessions", ["0.jsonl", "1.jsonl"]), ("memory://bucket", ["0.jsonl", "1.jsonl"]),
    ("memory://bucket/sessions/1.jsonl", ["1.jsonl"]), ("memory://bucket/*/0*", ["0.jsonl"])])
def test_folders_files_and_patterns(store: Any, place: str, names: list[str]) -> None:
    """What a URL names is found as it would be on this machine."""
    assert names == [found.path.name for found in find([place])]


def test_only_what_has_changed_is_fetched(store: Any) -> None:
    """A second look fetches the session that has changed, and none that is gone."""
    first = {f.path.name: f.path.stat().st_mtime_ns for f in find(["memory://bucket/sessions"])}
    store.pipe("/bucket/sessions/1.jsonl", b'{"role": "user", "content": "other"}\n')
    second = {f.path.name: f.path.stat().st_mtime_ns for f in find(["memory://bucket/sessions"])}
    store.rm("/bucket/sessions/0.jsonl")

    assert (True, False) == tuple(first[n] == second[n] for n in ("0.jsonl", "1.jsonl"))
    assert ["1.jsonl"] == [f.path.name for f in find(["memory://bucket/sessions"])]


@pytest.mark.parametrize(("place", "words"), [
    ("memory://bucket/nothing", "no such file or folder"), ("memory://none/*.jsonl", "no file matches")])
def test_nothing_there(store: Any, place: str, words: str) -> None:
    """A URL that names nothing is one clear error."""
    with pytest.raises(ReadError, match=words):
        find([place])


def test_an_unknown_system(capsys: pytest.CaptureFixture[str]) -> None:
    """A protocol that nobody speaks is one line."""
    assert 2 == run("detect", "nosuch://bucket/x")
    assert "nosuch" in capsys.readouterr().err


def test_a_run_is_stored_elsewhere(store: Any, tmp_path: Path) -> None:
    """Its files are those of a run on this machine, and nothing of it stays here."""
    common = ("memory://bucket/sessions", "-p", "full-history", "-p", "decode-adr18", "--window", "20000", "--jobs", "1")
    assert 0 == run("compare", *common, "--out", "memory://bucket/runs/a")
    assert 0 == run("compare", *common, "--out", str(tmp_path / "a"))
    there = {name.rpartition("/")[2]: store.cat(name) for name in store.find("/bucket/runs/a")}

    assert {p.name for p in (tmp_path / "a").iterdir()} == set(there)
    assert all(there[n] == (tmp_path / "a" / n).read_bytes() for n in ("trials.parquet", "steps.parquet"))
    assert "memory://bucket/runs/a" == json.loads(there["summary.json"])["run"]
    assert [] == list((tmp_path / "cache" / "rewindow" / "outgoing").iterdir())


def test_a_run_is_never_written_over(store: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A place that holds a run is refused before anything is replayed."""
    store.pipe("/bucket/runs/a/summary.json", b"{}")

    assert 2 == run("compare", "memory://bucket/sessions", "-p", "full-history", "--out", "memory://bucket/runs/a")
    assert "there already" in capsys.readouterr().err
    assert b"{}" == store.cat("/bucket/runs/a/summary.json")
