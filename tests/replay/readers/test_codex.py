"""Codex rollouts: responses and steps, token counts, prompts, odd files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replay.blocks import Image, Opaque, Reasoning, Text, ToolCall
from replay.readers.codex import Codex
from replay.readers.registry import read_bytes
from replay.readers.source import parse_source
from replay.transcript import Transcript, Usage

Records = list[dict[str, Any]]


def stamp(seconds: float) -> str:
    """A time stamp that many seconds into the test's minute."""
    return f"2026-01-01T00:00:{seconds:06.3f}Z"


def record(kind: str, payload: Any, at: float = 1.0) -> dict[str, Any]:
    """One line of a rollout."""
    return {"timestamp": stamp(at), "type": kind, "payload": payload}


def meta(name: str = "s-1", at: float = 0.0, **more: Any) -> dict[str, Any]:
    """A session header."""
    return record("session_meta", {"id": name, "cwd": "/repo", "cli_version": "0.150.0", **more}, at)


def item(kind: str, at: float = 1.0, **payload: Any) -> dict[str, Any]:
    """A response item."""
    return record("response_item", {"type": kind, **payload}, at)


def event(kind: str, at: float = 1.0, **payload: Any) -> dict[str, Any]:
    """A UI event."""
    return record("event_msg", {"type": kind, **payload}, at)


def said(text: str, role: str = "assistant", at: float = 1.0, **more: Any) -> dict[str, Any]:
    """A message item."""
    part = "output_text" if role == "assistant" else "input_text"
    return item("message", at, role=role, content=[{"type": part, "text": text}], **more)


def prompt(text: str, at: float = 1.0) -> Records:
    """What a person typed: the message, and the event that tells so."""
    return [said(text, "user", at), event("user_message", at, message=text)]


def call(name: str = "c-1", at: float = 1.0) -> dict[str, Any]:
    """A call of the shell."""
    return item("function_call", at, name="exec_command", arguments='{"cmd":"ls"}', call_id=name)


def output(text: Any = "ok", name: str = "c-1", at: float = 1.0) -> dict[str, Any]:
    """A result of the shell."""
    return item("function_call_output", at, call_id=name, output=text)


def counts(sent: int, answered: int, cached: int = 0) -> dict[str, int]:
    """Native token numbers."""
    return {"input_tokens": sent, "cached_input_tokens": cached, "output_tokens": answered,
            "reasoning_output_tokens": 0, "total_tokens": sent + answered}


def tokens(last: dict[str, int] | None, total: dict[str, int] | None, at: float = 1.0) -> dict[str, Any]:
    """A token count."""
    info = {"last_token_usage": last, "total_token_usage": total, "model_context_window": 1000}
    return event("token_count", at, info={k: v for k, v in info.items() if v is not None})


def flat(parts: tuple[Any, ...]) -> Iterator[Any]:
    """Records, and lists of records, one after another."""
    for part in parts:
        yield from part if isinstance(part, list) else [part]


def rollout(*parts: Any) -> bytes:
    """The bytes of a file."""
    return b"".join(json.dumps(part).encode() + b"\n" for part in flat(parts))


def session(*parts: Any) -> Transcript:
    """The session that a file of these records holds."""
    (transcript,) = read_bytes(rollout(*parts), format="codex")
    return transcript


def codes(transcript: Transcript) -> list[str]:
    """The codes of the notes, in order."""
    return [note.code for note in transcript.notes]


