"""The Claude Code reader on small sessions: responses, results, who speaks, attachments, the queue, facts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replay.blocks import Image, Opaque, Reasoning, Text, ToolCall
from replay.invariants import pairing
from replay.readers.claude_code import ClaudeCode
from replay.readers.source import parse_source
from replay.transcript import Transcript

Row = dict[str, Any]


def row(kind: str, uuid: str, parent: str | None, **more: Any) -> Row:
    """A record of the chain."""
    return {"parentUuid": parent, "isSidechain": False, "cwd": "/w", "sessionId": "s", "version": "2.1.9",
            "uuid": uuid, "timestamp": f"2026-01-01T00:00:{len(uuid):02d}.000Z", "type": kind, **more}


def user(uuid: str, parent: str | None, content: Any, **more: Any) -> Row:
    """A user line."""
    return row("user", uuid, parent, message={"role": "user", "content": content}, **more)


def said(uuid: str, parent: str | None, response: str, *parts: Row, output: int = 5, **more: Any) -> Row:
    """A line of a response."""
    usage = {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 7,
             "output_tokens": output}
    message = {"id": response, "role": "assistant", "model": "claude-x", "content": list(parts), "usage": usage}
    return row("assistant", uuid, parent, message=message, requestId=f"req-{response}", **more)


def text(words: str) -> Row:
    """A text block."""
    return {"type": "text", "text": words}


def call(name: str, **arguments: Any) -> Row:
    """A call block whose id is `name`."""
    return {"type": "tool_use", "id": name, "name": "Bash", "input": arguments}


def result(uuid: str, parent: str | None, name: str, content: Any = "done", **more: Any) -> Row:
    """A user line with the result of a call."""
    part = {"type": "tool_result", "tool_use_id": name, "content": content, **more}
    return user(uuid, parent, [part])


def read(*rows: Any) -> Transcript:
    """The session of these records."""
    data = b"\n".join(json.dumps(r).encode() for r in rows)
    (transcript,) = ClaudeCode().read(parse_source(data, "case.jsonl"))
    return transcript


def score(*rows: Row) -> int:
    """How surely a file of these records, each twice, is of the format."""
    data = b"\n".join(json.dumps(r).encode() for r in (*rows, *rows))
    return ClaudeCode().sniff(parse_source(data, "-"))


def shape(transcript: Transcript) -> list[str]:
    """Origin (and kind) of each message of the main log."""
    return [m.origin + (f":{m.detail}" if m.detail else "") for m in transcript.messages]


class TestResponses:
    """Lines of one response become one message and one step."""

    def test_blocks_of_one_id_are_merged_in_file_order(self) -> None:
        """Rows that share a message id are one message with all their blocks, and one step."""
        t = read(user("u", None, "go"),
                 said("a", "u", "m", {"type": "thinking", "thinking": "hm", "signature": "abcd"}, output=1),
                 said("b", "a", "m", text("ok"), output=1), said("c", "b", "m", call("c1", x=1), output=40))
        assert ["reasoning", "text", "tool_call"] == [b.kind for b in t.messages[1].blocks]
        assert (1, 40) == (len(t.steps), t.usage.output)
        assert Reasoning(text="hm", opaque_bytes=4) == t.messages[1].blocks[0]

    def test_usage_is_that_of_the_row_with_the_largest_output(self) -> None:
        """A later row with a smaller output does not replace the usage of an earlier one."""
        usage = read(user("u", None, "go"), said("a", "u", "m", text("1"), output=9),
                     said("b", "a", "m", text("2"), output=2)).usage
        assert (9, 10, 100, 7) == (usage.output, usage.input_uncached, usage.cache_read, usage.cache_write_5m)

    def test_results_between_the_rows_follow_the_whole_response(self) -> None:
        """Results written between two rows of a response stand behind the merged message, in order."""
        t = read(user("u", None, "go"), said("a", "u", "m", call("c1")), result("r1", "a", "c1", "one"),
                 said("b", "r1", "m", call("c2")), result("r2", "b", "c2", "two"), said("z", "r2", "n", text("end")))
        assert ["human", "model", "tool", "tool", "model"] == shape(t)
        assert ["c1", "c2"] == [c.id for c in t.messages[1].calls]
        assert ["one", "two"] == [m.text for m in t.messages[2:4]]
        assert [1, 4] == [s.start for s in t.steps]

    def test_result_before_its_call_is_moved_behind_it(self) -> None:
        """A result whose line comes before that of its call still follows the call in the log."""
        t = read(user("u", None, "go"), said("a", "u", "m", text("x")), result("r", "b", "c1"),
                 said("b", "a", "m", call("c1")), said("z", "r", "n", text("end")))
        assert ["human", "model", "tool", "model"] == shape(t)
        assert [] == pairing(t.messages)

    def test_result_before_its_call_without_links(self) -> None:
        """The same holds in a file without uuids, where the call is its own response."""
        bare = [{"type": "user", "sessionId": "s", "message": {"content": "go"}},
                {"type": "user", "sessionId": "s", "message": {"content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "x"}]}},
                {"type": "assistant", "sessionId": "s", "message": {"id": "m", "content": [call("c1")]}}]
        assert ["human", "model", "tool"] == shape(read(*bare))

    def test_call_without_result_stays(self) -> None:
        """A call whose result never came is kept, and the outcome says that something is open."""
        t = read(user("u", None, "go"), said("a", "u", "m", call("c1")))
        assert ["c1"] == [c.id for c in t.main.tool_calls()]
        assert t.outcome is not None
        assert "partial" == t.outcome.value

    def test_cumulative_rows_are_not_doubled(self) -> None:
        """A row that repeats the blocks before it adds only what is new."""
        t = read(user("u", None, "go"), said("a", "u", "m", text("1")), said("b", "a", "m", text("1"), call("c1")),
                 said("c", "b", "m", text("1"), call("c1"), text("2")))
        assert [Text(text="1"), Text(text="2")] == [b for b in t.messages[1].blocks if isinstance(b, Text)]
        assert ["c1"] == [c.id for c in t.messages[1].calls]

    def test_a_call_id_that_comes_back_gets_a_name_of_its_own(self) -> None:
        """A tool id that is used again after a resume pairs with its own result."""
        t = read(user("u", None, "go"), said("a", "u", "m", call("c1")), result("r1", "a", "c1", "one"),
                 said("b", "r1", "n", call("c1")), result("r2", "b", "c1", "two"))
        assert [] == pairing(t.messages)
        assert 2 == len({c.id for c in t.main.tool_calls()})

    def test_rows_without_any_id_are_responses_of_their_own(self) -> None:
        """Where neither message id nor request id is there, each row is a response."""
        rows = [{"type": "assistant", "sessionId": "s", "uuid": u, "message": {"content": [text(u)]}} for u in "ab"]
        assert 2 == len(read(*rows).steps)

    def test_request_id_groups_rows_without_message_id(self) -> None:
        """Rows without a message id are joined by their request id."""
        rows = [{"type": "assistant", "sessionId": "s", "uuid": u, "requestId": "q", "message": {"content": [text(u)]}}
                for u in "ab"]
        assert 1 == len(read(*rows).steps)

    def test_service_passes_are_usage_beside_the_window(self) -> None:
        """Iterations that are not messages (such as a compaction by the service) are side usage."""
        line = said("a", "u", "m", text("x"))
        line["message"]["usage"]["iterations"] = [
            {"type": "compaction", "input_tokens": 900, "output_tokens": 30}, {"type": "message", "input_tokens": 10}]
        usage = read(user("u", None, "go"), line).steps[0].usage
        assert usage is not None
        assert usage.side is not None
        assert (900, 30, 117) == (usage.side.input_uncached, usage.side.output, usage.input_total)


class TestProgramMessages:
    """What the program itself wrote as an assistant."""

    def test_api_error_is_a_step_without_a_message(self) -> None:
        """A failed request leaves a step with its error and nothing in the log."""
        failed = said("a", "u", "m", text("API Error: overloaded"), isApiErrorMessage=True)
        failed["message"] |= {"model": "<synthetic>", "usage": {"input_tokens": 0, "output_tokens": 0}}
        t = read(user("u", None, "go"), failed, user("v", "a", "again"), said("b", "v", "n", text("hi")))
        assert ["human", "human", "model"] == shape(t)
        assert [("API Error: overloaded", None, None), (None, 2, "claude-x")] == [
            (s.error, s.response, s.model) for s in t.steps]
        assert t.steps[0].usage is None

    def test_session_that_ends_in_an_api_error_failed(self) -> None:
        """The outcome of a session whose last request failed is a failure with the program's words."""
        failed = said("a", "u", "m", text("Prompt is too long"), isApiErrorMessage=True)
        outcome = read(user("u", None, "go"), failed).outcome
        assert outcome is not None
        assert ("fail", "Prompt is too long") == (outcome.value, outcome.detail)

    def test_synthetic_answer_is_injected_and_no_step(self) -> None:
        """Words that the program puts into the model's mouth are in the log but are no model call."""
        line = said("a", "u", "m", text("No response requested."))
        line["message"]["model"] = "<synthetic>"
        t = read(user("u", None, "go"), line)
        assert ("assistant", "injected", 0) == (t.messages[1].role, t.messages[1].origin, len(t.steps))


