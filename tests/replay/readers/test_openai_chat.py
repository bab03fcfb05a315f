"""OpenAI-style messages: content parts, calls in every spelling, results, Responses items, damage."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from replay.blocks import Image, Opaque, Reasoning, Text, ToolResult
from replay.readers.openai_chat import OpenAIChat
from replay.readers.registry import read, read_bytes
from replay.readers.source import open_source, parse_source
from replay.transcript import Transcript, Usage

SYSTEM = {"role": "system", "content": "S"}
USER = {"role": "user", "content": "go"}
RAW = b"\x89PNG" * 5
PNG = Image(mime="image/png", size_bytes=20, sha256=hashlib.sha256(RAW).hexdigest())
DATA = "data:image/png;base64," + base64.b64encode(RAW).decode()


def function(call_id: str | None, name: str = "read", arguments: Any = '{"a": 1}') -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*calls: dict[str, Any], content: Any = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def tool(call_id: str | None, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content, **({"tool_call_id": call_id} if call_id else {}), **more}


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def session(*rows: Any) -> Transcript:
    (found,) = read_bytes(lines(*rows), "talk.jsonl", "openai-chat")
    return found


def codes(found: Transcript) -> list[str]:
    return [note.code for note in found.notes]


def results(found: Transcript) -> list[tuple[str, str]]:
    return [(r.call_id, r.text) for m in found.messages for r in m.results]


class TestMessages:
    """Chat messages, one a line."""

    def test_roles(self) -> None:
        """Roles keep their names and get their origins."""
        found = session(SYSTEM, {"role": "developer", "content": "D"}, USER, calling(function("c")), tool("c"))

        assert [("system", "system"), ("developer", "system"), ("user", "human"), ("assistant", "model"),
                ("tool", "tool")] == [(m.role, m.origin) for m in found.messages]
        assert (5, "talk") == (found.message_count, found.session_id)

    def test_steps(self) -> None:
        """Every assistant message is a step, without usage where none was logged."""
        found = session(USER, calling(function("c")), tool("c"), {"role": "assistant", "content": "done"})

        assert [(1, 1, None), (3, 3, None)] == [(s.start, s.response, s.usage) for s in found.steps]

    @pytest.mark.parametrize(("content", "blocks"), [
        ("a", (Text(text="a"),)), ("", ()), (None, ()), ([], ()),
        ([{"type": "text", "text": "a"}, {"type": "input_text", "text": "b"}, "c"],
         (Text(text="a"), Text(text="b"), Text(text="c"))),
        ([{"type": "image_url", "image_url": {"url": DATA}}], (PNG,)),
        ([{"type": "input_image", "image_url": DATA}], (PNG,)),
        ([{"type": "image", "source": {"type": "base64", "media_type": "image/png",
                                       "data": DATA.partition(",")[2]}}], (PNG,))])
    def test_content(self, content: Any, blocks: tuple[Any, ...]) -> None:
        """Content is a string, nothing, or parts."""
        assert blocks == session({"role": "user", "content": content}, USER).messages[0].blocks

    @pytest.mark.parametrize("part", [
        {"type": "image_url", "image_url": {"url": "https://x/y.png"}}, {"type": "input_audio", "input_audio": {}},
        {"type": "file", "file": {"file_id": "f"}}, {"type": "new", "stuff": 1}])
    def test_parts_that_cannot_be_read(self, part: dict[str, Any]) -> None:
        """A part without text or image data is kept by its type and size."""
        (block,) = session({"role": "user", "content": [part]}, USER).messages[0].blocks

        assert isinstance(block, Opaque)
        assert (part["type"], True) == (block.label, block.size_bytes > 0)

    @pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
    def test_reasoning_stands_before_the_text(self, name: str) -> None:
        """Reasoning beside the content is a block of its own."""
        found = session(USER, {"role": "assistant", "content": "yes", name: "hm"})

        assert (Reasoning(text="hm"), Text(text="yes")) == found.messages[1].blocks

    def test_times(self) -> None:
        """A time that a log adds to its messages is read."""
        found = session({**USER, "_metadata": {"timestamp": "2026-01-01T00:00:00Z"}}, {**USER, "timestamp": 1767225600})

        assert [1767225600.0] * 2 == [m.time for m in found.messages]

    def test_unknown_role(self) -> None:
        """A message of an unknown role is kept as text beside the person's, and noted once."""
        found = session(USER, {"role": "critic", "content": "a"}, {"role": "critic", "content": "b"})

        assert [("injected", "critic")] * 2 == [(m.origin, m.detail) for m in found.messages[1:]]
        assert ["'critic' x 2"] == [n.text.split("role ")[1].split(";")[0] for n in found.notes]