class TestResponses:
    def test_items_up_to_a_result_are_one_response(self) -> None:
        """Reasoning, text and calls before a tool's result are one message and one step."""
        t = session(meta(), prompt("go"), item("reasoning", summary=[{"type": "summary_text", "text": "hm"}]),
                    said("looking"), call("a"), call("b"), output(name="a"), output(name="b"), said("done"))

        assert ["user", "assistant", "tool", "tool", "assistant"] == [m.role for m in t.messages]
        assert [Reasoning, Text, ToolCall, ToolCall] == [type(b) for b in t.messages[1].blocks]
        assert [(1, 1), (4, 4)] == [(s.start, s.response) for s in t.steps]

    def test_a_token_count_closes_a_response(self) -> None:
        """Two responses without tools between them are told apart by the count after the first."""
        t = session(meta(), prompt("go"), said("one"), tokens(counts(10, 1), counts(10, 1)), said("two"),
                    tokens(counts(12, 2), counts(22, 3)))

        assert [11, 14] == [s.usage.total if s.usage else None for s in t.steps]
        assert ["go", "one", "two"] == [m.text for m in t.messages]

    def test_a_count_after_the_results_belongs_to_the_response_before(self) -> None:
        """Newer versions write the results first; the usage still goes to the response."""
        t = session(meta(), prompt("go"), call(), output(), tokens(counts(10, 1), counts(10, 1)))

        assert [11] == [s.usage.total if s.usage else None for s in t.steps]

    def test_native_item_kinds_become_calls(self) -> None:
        """Custom, shell, search and image calls are tool calls; a call without an id is named after its line."""
        t = session(meta(), prompt("go"), item("custom_tool_call", name="apply_patch", input="*** x", call_id="p"),
                    item("local_shell_call", call_id="s", action={"type": "exec", "command": ["ls"]}),
                    item("web_search_call", status="completed", action={"query": "q"}),
                    item("image_generation_call", id="g", revised_prompt="cat", result="aGk="))
        calls = t.messages[1].calls

        assert ["apply_patch", "local_shell", "web_search", "image_generation"] == [c.name for c in calls]
        assert [False, True, True, True] == [c.is_object for c in calls]
        assert "web_search_call:6" == calls[2].id
        assert isinstance(t.messages[1].blocks[-1], Image)

    def test_a_namespace_is_part_of_the_name(self) -> None:
        """A tool of an MCP server carries the server in its name."""
        t = session(meta(), item("function_call", name="_fetch", namespace="mcp__hub", arguments="{}", call_id="x"))

        assert "mcp__hub_fetch" == t.messages[0].calls[0].name

    @pytest.mark.parametrize(("text", "failed"), [
        ("Chunk ID: 1\nProcess exited with code 2\nOutput:\n", True),
        ("Chunk ID: 1\nProcess exited with code 0\nOutput:\nProcess exited with code 9", False),
        ("Exit code: 1\nWall time: 0 seconds\nOutput:\n", True),
        ('{"output":"x","metadata":{"exit_code":3}}', True),
        ('{"output":"x","metadata":{"exit_code":0}}', False),
        ({"content": "no", "success": False}, True),
        ("apply_patch verification failed: no such line", True),
        ("aborted by user after 1.0s", True),
        ([{"type": "input_text", "text": "fine"}], False),
        (None, False),
    ])
    def test_failures_are_read_from_every_form_of_a_result(self, text: Any, failed: bool) -> None:
        """Exit codes in text, in JSON or in a success flag mark a result as an error."""
        t = session(meta(), call(), output(text))

        assert failed == t.messages[1].results[0].is_error

    def test_the_old_json_output_is_kept_as_the_model_saw_it(self) -> None:
        """A result that is JSON with metadata was sent as that JSON."""
        text = '{"output":"x","metadata":{"exit_code":0}}'
        t = session(meta(), call(), output(text))

        assert text == t.messages[1].results[0].text
        assert "exec_command" == t.messages[1].results[0].name

    def test_the_event_of_a_call_is_kept_beside_its_result(self) -> None:
        """What only the UI was told stays out of the blocks and marks a failure."""
        end = event("exec_command_end", call_id="c-1", exit_code=1, aggregated_output="long")
        t = session(meta(), call(), end, output("text"))

        assert "text" == t.messages[1].text
        assert "long" == t.messages[1].extra["event"]["aggregated_output"]
        assert t.messages[1].results[0].is_error

    def test_a_call_id_that_comes_back_is_made_unique(self) -> None:
        """Each result answers the call before it, though both calls have one id."""
        t = session(meta(), call("x"), output("1", "x"), call("x", 2), output("2", "x", 2))

        assert [("x", "1"), ("x#2", "2")] == [(r.call_id, r.text) for m in t.messages for r in m.results]
        assert ["x", "x#2"] == [c.id for c in t.main.tool_calls()]


