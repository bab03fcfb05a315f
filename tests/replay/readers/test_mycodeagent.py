"""MyCodeAgent transcripts: messages, runs, checkpoints, interrupted calls, outcomes, damage."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from replay.blocks import Reasoning, Text
from replay.readers.registry import read_bytes
from replay.transcript import Message, Transcript

HEADING = "## Archived History Summary"
NUMBERS = itertools.count(1)


def event(kind: str, payload: Any, run: str = "run-1", number: int = 0, **more: Any) -> dict[str, Any]:
    """One transcript event."""
    return {"event_id": f"evt-{next(NUMBERS)}", "timestamp": "2026-01-01T00:00:00Z", "session_id": "s-1",
            "run_id": run, "step": number, "event_type": kind, "payload": payload, "schema_version": 1, **more}


def user(text: str, run: str = "run-1", **metadata: Any) -> dict[str, Any]:
    return event("message", {"role": "user", "content": text, "metadata": metadata}, run)


def assistant(text: str, *calls: dict[str, Any], run: str = "run-1", **metadata: Any) -> dict[str, Any]:
    if calls:
        metadata |= {"action_type": "tool_call", "tool_calls": list(calls)}
    return event("message", {"role": "assistant", "content": text, "metadata": metadata}, run)


def call(call_id: str, name: str = "Read", arguments: Any = '{"path": "a"}') -> dict[str, Any]:
    return {"id": call_id, "name": name, "arguments": arguments}


def tool(call_id: str | None, text: str = '{"status": "success"}', run: str = "run-1") -> dict[str, Any]:
    metadata = {"tool_name": "Read"} | ({"tool_call_id": call_id} if call_id else {})
    return event("message", {"role": "tool", "content": text, "metadata": metadata}, run)


def state(call_id: str, status: str, name: str = "Edit", run: str = "run-1", **more: Any) -> dict[str, Any]:
    return event("tool_lifecycle", {"tool_name": name, "tool_call_id": call_id, "status": status, **more}, run)


def checkpoint(**payload: Any) -> dict[str, Any]:
    return event("checkpoint", {"checkpoint_id": "compact_1", **payload})


def lines(*events: Any) -> bytes:
    return b"".join(json.dumps(e).encode() + b"\n" for e in events)


def session(*events: Any) -> Transcript:
    (found,) = read_bytes(lines(*events), format="mycodeagent")
    return found


def codes(transcript: Transcript) -> list[str]:
    return [note.code for note in transcript.notes]


class TestMessages:
    """What message events become."""

    def test_roles_and_origins(self) -> None:
        """A prompt, a call, its result and an answer keep their order, roles and origins."""
        found = session(user("do it"), assistant("", call("c1")), tool("c1"), assistant("done"))

        assert [("user", "human"), ("assistant", "model"), ("tool", "tool"), ("assistant", "model")] == [
            (m.role, m.origin) for m in found.messages]
        assert 4 == found.message_count

    def test_each_answer_is_a_step(self) -> None:
        """Every assistant message is a step that starts at its own index and carries no usage."""
        found = session(user("a"), assistant("b"), user("c"), assistant("d"))

        assert [(1, 1, None), (3, 3, None)] == [(s.start, s.response, s.usage) for s in found.steps]

    def test_gate_feedback_is_a_nudge(self) -> None:
        """Feedback of the completion gate stands in the person's place and is marked so."""
        found = session(user("a"), assistant("b"), user("run the tests", source="completion_gate"))

        assert ("nudge", "completion_gate") == (found.messages[2].origin, found.messages[2].detail)

    def test_reasoning_stands_before_the_text(self) -> None:
        """Reasoning kept in the metadata is a block of its own."""
        found = session(assistant("yes", reasoning_content="hmm"))

        assert (Reasoning(text="hmm"), Text(text="yes")) == found.messages[0].blocks

    @pytest.mark.parametrize(("arguments", "text", "is_object"), [
        ('{"path": "a"}', '{"path": "a"}', False), ({"path": "a"}, '{"path":"a"}', True), ("{broken", "{broken", False),
        (None, "{}", True)])
    def test_arguments_as_string_or_object(self, arguments: Any, text: str, is_object: bool) -> None:
        """Arguments keep whether they were stored as text or as an object."""
        (made,) = session(assistant("", call("c1", arguments=arguments)), tool("c1")).messages[0].calls

        assert (text, is_object) == (made.arguments, made.is_object)

    def test_older_form_with_one_call_in_the_metadata(self) -> None:
        """An assistant message without a call list names its only call in its metadata."""
        found = session(assistant("", action_type="tool_call", tool_name="LS", tool_call_id="c1",
                                  tool_args={"path": "."}), tool("c1"))

        assert [("c1", "LS", {"path": "."})] == [(c.id, c.name, c.mapping) for c in found.main.tool_calls()]

    def test_tool_message_without_an_id(self) -> None:
        """A result that names no call keeps an empty id."""
        found = session(user("a"), tool(None, "loose"))

        assert [("", "loose")] == [(r.call_id, r.text) for r in found.messages[1].results]

    @pytest.mark.parametrize(("text", "is_error"), [
        ('{"status": "error", "data": {}}', True), ('{\n  "status": "error"\n}', True),
        ('{"status": "success", "text": "error"}', False), ("plain error", False)])
    def test_error_envelopes(self, text: str, is_error: bool) -> None:
        """An observation whose envelope says error is an error."""
        assert is_error == session(assistant("", call("c1")), tool("c1", text)).messages[1].results[0].is_error

    def test_failed_state_marks_the_result(self) -> None:
        """A call that ended as failed has an error result whatever its text."""
        found = session(assistant("", call("c1")), state("c1", "failed"), tool("c1", "no"))

        assert found.messages[1].results[0].is_error

    def test_stored_summary_keeps_its_place(self) -> None:
        """A message of role summary counts in the history and was sent as a system message with the heading."""
        found = session(event("message", {"role": "summary", "content": "S", "metadata": {}}), user("a"))

        assert ("system", "summary", f"{HEADING}\nS") == (
            found.messages[0].role, found.messages[0].origin, found.messages[0].text)

    @pytest.mark.parametrize("content", [None, "", 5, ["a"], {"a": 1}])
    def test_odd_content(self, content: Any) -> None:
        """Content that is no text is read as far as it goes."""
        found = session(event("message", {"role": "user", "content": content}), assistant("b"))

        assert 2 == found.message_count