class TestCalls:
    """Calls and results."""

    @pytest.mark.parametrize(("call", "shown", "is_object"), [
        (function("c"), '{"a": 1}', False), (function("c", arguments={"a": 1}), '{"a":1}', True),
        (function("c", arguments="{bad"), "{bad", False), (function("c", arguments=None), "{}", True),
        ({"id": "c", "name": "read", "arguments": "{}"}, "{}", False),
        ({"id": "c", "type": "custom", "custom": {"name": "read", "input": "raw"}}, "raw", False)])
    def test_spellings(self, call: dict[str, Any], shown: str, is_object: bool) -> None:
        """A call keeps its raw arguments and whether they were an object."""
        (made,) = session(USER, calling(call)).main.tool_calls()

        assert ("c", "read", shown, is_object) == (made.id, made.name, made.arguments, made.is_object)

    def test_call_written_twice(self) -> None:
        """A call that stands in the content and in the list of calls is one call."""
        part = {"type": "tool_call", "tool_call_id": "c", "name": "read", "arguments": '{"a": 1}'}

        assert ["c"] == [c.id for c in session(USER, calling(function("c"), content=[part])).main.tool_calls()]

    def test_old_function_call(self) -> None:
        """The older spelling has no ids: the result follows its call by name."""
        found = session(USER, {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
                        {"role": "function", "name": "f", "content": "out"})
        (made,) = found.main.tool_calls()

        assert [(made.id, "out")] == results(found)
        assert made.id

    def test_results_without_ids_are_not_handed_across_names(self) -> None:
        """Without ids a result answers the waiting call of its name, whatever the order."""
        found = session(USER, calling(function(None, "a"), function(None, "b")), tool(None, "of b", name="b"),
                        tool(None, "of a", name="a"))
        first, second = found.main.tool_calls()

        assert {first.id: "of a", second.id: "of b"} == dict(results(found))

    def test_result_without_an_id_never_answers_a_call_that_has_one(self) -> None:
        """A result that names no call keeps an empty id where the calls have ids."""
        assert [("", "ok")] == results(session(USER, calling(function("c")), tool(None)))

    def test_result_before_its_call(self) -> None:
        """A result keeps the id of a call that comes later."""
        found = session(USER, tool("c"), calling(function("c")))

        assert ([("c", "ok")], ["c"]) == (results(found), [c.id for c in found.main.tool_calls()])

    def test_ids_that_come_back(self) -> None:
        """An id that is used again is made unique, for the call and its result."""
        found = session(USER, calling(function("c")), tool("c", "1"), calling(function("c")), tool("c", "2"))

        assert [c.id for c in found.main.tool_calls()] == [call_id for call_id, _ in results(found)]
        assert ["reused-call-id"] == codes(found)

    @pytest.mark.parametrize(("content", "shown"), [
        ("a", "a"), (None, ""), ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "tool_output", "text": "a"}], "a"), ({"x": 1}, '{"x":1}'), ([{"x": 1}], '[{"x":1}]'), (7, "7")])
    def test_result_content(self, content: Any, shown: str) -> None:
        """A result is its text, the text of its parts, or the JSON of plain data."""
        assert [("c", shown)] == results(session(USER, calling(function("c")), tool("c", content)))

    def test_results_in_a_user_message(self) -> None:
        """Results in another vendor's spelling make a tool message, what is left a prompt."""
        use = {"type": "tool_use", "id": "c", "name": "r", "input": {}}
        found = session(USER, {"role": "assistant", "content": [use]},
                        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [
                            {"type": "text", "text": "out"}], "is_error": True}, {"type": "text", "text": "more"}]})

        assert ["user", "assistant", "tool", "user"] == [m.role for m in found.messages]
        assert (ToolResult(call_id="c", text="out", is_error=True),) == found.messages[2].blocks
        assert 3 == found.message_count

    def test_result_parts_in_a_tool_message(self) -> None:
        """Several results in one tool message stay in one message."""
        parts = [{"type": "tool_result", "tool_call_id": i, "content": i} for i in ("a", "b")]
        found = session(USER, calling(function("a"), function("b")), {"role": "tool", "content": parts})

        assert ([("a", "a"), ("b", "b")], 3) == (results(found), len(found.messages))