class TestUsage:
    def test_repeated_numbers_are_counted_once(self) -> None:
        """The same total, written at every rate-limit update, is one request."""
        same = tokens(counts(10, 1, 4), counts(10, 1, 4))
        t = session(meta(), prompt("go"), said("one"), same, same, same)

        assert Usage(input_uncached=6, cache_read=4, output=1) == t.usage
        assert 1 == len(t.steps)

    def test_equal_requests_are_two_when_the_total_grows(self) -> None:
        """Two requests of one size are told apart by the running total."""
        t = session(meta(), prompt("go"), call("a"), output(name="a"), tokens(counts(10, 1), counts(10, 1)),
                    call("b"), output(name="b"), tokens(counts(10, 1), counts(20, 2)))

        assert [11, 11] == [s.usage.total if s.usage else None for s in t.steps]

    def test_without_the_last_numbers_the_total_is_differenced(self) -> None:
        """A total alone gives what was added to it, and itself where it starts over."""
        t = session(meta(), prompt("go"), said("a"), tokens(None, counts(10, 1)), said("b"),
                    tokens(None, counts(25, 3)), said("c"), tokens(None, counts(7, 1)))

        assert [(10, 1), (15, 2), (7, 1)] == [(s.usage.input_total, s.usage.output) for s in t.steps if s.usage]

    def test_empty_counts_are_no_requests(self) -> None:
        """No info, zeros, and the count that follows a full window add nothing."""
        t = session(meta(), prompt("go"), event("token_count", info=None), said("a"),
                    tokens(counts(10, 1), counts(10, 1)),
                    tokens(counts(0, 0), {**counts(0, 0), "total_tokens": 1000}))

        assert [11] == [s.usage.total if s.usage else None for s in t.steps]

    def test_usage_records_name_their_request(self) -> None:
        """A usage record counts even when the totals beside it were reset, and its repetition does not."""
        usage = record("token_usage_record", {"usage": counts(10, 1), "thread_token_usage": counts(90, 9),
                                              "response_id": "r-1"})
        t = session(meta(), prompt("go"), call(), usage, output(), tokens(counts(10, 1), counts(10, 1)), usage)

        assert [("r-1", 11)] == [(s.request_id, s.usage.total if s.usage else None) for s in t.steps]

    def test_a_failed_request_is_a_step_that_left_nothing(self) -> None:
        """An error that ends a turn stands for the request that failed."""
        t = session(meta(), prompt("go"), event("error", message="too long"),
                    event("task_complete", last_agent_message=None, error={"message": "too long"}))

        assert [(1, None, "too long")] == [(s.start, s.response, s.error) for s in t.steps]
        assert "fail" == (t.outcome.value if t.outcome else None)

    def test_an_aborted_turn_marks_the_cut_response(self) -> None:
        """A response without usage, cut by an abort, carries the reason; the call without result is noted."""
        t = session(meta(), prompt("go"), call(), event("turn_aborted", reason="interrupted"))

        assert ["interrupted"] == [s.error for s in t.steps]
        assert ["call-without-result"] == codes(t)
        assert ("partial", "turn_aborted") == ((t.outcome.value, t.outcome.source) if t.outcome else None)