class TestRuns:
    """Several runs and several sessions in one file."""

    def test_ids_that_repeat_across_runs(self) -> None:
        """The same call id in two runs becomes two ids, each with its own result."""
        found = session(user("a"), assistant("", call("c1")), tool("c1", "one"),
                        user("b", "run-2"), assistant("", call("c1"), run="run-2"), tool("c1", "two", "run-2"))

        assert ["c1", "run-2/c1"] == [c.id for c in found.main.tool_calls()]
        assert {"c1": "one", "run-2/c1": "two"} == {r.call_id: r.text for m in found.messages for r in m.results}
        assert ["reused-call-id"] == codes(found)

    def test_ids_that_repeat_within_a_run(self) -> None:
        """Even within a run every call has an id of its own."""
        found = session(assistant("", call("c1")), tool("c1"), assistant("", call("c1")), tool("c1"))

        assert 2 == len({c.id for c in found.main.tool_calls()})
        assert [c.id for c in found.main.tool_calls()] == [r.call_id for m in found.messages for r in m.results]

    def test_a_session_for_each_session_id(self) -> None:
        """Events of two sessions in one file make two transcripts."""
        found = read_bytes(lines(user("a"), {**user("b"), "session_id": "s-2"}, assistant("c")), format="mycodeagent")

        assert [("s-1", 2), ("s-2", 1)] == [(t.session_id, t.message_count) for t in found]

    @pytest.mark.parametrize(("reason", "value"), [
        ("completed", "pass"), ("completed_unverified", "partial"), ("completion_gate_blocked", "fail"),
        ("max_steps", "fail"), ("token_budget", "fail"), ("model_error", "fail"), ("empty_response_failed", "fail"),
        ("tool_error_unrecoverable", "fail"), ("user_abort", "unknown"), ("something_new", "unknown")])
    def test_outcomes(self, reason: str, value: str) -> None:
        """The last terminal event is the outcome."""
        found = session(user("a"), event("terminal", {"reason": reason, "details": {}}))

        assert found.outcome is not None
        assert (value, reason) == (found.outcome.value, found.outcome.detail)

    def test_last_run_without_a_terminal_event(self) -> None:
        """A session whose last run has no end is of unknown outcome, whatever ran before."""
        found = session(user("a"), event("terminal", {"reason": "completed"}), user("b", "run-2"))

        assert found.outcome is not None
        assert "unknown" == found.outcome.value
        assert {"run-1": "completed"} == found.extra["terminals"]

    def test_a_call_that_left_nothing_is_a_step(self) -> None:
        """A model call that failed for good is a step with an error and no response."""
        found = session(user("a"), event("state_transition", {
            "to_state": "model_recovery_failed", "reason": "model_recovery_failed",
            "details": {"error_kind": "prompt_too_long"}}))

        assert [(1, None, "prompt_too_long")] == [(s.start, s.response, s.error) for s in found.steps]


