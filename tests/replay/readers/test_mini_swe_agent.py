"""mini-swe-agent trajectories of versions 1 and 2, and bare message arrays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replay.blocks import Reasoning, Text
from replay.readers.registry import detect, read, read_bytes
from replay.readers.source import parse_source
from replay.transcript import Transcript, Usage

SYSTEM = {"role": "system", "content": "You can use a computer."}
TASK = {"role": "user", "content": "Solve it."}
USAGE = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60},
         "completion_tokens_details": {"reasoning_tokens": 2}}


def response(**more: Any) -> dict[str, Any]:
    return {"id": "r-1", "model": "m-1", "usage": USAGE, "choices": [{"message": {"content": "Hm."}}], **more}


def block(command: str, thought: str = "Look.", tag: str = "mswea_bash_command", **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": f"{thought}\n\n```{tag}\n{command}\n```", **more}


def seen(text: str = "out", code: int = 0, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": f"<returncode>{code}</returncode>\n<output>\n{text}\n</output>", **more}


def call(call_id: str, command: str = "ls", **extra: Any) -> dict[str, Any]:
    native = {"id": call_id, "type": "function",
              "function": {"name": "bash", "arguments": json.dumps({"command": command})}}
    return {"role": "assistant", "content": None, "tool_calls": [native],
            "extra": {"actions": [{"command": command, "tool_call_id": call_id}], "response": response(),
                      "timestamp": 1706000000.0, **extra}}


def returned(call_id: str, text: str = "out", code: Any = 0) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text,
            "extra": {"returncode": code, "raw_output": text, "timestamp": 1706000001.0}}


def session(*messages: Any, version: str = "1.1", **info: Any) -> Transcript:
    document = {"info": info, "messages": [SYSTEM, TASK, *messages], "trajectory_format": f"mini-swe-agent-{version}"}
    (found,) = read_bytes(json.dumps(document).encode(), "run.traj.json")
    assert "mini-swe-agent" == found.format
    return found


def speakers(found: Transcript, start: int = 2) -> list[tuple[str, str, str | None]]:
    return [(m.role, m.origin, m.detail) for m in found.messages[start:]]


def codes(found: Transcript) -> list[str]:
    return [note.code for note in found.notes]


class TestVersion1:
    """Commands in the text, observations as user messages."""

    def test_observations_without_recorded_actions(self) -> None:
        """Where no action was recorded the answer stays text and its observation answers no call."""
        found = session(block("ls", tag="bash"), seen(), version="1")

        assert [("assistant", "model", None), ("tool", "tool", None)] == speakers(found)
        assert ([], [""]) == (list(found.main.tool_calls()), [r.call_id for r in found.messages[3].results])

    def test_usage_of_the_raw_response(self) -> None:
        """Usage, model and request id come from the raw response."""
        found = session(block("ls", extra={"response": response()}), seen(), version="1")

        assert Usage(input_uncached=40, cache_read=60, output=7, reasoning=2) == found.steps[0].usage
        assert ("m-1", "r-1", "m-1") == (found.steps[0].model, found.steps[0].request_id, found.model)

    @pytest.mark.parametrize("answer", [
        {"role": "assistant", "content": "No command."}, block("a")["content"] + block("b")["content"],
        {"role": "assistant", "content": "```python\nx\n```"}])
    def test_answer_without_one_command(self, answer: Any) -> None:
        """The program then asks again in the person's place."""
        native = answer if isinstance(answer, dict) else {"role": "assistant", "content": answer}
        again = {"role": "user", "content": "Please always provide EXACTLY ONE action."}
        found = session(native, again, block("ls"), seen(), version="1")

        assert ("user", "nudge", "format_error") == speakers(found)[1]

    @pytest.mark.parametrize(("code", "failed"), [(0, False), (1, True), (-1, True)])
    def test_failed_commands(self, code: int, failed: bool) -> None:
        """The code in the observation tells whether the command failed."""
        assert failed is session(block("ls"), seen(code=code)).messages[3].results[0].is_error

    @pytest.mark.parametrize(("before", "last"), [
        ([block("submit")], "diff --git"), ([block("submit")], ""), ([block("ls"), seen()], "LimitsExceeded")])
    def test_last_message_is_the_exit(self, before: list[Any], last: str) -> None:
        """What the run ended with was never shown to the model."""
        found = session(*before, {"role": "user", "content": last}, version="1")

        assert ("user", "injected", "exit") == speakers(found)[-1]

    def test_run_that_was_saved_midway(self) -> None:
        """A last request for another answer is no exit."""
        found = session({"role": "assistant", "content": "Hm."}, {"role": "user", "content": "One action, please."})

        assert ("user", "nudge", "format_error") == speakers(found)[-1]

    def test_times(self) -> None:
        """Times stand at the message or under its extra fields."""
        found = session(block("ls", timestamp=5.5), seen(extra={"returncode": 0, "timestamp": 6.5}))

        assert [5.5, 6.5] == [m.time for m in found.messages[2:]]


