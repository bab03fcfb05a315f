"""Decode session logs: batches of pydantic-ai messages, compaction and clear lines, damage."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from replay.blocks import Image, Opaque, Reasoning, Text
from replay.readers.decode import Decode
from replay.readers.registry import read, read_bytes
from replay.readers.source import open_source, parse_source
from replay.transcript import Message, Transcript, Usage

HEADER = {"type": "session", "version": 1, "session_id": "s-1", "cwd": "/p", "created_at": "2026-01-01T00:00:00+00:00"}
FRAME = "Summary of the earlier conversation (older turns were compacted):\n\n"


def request(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"kind": "request", "parts": list(parts), **more}


def prompt(content: Any) -> dict[str, Any]:
    return request({"part_kind": "user-prompt", "content": content, "timestamp": "2026-01-01T00:00:01Z"})


def response(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"kind": "response", "parts": list(parts), "timestamp": "2026-01-01T00:00:02Z", "model_name": "m", **more}


def text(content: str) -> dict[str, Any]:
    return {"part_kind": "text", "content": content}


def call(call_id: str, args: Any = '{"a": 1}') -> dict[str, Any]:
    return {"part_kind": "tool-call", "tool_name": "Read", "args": args, "tool_call_id": call_id}


def returned(call_id: str, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"part_kind": "tool-return", "tool_name": "Read", "content": content, "tool_call_id": call_id, **more}


def retry(content: Any, **more: Any) -> dict[str, Any]:
    return {"part_kind": "retry-prompt", "content": content, **more}


def batch(*messages: Any) -> dict[str, Any]:
    return {"type": "messages", "messages": list(messages)}


def compaction(tail: Any, summary: str = FRAME + "S") -> dict[str, Any]:
    return {"type": "compaction", "summary": [prompt(summary)], "tail": tail}


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def session(*rows: Any) -> Transcript:
    (found,) = read_bytes(lines(HEADER, *rows), format="decode")
    return found


def codes(found: Transcript) -> list[str]:
    return [note.code for note in found.notes]


class TestRequests:
    """Native requests."""

    def test_results_and_steering_share_a_request(self) -> None:
        """All results of a request are one tool message, the prompt in it is a message of its own."""
        found = session(batch(prompt("go"), response(call("a"), call("b")), request(
            returned("a", "1"), returned("b", "2"), {"part_kind": "user-prompt", "content": "and hurry"})))

        assert [("user", "human"), ("assistant", "model"), ("tool", "tool"), ("user", "human")] == [
            (m.role, m.origin) for m in found.messages]
        assert [("a", "1"), ("b", "2")] == [(r.call_id, r.text) for r in found.messages[2].results]
        assert 3 == found.message_count

    @pytest.mark.parametrize(("content", "shown"), [
        ("plain", "plain"), ("", ""), (None, ""), ({"a": [1, None]}, '{"a":[1,null]}'), ([1, "x"], '[1,"x"]'),
        (7, "7"), (True, "true"), (["one", "two"], '["one","two"]')])
    def test_results_of_any_json(self, content: Any, shown: str) -> None:
        """A result is its text, or its JSON in the order of the keys."""
        found = session(batch(response(call("a")), request(returned("a", content))))

        assert [shown] == [r.text for r in found.messages[1].results]

    @pytest.mark.parametrize(("part", "is_error"), [
        (returned("a"), False), (returned("a", outcome="success"), False), (returned("a", outcome="failed"), True),
        (returned("a", outcome="denied"), True), (retry("bad", tool_name="Read", tool_call_id="a"), True),
        (retry([{"loc": ["x"]}], tool_name="Read", tool_call_id="a"), True)])
    def test_faults(self, part: dict[str, Any], is_error: bool) -> None:
        """Retries of a tool and returns that failed or were denied are error results of the call."""
        (made,) = session(batch(response(call("a")), request(part))).messages[1].results

        assert ("a", is_error) == (made.call_id, made.is_error)

    def test_retry_without_a_tool(self) -> None:
        """A retry that answers no tool is text that the program put beside the person's."""
        found = session(batch(prompt("go"), response(text("x")), request(retry("answer in JSON"))))

        assert ("user", "injected", "retry-prompt") == (
            found.messages[2].role, found.messages[2].origin, found.messages[2].detail)

    @pytest.mark.parametrize("alphabet", [base64.b64encode, base64.urlsafe_b64encode])
    def test_images_in_prompts_and_results(self, alphabet: Any) -> None:
        """An image is kept by type, size and hash, in either base64 alphabet."""
        raw = bytes(range(250, 256)) * 9
        part = {"kind": "binary", "data": alphabet(raw).decode(), "media_type": "image/png"}
        found = session(batch(prompt(["look", part]), response(call("a")), request(returned("a", ["shot", part]))))
        expected = Image(mime="image/png", size_bytes=54, sha256=hashlib.sha256(raw).hexdigest())

        assert (Text(text="look"), expected) == found.messages[0].blocks
        assert [("shot", (expected,))] == [(r.text, r.images) for r in found.messages[2].results]

    def test_instructions_are_the_system_prompt(self) -> None:
        """The last instructions are the system prompt; a change of them is kept."""
        found = session(batch({**prompt("a"), "instructions": "one"}, {**prompt("b"), "instructions": "two"}))

        assert ("two", ("one", "two")) == (found.system_prompt, found.extra["instructions"])

    def test_system_parts_stand_in_the_log(self) -> None:
        """A system part is a system message of the log."""
        found = session(batch(request({"part_kind": "system-prompt", "content": "S"}, prompt("a")["parts"][0])))

        assert [("system", "S"), ("human", "a")] == [(m.origin, m.text) for m in found.messages]


