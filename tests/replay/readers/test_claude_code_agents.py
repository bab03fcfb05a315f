"""Sub-agents of Claude Code sessions: inline, nested, in files beside or below, and read on their own."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from replay.readers import read
from replay.readers.claude_code import ClaudeCode, subagent_files
from replay.readers.source import parse_source
from replay.transcript import Transcript

Row = dict[str, Any]


def row(kind: str, uuid: str, parent: str | None, content: Any, **more: Any) -> Row:
    """A record that holds a message."""
    message: Row = {"role": kind, "content": content}
    if kind == "assistant":
        message |= {"id": f"m-{uuid}", "model": "x", "usage": {"input_tokens": 10, "output_tokens": 5}}
    return {"parentUuid": parent, "isSidechain": False, "sessionId": "s", "uuid": uuid, "type": kind,
            "timestamp": "2026-01-01T00:00:00Z", "message": message, **more}


def side(kind: str, uuid: str, parent: str | None, content: Any, **more: Any) -> Row:
    """A record of a sub-agent."""
    return row(kind, uuid, parent, content, **{"isSidechain": True, **more})


def task(name: str, prompt: str = "look") -> Row:
    """A call that starts a sub-agent."""
    return {"type": "tool_use", "id": name, "name": "Task", "input": {"prompt": prompt}}


def done(name: str) -> list[Row]:
    """The result of a call."""
    return [{"type": "tool_result", "tool_use_id": name, "content": "found"}]


def nested(uuid: str, kind: str, content: Any, agent: str = "a1", call: str = "c1") -> Row:
    """A sub-agent's message inside a progress record."""
    message = {"role": kind, "content": content, "id": "n1", "usage": {"input_tokens": 3, "output_tokens": 4}}
    inner = {"type": kind, "uuid": uuid, "timestamp": "2026-01-01T00:00:00Z", "message": message}
    return {"parentUuid": "a", "sessionId": "s", "uuid": f"p-{uuid}", "type": "progress", "parentToolUseID": call,
            "data": {"type": "agent_progress", "agentId": agent, "message": inner}}


def write(path: Path, *rows: Row) -> Path:
    """A file of these records."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\n".join(json.dumps(r).encode() for r in rows))
    return path


def parsed(*rows: Row) -> Transcript:
    """The session of these records, without a folder."""
    (t,) = ClaudeCode().read(parse_source(b"\n".join(json.dumps(r).encode() for r in rows), "-"))
    return t


def only(path: Path) -> Transcript:
    """The session of a file."""
    (t,) = read(path, "claude-code")
    return t


MAIN = [row("user", "u", None, "go"), row("assistant", "a", "u", [task("c1")]), row("user", "r", "a", done("c1"))]


class TestInline:
    """Side-chain lines inside the session's file (1.0)."""

    def test_thread_is_linked_by_its_prompt(self) -> None:
        """Inline lines are a thread of their own, linked to the call that has their prompt."""
        t = parsed(*MAIN[:2], side("user", "x", None, "look"), side("assistant", "y", "x", "z"), MAIN[2])
        assert [("x", "c1", 2, 1)] == [(s.id, s.parent_call, len(s.messages), len(s.steps)) for s in t.subagents]
        assert (3, 10, 1) == (t.message_count, t.usage.output, len(t.steps))

    def test_equal_prompts_are_taken_in_turn(self) -> None:
        """Two sub-agents with the same prompt belong to two calls."""
        t = parsed(row("user", "u", None, "go"), row("assistant", "a", "u", [task("c1"), task("c2")]),
                   side("user", "x", None, "look"), side("user", "y", None, "look"))
        assert ["c1", "c2"] == [s.parent_call for s in t.subagents]

    def test_agent_id_and_its_result_link(self) -> None:
        """Lines that name their agent are grouped by it and linked by the result that names it too."""
        told = MAIN[2] | {"toolUseResult": {"agentId": "a7", "totalTokens": 9}}
        t = parsed(*MAIN[:2], side("user", "x", None, "other", agentId="a7"),
                   side("assistant", "y", None, "hm", agentId="a7"), told)
        assert [("a7", "c1", 2)] == [(s.id, s.parent_call, len(s.messages)) for s in t.subagents]

    def test_unknown_start(self) -> None:
        """A sub-agent whose start is not in the file has no parent call."""
        assert [None] == [s.parent_call for s in parsed(*MAIN, side("user", "x", None, "warm up")).subagents]