class TestContent:
    """Blocks of all kinds."""

    def test_result_of_several_texts_and_an_image(self) -> None:
        """A list of texts is joined by newlines; an image becomes type, size and hash."""
        picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
        t = read(user("u", None, "go"), said("a", "u", "m", call("c1")),
                 result("r", "a", "c1", [text("one"), picture, text("two")], is_error=True))
        (found,) = t.messages[2].results
        assert ("one\ntwo", "Bash", True) == (found.text, found.name, found.is_error)
        assert [("image/png", 3)] == [(i.mime, i.size_bytes) for i in found.images]

    def test_the_copy_for_the_screen_is_not_in_the_blocks(self) -> None:
        """`toolUseResult` was never sent: it is kept beside the message."""
        line = result("r", "a", "c1", "short") | {"toolUseResult": {"stdout": "long"}}
        t = read(user("u", None, "go"), said("a", "u", "m", call("c1")), line)
        assert "short" == t.messages[2].text
        assert {"stdout": "long"} == t.messages[2].extra["toolUseResult"]

    def test_result_and_comment_on_one_line(self) -> None:
        """What the person adds to a tool result is a message of the person's."""
        part = {"type": "tool_result", "tool_use_id": "c1", "content": "rejected"}
        t = read(user("u", None, "go"), said("a", "u", "m", call("c1")), user("r", "a", [part, text("use make")]))
        assert ["human", "model", "tool", "human"] == shape(t)
        assert (3, "use make") == (t.message_count, t.messages[3].text)

    @pytest.mark.parametrize(("part", "expected"), [
        ({"type": "redacted_thinking", "data": "xyz"}, Reasoning(text="", opaque_bytes=3)),
        ({"type": "document", "source": {"type": "text", "data": "page"}}, Text(text="page")),
        ({"type": "document", "source": {"type": "base64", "data": "QUJD"}}, Opaque(label="document", size_bytes=4)),
        ({"type": "server_tool_use"}, Opaque(label="server_tool_use", size_bytes=26)),
    ])
    def test_other_blocks(self, part: Row, expected: object) -> None:
        """Redacted reasoning, documents and blocks that no reader can look into keep their size."""
        assert expected == read(user("u", None, "go"), said("a", "u", "m", part)).messages[1].blocks[0]

    def test_image_in_a_prompt(self) -> None:
        """An image that the person pasted is an image block of the prompt."""
        picture = {"type": "image", "source": {"media_type": "image/png", "data": "QUJD"}}
        assert [Text, Image] == [type(b) for b in read(user("u", None, [text("see"), picture])).messages[0].blocks]

    def test_arguments_that_are_a_string_stay_one(self) -> None:
        """Arguments that the file holds as a string are kept raw."""
        part = {"type": "tool_use", "id": "c", "name": "T", "input": "ls -l"}
        expected = ToolCall(id="c", name="T", arguments="ls -l", is_object=False)
        assert expected == read(user("u", None, "go"), said("a", "u", "m", part)).messages[1].blocks[0]

    def test_empty_text_is_no_missing_content(self) -> None:
        """An empty prompt is a message without blocks and without a note."""
        t = read(user("u", None, ""))
        assert (1, (), ()) == (t.message_count, t.messages[0].blocks, t.notes)


