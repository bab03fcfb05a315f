"""Messages of OpenCode: who wrote what, in which blocks; damage; tokens."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replay.blocks import Image, Opaque, Reasoning, Text
from replay.readers.registry import read_bytes
from replay.transcript import Transcript, Usage

NOW = 1_796_000_000_000
SESSION = {"id": "ses_1", "slug": "a", "projectID": "p1", "directory": "/p", "title": "t", "version": "1.18.33",
           "time": {"created": NOW, "updated": NOW}}
PNG = "data:image/png;base64,aGVsbG8="


def tokens(given: int = 10, output: int = 5, reasoning: int = 0, read: int = 0, write: int = 0) -> dict[str, Any]:
    """Token counts as OpenCode writes them."""
    return {"input": given, "output": output, "reasoning": reasoning, "cache": {"read": read, "write": write}}


def text(words: str, **more: Any) -> dict[str, Any]:
    """A text part."""
    return {"type": "text", "text": words, **more}


def tool(call: str, output: str = "ok", status: str = "completed", **state: Any) -> dict[str, Any]:
    """A tool part."""
    told = {"status": status, "input": {"x": 1}, "time": {"start": NOW, "end": NOW + 1}, **state}
    if status == "completed":
        told.setdefault("output", output)
    return {"type": "tool", "tool": "bash", "callID": call, "state": told}


def user(name: str, *parts: dict[str, Any], at: int = 0, **info: Any) -> dict[str, Any]:
    """A user message."""
    return {"info": {"id": name, "sessionID": "ses_1", "role": "user", "time": {"created": NOW + at}, **info},
            "parts": list(parts)}


def reply(name: str, *parts: dict[str, Any], at: int = 0, **info: Any) -> dict[str, Any]:
    """A response."""
    told = {"id": name, "sessionID": "ses_1", "role": "assistant", "modelID": "m", "finish": "stop",
            "time": {"created": NOW + at, "completed": NOW + at + 1}, "tokens": tokens(), **info}
    return {"info": told, "parts": [{"type": "step-start"}, *parts, {"type": "step-finish", "tokens": told["tokens"]}]}


def document(*messages: Any, **info: Any) -> bytes:
    """An export document."""
    return json.dumps({"info": {**SESSION, **info}, "messages": list(messages)}, indent=1).encode()


def session(*messages: Any, **info: Any) -> Transcript:
    """The one session of an export."""
    (found,) = read_bytes(document(*messages, **info))
    return found


def codes(found: Transcript) -> list[str]:
    """Codes of the notes."""
    return [note.code for note in found.notes]


def said(found: Transcript) -> list[tuple[str, str, str]]:
    """Role, origin and text of every log message."""
    return [(m.role, m.origin, m.text) for m in found.messages]


TALK = (user("msg_1", text("go")), reply("msg_2", text("I look"), tool("c1", "one"), tool("c2", "two"), at=2),
        reply("msg_3", text("done"), at=4))


class TestMessages:
    """Who wrote what, in which blocks."""

    def test_what_the_program_puts_beside_a_prompt_is_injected(self) -> None:
        """Synthetic parts of a prompt become a message of their own; ignored ones are dropped."""
        found = session(user("msg_1", text("see @a"), text("Called the Read tool", synthetic=True),
                             text("hidden", ignored=True), text("file text", synthetic=True)))

        assert [("user", "human", "see @a"), ("user", "injected", "Called the Read tool\nfile text")] == said(found)

    def test_a_prompt_that_the_program_wrote_is_a_nudge(self) -> None:
        """A message of synthetic parts only stands in the person's place."""
        found = session(user("msg_1", text("Continue", synthetic=True, metadata={"compaction_continue": True})))

        assert [("nudge", "compaction_continue")] == [(m.origin, m.detail) for m in found.messages]

    def test_files_of_a_prompt(self) -> None:
        """An image is kept by its hash, other files by type and size; text files are told in text parts."""
        found = session(user("msg_1", {"type": "file", "mime": "image/png", "url": PNG},
                             {"type": "file", "mime": "application/pdf", "url": "data:application/pdf;base64,aGVs"},
                             {"type": "file", "mime": "text/plain", "url": "file:///a"}))

        assert [Image(mime="image/png", size_bytes=5, sha256=(
            "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824")),
            Opaque(label="application/pdf", size_bytes=3)] == list(found.messages[0].blocks)

    def test_reasoning_and_images_of_results(self) -> None:
        """Reasoning keeps its text and the size of its seal; an attached image stays with the result."""
        found = session(user("msg_1", text("go")), reply(
            "msg_2", {"type": "reasoning", "text": "hm", "metadata": {"anthropic": {"signature": "abcd"}}},
            tool("c1", attachments=[{"mime": "image/png", "url": PNG}])))
        result = found.messages[2].results[0]

        assert (Reasoning(text="hm", opaque_bytes=4), 1) == (found.messages[1].blocks[0], len(result.images))

    def test_copies_for_the_screen_stay_out_of_the_blocks(self) -> None:
        """Title and metadata of a tool call are kept beside the message."""
        found = session(user("msg_1", text("go")), reply("msg_2", tool("c1", title="T", metadata={"stdout": "long"})))

        assert {"title": "T", "metadata": {"stdout": "long"}} == {
            k: v for k, v in found.messages[2].extra.items() if k != "time"}

    def test_a_failed_tool(self) -> None:
        """An error is the result; output that an interrupted tool had given is a plain result."""
        found = session(user("msg_1", text("go")), reply(
            "msg_2", tool("c1", status="error", error="no such file"),
            tool("c2", status="error", error="x", metadata={"interrupted": True, "output": "half"})))

        assert [("no such file", True), ("half", False)] == [(m.text, m.results[0].is_error)
                                                            for m in found.messages[2:]]

    @pytest.mark.parametrize("status", ["running", "pending", "zz"])
    def test_a_call_that_never_ended_at_the_end_of_a_session(self, status: str) -> None:
        """The process died: the call stays open, and a note says so."""
        found = session(user("msg_1", text("go")), reply("msg_2", tool("c1", status=status)))

        assert (2, ["call-without-result"]) == (len(found.messages), codes(found))

    def test_a_call_that_never_ended_before_more_talk(self) -> None:
        """Later requests told the model that the call was interrupted."""
        found = session(user("msg_1", text("go")), reply("msg_2", tool("c1", status="running"), at=1),
                        user("msg_3", text("again"), at=2))

        assert ("tool", "tool", "[Tool execution was interrupted]") == said(found)[2]

    def test_call_ids_that_come_back_are_told_apart(self) -> None:
        """The same call id in a later response is another call."""
        found = session(user("msg_1", text("go")), reply("msg_2", tool("c1", "one")), reply("msg_3", tool("c1", "two")))

        assert ["c1", "c1#2"] == [c.id for c in found.main.tool_calls()]
        assert ["c1", "c1#2"] == [r.call_id for m in found.messages for r in m.results]

    def test_arguments_that_were_still_streaming(self) -> None:
        """The raw text of a call that was cut off is its argument string."""
        found = session(user("msg_1", text("go")), reply("msg_2", tool("c1", status="pending", input={}, raw='{"a')))
        (call,) = found.main.tool_calls()

        assert ('{"a', False) == (call.arguments, call.is_object)

    def test_a_command_of_the_person_is_no_model_call(self) -> None:
        """A shell command that the person ran is in the log, but it is no step."""
        ran = {"info": {"id": "msg_2", "role": "assistant", "time": {"created": NOW}, "tokens": tokens(0, 0)},
               "parts": [tool("c1", "out")]}
        found = session(user("msg_1", text("The following tool was executed by the user", synthetic=True)), ran,
                        user("msg_3", text("now"), at=1), reply("msg_4", text("ok"), at=2))

        assert ["injected", "injected", "tool", "human", "model"] == [m.origin for m in found.messages]
        assert 1 == len(found.steps)

    def test_a_task_that_the_person_started(self) -> None:
        """A subtask part shows its fixed sentence, and the call that follows it is no model call."""
        ran = {"info": {"id": "msg_2", "role": "assistant", "time": {"created": NOW}}, "parts": [tool("c1", "out")]}
        found = session(user("msg_1", {"type": "subtask", "prompt": "p", "agent": "a"}), ran)

        assert (["injected", "injected", "tool"], 0) == ([m.origin for m in found.messages], len(found.steps))

    def test_unknown_parts_are_opaque_and_named_once(self) -> None:
        """A part type that is not known is kept by size; one note counts it."""
        found = session(user("msg_1", text("go")), reply("msg_2", {"type": "zz", "a": 1}, {"type": "zz"}, text("x")))

        assert [Opaque, Opaque, Text] == [type(b) for b in found.messages[1].blocks]
        assert [("unknown-type", "unknown part type 'zz' x 2; kept as opaque blocks")] == [
            (n.code, n.text) for n in found.notes]

    def test_empty_text_and_missing_text(self) -> None:
        """An empty prompt is a prompt; a text part without text gives none."""
        found = session(user("msg_1", text("")), user("msg_2", {"type": "text"}), reply("msg_3", text("")))

        assert [("user", "human", "")] == said(found)
        assert [None] == [s.response for s in found.steps]

    def test_line_separators_inside_a_text(self) -> None:
        """U+2028, U+2029 and U+0085 are characters of a text like any others."""
        words = "first\u2028second\u2029third\u0085end"
        data = json.dumps({"info": SESSION, "messages": [user("msg_1", text(words))]}, ensure_ascii=False).encode()

        assert words == read_bytes(data)[0].messages[0].text

    def test_a_byte_order_mark_before_an_export(self) -> None:
        """A byte-order mark is skipped and noted."""
        (found,) = read_bytes(b"\xef\xbb\xbf" + document(*TALK))

        assert (3, ["byte-order-mark"]) == (found.message_count, codes(found))