class TestResponsesItems:
    """Items of the Responses interface."""

    ITEMS = (
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "xxxx"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look"}]},
        {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "d", "name": "patch", "input": "*** raw"},
        {"type": "function_call_output", "call_id": "c", "output": "one"},
        {"type": "custom_tool_call_output", "call_id": "d", "output": [{"type": "input_text", "text": "two"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]})

    def test_items_of_one_response_are_one_message(self) -> None:
        """Reasoning, text and calls in a row are one response; results and prompts part responses."""
        found = session(*self.ITEMS)

        assert ["user", "assistant", "tool", "tool", "assistant"] == [m.role for m in found.messages]
        assert (Reasoning(text="hm", opaque_bytes=4), Text(text="I look")) == found.messages[1].blocks[:2]
        assert (5, 2, [("c", "one"), ("d", "two")]) == (found.message_count, len(found.steps), results(found))

    def test_document_with_input_and_output(self) -> None:
        """A logged request with its response ends in the response's items, with its usage and instructions."""
        (found,) = read_bytes(json.dumps({
            "id": "resp_1", "model": "m", "instructions": "S", "input": [self.ITEMS[0]],
            "output": list(self.ITEMS[1:4]), "usage": {
                "input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 3,
                "output_tokens_details": {"reasoning_tokens": 1}}}).encode(), "x.json", "openai-chat")

        assert ("S", "m", 2) == (found.system_prompt, found.model, found.message_count)
        assert Usage(input_uncached=6, cache_read=4, output=3, reasoning=1) == found.steps[0].usage

    def test_calls_that_the_service_ran(self) -> None:
        """A call without a client's call id is kept by its type and size: no result will come."""
        found = session(self.ITEMS[0], {"type": "web_search_call", "id": "ws", "status": "completed"}, self.ITEMS[7])

        assert ["opaque", "text"] == [b.kind for b in found.messages[1].blocks]
        assert [] == list(found.main.tool_calls())


class TestDamage:
    """Files that are not as they should be."""

    @pytest.mark.parametrize("bad", [b"{bad\n", b"5\n", b"null\n", b'{"unknown": 1}\n', b'"x"\n'])
    def test_bad_line_in_the_middle(self, bad: bytes) -> None:
        """A line that is no message is noted and the others are read."""
        (found,) = read_bytes(lines(SYSTEM, USER) + bad + lines(USER), format="openai-chat")

        assert (3, 1) == (found.message_count, len(found.notes))

    @pytest.mark.parametrize("cut", [1, 5, 15])
    def test_cut_last_record(self, cut: int) -> None:
        """A cut last line is noted with its place."""
        data = lines(SYSTEM, USER)
        (found,) = read_bytes(data + lines(tool("c", "something"))[:-1 - cut], format="openai-chat")

        assert (2, ["cut-tail"], len(data)) == (found.message_count, codes(found), found.notes[0].byte)

    @pytest.mark.parametrize("message", [calling(function("c")), tool("c"), {**USER, "id": "m-1"}])
    def test_message_written_again(self, message: dict[str, Any]) -> None:
        """A marked message that is written again at once is read once."""
        found = session(USER, message, message, message)

        assert (2, ["duplicate", "duplicate"]) == (found.message_count, codes(found))

    def test_a_prompt_said_twice_is_two(self) -> None:
        """The same words twice are two prompts."""
        assert 2 == session(USER, USER).message_count

    @pytest.mark.parametrize("prefix", [b"\xef\xbb\xbf", b"\n", b"\r\n \r\n"])
    def test_first_message_survives_what_precedes_it(self, prefix: bytes) -> None:
        """A byte-order mark or blank lines before the first message do not hide it."""
        (found,) = read_bytes(prefix + lines(SYSTEM, USER), format="openai-chat")

        assert "S" == found.messages[0].text

    @pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085"])
    def test_unicode_line_ends_in_text(self, mark: str) -> None:
        """Characters that other tools take for line ends stay in the text."""
        row = json.dumps({"role": "user", "content": f"a{mark}b"}, ensure_ascii=False).encode()
        (found,) = read_bytes(lines(SYSTEM) + row + b"\n", format="openai-chat")

        assert f"a{mark}b" == found.messages[1].text

    @pytest.mark.parametrize("calls", [None, "x", {}, [None], [5], [{}], [{"function": None}], [{"function": "x"}]])
    def test_malformed_calls(self, calls: Any) -> None:
        """Calls of a wrong shape never break the message."""
        found = session(USER, {"role": "assistant", "content": "a", "tool_calls": calls})

        assert Text(text="a") == found.messages[1].blocks[0]


class TestRealFiles:
    """Files of the study set."""

    @pytest.mark.parametrize(("name", "messages", "calls"), [
        ("codex-derived-messages.json", 905, 411), ("message-per-line.jsonl", 120, 60),
        ("messages-array-per-line.jsonl", 80, 38)])
    def test_counts(self, transcripts: Path, name: str, messages: int, calls: int) -> None:
        """Each file's distinct messages and calls, without notes.

        The set's table counts the calls of the first file twice (they are written twice in each message), and adds
        up the third file's lines although each repeats the one before.
        """
        path = transcripts / "openai-chat" / name
        (found,) = read(path, "openai-chat")

        assert (messages, calls, ()) == (found.message_count, len(list(found.main.tool_calls())), found.notes)
        assert OpenAIChat().sniff(open_source(path)) >= 50

    @pytest.mark.parametrize("row", [
        {"type": "message", "message": {"role": "user", "content": "a"}, "parentId": None},
        {"type": "user", "message": {"role": "user", "content": "a"}, "uuid": "u", "sessionId": "s"},
        {"type": "message", "role": "user", "content": "a", "delta": True}, {"type": "compaction", "summary": "s"},
        {"messages": [{"kind": "request", "parts": []}], "type": "messages"}, {"info": {"id": "ses_1"}, "messages": [
            {"info": {"role": "user"}, "parts": []}]}, {"response": "text"}, {"a": 1}])
    def test_other_formats_are_not_taken(self, row: dict[str, Any]) -> None:
        """Rows of other formats that also speak of roles are left to their readers."""
        assert 0 == OpenAIChat().sniff(parse_source(lines(row, row), "x"))