class TestSpeakers:
    """Who wrote a user line."""

    @pytest.mark.parametrize(("content", "more", "expected"), [
        ("Fix it", {}, "human"),
        ("<div> is broken", {}, "human"),
        ("<command-message>init</command-message>\n<command-name>/init</command-name>", {}, "human:command"),
        ("<command-name>/exit</command-name>\n<command-message>exit", {}, "injected:local_command"),
        ("<local-command-stdout>Bye!</local-command-stdout>", {}, "injected:local_command_output"),
        ("<bash-input>ls</bash-input>", {}, "injected:shell_input"),
        ("<task-notification>\n<task-id>1</task-id>", {}, "nudge:task_notification"),
        ("background", {"origin": {"kind": "task-notification"}}, "nudge:task_notification"),
        ("typed", {"origin": {"kind": "human"}}, "human"),
        ([{"type": "text", "text": "[Request interrupted by user for tool use]"}], {}, "injected:interruption"),
        ([{"type": "text", "text": "<system-reminder>x"}, {"type": "text", "text": "go"}], {}, "human"),
        ([{"type": "text", "text": "<ide_selection>x</ide_selection>"}], {}, "injected:ide"),
        ("<local-command-caveat>Caveat", {"isMeta": True}, "injected:local_command_caveat"),
        ([{"type": "text", "text": "Base directory"}], {"isMeta": True, "sourceToolUseID": "c"}, "injected:skill"),
        ("expanded command", {"isMeta": True}, "injected:meta"),
        ("Stop hook feedback:\n- tests fail", {"isMeta": True}, "nudge:stop_hook"),
        ("This session is being continued from a previous conversation that", {}, "injected:continuation"),
    ])
    def test_origin(self, content: Any, more: Row, expected: str) -> None:
        """Only what a person typed is human; the program's prompts are nudges, its other texts injected."""
        assert [expected] == shape(read(user("u", None, content, **more)))


