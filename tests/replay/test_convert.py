"""`rewindow convert`: three formats, what is lost said, complete files or none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replay.cli import main
from replay.detected import describe
from replay.readers import read, read_bytes
from replay.readers.registry import read_source
from replay.readers.source import open_source
from replay.transcript import Transcript
from replay.view import openai_messages

SAMPLES = Path(__file__).resolve().parents[2] / "datasets" / "samples"
CLAUDE = sorted((SAMPLES / "claude-code").glob("*.jsonl"))[0]
ALL = [p for p in sorted(SAMPLES.glob("*/*.json*")) if p.parent.name not in ("scenarios", "repositories")]


def run(*words: str | Path) -> int:
    """Run the command line; its exit code."""
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    return int(ended.value.code or 0)


def chat_of(transcript: Transcript) -> list[dict[str, Any]]:
    """The log as chat messages."""
    return [m for message in transcript.messages for m in openai_messages(message)]


def words_of(transcript: Transcript) -> list[str]:
    """All texts of blocks, sorted."""
    texts = [b.text for m in transcript.messages for b in m.blocks if getattr(b, "text", "")]
    return sorted(line for text in texts for line in text.split("\n"))


def calls_of(transcript: Transcript) -> list[tuple[str, str, Any]]:
    """All calls of the log."""
    return [(c.id, c.name, c.parsed) for m in transcript.messages for c in m.calls]


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.name)
def test_own_format_reads_back_as_the_session(path: Path, tmp_path: Path) -> None:
    """The file that is written is told by its content and holds the same session, under its native format's name."""
    assert 0 == run("convert", path, "--to", "rewindow", "--out", tmp_path / "a.jsonl")
    name, found = read_source(open_source(tmp_path / "a.jsonl"))
    native = read(path)

    assert "rewindow" == name
    assert [t.format for t in native] == [t.format for t in found]
    assert [describe(t) | {"path": ""} for t in native] == [describe(t) | {"path": ""} for t in found]
    assert 0 == run("convert", tmp_path / "a.jsonl", "--to", "rewindow", "--out", tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.name)
def test_chat_messages_read_back(path: Path, tmp_path: Path) -> None:
    """The chat document is read by our own reader as the same chat messages."""
    assert 0 == run("convert", path, "--to", "openai", "--out", tmp_path / "chat.json")
    (found,) = read(tmp_path / "chat.json")
    (native,) = read(path)

    assert "openai-chat" == found.format
    assert chat_of(native) == chat_of(found)
    assert (native.session_id, native.model) == (found.session_id, found.model)


@pytest.mark.parametrize("path", ALL, ids=lambda p: p.name)
def test_trajectories_read_back(path: Path, tmp_path: Path) -> None:
    """Texts, calls, usage, compactions and sub-agents are in the trajectory."""
    assert 0 == run("convert", path, "--to", "atif", "--out", tmp_path / "t.json")
    (found,) = read(tmp_path / "t.json")
    (native,) = read(path)
    answered = [s.usage.total if s.usage else None for s in native.steps if s.response is not None]

    assert ("atif", native.session_id) == (found.format, found.session_id)
    assert set(words_of(native)) <= set(words_of(found))
    assert calls_of(native) == calls_of(found)
    assert answered == [s.usage.total if s.usage else None for s in found.steps]
    assert sum(c.kind == "full" for c in native.compactions) == len(found.compactions)
    assert [(t.parent_call, len(t.steps)) for t in native.subagents] == [
        (t.parent_call, len(t.steps)) for t in found.subagents]


def test_losses_are_said_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """What the target has no place for is counted; the document alone is on stdout."""
    long = SAMPLES / "claude-code" / "long-refactoring.jsonl"
    path = long if long.exists() else CLAUDE

    assert 0 == run("convert", path, "--to", "openai")
    said = capsys.readouterr()
    assert isinstance(json.loads(said.out)["messages"], list)
    assert "not part of openai" in said.err


def test_redaction_leaves_no_secret_and_says_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Messages, arguments, paths and native fields are redacted with the same placeholders."""
    rows = [
        {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s", "cwd": "/home/alice/tool",
         "message": {"role": "user", "content": "mail alice@corp.com, key ghp_abcdefghijklmnopqrstuvwxyz0123456789"}},
        {"type": "assistant", "uuid": "u2", "parentUuid": "u1", "sessionId": "s", "message": {
            "id": "m1", "role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {
                "command": "ssh alice@10.1.2.3 cat /home/alice/.env"}}]}},
        {"type": "user", "uuid": "u3", "parentUuid": "u2", "sessionId": "s", "toolUseResult": {"stdout": "alice"}, "message": {
            "role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "alice 10.1.2.3"}]}}]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, rows)))

    for target in ("rewindow", "openai", "atif"):
        assert 0 == run("convert", tmp_path / "s.jsonl", "--to", target, "--redact", "--out", tmp_path / target)
        text = (tmp_path / target).read_text()
        (found,) = read(tmp_path / target)

        assert not [s for s in ("alice", "corp.com", "ghp_", "10.1.2.3") if s in text]
        assert calls_of(found)[0][2]["command"].startswith("ssh ")
        assert len(rows[0]["message"]["content"]) == len(found.messages[0].text)  # type: ignore[index]
    assert "redacted: 1 keys and tokens (1 different), 1 e-mail addresses" in capsys.readouterr().err


def test_an_output_file_is_complete_or_absent(tmp_path: Path) -> None:
    """A failed conversion leaves an existing file alone and nothing beside it."""
    kept = tmp_path / "out.jsonl"
    kept.write_text("kept")
    (tmp_path / "two.jsonl").write_text('{"messages":[{"role":"user","content":"a"}]}\n{"messages":[{"role":"user","content":"b"}]}\n')

    assert 2 == run("convert", tmp_path / "two.jsonl", "--to", "atif", "--out", kept)
    assert 3 == run("convert", tmp_path / "none.jsonl", "--to", "rewindow", "--out", kept)
    assert ("kept", 2) == (kept.read_text(), len(list(tmp_path.iterdir())))


def test_one_session_of_several_is_chosen_by_index(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All of them are lines of a chat file; a trajectory needs one; an index beyond the last is refused."""
    path = tmp_path / "two.jsonl"
    path.write_text("".join(json.dumps({"messages": [{"role": "user", "content": c}]}) + "\n" for c in "ab"))

    assert 0 == run("convert", path, "--to", "openai")
    assert ["a", "b"] == [t.messages[0].text for t in read_bytes(capsys.readouterr().out.encode())]
    assert 0 == run("convert", path, "--to", "atif", "--index", "1")
    assert "b" == read_bytes(capsys.readouterr().out.encode())[0].messages[0].text
    assert 2 == run("convert", path, "--to", "atif", "--index", "2")
    assert "the last is 1" in capsys.readouterr().err