class TestPrompts:
    def test_injected_messages_are_told_from_typed_ones(self) -> None:
        """Only what an event repeats was typed; the rest was put there by Codex."""
        t = session(meta(), said("<permissions instructions>", "developer"), said("<environment_context>", "user"),
                    said("# AGENTS.md instructions for /repo", "user"), prompt("go"), said("ok"),
                    said("<subagent_notification>", "user"), said("not typed", "user"),
                    said("Approved command prefix", "developer"))

        assert ["system", "injected", "injected", "human", "model", "injected", "injected", "injected"] == [
            m.origin for m in t.messages]
        assert ["permissions", "environment_context", "agents_md", None, None, "subagent_notification", None,
                None] == [m.detail for m in t.messages]

    def test_a_typed_tag_is_still_typed(self) -> None:
        """A prompt that looks like context is human where an event says it was typed."""
        t = session(meta(), prompt("<environment_context> what is this?"))

        assert ["human"] == [m.origin for m in t.messages]

    def test_without_events_only_known_tags_are_injected(self) -> None:
        """Old files have no such events: plain text is the person's."""
        t = session(meta(), said("<user_instructions>x", "user"), said("plain", "user"))

        assert ["injected", "human"] == [m.origin for m in t.messages]

    def test_images_come_as_type_size_and_hash(self) -> None:
        """A data URL is not kept; the prompt beside it is human."""
        picture = {"type": "input_image", "image_url": "data:image/gif;base64,aGVsbG8="}
        parts = [{"type": "input_text", "text": "<image>"}, picture]
        t = session(meta(), item("message", role="user", content=parts),
                    event("user_message", message="", images=["x"]))

        assert [("image/gif", 5)] == [(b.mime, b.size_bytes) for b in t.messages[0].blocks if isinstance(b, Image)]
        assert "human" == t.messages[0].origin

    def test_items_of_new_versions_tell_what_was_typed(self) -> None:
        """Where a completed item replaces the event, it is compared in the same way."""
        typed = {"type": "UserMessage", "id": "u", "content": [{"type": "text", "text": "go"}]}
        t = session(meta(), said("go", "user"), event("item_completed", item=typed), said("else", "user"))

        assert ["human", "injected"] == [m.origin for m in t.messages]

    def test_header_and_turn_context_fill_the_transcript(self) -> None:
        """Instructions, version, folder, model and window come from their own records."""
        t = session(meta(base_instructions={"text": "be brief"}, git={"branch": "b"}),
                    record("turn_context", {"model": "m-1"}), event("task_started", model_context_window=500))

        assert ("s-1", "be brief", "0.150.0", "/repo", "m-1", 500) == (
            t.session_id, t.system_prompt, t.harness_version, t.cwd, t.model, t.window)
        assert {"branch": "b"} == t.extra["git"]