class TestCheckpoints:
    """Checkpoints as compactions."""

    EVENTS = (user("a"), assistant("b"), user("c"), assistant("d"))

    def window(self, **payload: Any) -> tuple[int | Message, ...]:
        (made,) = session(*self.EVENTS, checkpoint(summary="S", **payload), assistant("e")).compactions
        return made.window

    def test_summary_then_retained_messages(self) -> None:
        """The window is the summary as a system message under the heading, then the retained messages."""
        head, *kept = self.window(retain_start_idx=2, source_message_count=4)

        assert isinstance(head, Message)
        assert ("system", "summary", -1, f"{HEADING}\nS") == (head.role, head.origin, head.index, head.text)
        assert [2, 3] == kept

    @pytest.mark.parametrize(("start", "kept"), [(0, [0, 1, 2, 3]), (4, []), (99, []), (-5, [0, 1, 2, 3]),
                                                 ("x", [0, 1, 2, 3]), (None, [0, 1, 2, 3])])
    def test_retained_index_out_of_bounds(self, start: Any, kept: list[int]) -> None:
        """An index beyond the history is brought back into it."""
        assert kept == list(self.window(retain_start_idx=start)[1:])

    def test_history_that_began_in_an_earlier_file(self) -> None:
        """A harness that counts more messages than the file holds had them before the file's first."""
        assert [2, 3] == list(self.window(retain_start_idx=12, source_message_count=14)[1:])

    def test_takes_effect_before_the_next_step(self) -> None:
        """A checkpoint applies from the log's length on, and says that it was automatic when the loop says so."""
        found = session(*self.EVENTS, checkpoint(summary="S", retain_start_idx=2), event("state_transition", {
            "reason": "context_compacted", "details": {"checkpoint_id": "compact_1"}}), assistant("e"))

        assert (4, "full", "auto", "S") == (found.compactions[0].position, found.compactions[0].kind,
                                            found.compactions[0].trigger, found.compactions[0].summary)
        assert 4 == found.steps[-1].start

    @pytest.mark.parametrize("payload", [
        {"runtime_state": {"read_cache": {}}}, {"runtime_state": {"a": 1}, "legacy_snapshot_import": True},
        {"legacy_snapshot_import": True, "summary": "S", "retain_start_idx": 1}, {}])
    def test_checkpoints_that_change_no_view(self, payload: dict[str, Any]) -> None:
        """State dumps and imports of old snapshots are no compactions."""
        assert () == session(user("a"), checkpoint(**payload)).compactions

    def test_runtime_state_is_kept(self) -> None:
        """The state in a checkpoint is kept beside the log."""
        assert {"read_cache": {"a": 1}} == session(
            user("a"), checkpoint(runtime_state={"read_cache": {"a": 1}})).extra["runtime_state"]


class TestInterruptedCalls:
    """Calls without an observation."""

    def recovered(self, *states: dict[str, Any]) -> tuple[Transcript, dict[str, Any]]:
        found = session(user("a"), assistant("", call("c1", "Edit")), *states, user("go on", "run-2"))
        body: dict[str, Any] = json.loads(found.messages[2].text)
        return found, body

    def test_requested_only_never_ran(self) -> None:
        """A call that was only requested gets an observation that it did not run, and may be planned again."""
        found, body = self.recovered(state("c1", "requested"))

        assert "NOT_EXECUTED_REPLAN" == body["error"]["code"]
        assert [("never-ran", True)] == [(c["state"], c["replay_allowed"]) for c in found.extra["unfinished_calls"]]

    @pytest.mark.parametrize(("name", "safe"), [("Edit", False), ("Bash", False), ("Task", False), ("Grep", True)])
    def test_started_without_an_end_is_uncertain(self, name: str, safe: bool) -> None:
        """A call that was started and has no end is uncertain; some tools must not run again then."""
        found, body = self.recovered(state("c1", "requested", name), state("c1", "started", name))

        assert "INTERRUPTED_UNCERTAIN" == body["error"]["code"]
        assert [("uncertain", safe)] == [(c["state"], c["replay_allowed"]) for c in found.extra["unfinished_calls"]]

    def test_completed_without_a_message(self) -> None:
        """A completed call whose observation was lost gets the recorded result."""
        _, body = self.recovered(state("c1", "started"), state("c1", "completed", result={"status": "success", "n": 1}))

        assert {"status": "success", "n": 1} == body

    @pytest.mark.parametrize(("states", "code"), [(["failed"], "EXECUTION_FAILED"), ([], "RECOVERY_STATE_UNKNOWN"),
                                                  (["odd"], "RECOVERY_STATE_UNKNOWN")])
    def test_other_ends(self, states: list[str], code: str) -> None:
        """A failed call says so; a call without a known state must be inspected."""
        _, body = self.recovered(*(state("c1", s, error="boom") for s in states))

        assert code == body["error"]["code"]

    def test_stands_right_after_the_results_that_are_there(self) -> None:
        """The observation follows its message's other results, is an error, and does not count as recorded."""
        found = session(user("a"), assistant("", call("c1"), call("c2", "Edit")), tool("c1"), user("b"))

        assert ["c1", "c2"] == [r.call_id for m in found.messages[2:4] for r in m.results]
        assert (5, 4, "recovered") == (len(found.messages), found.message_count, found.messages[3].detail)
        assert ["interrupted-call"] == codes(found)

    def test_at_the_end_of_the_file(self) -> None:
        """A session that ends inside a call is paired too."""
        assert "c1" == session(user("a"), assistant("", call("c1"))).messages[-1].results[0].call_id

    def test_a_late_result_is_not_doubled(self) -> None:
        """A result that comes after another message still answers its call, and no observation is put in."""
        found = session(assistant("", call("c1")), user("b"), tool("c1", "late"))

        assert ["late"] == [r.text for m in found.messages for r in m.results]

    def test_checkpoint_counts_recorded_messages(self) -> None:
        """Retained indices count the file's own messages where a process never resumed."""
        found = session(user("a"), assistant("", call("c1")), user("b"), assistant("c"),
                        checkpoint(summary="S", retain_start_idx=2, source_message_count=4))

        assert [3, 4] == list(found.compactions[0].window[1:])


