"""Recordings of Gemini CLI: rewritten histories, rewinds, sub-agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replay.readers.registry import read, read_bytes
from replay.transcript import Message, RecordedCompaction, Transcript

HEAD = {"sessionId": "s-1", "projectHash": "h", "startTime": "2026-01-01T00:00:00Z", "lastUpdated": "x", "kind": "main"}
TIME = "2026-01-01T00:00:01Z"
SNAPSHOT = "<state_snapshot>\n<overall_goal>fix</overall_goal>\n</state_snapshot>"
ACK = "Got it. Thanks for the additional context!"


def user(name: str, content: Any) -> dict[str, Any]:
    """A user message."""
    return {"id": name, "timestamp": TIME, "type": "user", "content": content}


def gemini(name: str, content: Any = "", **more: Any) -> dict[str, Any]:
    """A response with ten tokens in and two out, unless told otherwise."""
    tokens = {"input": 10, "output": 2, "cached": 0, "thoughts": 0, "tool": 0, "total": 12}
    return {"id": name, "timestamp": TIME, "type": "gemini", "content": content, "tokens": tokens, "model": "g", **more}


def call(name: str, output: str | None = "ok", **more: Any) -> dict[str, Any]:
    """A tool call as it is kept beside a response."""
    return {"id": name, "name": "read_file", "args": {"path": "a"}, "status": "success", "timestamp": TIME,
            "result": None if output is None else [answer(name, output)], "resultDisplay": "pretty", **more}


def answer(name: str, output: str = "ok") -> dict[str, Any]:
    """A function response part."""
    return {"functionResponse": {"id": name, "name": "read_file", "response": {"output": output}}}


def asked(name: str) -> dict[str, Any]:
    """A function call part."""
    return {"functionCall": {"id": name, "name": "read_file", "args": {"path": "a"}}}


def history(*messages: Any) -> dict[str, Any]:
    """A rewritten history."""
    return {"$set": {"messages": list(messages), "lastUpdated": "y"}}


def lines(*rows: Any) -> bytes:
    """Rows as JSON lines."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def session(*rows: Any) -> Transcript:
    """The one session of a recording with these rows after its head."""
    (found,) = read_bytes(lines(HEAD, *rows))
    return found


def codes(found: Transcript) -> list[str]:
    """Codes of the notes."""
    return [note.code for note in found.notes]


def shown(compaction: RecordedCompaction) -> list[int | str]:
    """A window: log indices, and the texts of what is in no log."""
    return [p.text if isinstance(p, Message) else p for p in compaction.window]