class TestVersion2:
    """Calls of the tool interface, and texts with recorded actions."""

    def test_calls_and_results(self) -> None:
        """Calls and results pair by id; a code other than 0 is an error."""
        found = session(call("a"), returned("a", "no", 2))
        (result,) = found.messages[3].results

        assert [("a", "bash", {"command": "ls"})] == [(c.id, c.name, c.parsed) for c in found.main.tool_calls()]
        assert ("a", "bash", "no", True) == (result.call_id, result.name, result.text, result.is_error)

    def test_recorded_action_in_text(self) -> None:
        """A recorded action becomes a call whose observation answers it."""
        found = session(block("ls", extra={"actions": [{"command": "ls"}]}), seen(extra={"returncode": 0}))
        (made,) = found.messages[2].calls

        assert (Text(text="Look.\n\n"), "bash", {"command": "ls"}) == (
            found.messages[2].blocks[0], made.name, made.parsed)
        assert [made.id] == [r.call_id for r in found.messages[3].results]

    def test_several_calls(self) -> None:
        """Several calls of one answer have one result each, also out of order."""
        both = call("a")
        both["tool_calls"].append(call("b")["tool_calls"][0])
        found = session(both, returned("b", "2"), returned("a", "1"))

        assert [("b", "2"), ("a", "1")] == [(r.call_id, r.text) for m in found.messages for r in m.results]
        assert 1 == len(found.steps)

    def test_discarded_response(self) -> None:
        """A response of the wrong format is billed, its text is kept aside, the complaint stands in the log."""
        complaint = {"role": "user", "content": "Use the tool.",
                     "extra": {"interrupt_type": "FormatError", "response": response(), "cost": 0.1}}
        found = session(complaint, call("a"), returned("a"))

        assert [(2, None, 100), (3, 3, 100)] == [
            (s.start, s.response, s.usage.input_total if s.usage else 0) for s in found.steps]
        assert ["Hm."] == [t.messages[0].text for t in found.abandoned]
        assert ("user", "nudge", "FormatError") == speakers(found)[0]

    @pytest.mark.parametrize("raw", ["repr(response)", None, {"choices": "x"}, {"choices": [None]}])
    def test_discarded_response_that_cannot_be_read(self, raw: Any) -> None:
        """An unreadable raw response is still a step."""
        found = session({"role": "user", "content": "No.", "extra": {"interrupt_type": "FormatError", "response": raw,
                                                                     "model_response": "Hm?"}})

        assert ([None], ["Hm?"]) == ([s.response for s in found.steps], [t.messages[0].text for t in found.abandoned])

    @pytest.mark.parametrize("kind", ["UserInterruption", "UserRejection", "UserNewTask"])
    def test_person_interrupts(self, kind: str) -> None:
        """What the person says in between is a human prompt."""
        found = session(call("a"), {"role": "user", "content": "Stop.", "extra": {"interrupt_type": kind}})

        assert ("user", "human", kind) == speakers(found)[-1]

    def test_commands_of_the_person(self) -> None:
        """A command that the person typed is no call of the model, its output no result."""
        typed = {"role": "user", "content": "User command: ls", "extra": {"actions": [{"command": "ls"}]}}
        found = session(typed, seen(extra={"returncode": 0}), call("a"), returned("a"))

        assert [("user", "injected", "command"), ("user", "injected", "command_output")] == speakers(found)[:2]
        assert 1 == len(list(found.main.tool_calls()))

    def test_responses_interface(self) -> None:
        """A raw response of the other interface is one message; its outputs answer by call id."""
        native = {"object": "response", "id": "resp", "model": "m-2",
                  "usage": {"input_tokens": 9, "output_tokens": 1},
                  "output": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
                             {"type": "function_call", "call_id": "c", "name": "bash", "arguments": "{}"}],
                  "extra": {"actions": [{"command": "ls", "tool_call_id": "c"}]}}
        result = {"type": "function_call_output", "call_id": "c", "output": "out", "extra": {"returncode": 0}}
        found = session(native, result)

        assert (Reasoning(text="hm"), "c") == (found.messages[2].blocks[0], found.messages[2].calls[0].id)
        assert (Usage(input_uncached=9, output=1), "m-2", [("c", "out")]) == (
            found.steps[0].usage, found.model, [(r.call_id, r.text) for r in found.messages[3].results])

    def test_thinking(self) -> None:
        """Reasoning text or thinking blocks come first, once."""
        thought = {"type": "thinking", "thinking": "hm", "signature": "x"}
        first = call("a") | {"thinking_blocks": [thought]}
        second = call("b") | {"thinking_blocks": [thought], "reasoning_content": "hm"}
        found = session(first, returned("a"), second, returned("b"))

        answers = [m for m in found.messages if m.role == "assistant"]

        assert [1, 1] == [sum(isinstance(b, Reasoning) for b in m.blocks) for m in answers]

    def test_images_in_observations(self) -> None:
        """Images in an observation are kept by size and hash."""
        url = {"url": "data:image/png;base64,AA=="}
        parts = [{"type": "text", "text": "shot"}, {"type": "image_url", "image_url": url}]
        (result,) = session(call("a"), returned("a") | {"content": parts}).messages[3].results

        assert ("shot", [1]) == (result.text, [i.size_bytes for i in result.images])

    def test_exit_message(self) -> None:
        """The exit message tells the outcome where the file's own info does not."""
        last = {"role": "exit", "content": "x", "extra": {"exit_status": "LimitsExceeded", "submission": ""}}
        found = session(call("a"), returned("a"), last)

        assert ("user", "injected", "exit") == speakers(found)[-1]
        assert found.outcome is not None
        assert ("partial", "extra.exit_status") == (found.outcome.value, found.outcome.source)