class TestFacts:
    """Session-wide facts."""

    def test_header_facts(self) -> None:
        """Version, model, folder and session id are those of the file."""
        t = read(user("u", None, "go"), said("a", "u", "m", text("hi")))
        assert ("s", "2.1.9", "claude-x", "/w") == (t.session_id, t.harness_version, t.model, t.cwd)

    def test_titles_and_unknown_records_are_kept(self) -> None:
        """Titles and modes are kept, and so are records of unknown type."""
        odd = {"type": "zz-new", "sessionId": "s", "value": 1}
        t = read({"type": "ai-title", "aiTitle": "Fix", "sessionId": "s"}, odd, user("u", None, "go"))
        assert ("Fix", [odd]) == (t.extra["aiTitle"], t.extra["unknown"])

    def test_pull_request_is_a_hint_of_the_outcome(self) -> None:
        """A recorded pull request is named, but is no proof of success."""
        link = {"type": "pr-link", "sessionId": "s", "prUrl": "https://example.com/pull/1"}
        outcome = read(user("u", None, "go"), said("a", "u", "m", text("hi")), link).outcome
        assert outcome is not None
        assert ("unknown", "https://example.com/pull/1") == (outcome.value, outcome.detail)

    def test_interruption_at_the_end(self) -> None:
        """A session that the person stopped ended partially."""
        outcome = read(user("u", None, "go"), said("a", "u", "m", text("hi")),
                       user("v", "a", [text("[Request interrupted by user]")])).outcome
        assert outcome is not None
        assert "partial" == outcome.value

    def test_file_of_side_records_alone_is_an_empty_session(self) -> None:
        """A file without any message is a session without steps."""
        t = read({"type": "mode", "mode": "normal", "sessionId": "s"})
        assert (0, (), "s") == (t.message_count, t.steps, t.session_id)

    def test_fields_without_a_place_are_kept(self) -> None:
        """Native fields that the model does not have stand in `extra`."""
        t = read(user("u", None, "go", gitBranch="main"), said("a", "u", "m", text("x"), slug="s1"))
        assert ("main", "s1") == (t.messages[0].extra["gitBranch"], t.messages[1].extra["slug"])
        assert 5 == t.messages[1].extra["message"]["usage"]["output_tokens"]


class TestSniffing:
    """Telling the format from content."""

    @pytest.mark.parametrize("first", [
        {"type": "summary", "summary": "t", "leafUuid": "x"},
        {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
        {"type": "queue-operation", "operation": "enqueue", "sessionId": "s"},
        {"parentUuid": None, "sessionId": "s", "type": "user", "message": {"role": "user", "content": "x"}},
        {"sessionId": "s", "type": "user", "message": {"role": "user", "content": "x"}},
    ])
    def test_known_first_records(self, first: Row) -> None:
        """Each kind of record that can stand first tells the format."""
        assert 0 < score(first)

    @pytest.mark.parametrize("first", [
        {"type": "session_meta", "timestamp": "x", "payload": {}}, {"role": "user", "content": "x"},
        {"sessionId": "s", "projectHash": "h", "messages": []},
        {"type": ["user"], "sessionId": "s", "parentUuid": None},
        {"type": "message", "parentId": None, "message": {"role": "user"}},
    ])
    def test_other_formats(self, first: Row) -> None:
        """Records of other systems do not."""
        assert 0 == score(first)

    def test_single_record_that_looks_like_a_document(self) -> None:
        """A file of one record is read as one line, even where a field of it is a list."""
        (t,) = ClaudeCode().read(parse_source(json.dumps(user("u", None, "go", todos=[])).encode(), "-"))
        assert ["human"] == shape(t)

    def test_web_export(self) -> None:
        """A document with `loglines` is read as the lines in it; other fields of it are kept."""
        lines = [{"type": "user", "timestamp": "2026-01-01T00:00:00Z", "message": {"content": "go"}},
                 {"type": "assistant", "message": {"content": [text("hi")]}},
                 {"type": "user", "isCompactSummary": True, "message": {"content": "from before"}}]
        source = parse_source(json.dumps({"loglines": lines, "title": "T"}).encode(), "web.json")
        (t,) = ClaudeCode().read(source)
        assert 95 == ClaudeCode().sniff(source)
        assert (["human", "model", "injected:continuation"], "T") == (shape(t), t.extra["title"])
