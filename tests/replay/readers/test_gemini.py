"""Recordings of Gemini CLI: documents and JSON lines, repeated ids, damage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replay.blocks import Image, Reasoning, Text
from replay.readers.registry import detect, read, read_bytes
from replay.readers.source import parse_source
from replay.transcript import Message, Transcript, Usage

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


def document(*messages: Any, **more: Any) -> Transcript:
    """The session of an older recording: one document."""
    (found,) = read_bytes(json.dumps({**HEAD, "messages": list(messages), **more}, indent=2).encode())
    return found


def said(found: Transcript) -> list[tuple[str, str, str]]:
    """Role, origin and text of every log message."""
    return [(m.role, m.origin, m.text) for m in found.messages]


def codes(found: Transcript) -> list[str]:
    """Codes of the notes."""
    return [note.code for note in found.notes]


class TestDocuments:
    """Older recordings, one document each."""

    def test_results_follow_the_response_that_holds_them(self) -> None:
        """Results that are kept with their calls become one message after the response."""
        found = document(user("a", "go"), gemini("b", "look", toolCalls=[call("c1", "one"), call("c2", "two")]),
                         gemini("c", "done"))

        assert [("user", "human", "go"), ("assistant", "model", "look"), ("tool", "tool", "one\ntwo"),
                ("assistant", "model", "done")] == said(found)
        assert ["c1", "c2"] == [r.call_id for r in found.messages[2].results]
        assert [1, 3] == [s.start for s in found.steps]

    def test_calls_that_were_recorded_apart(self) -> None:
        """A record of calls alone, without tokens, belongs to the response before it; a notice may stand between."""
        zero = {"input": 0, "output": 0, "cached": 0, "thoughts": 0, "tool": 0, "total": 0}
        notice = {"id": "n", "timestamp": TIME, "type": "info", "content": "update available"}
        found = document(user("a", "go"), gemini("b", "look"), notice,
                         gemini("c", "", tokens=zero, toolCalls=[call("c1")]))

        assert (1, ["c1"], 4) == (len(found.steps), [c.id for c in found.messages[1].calls], found.message_count)

    def test_thoughts_come_first(self) -> None:
        """Thoughts are reasoning, worded as they are sent again on resume."""
        found = document(gemini("b", "x", thoughts=[{"subject": "Plan", "description": "look"}, {"description": "d"}]))

        assert [Reasoning(text="**Plan** look"), Reasoning(text="d"), Text(text="x")] == list(found.messages[0].blocks)

    def test_input_includes_the_cache_and_output_excludes_thoughts(self) -> None:
        """The cached part is taken out of the input, thoughts are added to the output, tool tokens to the input."""
        found = document(gemini("b", "x", tokens={"input": 100, "output": 5, "cached": 60, "thoughts": 7, "tool": 3}))

        assert Usage(input_uncached=43, cache_read=60, output=12, reasoning=7) == found.usage

    @pytest.mark.parametrize("result", ["text", [{"text": "text"}], {"text": "text"}, [answer("c1", "text")]])
    def test_shapes_of_a_result(self, result: Any) -> None:
        """A kept result can be a string, parts of text, or a function response."""
        found = document(user("a", "go"), gemini("b", toolCalls=[call("c1", result=result)]))

        assert ("text", "c1") == (found.messages[2].text, found.messages[2].results[0].call_id)

    @pytest.mark.parametrize(("more", "text", "is_error"), [
        ({"status": "error"}, "ok", True), ({"status": "cancelled"}, "ok", True),
        ({"result": [{"functionResponse": {"id": "c1", "response": {"error": "no"}}}]}, "no", True),
        ({"result": [{"functionResponse": {"id": "c1", "response": {"a": 1, "b": 2}}}]}, '{"a":1,"b":2}', False)])
    def test_failed_and_odd_results(self, more: dict[str, Any], text: str, is_error: bool) -> None:
        """A result is an error if its status or its body says so; a body of other keys is given as JSON."""
        found = document(user("a", "go"), gemini("b", toolCalls=[call("c1", **more)]))

        assert (text, is_error) == (found.messages[2].text, found.messages[2].results[0].is_error)

    def test_a_call_without_a_result(self) -> None:
        """A call that was never answered has no result message."""
        assert 2 == len(document(user("a", "go"), gemini("b", toolCalls=[call("c1", None)])).messages)

    def test_a_picture_beside_a_result(self) -> None:
        """Inline data after a function response belong to it; the data themselves are not kept."""
        picture = {"inlineData": {"mimeType": "image/png", "data": "aGVsbG8="}}
        found = document(user("a", "go"), gemini("b", toolCalls=[call("c1", result=[answer("c1"), picture])]))

        assert [Image] == [type(i) for i in found.messages[2].results[0].images]

    def test_notices_and_errors(self) -> None:
        """Notices are not in the log; a failed request is a step without a response, and ends the session badly."""
        rows = [{"id": str(n), "timestamp": TIME, "type": kind, "content": text} for n, (kind, text) in enumerate(
            [("info", "i"), ("warning", "w"), ("error", "[API Error: quota]")])]
        found = document(user("a", "go"), *rows)

        assert (1, 4, [None]) == (len(found.messages), found.message_count, [s.response for s in found.steps])
        assert ("fail", "[API Error: quota]") == (found.outcome and found.outcome.value, found.steps[0].error)

    def test_a_snapshot_among_the_messages(self) -> None:
        """A snapshot in the user's name is a compaction; with the assent after it it is not in the log."""
        found = document(user("a", "go"), gemini("b", "x"), user("c", SNAPSHOT), gemini("d", ACK, tokens=None),
                         user("e", "next"))

        assert ["go", "x", "next"] == [m.text for m in found.messages]
        assert [SNAPSHOT, ACK] == [p.text for p in found.compactions[0].window if isinstance(p, Message)]
        assert (2, True, 1) == (found.compactions[0].position, found.compactions[0].summary_readable, len(found.steps))

    def test_pretty_printed_under_a_name_for_lines(self, tmp_path: Path) -> None:
        """A document is told by its content, whatever its name."""
        path = tmp_path / "x.jsonl"
        path.write_text(json.dumps({**HEAD, "messages": [user("a", "go")]}, indent=2))

        assert 1 == read(path)[0].message_count