class TestResponses:
    """Native responses."""

    def test_parts(self) -> None:
        """Thinking, text and calls keep their order; a signature only counts."""
        found = session(batch(response({"part_kind": "thinking", "content": "hm", "signature": "abcd"}, text("yes"),
                                       call("a"), {"part_kind": "builtin-tool-call", "tool_name": "web"})))

        reasoning, said, made, opaque = found.messages[0].blocks
        assert (Reasoning(text="hm", opaque_bytes=4), Text(text="yes")) == (reasoning, said)
        assert [made] == list(found.main.tool_calls())
        assert isinstance(opaque, Opaque)

    @pytest.mark.parametrize(("args", "shown", "is_object"), [
        ('{"a": 1}', '{"a": 1}', False), ({"a": 1}, '{"a":1}', True), ("{bad", "{bad", False), (None, "{}", True)])
    def test_arguments(self, args: Any, shown: str, is_object: bool) -> None:
        """Arguments keep whether they were stored as text or as an object."""
        (made,) = session(batch(response(call("a", args)))).main.tool_calls()

        assert (shown, is_object) == (made.arguments, made.is_object)

    @pytest.mark.parametrize(("usage", "expected"), [
        ({"input_tokens": 100, "cache_read_tokens": 60, "cache_write_tokens": 30, "output_tokens": 5},
         Usage(input_uncached=10, cache_read=60, cache_write_5m=30, output=5)),
        ({"input_tokens": 100, "cache_write_tokens": 30, "cache_write_1h_tokens": 20, "output_tokens": 5,
          "output_reasoning_tokens": 2},
         Usage(input_uncached=70, cache_write_5m=10, cache_write_1h=20, output=5, reasoning=2)),
        ({"request_tokens": 7, "response_tokens": 3, "details": None}, Usage(input_uncached=7, output=3)),
        ({"input_tokens": 5, "cache_read_tokens": 9}, Usage(cache_read=5)),
        ({"input_tokens": 0, "output_tokens": 0}, None), (None, None), ([], None)])
    def test_usage(self, usage: Any, expected: Usage | None) -> None:
        """Input includes cache reads and writes, output includes reasoning; zero rows count as none."""
        assert expected == session(batch(response(text("a"), usage=usage))).steps[0].usage

    def test_step_facts(self) -> None:
        """A step keeps model, response id and time."""
        (step,) = session(batch(prompt("a"), response(text("b"), provider_response_id="r-1"))).steps

        assert (1, "m", "r-1", 1767225602.0) == (step.start, step.model, step.request_id, step.time)

    def test_ids_that_come_back(self) -> None:
        """A call id that is used again gets an id of its own, and so does its result."""
        found = session(batch(response(call("a")), request(returned("a", "1")), response(call("a")),
                              request(returned("a", "2"))))

        assert [c.id for c in found.main.tool_calls()] == [r.call_id for m in found.messages for r in m.results]
        assert 2 == len({c.id for c in found.main.tool_calls()})


