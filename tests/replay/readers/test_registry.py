"""Choosing a reader: from content, by name, a user's own by import path or entry point; values too deep to read."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replay.cli import main
from replay.errors import ConfigError, NotASession, ReadError, UnknownName
from replay.find import find
from replay.readers import READERS, read, read_bytes
from replay.readers.json_text import flattened
from replay.readers.registry import own_readers, read_source, reader
from replay.readers.source import open_source

OWN = '''
from pathlib import Path
from replay.blocks import Text
from replay.readers.common import ThreadBuilder
from replay.transcript import Transcript

class Diary:
    """Reads diaries."""
    name = "diary"
    def sniff(self, source):
        return 90 if any("diary" in value for value in source.objects()) else 0
    def read(self, source):
        thread = ThreadBuilder(id="main")
        for record in source.records:
            thread.add("user", [Text(text=str(record.value["diary"]))], "human", line=record.line)
        return (Transcript(format="diary", session_id=Path(source.path).stem, path=source.path, main=thread.build(),
                           message_count=len(thread.messages)),)
    def claims(self, path):
        return tuple(sorted(path.parent.glob(path.stem + ".page-*.jsonl")))

class Nothing:
    """No reader."""

class Needy:
    """Cannot be made."""
    def __init__(self, needed):
        pass
'''
LINES = '{"diary": "monday"}\n{"diary": "tuesday"}\n'


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the import path with a reader of one's own and diaries."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "diary_reader.py").write_text(OWN)
    (folder / "a.jsonl").write_text(LINES)
    monkeypatch.syspath_prepend(str(folder))
    own_readers.cache_clear()
    reader.cache_clear()
    yield folder
    sys.modules.pop("diary_reader", None)
    own_readers.cache_clear()
    reader.cache_clear()


def install(folder: Path, target: str = "diary_reader:Diary") -> None:
    """A distribution that brings a reader."""
    info = folder / "diary-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: diary\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[rewindow.readers]\ndiary = {target}\n")
    own_readers.cache_clear()
    reader.cache_clear()


def run(*words: str | Path) -> int:
    """Run the command line; its exit code."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return int(ended.value.code or 0)


@pytest.mark.parametrize("name", READERS)
def test_readers_by_name(name: str) -> None:
    """Every reader has the name under which it is listed."""
    assert name == reader(name).name


def test_an_own_reader_by_import_path(own: Path) -> None:
    """Without it the file is of no known format; with it, it is read."""
    with pytest.raises(NotASession, match="keys seen: diary"):
        read(own / "a.jsonl")

    (found,) = read(own / "a.jsonl", "diary_reader:Diary")
    assert ["monday", "tuesday"] == [m.text for m in found.messages]


@pytest.mark.parametrize("command", [
    ("detect", "--json"), ("show", "--json"), ("convert", "--to", "rewindow"), ("convert", "--to", "openai"),
    ("compare", "-p", "full-history", "--json")])