class TestNested:
    """Messages inside `agent_progress` records (2.1)."""

    def test_progress_messages_are_a_thread(self) -> None:
        """Nested messages are a thread linked by the call they report to; usage counts once a response."""
        t = parsed(*MAIN[:2], nested("n1", "user", [{"type": "text", "text": "look"}]),
                   nested("n2", "assistant", [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]),
                   nested("n3", "user", [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]),
                   nested("n4", "assistant", [{"type": "text", "text": "so"}]), MAIN[2])
        (agent,) = t.subagents
        assert ("a1", "c1", 3, 1, 4) == (agent.id, agent.parent_call, len(agent.messages), len(agent.steps),
                                         agent.usage.output)
        assert ["Task"] == [c.name for c in t.main.tool_calls()]

    def test_two_agents_at_once(self) -> None:
        """Messages of agents that ran at once are told apart by agent."""
        t = parsed(*MAIN, nested("n1", "user", "one", "a1", "c1"), nested("n2", "user", "two", "a2", "c2"),
                   nested("n3", "user", "three", "a1", "c1"))
        assert {"a1": 2, "a2": 1} == {s.id: len(s.messages) for s in t.subagents}

    @pytest.mark.parametrize("inner", [
        None, [], {"type": "progress"}, {"type": ["user"]}, {"type": "user", "message": 1}])
    def test_malformed_progress(self, inner: object) -> None:
        """A nested message that is none is passed over."""
        line = nested("n1", "user", "x")
        line["data"]["message"] = inner
        assert [] == [m for s in parsed(*MAIN, line).subagents for m in s.messages]


class TestFiles:
    """Files of their own, beside (2.0) or below (2.1) the session's file."""

    def agent(self, name: str, session: str = "s", **more: Any) -> list[Row]:
        """Lines of a sub-agent's file."""
        return [side("user", f"{name}-u", None, "look", agentId=name, sessionId=session, **more),
                side("assistant", f"{name}-a", f"{name}-u", "found", agentId=name, sessionId=session, **more)]

    def test_file_beside_the_session(self, tmp_path: Path) -> None:
        """A sub-agent's file in the same folder is read with its session, linked by its agent's id."""
        path = write(tmp_path / "s.jsonl", *MAIN[:2], MAIN[2] | {"toolUseResult": {"agentId": "a1"}})
        own = write(tmp_path / "agent-a1.jsonl", *self.agent("a1"))
        t = only(path)
        assert [("a1", "c1", 2)] == [(s.id, s.parent_call, len(s.messages)) for s in t.subagents]
        assert (10, [str(own)]) == (t.usage.output, t.extra["subagent_files"])

    def test_files_below_the_session(self, tmp_path: Path) -> None:
        """Files in the session's folder are found at any depth; its journal is no sub-agent."""
        path = write(tmp_path / "s.jsonl", *MAIN)
        below = tmp_path / "s" / "subagents"
        found = [write(below / "agent-a1.jsonl", *self.agent("a1")),
                 write(below / "workflows" / "wf" / "agent-a2.jsonl", *self.agent("a2"))]
        write(below / "workflows" / "wf" / "journal.jsonl", {"type": "started"})
        assert tuple(found) == subagent_files(path)
        assert ["a1", "a2"] == [s.id for s in only(path).subagents]

    def test_files_of_other_sessions_are_left_out(self, tmp_path: Path) -> None:
        """Files in the same folder that belong to another session are not read."""
        path = write(tmp_path / "s.jsonl", *MAIN)
        write(tmp_path / "agent-b1.jsonl", *self.agent("b1", "other"))
        write(tmp_path / "other" / "subagents" / "agent-b2.jsonl", *self.agent("b2", "other"))
        assert ((), ()) == (only(path).subagents, subagent_files(path))

    def test_session_whose_file_is_named_like_an_agent_s(self, tmp_path: Path) -> None:
        """A file is no sub-agent's by its name alone."""
        path = write(tmp_path / "agent-run.jsonl", *MAIN)
        copy = write(tmp_path / "s.jsonl", *MAIN)
        write(tmp_path / "agent-a1.jsonl", *self.agent("a1"))
        assert 1 == len(only(path).subagents)
        assert (tmp_path / "agent-a1.jsonl",) == subagent_files(copy)

    def test_file_is_preferred_to_progress_records(self, tmp_path: Path) -> None:
        """Where both exist, the file is read and the nested messages are not counted again."""
        path = write(tmp_path / "s.jsonl", *MAIN, nested("n1", "user", "look"), nested("n2", "assistant", "hm"))
        write(tmp_path / "agent-a1.jsonl", *self.agent("a1"))
        (agent,) = only(path).subagents
        assert ("c1", 5) == (agent.parent_call, agent.usage.output)

    def test_background_agent(self, tmp_path: Path) -> None:
        """An agent that was launched in the background is linked by the launch's result."""
        told = MAIN[2] | {"toolUseResult": {"isAsync": True, "status": "async_launched", "agentId": "a9"}}
        path = write(tmp_path / "s.jsonl", *MAIN[:2], told)
        write(tmp_path / "s" / "subagents" / "agent-a9.jsonl", *self.agent("a9"))
        assert ["c1"] == [s.parent_call for s in only(path).subagents]

    def test_damage_in_a_sub_agent_s_file_names_the_file(self, tmp_path: Path) -> None:
        """Notes about a sub-agent's file say which file they are about."""
        path = write(tmp_path / "s.jsonl", *MAIN)
        own = write(tmp_path / "agent-a1.jsonl", *self.agent("a1"))
        own.write_bytes(own.read_bytes() + b'\n{"type": "us')
        assert [("cut-tail", True)] == [(n.code, n.text.startswith("agent-a1.jsonl: ")) for n in only(path).notes]

    def test_packed_files(self, tmp_path: Path) -> None:
        """Packed session and sub-agent files are found and read."""
        path, own = tmp_path / "s.jsonl.gz", tmp_path / "agent-a1.jsonl.gz"
        for target, rows in ((path, MAIN), (own, self.agent("a1"))):
            target.write_bytes(gzip.compress(b"\n".join(json.dumps(r).encode() for r in rows)))
        assert ((own,), ["a1"]) == (subagent_files(path), [s.id for s in only(path).subagents])

    def test_standard_input_has_no_folder(self) -> None:
        """Without a folder nothing beside the data is looked for."""
        assert () == parsed(*MAIN).subagents

    @pytest.mark.parametrize("session", ["../other", "..", "", "a/b", "x\x00y", "n" * 300])
    def test_session_id_that_is_no_folder_name(self, tmp_path: Path, session: str) -> None:
        """A session id from a file never leads out of the session's folder."""
        write(tmp_path.parent / "other" / "subagents" / "agent-a1.jsonl", *self.agent("a1", session))
        path = write(tmp_path / "f.jsonl", *({**r, "sessionId": session} for r in MAIN))
        assert () == only(path).subagents