class TestDamage:
    """Records that are repeated, of a wrong type, or missing."""

    @pytest.mark.parametrize("again", [1, 2, 3])
    def test_a_message_that_is_written_again(self, again: int) -> None:
        """A repeated message is read once; each repeat is noted."""
        found = session(*TALK, *[TALK[1]] * again)

        assert (3, ["duplicate"] * again, 2) == (found.message_count, codes(found), len(found.steps))

    @pytest.mark.parametrize("row", [None, 7, "x", {}, {"info": 3}, {"info": None, "parts": []}])
    def test_a_message_without_facts_is_kept_out(self, row: Any) -> None:
        """A message that is no object with an info object is noted; the others stay."""
        found = session(TALK[0], row, *TALK[1:])

        assert (3, ["bad-message"]) == (found.message_count, codes(found))

    @pytest.mark.parametrize("parts", [None, {}, "x", 4, [None, 3]])
    def test_parts_of_a_wrong_type(self, parts: Any) -> None:
        """Parts that are no list of objects leave an empty message."""
        found = session({"info": user("msg_1")["info"], "parts": parts}, *TALK[1:])

        assert (3, "assistant") == (found.message_count, found.messages[0].role)

    @pytest.mark.parametrize("state", [None, 3, "x", [], {}, {"status": 9, "time": 1, "metadata": []}])
    def test_a_tool_state_of_a_wrong_type(self, state: Any) -> None:
        """A tool part without a readable state is a call without a result."""
        found = session(user("msg_1", text("go")), reply("msg_2", {"type": "tool", "state": state}))

        assert (1, ["call-without-result"]) == (len(list(found.main.tool_calls())), codes(found))

    @pytest.mark.parametrize("info", [
        {"time": None}, {"time": "x"}, {"time": {"created": "soon"}}, {"tokens": 4}, {"tokens": {"cache": 3}},
        {"modelID": 7}, {"error": "text"}, {"error": {"data": 3}}, {"finish": 3}, {"parentID": []}])
    def test_facts_of_a_wrong_type(self, info: dict[str, Any]) -> None:
        """Facts of a wrong type never cost the session."""
        assert 2 == session(user("msg_1", text("go")), reply("msg_2", text("ok"), **info)).message_count

    def test_an_unknown_role(self) -> None:
        """A message with a role that is not known is named."""
        found = session(user("msg_1", text("go")), {"info": {"id": "msg_2", "role": "judge"}, "parts": [text("x")]})

        assert ["unknown-type"] == codes(found)

    def test_an_empty_export_is_an_empty_session(self) -> None:
        """A session in which nothing was said is valid."""
        found = session()

        assert ((), 0, None) == (found.messages, found.message_count, found.outcome)