class TestLines:
    """Newer recordings, one record a line."""

    def test_a_repeated_id_replaces_the_record(self) -> None:
        """A response is written again when its calls are known; it is one response."""
        found = session(user("a", "go"), gemini("b", "look"), {"$set": {"lastUpdated": "z"}},
                        gemini("b", "look", toolCalls=[call("c1")]), user("c", [answer("c1", "one")]))

        assert (["go", "look", "one"], 1, 3) == ([m.text for m in found.messages], len(found.steps),
                                                found.message_count)
        assert [] == codes(found)

    @pytest.mark.parametrize("again", [1, 2, 3])
    def test_a_record_that_is_written_again_unchanged(self, again: int) -> None:
        """The same record again is read once; each repeat is noted."""
        found = session(user("a", "go"), *[gemini("b", "x")] * (again + 1))

        assert (["duplicate"] * again, 1) == (codes(found), len(found.steps))

    def test_results_as_messages_of_their_own(self) -> None:
        """A result that is a message of its own is not taken from the call's copy as well."""
        found = session(user("a", "go"), gemini("b", "", toolCalls=[call("c1", "copy")]),
                        user("c", [answer("c1", "sent")]))

        assert ["sent"] == [m.text for m in found.messages if m.role == "tool"]

    def test_the_first_history_begins_the_log(self) -> None:
        """The context that the program writes first is injected."""
        found = session(history(user("ctx", [{"text": "<session_context>\nhi"}])), user("a", "go"))

        assert [("injected", "session_context"), ("human", None)] == [(m.origin, m.detail) for m in found.messages]
        assert 2 == found.message_count

    def test_calls_in_the_content(self) -> None:
        """Calls that stand in the content are not added again from beside it."""
        found = session(gemini("b", [{"text": "t", "thought": True, "thoughtSignature": "abc"}, asked("c1")],
                               thoughts=[{"description": "t"}], toolCalls=[call("c1")]))

        assert ["c1"] == [c.id for c in found.messages[0].calls]
        assert [Reasoning(text="t", opaque_bytes=3)] == [
            b for b in found.messages[0].blocks if isinstance(b, Reasoning)]

    def test_calls_without_ids(self) -> None:
        """Calls without ids are answered in the order in which they were made."""
        bare = {"functionCall": {"name": "ls", "args": {}}}
        replies = [{"functionResponse": {"name": "ls", "response": {"output": str(n)}}} for n in (1, 2)]
        found = session(user("a", "go"), gemini("b", [bare, bare]), user("c", replies))

        assert [c.id for c in found.messages[1].calls] == [r.call_id for r in found.messages[2].results]
        assert ["1", "2"] == [r.text for r in found.messages[2].results]

    def test_unknown_records(self) -> None:
        """Unknown records and message types are named once each with their number."""
        found = session(user("a", "go"), {"zz": 1}, {"zz": 2}, {"id": "q", "type": "latch"})

        assert ["unknown record type 'zz' x 2; kept out of the log",
                "unknown record type 'latch' x 1; kept out of the log"] == [n.text for n in found.notes]

    @pytest.mark.parametrize("row", [7, "x", None, [1]])
    def test_a_row_that_is_no_object(self, row: Any) -> None:
        """A row that is no object costs only itself."""
        assert ["not-an-object"] == codes(session(user("a", "go"), row))

    def test_a_cut_last_line(self) -> None:
        """A last line that was cut is noted with its place; the rest stays."""
        (found,) = read_bytes(lines(HEAD, user("a", "go")) + b'{"id": "b", "ty')

        assert (1, [("cut-tail", 3)]) == (found.message_count, [(n.code, n.line) for n in found.notes])

    def test_a_part_of_a_file_without_its_head(self) -> None:
        """Without a head the session is named after the file."""
        (found,) = read_bytes(lines(user("a", "go"), gemini("b", "x")), name="chats/part-2.jsonl")

        assert ("gemini-cli", "part-2", 2) == (found.format, found.session_id, found.message_count)

    def test_two_sessions_in_one_file(self) -> None:
        """A head that names another session begins another one."""
        found = read_bytes(lines(HEAD, user("a", "one"), {**HEAD, "sessionId": "s-2"}, user("b", "two")))

        assert [("s-1", "one"), ("s-2", "two")] == [(t.session_id, t.messages[0].text) for t in found]

    @pytest.mark.parametrize("more", [
        {"content": None}, {"content": 7}, {"content": [None, 3]}, {"content": {"text": "one part"}},
        {"content": [{}]}, {"timestamp": 3}, {"id": 5}])
    def test_user_fields_of_a_wrong_type(self, more: dict[str, Any]) -> None:
        """A user record with a field of a wrong type is still a message."""
        assert 2 == session({**user("a", "go"), **more}, gemini("b", "x")).message_count

    @pytest.mark.parametrize("more", [
        {"tokens": 3}, {"tokens": {"input": "x", "cached": -4}}, {"toolCalls": 3}, {"toolCalls": [3, {}]},
        {"thoughts": "x"}, {"thoughts": [3]}, {"model": []}, {"content": [{"functionCall": 3}]},
        {"toolCalls": [{"id": 4, "result": 5}]}])
    def test_response_fields_of_a_wrong_type(self, more: dict[str, Any]) -> None:
        """A response with a field of a wrong type is still a response."""
        assert 1 == len(session(user("a", "go"), gemini("b", **{"content": "x", **more})).steps)


class TestDetection:
    """Telling recordings from other formats."""

    @pytest.mark.parametrize("data", [
        lines(HEAD), lines(HEAD, user("a", "x")), json.dumps({**HEAD, "messages": []}).encode(),
        lines({"$set": {"messages": []}}), lines({"type": "summary", "x": 1}, HEAD),
        lines(user("a", "x"), gemini("b", "y"))])
    def test_recordings(self, data: bytes) -> None:
        """Heads, updates and responses tell a recording, also after a foreign line."""
        assert "gemini-cli" == detect(parse_source(data, "x"))

    @pytest.mark.parametrize("row", [{"sessionId": "s", "type": "user"}, {"role": "user", "content": "x"}, {"a": 1}])
    def test_others(self, row: dict[str, Any]) -> None:
        """Other objects are not taken."""
        assert "gemini-cli" != detect(parse_source(lines(row, row), "x"))