class TestOnItsOwn:
    """A sub-agent's file that is read as a session."""

    def test_side_lines_alone_are_the_main_thread(self, tmp_path: Path) -> None:
        """The thread of a sub-agent's file is the main one; its parent is the session it names."""
        path = write(tmp_path / "agent-a1.jsonl", side("user", "u", None, "look", agentId="a1"),
                     side("assistant", "a", "u", "found", agentId="a1"))
        t = only(path)
        assert ("a1", "s", 2, 1, ()) == (t.session_id, t.parent_session, t.message_count, len(t.steps), t.subagents)
        assert () == subagent_files(path)

    def test_agent_id_from_the_file_s_name(self, tmp_path: Path) -> None:
        """Where no line names the agent, the file does."""
        assert "x7" == only(write(tmp_path / "agent-x7.jsonl", side("user", "u", None, "look"))).session_id

    def test_several_agents_in_one_file(self, tmp_path: Path) -> None:
        """In a file of several agents' lines the one that the file is named after is the main thread."""
        lines = [side(kind, f"{name}{kind}", None, "x", agentId=name)
                 for name in ("a1", "a2") for kind in ("user", "assistant")]
        t = only(write(tmp_path / "agent-a2.jsonl", *lines))
        assert ("a2", 2, ["a1"], 10) == (t.session_id, t.message_count, [s.id for s in t.subagents], t.usage.output)

    def test_siblings_do_not_claim_each_other(self, tmp_path: Path) -> None:
        """Two sub-agents of one session are not each other's sub-agents."""
        paths = [write(tmp_path / f"agent-{n}.jsonl", side("user", n, None, "look", agentId=n)) for n in ("a1", "a2")]
        assert [(), ()] == [subagent_files(p) for p in paths]