class TestHistories:
    """Histories that the program wrote anew."""

    TALK = (history(user("ctx", [{"text": "<session_context>\nhi"}])), user("a", "go"), gemini("b", "look"),
            gemini("b", "look", toolCalls=[call("c1")]), user("c", [answer("c1", "long result")]), gemini("d", "done"))

    def test_a_compression(self) -> None:
        """Snapshot, assent and what is kept make the window; what is kept is found by its calls and its text."""
        found = session(*self.TALK, history(
            user("ctx", [{"text": "<session_context>\nhi"}]), user("n1", [{"text": SNAPSHOT}]),
            gemini("n2", [{"text": ACK}]),
            gemini("n3", [{"text": "look"}, asked("c1")]), user("n4", [answer("c1", "long result")]),
            gemini("n5", [{"text": "done"}])), user("e", "next"), gemini("f", "ok"))
        (compaction,) = found.compactions

        assert [0, SNAPSHOT, ACK, 2, 3, 4] == shown(compaction)
        assert (5, SNAPSHOT, 7) == (compaction.position, compaction.summary, len(found.messages))
        assert ["summary", "injected"] == [p.origin for p in compaction.window if isinstance(p, Message)]

    def test_a_compression_that_cuts_results(self) -> None:
        """A result that the kept part holds with another text stands there with that text."""
        found = session(*self.TALK, history(user("n1", [{"text": SNAPSHOT}]), gemini("n3", [asked("c1")]),
                                            user("n4", [answer("c1", "[cut]")])), user("e", "next"))
        last = found.compactions[0].window[-1]

        assert ("tool", "[cut]", "c1") == (last.role, last.text, last.results[0].call_id) if isinstance(
            last, Message) else pytest.fail("the cut result stands verbatim")

    def test_masked_results(self) -> None:
        """Results that were blanked in place are a micro compaction with the text that stands there now."""
        masked = "<tool_output_masked>\n...</tool_output_masked>"
        found = session(*self.TALK, history(
            user("ctx", [{"text": "<session_context>\nhi"}]), user("a", [{"text": "go"}]),
            gemini("b", [{"text": "look"}, asked("c1")]), user("c", [answer("c1", masked)]),
            gemini("d", [{"text": "done"}])), user("e", "next"))

        assert [RecordedCompaction(position=5, kind="micro", elided=(3,), placeholder=masked, line=8)] == list(
            found.compactions)
        assert "long result" == found.messages[3].text

    def test_a_resume_is_no_compaction(self) -> None:
        """On resume the program writes the whole history again, results twice; only a note tells of it."""
        again = history(
            user("ctx", [{"text": "<session_context>\nother time"}]), user("a", [{"text": "go"}]),
            gemini("b", [{"text": "look"}, asked("c1")]), user("b_response", [answer("c1", "long result")]),
            user("c", [answer("c1", "long result")]), gemini("d", [{"text": "done"}]))
        found = session(*self.TALK, HEAD, history(user("ctx", [{"text": "<session_context>\nother time"}])), again,
                        user("e", "next"), gemini("f", "ok"))

        assert ((), ["repeated-results"], 7) == (found.compactions, codes(found), len(found.messages))

    def test_only_the_last_history_before_a_message_counts(self) -> None:
        """A history that another one replaces before anything is said was never sent."""
        found = session(*self.TALK, history(user("ctx", [{"text": "x"}])), history(
            user("n1", [{"text": SNAPSHOT}])), user("e", "next"))

        assert [[SNAPSHOT]] == [shown(c) for c in found.compactions]

    def test_a_second_compression(self) -> None:
        """A later snapshot replaces the one before; the assent that stays is the same message."""
        found = session(*self.TALK, history(user("n1", [{"text": SNAPSHOT}]), gemini("n2", [{"text": ACK}])),
                        user("e", "next"), gemini("f", "ok"),
                        history(user("m1", [{"text": SNAPSHOT + "2"}]), gemini("m2", [{"text": ACK}]),
                                gemini("m3", [{"text": "ok"}])), user("g", "more"))

        assert [[SNAPSHOT, ACK], [SNAPSHOT + "2", ACK, 6]] == [shown(c) for c in found.compactions]

    def test_messages_that_were_dropped_without_a_summary(self) -> None:
        """A history without a summary that lacks messages is a change of the window with a note."""
        found = session(*self.TALK, history(user("a", [{"text": "go"}]), gemini("d", [{"text": "done"}])),
                        user("e", "next"))

        assert ([[1, 4]], ["history-rewritten"]) == ([shown(c) for c in found.compactions], codes(found))

    def test_messages_that_were_added_to_a_history(self) -> None:
        """New messages at the end of a history are in the log."""
        found = session(user("a", "go"), history(user("a", [{"text": "go"}]), user("x", [{"text": "and"}])),
                        gemini("b", "ok"))

        assert (["go", "and", "ok"], ()) == ([m.text for m in found.messages], found.compactions)

    @pytest.mark.parametrize("messages", [[], [3, None], [{}], [{"type": "user"}], "x", {"a": 1}])
    def test_histories_of_a_wrong_shape(self, messages: Any) -> None:
        """A history of a wrong shape never costs the session."""
        found = session(*self.TALK, {"$set": {"messages": messages}}, user("e", "next"))

        assert "next" == found.messages[-1].text


