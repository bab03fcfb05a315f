"""SWE-agent trajectories: text and function-calling modes, demonstrations, endings, robustness."""

from __future__ import annotations

import json
from typing import Any

import pytest

from replay.blocks import Reasoning, Text, ToolCall, ToolResult
from replay.readers.registry import detect, read_bytes
from replay.readers.source import parse_source
from replay.transcript import Transcript

SYSTEM = {"role": "system", "content": "You are a programmer.", "agent": "main", "message_type": "system_prompt"}
TASK = {"role": "user", "content": "Fix it.", "agent": "main", "message_type": "observation"}


def answer(content: str, action: str = "", **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "thought": "", "action": action, "agent": "main",
            "message_type": "action", **more}


def fenced(command: str, thought: str = "Look.") -> dict[str, Any]:
    return answer(f"{thought}\n```\n{command}\n```", command + "\n")


def call(call_id: str, content: str = "", arguments: Any = '{"command":"ls"}') -> dict[str, Any]:
    native = {"function": {"name": "bash", "arguments": arguments}, "id": call_id, "type": "function"}
    return answer(content, "ls", tool_calls=[native])


def seen(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, "agent": "main", "message_type": "observation", **more}


def returned(call_id: str, content: Any = "ok") -> dict[str, Any]:
    return seen(content, role="tool", tool_call_ids=[call_id])


def step(item: dict[str, Any], observation: str = "out", **more: Any) -> dict[str, Any]:
    return {"action": item["action"], "observation": observation, "response": item["content"], "thought": "",
            "state": "{}", **more}


def session(*history: Any, steps: Any = (), **more: Any) -> Transcript:
    document = {"trajectory": list(steps), "history": [SYSTEM, TASK, *history], **more}
    (found,) = read_bytes(json.dumps(document).encode(), "run.traj")
    assert "swe-agent" == found.format
    return found


def codes(found: Transcript) -> list[str]:
    return [note.code for note in found.notes]


class TestActions:
    """Actions as calls, observations as their results."""

    @pytest.mark.parametrize(("content", "action", "before", "name", "arguments"), [
        ("Look.\n```\nls -a\n```", "ls -a\n", "Look.\n", "bash", {"command": "ls -a\n"}),
        ("Look.\n```bash\nls -a\n```\n", "ls -a\n", "Look.\n", "bash", {"command": "ls -a\n"}),
        ("Open.\n```\nopen a.py 3\n```", "open a.py 3\n", "Open.\n", "open", {"command": "open a.py 3\n"}),
        ("ls -a", "ls -a", "", "bash", {"command": "ls -a"}),
        ("Look.\n<command>\nls\n</command>", "ls", "Look.\n", "bash", {"command": "ls"}),
        ("No such text.", "ls", "No such text.", "bash", {"command": "ls"}),
        ("Go.\n<function=bash>\n<parameter=command>cd a\nls</parameter>\n</function>", "cd a\nls", "Go.\n", "bash",
         {"command": "cd a\nls"}),
        ("Go.\n<function=str_replace_editor>\n<parameter=command>view</parameter>\n<parameter=path>/a\n</parameter>\n"
         "</function>", "str_replace_editor view /a", "Go.\n", "str_replace_editor", {"command": "view", "path": "/a"}),
    ])
    def test_action_in_text(self, content: str, action: str, before: str, name: str, arguments: dict[str, str]) -> None:
        """An action that stands in the answer becomes a call; the text around it stays."""
        found = session(answer(content, action), seen("out"))
        (made,) = found.messages[2].calls

        assert before == "".join(b.text for b in found.messages[2].blocks if isinstance(b, Text))
        assert (name, arguments, False) == (made.name, made.parsed, made.is_object)
        assert [(made.id, "out", name)] == [(r.call_id, r.text, r.name) for r in found.messages[3].results]

    def test_text_after_the_action(self) -> None:
        """What follows the action is kept behind the call."""
        found = session(answer("A\n```\nls\n```\nB", "ls\n"), seen("out"))

        assert ["Text", "ToolCall", "Text"] == [type(b).__name__ for b in found.messages[2].blocks]

    def test_answer_without_an_action(self) -> None:
        """An answer without an action has no call; what the program says then stands in the person's place."""
        found = session(answer("I am lost."), seen("Please write a command."))

        assert [("assistant", "model"), ("user", "nudge")] == [(m.role, m.origin) for m in found.messages[2:]]
        assert [] == list(found.main.tool_calls())

    @pytest.mark.parametrize(("native", "shown", "is_object"), [
        ('{"command":"ls"}', '{"command":"ls"}', False), ({"command": "ls"}, '{"command":"ls"}', True),
        ('{"command": ', '{"command": ', False)])
    def test_function_calls(self, native: Any, shown: str, is_object: bool) -> None:
        """Calls of the tool interface keep their arguments, broken ones too, and pair by the id list."""
        found = session(call("a", "Look.", native), returned("a", "out"))
        (made,) = found.messages[2].calls

        assert (("a", shown, is_object), ("a", "out")) == (
            (made.id, made.arguments, made.is_object),
            (found.messages[3].results[0].call_id, found.messages[3].results[0].text))
        assert ("tool", "tool") == (found.messages[3].role, found.messages[3].origin)

    def test_reused_call_ids(self) -> None:
        """A call id that comes back is made unique, and its result follows it."""
        found = session(call("a"), returned("a", "1"), call("a"), returned("a", "2"))

        assert ["a", "a#2"] == [c.id for c in found.main.tool_calls()]
        assert ["a", "a#2"] == [r.call_id for m in found.messages for r in m.results]
        assert ["reused-call-id"] == codes(found)

    @pytest.mark.parametrize("content", [
        [{"type": "text", "text": "out", "cache_control": {"type": "ephemeral"}}],
        [{"type": "text", "text": "out"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}],
        "out"])
    def test_observations_of_parts(self, content: Any) -> None:
        """An observation is a string or parts; images are kept by size and hash."""
        (result,) = session(fenced("ls"), seen(content)).messages[3].results

        assert ("out", isinstance(content, list) and len(content) == 2) == (result.text, bool(result.images))

    def test_thinking(self) -> None:
        """Thinking blocks come before the text."""
        thought = {"type": "thinking", "thinking": "hm", "signature": "abc"}
        found = session(call("a", "Look.") | {"thinking_blocks": [thought]}, returned("a"))

        assert (Reasoning(text="hm", opaque_bytes=3), Text(text="Look.")) == found.messages[2].blocks[:2]

    def test_first_prompt_is_the_persons(self) -> None:
        """The task is a human prompt, the system prompt is pinned."""
        found = session()

        assert [("system", "system"), ("user", "human")] == [(m.role, m.origin) for m in found.messages]