def test_every_command_takes_an_own_reader(own: Path, command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """detect, show, compare and convert read with the reader that is named."""
    assert 3 == run(command[0], own / "a.jsonl", *command[1:])
    assert 0 == run(command[0], own / "a.jsonl", *command[1:], "--reader", "diary_reader:Diary")
    assert '"a"' in capsys.readouterr().out


def test_an_own_reader_by_entry_point(own: Path) -> None:
    """An installed reader takes part in telling formats, and claims the files of its sessions."""
    install(own)
    (own / "a.page-2.jsonl").write_text(LINES)
    name, (found,) = read_source(open_source(own / "a.jsonl"))

    assert ("diary", "diary", 2) == (name, found.format, len(found.messages))
    assert ["a.jsonl"] == [f.path.name for f in find([str(own)])]
    assert found == read(own / "a.jsonl", "diary")[0]


@pytest.mark.parametrize(("target", "words"), [
    ("diary_reader:Missing", "cannot import or make"), ("no_such_module:Diary", "cannot import or make"),
    ("diary_reader:Needy", "cannot import or make"), ("diary_reader:Nothing", "needs the methods sniff and read")])
def test_a_broken_own_reader_is_named(own: Path, target: str, words: str) -> None:
    """By path and by entry point the error says which reader it is and what is wrong."""
    with pytest.raises(ConfigError, match=words):
        read(own / "a.jsonl", target)
    install(own, target)
    with pytest.raises(ConfigError, match=f"reader diary: {words}|reader diary: {target} is no reader"):
        read(own / "a.jsonl")


def test_an_unknown_reader_is_named_with_those_that_are_near() -> None:
    """A typing error."""
    with pytest.raises(UnknownName, match="did you mean codex"):
        read_bytes(b"{}", format="codx")


@pytest.mark.parametrize(("data", "kind", "words"), [
    (b"", NotASession, "empty file"), (b"\n \n", NotASession, "empty file"), (b"hello", ReadError, "no JSON that can be read"),
    (b'{"a":1}\n{"b":2}', NotASession, "keys seen: a, b"), (b"[1,2]", NotASession, "keys seen: list"),
    (b"\x00" * 90, ReadError, "no JSON that can be read")])
def test_what_is_no_session_says_what_it_is(data: bytes, kind: type[ReadError], words: str) -> None:
    """Nothing in it, no JSON in it, or JSON of no known format."""
    with pytest.raises(ReadError, match=words) as refused:
        read_bytes(data)

    assert kind is type(refused.value)


@pytest.mark.parametrize("name", sorted(set(READERS) - {"wire"}))
@pytest.mark.parametrize("data", [b"", b"\n\n", b"{}", b"[]", b"null", b'{"type":"x"}\n5\n[[]]\n"a"'])
def test_every_reader_takes_files_without_a_session(name: str, data: bytes) -> None:
    """Read by name, an empty file and JSON of no use are empty sessions of the format."""
    found = read_bytes(data, "empty.jsonl", name)

    assert all(() == t.steps for t in found)


def nested(depth: int) -> Any:
    """Lists in objects in lists."""
    value: Any = "end"
    for level in range(depth):
        value = [value] if level % 2 else {"k": value, "n": None}
    return value


@pytest.mark.parametrize("depth", [99, 101, 400, 1000])
def test_flattening_is_by_depth_and_keeps_all_text(depth: int) -> None:
    """What is deeper than a hundred levels becomes JSON text of the same value."""
    holder = {"value": nested(depth)}
    changed = flattened(holder)
    inner: Any = holder["value"]
    levels = 0
    while not isinstance(inner, str):
        inner, levels = (inner[0] if isinstance(inner, list) else inner["k"]), levels + 1

    assert (depth > 99) == changed
    assert min(depth, 99) == levels
    assert inner == "end" if depth <= 99 else inner.count("[") + inner.count("{") == depth - 99


@pytest.mark.parametrize("name", ["claude-code", "codex", "pi", "openai-chat", "mycodeagent", "decode"])
def test_values_nested_to_the_decoders_limit(name: str) -> None:
    """Arguments nested a thousand levels deep are read by every reader, as text from a depth on if need be."""
    deep = nested(1000)
    rows: dict[str, list[Any]] = {
        "claude-code": [{"type": "assistant", "uuid": "u", "sessionId": "s", "parentUuid": None, "message": {
            "id": "m", "role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": deep}]}}],
        "codex": [{"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": {
            "type": "function_call", "name": "n", "arguments": deep, "call_id": "c"}}],
        "pi": [{"type": "session", "id": "s", "version": 3}, {"type": "message", "id": "e1", "parentId": None, "message": {
            "role": "assistant", "content": [{"type": "toolCall", "id": "t", "name": "n", "arguments": deep}]}}],
        "openai-chat": [{"role": "assistant", "content": None, "tool_calls": [
            {"id": "c", "type": "function", "function": {"name": "n", "arguments": deep}}]}],
        "mycodeagent": [{"event_id": "e", "event_type": "message", "run_id": "r", "session_id": "s", "step": 1, "payload": {
            "role": "assistant", "content": "", "metadata": {"action_type": "tool_call", "tool_calls": [
                {"id": "c", "name": "n", "arguments": deep}]}}}],
        "decode": [{"type": "session", "session_id": "s", "created_at": "x"}, {"type": "messages", "messages": [
            {"kind": "response", "parts": [{"part_kind": "tool-call", "tool_name": "n", "args": deep, "tool_call_id": "c"}]}]}]}
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        data = "\n".join(json.dumps(row) for row in rows[name]).encode()
    finally:
        sys.setrecursionlimit(limit)
    (found,) = read_bytes(data, "deep.jsonl", name)

    assert ["n"] == [call.name for m in found.messages for call in m.calls]


def test_the_documented_reader_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example of the documentation, as a module on the import path."""
    text = (Path(__file__).resolve().parents[3] / "docs" / "own-readers.md").read_text(encoding="utf-8")
    (tmp_path / "documented_reader.py").write_text(text.split("```python\n")[1].split("```")[0])
    monkeypatch.syspath_prepend(str(tmp_path))
    (found,) = read_bytes(LINES.encode(), "a.jsonl", "documented_reader:Diary")

    assert ("diary", ["monday", "tuesday"]) == (found.format, [m.text for m in found.messages])


@pytest.mark.parametrize("data", [b'{"messages": []}', b'{"model": "m", "messages": [], "tools": []}'])
def test_an_empty_list_of_messages_is_an_empty_session(data: bytes) -> None:
    """It is told as a chat and holds nothing."""
    (found,) = read_bytes(data)

    assert ("openai-chat", ()) == (found.format, found.messages)