class TestCompactions:
    """Compaction and clear lines."""

    TURN = (prompt("go"), response(call("a"), usage={"input_tokens": 10, "output_tokens": 1}),
            request(returned("a", "1"), {"part_kind": "user-prompt", "content": "steer"}),
            response(text("done"), usage={"input_tokens": 20, "output_tokens": 2}))

    def test_window_of_summary_and_tail(self) -> None:
        """The window is the inserted summary and the log indices that the tail repeats; usage counts once."""
        found = session(batch(*self.TURN), compaction(list(self.TURN[1:])), batch(prompt("next")))
        head, *kept = found.compactions[0].window

        assert isinstance(head, Message)
        assert ("user", "summary", FRAME + "S") == (head.role, head.origin, head.text)
        assert [1, 2, 3, 4] == kept
        assert (5, "S", 33, 5) == (found.compactions[0].position, found.compactions[0].summary, found.usage.total,
                                   found.message_count)

    def test_empty_tail(self) -> None:
        """A tail that fits nothing leaves the summary alone."""
        assert 1 == len(session(batch(*self.TURN), compaction([])).compactions[0].window)

    def test_equal_messages_are_taken_from_the_end(self) -> None:
        """Where the same message stands twice, the tail's is the later one."""
        turn = (prompt("go on"), response(text("ok")))
        found = session(batch(*turn, *turn), compaction(list(turn)))

        assert (2, 3) == found.compactions[0].window[1:]

    def test_second_compaction_keeps_part_of_the_first_tail(self) -> None:
        """A later tail is found in the history that the earlier compaction left."""
        found = session(batch(*self.TURN), compaction([self.TURN[3]]), batch(prompt("next")),
                        compaction([self.TURN[3], prompt("next")]))

        assert (4, 5) == found.compactions[1].window[1:]
        assert () == found.notes

    def test_tail_that_differs(self) -> None:
        """A tail with blanked results is taken as it stands, and noted."""
        blank = request(returned("a", "[blanked]"))
        found = session(batch(*self.TURN), compaction([self.TURN[1], blank]))
        _, kept, put = found.compactions[0].window

        assert (1, ["tail-not-in-log"]) == (kept, codes(found))
        assert isinstance(put, Message)
        assert "[blanked]" == put.text

    def test_clear(self) -> None:
        """A clear line empties the window."""
        found = session(batch(*self.TURN), {"type": "clear"}, batch(prompt("new")))

        assert [(5, "clear", ())] == [(c.position, c.kind, c.window) for c in found.compactions]

    @pytest.mark.parametrize("line", [
        {"type": "compaction"}, {"type": "compaction", "summary": [], "tail": None},
        {"type": "compaction", "summary": "S", "tail": []}])
    def test_malformed_compaction(self, line: dict[str, Any]) -> None:
        """A compaction line that the program itself would skip is noted and changes nothing."""
        found = session(batch(*self.TURN), line)

        assert ((), ["bad-compaction"]) == (found.compactions, codes(found))