class TestFile:
    """What stands around the messages."""

    @pytest.mark.parametrize(("info", "value"), [
        ({"exit_status": "Submitted"}, "unknown"), ({"exit_status": "LimitsExceeded"}, "partial"),
        ({"exit_status": "RuntimeError"}, "fail"), ({"exit_status": "Submitted", "resolved": True}, "pass")])
    def test_outcomes(self, info: dict[str, Any], value: str) -> None:
        """A submission alone proves nothing; a grade counts."""
        found = session(**info)

        assert found.outcome is not None
        assert value == found.outcome.value

    @pytest.mark.parametrize("status", [None, "", 7, []])
    def test_no_outcome(self, status: Any) -> None:
        """A missing or odd status is no outcome."""
        assert session(exit_status=status).outcome is None

    def test_configuration(self) -> None:
        """Version, model and folder come from the info."""
        found = session(mini_version="2.0.0", config={"model": {"model_name": "m"}, "environment": {"cwd": "/testbed"}})

        assert ("2.0.0", "m", "/testbed", "run") == (
            found.harness_version, found.model, found.cwd, found.session_id)

    @pytest.mark.parametrize("messages", [None, "x", {}, 3])
    def test_odd_message_lists(self, messages: Any) -> None:
        """A list of a wrong type is an empty session with a note."""
        document = {"trajectory_format": "mini-swe-agent-1.1", "messages": messages}
        (found,) = read_bytes(json.dumps(document).encode())

        assert ((), ["no-messages"]) == (found.messages, codes(found))

    @pytest.mark.parametrize("native", [
        None, "x", {}, {"role": "critic", "content": "x"}, {"role": "assistant", "content": 7, "extra": "x"},
        {"role": "tool", "tool_call_id": 5}, {"role": "assistant", "tool_calls": [None], "extra": {"actions": [None]}}])
    def test_odd_messages(self, native: Any) -> None:
        """A message of a wrong type never costs the rest."""
        found = session(native, call("a"), returned("a"))

        assert ["a"] == [c.id for c in found.main.tool_calls()]

    def test_reused_call_ids(self) -> None:
        """A call id that comes back is made unique."""
        found = session(call("a"), returned("a", "1"), call("a"), returned("a", "2"))

        assert ["a", "a#2"] == [r.call_id for m in found.messages for r in m.results]
        assert ["reused-call-id"] == codes(found)

    @pytest.mark.parametrize(("messages", "expected"), [
        ([SYSTEM, TASK, block("ls"), seen()], "mini-swe-agent"),
        ([SYSTEM, TASK, {"role": "assistant", "content": "x", "extra": {"response": {}}}], "mini-swe-agent"),
        ([SYSTEM, TASK, {"role": "assistant", "content": "x"}], "openai-chat")])
    def test_bare_arrays(self, messages: list[Any], expected: str) -> None:
        """A bare array is told by the marks of its messages; without any it is an ordinary chat."""
        assert expected == detect(parse_source(json.dumps(messages, indent=1).encode(), "x.json"))

    def test_line_ends_and_marks(self) -> None:
        """A byte-order mark and Unicode line ends inside texts change nothing."""
        document = {"trajectory_format": "mini-swe-agent-1", "messages": [SYSTEM, TASK, block("a\u2028b\u0085c")]}
        (found,) = read_bytes(b"\xef\xbb\xbf" + json.dumps(document, ensure_ascii=False).encode())

        assert "a\u2028b\u0085c" in found.messages[2].text

    def test_shared_array(self, transcripts: Path) -> None:
        """The test recording: six messages, no recorded call."""
        (found,) = read(transcripts / "mini-swe-agent" / "local-messages-array.traj.json")

        assert ("mini-swe-agent", 6, 2, 0) == (
            found.format, found.message_count, len(found.steps), len(list(found.main.tool_calls())))
        assert ("local-messages-array", ("user", "injected", "exit")) == (found.session_id, speakers(found)[-1])