class TestDamage:
    """Files that are not as they should be."""

    def test_unknown_event_types_are_counted_by_name(self) -> None:
        """One note tells of each unknown type, with its count; the rest is read."""
        found = session(event("zz-latch", {}), user("a"), event("zz-latch", {}), event("new", {}))

        assert 1 == found.message_count
        assert ["zz-latch' x 2", "new' x 1"] == [n.text.split("'", 1)[1].split(";")[0] for n in found.notes]

    @pytest.mark.parametrize("times", [2, 3, 4])
    def test_events_written_again(self, times: int) -> None:
        """The same event id is read once, and each repeat is noted."""
        first = user("a")
        found = session(*[first] * times, assistant("b"))

        assert (2, ["duplicate"] * (times - 1)) == (found.message_count, codes(found))

    @pytest.mark.parametrize("cut", [1, 10, 60])
    def test_cut_last_record(self, cut: int) -> None:
        """A cut last line is noted with its place and costs nothing else."""
        data = lines(user("a"), assistant("b"))
        tail = lines(user("cccccccccccccccccccc"))
        (found,) = read_bytes(data + tail[:-1 - cut], format="mycodeagent")

        assert (2, ["cut-tail"], len(data)) == (found.message_count, codes(found), found.notes[0].byte)

    @pytest.mark.parametrize("bad", [b"{not json\n", b"5\n", b"null\n", b'"text"\n', b'{"event_type": "message"}\n'])
    def test_bad_line_in_the_middle(self, bad: bytes) -> None:
        """A line that is no event is noted and the others are read."""
        (found,) = read_bytes(lines(user("a")) + bad + lines(assistant("b")), format="mycodeagent")

        assert (2, 1) == (found.message_count, len(found.notes))

    @pytest.mark.parametrize("payload", [None, [], "x", 7])
    def test_payload_that_is_no_object(self, payload: Any) -> None:
        """An event without a payload object is noted and left out."""
        found = session(event("message", payload), user("a"))

        assert (1, ["bad-payload"]) == (found.message_count, codes(found))

    @pytest.mark.parametrize("prefix", [b"\xef\xbb\xbf", b"\n\n", b"\r\n \n"])
    def test_first_prompt_survives_what_precedes_it(self, prefix: bytes) -> None:
        """A byte-order mark or blank lines before the first record do not hide it."""
        (found,) = read_bytes(prefix + lines(user("first"), assistant("b")), format="mycodeagent")

        assert "first" == found.messages[0].text

    @pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\u0085"])
    def test_unicode_line_ends_in_text(self, mark: str) -> None:
        """Characters that other tools take for line ends stay in the text."""
        data = json.dumps(user(f"one{mark}two"), ensure_ascii=False).encode()
        (found,) = read_bytes(data + b"\n" + lines(assistant("b")), format="mycodeagent")

        assert f"one{mark}two" == found.messages[0].text

    def test_unknown_role(self) -> None:
        """A role that the history never holds is noted and left out."""
        found = session(event("message", {"role": "oracle", "content": "x"}), user("a"))

        assert (1, ["unknown-role"]) == (found.message_count, codes(found))

    def test_empty_session(self) -> None:
        """A file without messages is an empty session."""
        assert 0 == session(event("state_transition", {"reason": "user_input"})).message_count
