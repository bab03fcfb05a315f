"""From arguments to files: suffixes, folders, patterns, and files that belong to another one's session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from replay.errors import ReadError
from replay.find import STANDARD_INPUT, find


def put(folder: Path, *names: str, text: str = "{}") -> None:
    """Files of one content."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def names(folder: Path, *arguments: str) -> list[str]:
    """The found files, below the folder."""
    return [str(found.path.relative_to(folder)) for found in find(arguments or [str(folder)])]


def test_suffixes_of_sessions(tmp_path: Path) -> None:
    """Packed files and chunks are sessions too; hidden files, notes and pictures are not."""
    good = ["a.jsonl", "b.json", "c.traj", "d.ndjson", "e.jsonl.gz", "f.json.zst", "g.jsonl.001", "h.traj.json", "i.JSONL",
            "opencode.db", "opencode-dev.db"]
    put(tmp_path, *good, ".a.jsonl", "a.txt", "b.md", "c.png", "other.db", "jsonl", "x.jsonl.bak")

    assert sorted(good) == sorted(names(tmp_path))


def test_order_and_once(tmp_path: Path) -> None:
    """Files come in the order of the arguments, each once, however it was spelled; a name beats a folder."""
    put(tmp_path, "b/2.jsonl", "b/1.jsonl", "a.jsonl")
    found = find([str(tmp_path / "b"), str(tmp_path / "a.jsonl"), str(tmp_path / "b" / ".." / "b" / "1.jsonl"),
                  str(tmp_path / "b" / "2.jsonl")])

    assert ["1.jsonl", "2.jsonl", "a.jsonl"] == [f.path.name for f in found][:3]
    assert [False, True, True] == [f.named for f in found][:3]


def test_patterns(tmp_path: Path) -> None:
    """A pattern takes any file that it matches; folders that match are searched."""
    put(tmp_path, "x/1.txt", "y1/2.jsonl", "y2/3.jsonl")

    assert ["x/1.txt"] == names(tmp_path, str(tmp_path / "x" / "*.txt"))
    assert ["y1/2.jsonl", "y2/3.jsonl"] == names(tmp_path, str(tmp_path / "y*"))
    assert ["y1/2.jsonl", "y2/3.jsonl"] == names(tmp_path, str(tmp_path / "**" / "*.jsonl"))


@pytest.mark.parametrize("argument", ["none.jsonl", "none/*.jsonl", ""])
def test_what_does_not_exist(tmp_path: Path, argument: str) -> None:
    """A name that leads nowhere is an error with the name in it."""
    with pytest.raises(ReadError, match="no such file or folder"):
        find([f"{tmp_path}/x/{argument}"])


def test_standard_input_stands_for_itself() -> None:
    """A dash is no path."""
    assert [STANDARD_INPUT] == [found.path for found in find(["-"])]


def test_sub_agents_of_claude_code(tmp_path: Path) -> None:
    """Beside and below their session they are read with it; without their session, and where named, on their own."""
    agent = json.dumps({"type": "user", "uuid": "u", "sessionId": "s-1", "isSidechain": True, "agentId": "x",
                        "message": {"role": "user", "content": "go"}})
    session = agent.replace("true", "false")
    put(tmp_path, "p/agent-x.jsonl", "p/s-1/subagents/agent-y.jsonl", "q/agent-z.jsonl", text=agent)
    put(tmp_path, "p/s-1/subagents/agent-y.meta.json", "p/s-1/subagents/workflows/w/journal.jsonl")
    put(tmp_path, "p/s-1.jsonl", text=session)

    assert ["p/s-1.jsonl", "q/agent-z.jsonl"] == names(tmp_path)
    assert ["p/agent-x.jsonl"] == names(tmp_path, str(tmp_path / "p" / "agent-x.jsonl"))
    assert ["p/agent-x.jsonl", "p/s-1.jsonl"] == sorted(names(tmp_path, str(tmp_path / "p" / "agent-x.jsonl"), str(tmp_path / "p")))


def test_a_storage_folder_of_opencode_is_its_sessions(tmp_path: Path) -> None:
    """Messages, parts and lists of one session are read with its file."""
    put(tmp_path, "storage/session/prj/ses_1.json", text='{"id": "ses_1", "projectID": "prj", "time": {"created": 1}}')
    put(tmp_path, "storage/message/ses_1/msg_1.json", text='{"id": "msg_1", "sessionID": "ses_1", "role": "user"}')
    put(tmp_path, "storage/part/msg_1/prt_1.json", text='{"id": "prt_1", "messageID": "msg_1", "type": "text", "text": "x"}')
    put(tmp_path, "storage/session_diff/ses_1.json", "storage/todo/ses_1.json", text="[]")

    assert ["storage/session/prj/ses_1.json"] == names(tmp_path)


def test_an_events_folder_of_openhands_is_one_session(tmp_path: Path) -> None:
    """The first event stands for all, pages of the cache hold them once more."""
    for number in range(3):
        put(tmp_path, f"s/events/{number}.json", text=json.dumps({"id": number, "source": "user", "action": "message",
                                                                 "args": {"content": "x"}}))
    put(tmp_path, "s/event_cache/0-3.json", text="[]")

    assert ["s/events/0.json"] == names(tmp_path)


def test_recordings_of_geminis_sub_agents(tmp_path: Path) -> None:
    """They lie in a folder that bears the session's id."""
    put(tmp_path, "chats/session-1.json", text='{"sessionId": "abc-1", "projectHash": "h", "messages": []}')
    put(tmp_path, "chats/abc-1/agent.jsonl", "chats/other/agent.jsonl", text='{"sessionId": "z", "projectHash": "h", "kind": "subagent"}')

    assert ["chats/other/agent.jsonl", "chats/session-1.json"] == sorted(names(tmp_path))