class TestRewinds:
    """What was taken back."""

    TALK = (user("a", "one"), gemini("b", "first"), user("c", "two"), gemini("d", "second"))

    def test_a_rewind_takes_back_the_message_and_all_after_it(self) -> None:
        """What was taken back is an abandoned branch; it was billed."""
        found = session(*self.TALK, {"$rewindTo": "c"}, user("e", "three"), gemini("f", "third"))

        assert ["one", "first", "three", "third"] == [m.text for m in found.messages]
        assert ([["two", "second"]], 30, 4) == ([[m.text for m in t.messages] for t in found.abandoned],
                                               found.usage.input_total, found.message_count)
        assert [(1, 1), (3, 2)] == [(s.start, s.number) for s in found.steps]
        assert [(1, 1, 1)] == [(s.start, s.response, s.number) for t in found.abandoned for s in t.steps]

    def test_an_unknown_id_takes_back_everything(self) -> None:
        """An id that is not in the history empties it; the note says so."""
        found = session(*self.TALK, {"$rewindTo": "zz"}, user("e", "three"))

        assert (["three"], ["unknown-rewind"], 1) == ([m.text for m in found.messages], codes(found),
                                                     found.message_count)

    def test_an_id_can_come_back_after_a_rewind(self) -> None:
        """A message with the id of one that was taken back is a new message."""
        found = session(*self.TALK, {"$rewindTo": "c"}, user("c", "again"))

        assert ["one", "first", "again"] == [m.text for m in found.messages]

    def test_a_rewind_behind_a_compression(self) -> None:
        """A message that a compression kept can be rewound to; the window keeps the summary."""
        found = session(*self.TALK, history(user("n1", [{"text": SNAPSHOT}]), user("c2", [{"text": "two"}]),
                                            gemini("d2", [{"text": "second"}])),
                        user("e", "three"), {"$rewindTo": "c2"}, user("g", "four"), gemini("h", "ok"))

        assert ([[SNAPSHOT]], 2) == ([shown(c) for c in found.compactions], found.compactions[0].position)
        assert ["one", "first", "four", "ok"] == [m.text for m in found.messages]

    def test_a_rewind_to_before_a_compression_undoes_it(self) -> None:
        """A compression of what was taken back is gone."""
        found = session(*self.TALK, history(user("n1", [{"text": SNAPSHOT}])), user("e", "x"), {"$rewindTo": "a"},
                        user("f", "new"))

        assert ((), ["new"]) == (found.compactions, [m.text for m in found.messages])


class TestAgents:
    """Sub-agents in files of their own."""

    def recorded(self, folder: Path) -> Path:
        """A session with a sub-agent beside it."""
        main = folder / "session-1.jsonl"
        main.write_bytes(lines(HEAD, user("a", "go"), gemini("b", "", toolCalls=[call("c1", agentId="agent-1")])))
        (folder / "s-1").mkdir()
        (folder / "s-1" / "agent-1.jsonl").write_bytes(lines(
            {**HEAD, "sessionId": "agent-1", "kind": "subagent"}, user("x", "find"), gemini("y", "found")))
        return main

    def test_they_are_threads_of_their_session(self, tmp_path: Path) -> None:
        """The folder that bears the session's id holds its sub-agents; the call that started each is known."""
        (found,) = read(self.recorded(tmp_path))

        assert [("agent-1", "c1", ["nudge", "model"])] == [(t.id, t.parent_call, [m.origin for m in t.messages])
                                                          for t in found.subagents]
        assert 20 == found.usage.input_total

    def test_alone_they_name_their_session(self, tmp_path: Path) -> None:
        """A sub-agent's file is a session whose parent is its folder's name."""
        self.recorded(tmp_path)
        (found,) = read(tmp_path / "s-1" / "agent-1.jsonl")

        assert ("agent-1", "s-1", 2) == (found.session_id, found.parent_session, found.message_count)

    def test_a_damaged_one_costs_only_itself(self, tmp_path: Path) -> None:
        """A cut line in a sub-agent's file is a note of the session."""
        path = self.recorded(tmp_path)
        with (tmp_path / "s-1" / "agent-1.jsonl").open("ab") as file:
            file.write(b'{"cut')

        assert ["cut-tail"] == codes(read(path)[0])
