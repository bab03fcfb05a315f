"""OpenAI-style logs: documents, prefixes, logged responses and what belongs to one session."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replay.readers.openai_chat_usage import usage_of
from replay.readers.registry import read_bytes
from replay.transcript import Transcript, Usage

SYSTEM = {"role": "system", "content": "S"}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **more}


def logged(sent: list[Any], got: Any, prompt: int = 10, **more: Any) -> dict[str, Any]:
    """A proxy's line: the request and the response with its usage."""
    return {"request": {"model": "m", "messages": sent}, "response": {
        "id": f"r-{prompt}", "model": "m-1", "created": 1767225600, "choices": [{"message": got}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": 2}}, **more}


def sessions(*rows: Any) -> tuple[Transcript, ...]:
    return read_bytes(b"".join(json.dumps(r).encode() + b"\n" for r in rows), "log.jsonl", "openai-chat")


def shape(found: Transcript) -> list[str]:
    return [m.text for m in found.messages]


class TestDocuments:
    """One JSON value a file."""

    def test_object_with_messages(self) -> None:
        """A document names its session and keeps its tools."""
        (found,) = read_bytes(json.dumps({"id": "x", "messages": [SYSTEM, user("a")], "tools": [{"t": 1}]}).encode(),
                              "d.json", "openai-chat")

        assert ("x", ["S", "a"], [{"t": 1}]) == (found.session_id, shape(found), found.extra["tools"])

    def test_bare_list_of_messages(self) -> None:
        """A bare list is one session, named by the file."""
        (found,) = read_bytes(json.dumps([SYSTEM, user("a"), None, 5]).encode(), "some/d.json", "openai-chat")

        assert ("d", 2, 2) == (found.session_id, found.message_count, sum("x 1" in n.text for n in found.notes))

    def test_list_of_sessions(self) -> None:
        """A list of objects with messages is a session each."""
        found = read_bytes(json.dumps([{"messages": [user("a")]}, {"messages": [user("b")]}]).encode(), "d.json",
                           "openai-chat")

        assert [["a"], ["b"]] == [shape(t) for t in found]

    def test_bare_completion(self) -> None:
        """A logged completion alone is a session of one answer."""
        (found,) = read_bytes(json.dumps({"id": "c", "object": "chat.completion", "choices": [
            {"message": answer("a")}], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}).encode(), "d.json",
            "openai-chat")

        assert (["a"], 4) == (shape(found), found.usage.total)


class TestPrefixes:
    """One list of messages a line."""

    def test_growing_lines_are_one_session(self) -> None:
        """A line that begins with the one before adds only what is new."""
        first = [SYSTEM, user("a"), answer("b")]
        (found,) = sessions({"messages": first}, {"messages": [*first, user("c")]},
                            {"messages": [*first, user("c"), answer("d")]})

        assert (["S", "a", "b", "c", "d"], 5, [1, 1, 1, 2, 3]) == (
            shape(found), found.message_count, [m.line for m in found.messages])

    def test_other_lines_are_sessions_of_their_own(self) -> None:
        """Lines that share a system prompt, or a prompt with another answer, stay apart."""
        found = sessions({"messages": [SYSTEM, user("a"), answer("b")]}, {"messages": [SYSTEM, user("x")]},
                         {"messages": [SYSTEM, user("a"), answer("other")]})

        assert ["log#1", "log#2", "log#3"] == [t.session_id for t in found]

    def test_interleaved_talks(self) -> None:
        """Two talks whose lines alternate are two sessions."""
        one, two = [SYSTEM, user("a")], [SYSTEM, user("b")]
        found = sessions({"messages": one}, {"messages": two}, {"messages": [*one, answer("1")]},
                         {"messages": [*two, answer("2")]})

        assert [["S", "a", "1"], ["S", "b", "2"]] == [shape(t) for t in found]

    def test_shorter_line_later(self) -> None:
        """A line that repeats only the beginning of a session adds nothing."""
        full = [user("a"), answer("b"), user("c")]

        assert [["a", "b", "c"]] == [shape(t) for t in sessions({"messages": full}, {"messages": full[:2]})]

    def test_usage_beside_the_messages(self) -> None:
        """Usage beside a line's messages belongs to the answer that ends the line."""
        first = [user("a"), answer("b")]
        (found,) = sessions({"messages": first, "usage": {"prompt_tokens": 5, "completion_tokens": 1}},
                            {"messages": [*first, user("c"), answer("d")],
                             "usage": {"prompt_tokens": 9, "completion_tokens": 2}})

        assert [6, 11] == [s.usage.total for s in found.steps if s.usage]


class TestLoggedResponses:
    """Requests with their responses."""

    def test_talk_with_usage(self) -> None:
        """Each response is a step with its usage, model, id and time, counted once."""
        one = [SYSTEM, user("a")]
        (found,) = sessions(logged(one, answer("b"), 10), logged([*one, answer("b"), user("c")], answer("d"), 20))

        assert ["S", "a", "b", "c", "d"] == shape(found)
        assert [(2, 12, "m-1", "r-10", 1767225600.0), (4, 22, "m-1", "r-20", 1767225600.0)] == [
            (s.start, s.usage and s.usage.total, s.model, s.request_id, s.time) for s in found.steps]

    @pytest.mark.parametrize("got", [
        answer("b", refusal=None, annotations=[]), {**answer(""), "content": None, "tool_calls": None}])
    def test_client_copy_without_empty_fields(self, got: dict[str, Any]) -> None:
        """A client that drops or adds empty fields still continues the same talk."""
        one = [user("a")]
        (found,) = sessions(logged(one, got), logged([*one, answer(got["content"] or ""), user("c")], answer("d"), 20))

        assert (4, 2) == (len(found.messages), len(found.steps))

    def test_edited_copy(self) -> None:
        """Where the next request holds an edited answer, that one stands in the log and the usage stays."""
        (found,) = sessions(logged([user("a")], answer("long")), logged([user("a"), answer("short"), user("c")],
                                                                        answer("d"), 20))

        assert (["a", "short", "c", "d"], [12, 22]) == (shape(found), [s.usage.total for s in found.steps if s.usage])

    def test_request_sent_again(self) -> None:
        """A response that was not used is an abandoned branch, and it was billed."""
        (found,) = sessions(logged([user("a")], answer("one"), 10), logged([user("a")], answer("two"), 20),
                            logged([user("a"), answer("two"), user("c")], answer("d"), 30))

        assert ["a", "two", "c", "d"] == shape(found)
        assert (["one"], 12) == ([m.text for t in found.abandoned for m in t.messages], found.abandoned[0].usage.total)
        assert 66 == found.usage.total

    def test_response_that_is_dropped(self) -> None:
        """A request that goes on without the logged response leaves it to an abandoned branch."""
        (found,) = sessions(logged([user("a")], answer("one"), 10), logged([user("a"), user("b")], answer("d"), 20))

        assert (["a", "b", "d"], 1, 34) == (shape(found), len(found.abandoned), found.usage.total)

    def test_same_line_twice(self) -> None:
        """A line that is logged twice counts once."""
        line = logged([user("a")], answer("b"))
        (found,) = sessions(line, line, line)

        assert (["a", "b"], 12, 1) == (shape(found), found.usage.total, len(found.steps))

    def test_response_that_the_messages_hold_already(self) -> None:
        """Some logs put the answer into the messages too: it stands once."""
        (found,) = sessions(logged([user("a"), answer("b")], answer("b")))

        assert (["a", "b"], 12) == (shape(found), found.usage.total)

    def test_failed_request(self) -> None:
        """A request that got an error is a step with that error and no message."""
        (found,) = sessions({"request": {"messages": [user("a")]}, "response": {"error": {"message": "too long"}}},
                            logged([user("a")], answer("b")))

        assert [(1, None, "too long"), (1, 1, None)] == [(s.start, s.response, s.error) for s in found.steps]

    def test_chained_responses(self) -> None:
        """A request that names the previous response sends only what is new."""
        first = {"model": "m", "input": "a", "id": "r1", "output": [
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}]}
        second = {"previous_response_id": "r1", "input": [
            {"type": "function_call_output", "call_id": "c", "output": "x"}], "id": "r2", "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]}]}
        (found,) = sessions(first, second)

        assert ["user", "assistant", "tool", "assistant"] == [m.role for m in found.messages]

    def test_adjacent_responses_stay_apart(self) -> None:
        """Two responses in a row are two steps even when nothing stands between them."""
        item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}
        (found,) = sessions({"input": "a", "id": "r1", "output": [item]},
                            {"previous_response_id": "r1", "input": [], "id": "r2", "output": [item]})

        assert 2 == len(found.steps)


class TestUsage:
    """Token counts in every spelling."""

    @pytest.mark.parametrize(("native", "expected"), [
        ({"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 6},
          "completion_tokens_details": {"reasoning_tokens": 3}},
         Usage(input_uncached=4, cache_read=6, output=4, reasoning=3)),
        ({"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": None},
         Usage(input_uncached=10, output=4)),
        ({"prompt_tokens": 10, "prompt_cache_hit_tokens": 8, "completion_tokens": 1},
         Usage(input_uncached=2, cache_read=8, output=1)),
        ({"input_tokens": 3, "cache_read_input_tokens": 7, "cache_creation_input_tokens": 5, "output_tokens": 2,
          "cache_creation": {"ephemeral_1h_input_tokens": 4}},
         Usage(input_uncached=3, cache_read=7, cache_write_5m=1, cache_write_1h=4, output=2)),
        ({"total_tokens": 12}, Usage(input_uncached=12)), ({}, Usage()), (None, None), ("x", None)])
    def test_spellings(self, native: Any, expected: Usage | None) -> None:
        """Cached and reasoning tokens are parts of the counts; another vendor's names keep them apart."""
        assert expected == usage_of(native)