class TestDemonstrations:
    """Demonstrations are shown to the model and are not the run."""

    def test_as_one_message(self) -> None:
        """A demonstration in one message is injected; the task after it is the person's."""
        demo = {"role": "user", "content": "Here is a demo", "agent": "main", "is_demo": True,
                "message_type": "demonstration"}
        document = {"trajectory": [], "history": [SYSTEM, demo, TASK]}
        (found,) = read_bytes(json.dumps(document).encode())

        assert [("system", None), ("injected", "demonstration"), ("human", None)] == [
            (m.origin, m.detail) for m in found.messages]
        assert 3 == found.message_count

    def test_as_steps(self) -> None:
        """Demonstrated calls are neither calls nor steps of the run, but their text is in the view."""
        demo = [item | {"is_demo": True} for item in (TASK, call("d", "Demo."), returned("d", "demo out"))]
        document = {"trajectory": [], "history": [SYSTEM, *demo, TASK, call("a", "Real."), returned("a")]}
        (found,) = read_bytes(json.dumps(document).encode())

        assert ["a"] == [c.id for c in found.main.tool_calls()]
        assert (1, 5) == (len(found.steps), found.steps[0].start)
        assert ["injected"] * 3 == [m.origin for m in found.messages[1:4]]
        assert 'Demo.\nbash({"command":"ls"})' == found.messages[2].text


class TestEndings:
    """How a run ends."""

    @pytest.mark.parametrize(("info", "value", "detail"), [
        ({"exit_status": "submitted"}, "unknown", "submitted"),
        ({"exit_status": "submitted (exit_cost)"}, "partial", "submitted (exit_cost)"),
        ({"exit_status": "exit_context"}, "fail", "exit_context"), ({"exit_status": None}, "unknown", None),
        ({"exit_status": 7}, "unknown", "7"), ({"exit_status": "submitted", "resolved": True}, "pass", None),
        ({"resolved": False}, "fail", None)])
    def test_exit_status(self, info: dict[str, Any], value: str, detail: str | None) -> None:
        """A submission alone proves nothing; null and odd statuses are unknown; a grade counts."""
        found = session(info=info)

        assert found.outcome is not None
        assert (value, detail) == (found.outcome.value, found.outcome.detail)

    @pytest.mark.parametrize("info", [None, {}, [], "submitted"])
    def test_no_status(self, info: Any) -> None:
        """Without a status there is no outcome."""
        assert session(info=info).outcome is None

    @pytest.mark.parametrize(("words", "asked"), [
        ("Exit due to context window", 1), ("Exit due to cost limit", 1),
        ("Exit due to repeated format/blocklist/bash syntax errors", 0),
        ("Exit due to total execution time exceeded", 0)])
    def test_answer_that_the_program_wrote(self, words: str, asked: int) -> None:
        """The program's own last answer is injected; the request that failed is a step without a message."""
        found = session(fenced("ls"), seen("out"), answer(words), seen("Exited (autosubmitted)"))

        assert [("assistant", "injected"), ("user", "injected")] == [(m.role, m.origin) for m in found.messages[4:]]
        assert [None] * asked == [s.response for s in found.steps[1:]]

    def test_submission_that_the_history_lacks(self) -> None:
        """Version 0 left the last answer out of the history; the trajectory has it."""
        last = fenced("submit", "Done.")
        found = session(fenced("ls"), seen("out"), steps=[step(fenced("ls")), step(last, "the diff")])

        assert ["bash", "submit"] == [c.name for c in found.main.tool_calls()]
        assert (6, 4, "the diff") == (len(found.messages), found.message_count, found.messages[5].text)

    def test_call_without_a_result(self) -> None:
        """A submission often has no observation."""
        found = session(fenced("submit"))

        assert (1, []) == (len(found.messages[2].calls), codes(found))