class TestDamage:
    """Files that are not as they should be."""

    def test_unknown_types(self) -> None:
        """Unknown line and part types are noted by name with their counts; the rest is read."""
        found = session({"type": "zz"}, batch(prompt("a"), request({"part_kind": "new"})), {"type": "zz"})

        assert ["'zz' x 2", "'request part new' x 1"] == [n.text.split("type ")[-1].split(";")[0] for n in found.notes]
        assert 2 == found.message_count

    @pytest.mark.parametrize("cut", [1, 20, 90])
    def test_cut_last_record(self, cut: int) -> None:
        """A cut last batch is noted with its place."""
        data = lines(HEADER, batch(prompt("a"), response(text("b"))))
        (found,) = read_bytes(data + lines(batch(prompt("c")))[:-1 - cut], format="decode")

        assert (2, ["cut-tail"], len(data)) == (found.message_count, codes(found), found.notes[0].byte)

    @pytest.mark.parametrize("times", [2, 3, 4])
    def test_batch_written_again(self, times: int) -> None:
        """A batch that is written several times is read once."""
        found = session(*[batch(prompt("a"), response(text("b")))] * times)

        assert (2, ["duplicate"] * (times - 1)) == (found.message_count, codes(found))

    @pytest.mark.parametrize("message", [None, 5, "x", [], {}, {"kind": "other"}])
    def test_bad_message_in_a_batch(self, message: Any) -> None:
        """A message that is neither request nor response is noted; the others of its batch are read."""
        found = session(batch(prompt("a"), message, response(text("b"))))

        assert (2, ["bad-message"]) == (found.message_count, codes(found))

    @pytest.mark.parametrize("rows", [None, {}, "x", 3])
    def test_batch_without_a_list(self, rows: Any) -> None:
        """A messages line without a list is noted."""
        assert ["bad-batch"] == codes(session({"type": "messages", "messages": rows}))

    @pytest.mark.parametrize("prefix", [b"\xef\xbb\xbf", b"\r\n", b"\n \n"])
    def test_first_prompt_survives_what_precedes_it(self, prefix: bytes) -> None:
        """A byte-order mark or blank lines before the header hide nothing."""
        (found,) = read_bytes(prefix + lines(HEADER, batch(prompt("first"))), format="decode")

        assert ("s-1", "first") == (found.session_id, found.messages[0].text)

    @pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085"])
    def test_unicode_line_ends_in_text(self, mark: str) -> None:
        """Characters that other tools take for line ends stay in the text."""
        row = json.dumps(batch(prompt(f"one{mark}two")), ensure_ascii=False).encode()
        (found,) = read_bytes(lines(HEADER) + row + b"\n", format="decode")

        assert f"one{mark}two" == found.messages[0].text

    def test_header_only(self) -> None:
        """A file with a header alone is an empty session."""
        found = session()

        assert (0, "s-1", "/p", ()) == (found.message_count, found.session_id, found.cwd, found.notes)

    def test_no_header(self) -> None:
        """Batches without a header are told by their messages, and the file names the session."""
        data = lines(batch(prompt("a")), batch(response(text("b"))))
        (found,) = read_bytes(data, "folder/20260101T000000Z_x.jsonl", "decode")

        assert (80, "20260101T000000Z_x") == (Decode().sniff(parse_source(data, "x")), found.session_id)

    def test_second_header(self) -> None:
        """A header of another session is noted; the first one names the file."""
        found = session({**HEADER, "session_id": "s-2"})

        assert ("s-1", ["second-header"]) == (found.session_id, codes(found))


class TestRealFiles:
    """Files of the study set."""

    @pytest.mark.parametrize(("start", "messages", "calls", "compactions", "notes"), [
        ("20260110", 98, 60, 1, []), ("20260111", 82, 40, 0, ["cut-tail"])])
    def test_counts(self, transcripts: Path, start: str, messages: int, calls: int, compactions: int,
                    notes: list[str]) -> None:
        """Each file has the counts that the table of the set gives."""
        (path,) = (transcripts / "decode").glob(f"{start}*.jsonl")
        (found,) = read(path, "decode")

        assert (messages, calls, compactions, notes) == (
            found.message_count, len(list(found.main.tool_calls())), len(found.compactions), codes(found))
        assert 95 == Decode().sniff(open_source(path))

    def test_tail_is_mapped(self, transcripts: Path) -> None:
        """The four messages of the real tail are the last four of the log."""
        (path,) = (transcripts / "decode").glob("20260110*.jsonl")
        (found,) = read(path, "decode")

        assert (57, 58, 59, 60) == found.compactions[0].window[1:]
        assert 61 == found.compactions[0].position