class TestOddFiles:
    def test_a_chunk_without_header_is_read_and_noted(self) -> None:
        """A later part of a split file has no session_meta; it is named after the file."""
        (t,) = read_bytes(rollout(output(), said("ok")), name="rollout-x.001.jsonl", format="codex")

        assert ["no-header", "result-without-call"] == codes(t)
        assert "rollout-x.001" == t.session_id

    def test_bare_files_without_envelope_are_read(self) -> None:
        """The first versions wrote a header, state marks and response items as they were."""
        header = {"id": "old", "timestamp": "2025-06-01T00:00:00Z", "instructions": "rules", "git": {}}
        body = [said("hi", "user")["payload"], {"record_type": "state"}, call()["payload"], output()["payload"],
                said("done")["payload"]]
        data = rollout(header, body)
        (t,) = read_bytes(data, format="codex")

        assert 80 == Codex().sniff(parse_source(data, "x"))
        assert ["user", "assistant", "tool", "assistant"] == [m.role for m in t.messages]
        assert ("old", "rules", ()) == (t.session_id, t.system_prompt, t.notes)

    def test_repeated_headers_of_a_resume_change_nothing(self) -> None:
        """The header is written again on each resume; it is neither a fork nor a message."""
        t = session(meta(), prompt("one"), said("1"), meta(), prompt("two", 2), meta(), said("2", at=2))

        assert (2, None, ()) == (len(t.steps), t.parent_session, t.notes)

    def test_unknown_types_are_named_once_with_their_count(self) -> None:
        """Unknown records, items and events are kept out of the log, counted by type and kept as they stood."""
        t = session(meta(), record("zz-latch", {}), record("zz-latch", {}), item("zz-item"), event("zz_event"),
                    prompt("go"))

        assert ["unknown-type"] * 3 == codes(t)
        assert "'zz-latch' x 2" in t.notes[0].text
        assert 4 == len(t.extra["unknown_records"])
        assert ["go"] == [m.text for m in t.messages]

    def test_a_record_written_again_is_counted_once(self) -> None:
        """The same record with the same time is a duplicate; the same text at another time is not."""
        t = session(meta(), prompt("go"), prompt("go"), prompt("go", 2), call(), call(), output())

        assert ["duplicate", "duplicate"] == codes(t)
        assert ["go", "go"] == [m.text for m in t.messages if m.role == "user"]
        assert 1 == len(list(t.main.tool_calls()))

    @pytest.mark.parametrize("broken", [
        5, [], {"type": "response_item", "payload": 7}, {"payload": {}}, item("message", role=3, content=5),
        item("function_call"), item("function_call_output", output={"content": [1]}), event("token_count", info=[]),
        record("compacted", {"message": 4, "replacement_history": [3, {"type": {}}]}), {"type": {}},
        event("thread_rolled_back", num_turns="x"), item("reasoning", summary="s", content=3),
    ])
    def test_a_malformed_record_never_costs_the_rest(self, broken: Any) -> None:
        """Whatever one record looks like, those around it are read."""
        t = session(meta(), prompt("before"), broken if broken else [[]], prompt("after", 2))

        assert {"before", "after"} <= {m.text for m in t.messages}

    def test_a_server_summary_without_compacted_record_is_a_compaction(self) -> None:
        """An encrypted item that the service put into a response stands for everything before it."""
        t = session(meta(), prompt("go"), said("1"), tokens(counts(9, 1), counts(9, 1)),
                    item("compaction", encrypted_content="abcd"), said("2", at=2))
        (compaction,) = t.compactions
        (head,) = compaction.window

        assert (2, False, (Opaque(label="compaction", size_bytes=4),)) == (
            compaction.position, compaction.summary_readable, head.blocks if not isinstance(head, int) else None)

    def test_messages_of_other_agents_are_injected(self) -> None:
        """What another agent sent is shown to the model in the user's name."""
        t = session(meta(), item("agent_message", author="/root", content=[{"type": "input_text", "text": "x"}]),
                    record("inter_agent_communication", {"author": "a", "content": "y"}))

        assert [("x", "injected", "agent_message"), ("y", "injected", "agent_message")] == [
            (m.text, m.origin, m.detail) for m in t.messages]

    @pytest.mark.parametrize(("records", "score"), [
        ([meta()], 95), ([said("x")], 95), ([{"type": "session", "id": "x"}], 0), ([{"type": {"a": 1}}], 0),
        ([{"type": "message", "id": "1", "parentId": None, "message": {"role": "user"}}], 0),
        ([said("x")["payload"]], 60), ([{"role": "user", "content": "x"}], 0)])
    def test_sniffing_looks_at_content_only(self, records: Records, score: int) -> None:
        """Codex's envelope is certain, bare items likely; other formats are not claimed."""
        assert score == Codex().sniff(parse_source(rollout(records), "x.jsonl"))

    def test_extra_fields_stay_as_they_stood(self) -> None:
        """Native fields that the model of a message has no place for are kept."""
        t = session(meta(), said("x", phase="final_answer"), said("y", "user", note=1))

        assert ({"phase": "final_answer"},) == t.messages[0].extra["items"]
        assert 1 == t.messages[1].extra["note"]


def test_two_records_on_one_line_are_both_read(tmp_path: Path) -> None:
    """Glued records are decoded one after the other."""
    glued = rollout(meta()) + rollout(said("a", "user")).rstrip() + rollout(said("b"))
    (t,) = read_bytes(glued, format="codex")

    assert ["a", "b"] == [m.text for m in t.messages]
    assert ["glued-values"] == codes(t)