class TestRobustness:
    """Missing and odd fields."""

    @pytest.mark.parametrize("history", [None, 7, [None, 3, "x"], [{}], [{"role": None, "message_type": "x"}]])
    def test_odd_histories(self, history: Any) -> None:
        """A history of a wrong type is no exception, and what is no object is noted."""
        (found,) = read_bytes(json.dumps({"history": history, "trajectory": []}).encode(), format="swe-agent")

        assert 0 == len(found.steps)

    @pytest.mark.parametrize("item", [
        {"role": "assistant"}, {"role": "assistant", "content": None, "action": 7}, {"role": "tool", "content": 5},
        {"role": "assistant", "content": [], "tool_calls": "x"}, {"role": "tool", "tool_call_ids": "a"},
        {"role": "assistant", "content": "x", "tool_calls": [None, {"function": None, "id": 3}]}])
    def test_odd_items(self, item: dict[str, Any]) -> None:
        """Fields of a wrong type never cost the item or the rest."""
        found = session(item, fenced("ls"), seen("out"))

        assert 5 == len(found.messages)

    def test_unknown_roles(self) -> None:
        """An unknown role is kept as text, with one note for all of a kind."""
        found = session({"role": "critic", "content": "a"}, {"role": "critic", "content": "b"})

        assert [("injected", "critic")] * 2 == [(m.origin, m.detail) for m in found.messages[2:]]
        assert ["unknown-type"] == codes(found)
        assert "'critic' x 2" in found.notes[0].text

    def test_trajectory_without_history(self) -> None:
        """The log is rebuilt from the steps where the history was left out."""
        steps = [step(fenced("ls"), "out", query=[SYSTEM, TASK]), step(fenced("pwd"), "there")]
        (found,) = read_bytes(json.dumps({"trajectory": steps, "info": {}}).encode())

        assert ("swe-agent", 6, ["no-history"]) == (found.format, len(found.messages), codes(found))
        assert ["out", "there"] == [r.text for m in found.messages for r in m.results]

    @pytest.mark.parametrize("as_text", [True, False])
    def test_configuration(self, as_text: bool) -> None:
        """Instance and model come from the configuration, stored as an object or as text."""
        config = {"agent": {"model": {"name": "m"}}, "problem_statement": {"id": "a__b-1"}}
        found = session(replay_config=json.dumps(config) if as_text else config, environment="main",
                        info={"swe_agent_version": "1.0.1"})

        assert ("a__b-1", "m", "1.0.1") == (found.session_id, found.model, found.harness_version)

    @pytest.mark.parametrize("raw", [b"\xef\xbb\xbf", b"", b"\n\n"])
    def test_marks_before_the_document(self, raw: bytes) -> None:
        """A byte-order mark or blank lines before the document lose nothing."""
        data = raw + json.dumps({"trajectory": [], "history": [SYSTEM, TASK]}, indent=1).encode()

        assert 2 == len(read_bytes(data)[0].messages)

    def test_step_facts_are_kept(self) -> None:
        """State, time and the raw observation of a step stand beside its answer, not in the view."""
        found = session(fenced("ls"), seen("out\n(cwd: /)"), steps=[step(fenced("ls"), "out", execution_time=0.5)])

        assert ("out", 0.5) == (found.messages[2].extra["observation"], found.messages[2].extra["execution_time"])
        assert "out\n(cwd: /)" == found.messages[3].text


@pytest.mark.parametrize(("document", "expected"), [
    ({"trajectory": [], "history": []}, "swe-agent"), ({"history": [SYSTEM]}, "swe-agent"),
    ({"history": [{"role": "user", "parts": [{"text": "x"}]}]}, None), ({"trajectory": [1]}, None)])
def test_detection(document: Any, expected: str | None) -> None:
    """The shape tells the format, never the file's name."""
    found = detect(parse_source(json.dumps(document).encode(), "x.json"))

    assert expected == (found if found in ("swe-agent", None) else None)


def test_results_are_tool_results() -> None:
    """Every message of role tool holds results only, each with the name of its call."""
    found = session(fenced("ls"), seen("out"), call("a"), returned("a"))
    results = [b for m in found.messages if m.role == "tool" for b in m.blocks]

    assert all(isinstance(b, ToolResult) and b.name == "bash" for b in results)
    assert all(isinstance(b, ToolCall) for m in found.messages for b in m.calls)