class TestUsage:
    """Tokens, each response once."""

    def test_input_excludes_the_cache_and_output_excludes_reasoning(self) -> None:
        """Cache parts stand beside the input count; reasoning is added to the output."""
        found = session(user("msg_1", text("go")), reply("msg_2", text("x"), tokens=tokens(2, 75, 20, 300, 40)))

        assert Usage(input_uncached=2, cache_read=300, cache_write_5m=40, output=95, reasoning=20) == found.usage

    def test_message_and_step_counts_are_never_added(self) -> None:
        """The message repeats what its step-finish part says; it counts once."""
        assert Usage(input_uncached=20, output=10) == session(*TALK).usage

    def test_several_calls_in_one_message(self) -> None:
        """Old versions kept several calls in one message: each step has the tokens of its own step-finish."""
        parts = [{"type": "step-start"}, tool("c1"), {"type": "step-finish", "tokens": tokens(10, 1)},
                 {"type": "step-start"}, text("done"), {"type": "step-finish", "tokens": tokens(30, 2)}]
        both = {"info": reply("msg_2", tokens=tokens(30, 2))["info"], "parts": parts}
        found = session(user("msg_1", text("go")), both)

        assert [(1, 10), (3, 30)] == [(s.start, s.usage.input_total if s.usage else 0) for s in found.steps]

    def test_no_tokens_no_usage(self) -> None:
        """A response that reports zero tokens has no usage."""
        found = session(user("msg_1", text("go")), reply("msg_2", text("x"), tokens=tokens(0, 0)))

        assert [None] == [s.usage for s in found.steps]

    def test_an_error_is_billed_but_not_in_the_log(self) -> None:
        """A response that ended in an error is a step without a message; what it said is kept aside."""
        found = session(user("msg_1", text("go")), reply("msg_2", text("half"), error={
            "name": "APIError", "data": {"message": "overloaded"}}), reply("msg_3", text("ok")))

        assert ["go", "ok"] == [m.text for m in found.messages]
        assert [(None, "APIError: overloaded"), (1, None)] == [(s.response, s.error) for s in found.steps]
        assert (["half"], 20) == ([m.text for t in found.abandoned for m in t.messages], found.usage.input_total)

    def test_an_aborted_response_with_content_stays(self) -> None:
        """What the person interrupted is sent again, with a result for its open call."""
        found = session(user("msg_1", text("go")), reply("msg_2", tool("c1", status="running"), error={
            "name": "MessageAbortedError", "data": {"message": "stop"}}), user("msg_3", text("no")))

        assert ["user", "assistant", "tool", "user"] == [m.role for m in found.messages]
        assert "MessageAbortedError: stop" == found.steps[0].error

    @pytest.mark.parametrize(("info", "value"), [
        ({"finish": "stop"}, "unknown"), ({"finish": "length"}, "partial"),
        ({"error": {"name": "ProviderAuthError"}}, "fail"), ({"error": {"name": "MessageAbortedError"}}, "partial"),
        ({"finish": None}, "partial")])
    def test_how_a_session_ended(self, info: dict[str, Any], value: str) -> None:
        """The last response tells how the session ended."""
        outcome = session(user("msg_1", text("go")), reply("msg_2", text("x"), **info)).outcome

        assert value == (outcome.value if outcome else None)
