"""ATIF trajectories: steps, copied context, compactions, sub-agents, parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replay.blocks import Image, Opaque, Reasoning, Text
from replay.readers.registry import detect, read, read_bytes
from replay.readers.source import parse_source
from replay.transcript import Message, Transcript, Usage

AGENT = {"name": "claude-code", "version": "2.1.0", "model_name": "m"}


def user(message: Any = "go", **more: Any) -> dict[str, Any]:
    return {"source": "user", "message": message, **more}


def system(message: str = "You are an agent.", **more: Any) -> dict[str, Any]:
    return {"source": "system", "message": message, **more}


def agent(message: Any = "Look.", *calls: str, results: Any = None, **more: Any) -> dict[str, Any]:
    made = [{"tool_call_id": c, "function_name": "Bash", "arguments": {"command": "ls"}} for c in calls]
    step = {"source": "agent", "message": message, **({"tool_calls": made} if calls else {}), **more}
    return step if results is None else step | {"observation": {"results": results}}


def result(call: str | None, content: Any = "out", **more: Any) -> dict[str, Any]:
    return {"source_call_id": call, "content": content, **more}


def trajectory(*steps: Any, version: str = "1.7", **more: Any) -> dict[str, Any]:
    numbered = [{"step_id": n, **s} if isinstance(s, dict) else s for n, s in enumerate(steps, 1)]
    return {"schema_version": f"ATIF-v{version}", "session_id": "s", "agent": AGENT, "steps": numbered, **more}


def session(*steps: Any, **more: Any) -> Transcript:
    (found,) = read_bytes(json.dumps(trajectory(*steps, **more)).encode(), "trajectory.json")
    assert "atif" == found.format
    return found


def codes(found: Transcript) -> list[str]:
    return [note.code for note in found.notes]


class TestSteps:
    """Steps as messages."""

    def test_speakers(self) -> None:
        """System, user and agent steps, with the results of a step as one tool message."""
        found = session(system(), user(), agent("Look.", "a", results=[result("a")]), agent("Done."))

        assert [("system", "system"), ("user", "human"), ("assistant", "model"), ("tool", "tool"),
                ("assistant", "model")] == [(m.role, m.origin) for m in found.messages]
        assert (4, 2, "2.1.0", "m") == (found.message_count, len(found.steps), found.harness_version, found.model)

    def test_call(self) -> None:
        """A call keeps its arguments as JSON text and its results their call."""
        found = session(user(), agent("", "a", "b", results=[result("b", "2"), result("a", "1")]))

        assert [("a", "Bash", {"command": "ls"}), ("b", "Bash", {"command": "ls"})] == [
            (c.id, c.name, c.parsed) for c in found.main.tool_calls()]
        assert [("b", "2", "Bash"), ("a", "1", "Bash")] == [
            (r.call_id, r.text, r.name) for r in found.messages[2].results]

    @pytest.mark.parametrize(("arguments", "shown", "is_object"), [
        ({"a": 1}, '{"a":1}', True), ("raw", "raw", False), (None, "{}", True), ([1], "[1]", True)])
    def test_arguments(self, arguments: Any, shown: str, is_object: bool) -> None:
        """Arguments of any kind are kept."""
        step = agent("", "a")
        step["tool_calls"][0]["arguments"] = arguments
        (made,) = session(step).messages[0].calls

        assert (shown, is_object) == (made.arguments, made.is_object)

    @pytest.mark.parametrize(("results", "expected"), [
        ([result(None, "screen")], ["b"]), ([result(None, "1"), result(None, "2")], ["a", "b"]),
        ([result("a", "1"), result(None, "2")], ["a", "b"]),
        ([result(None), result(None), result(None)], ["a", "b", ""]), ([result("zz")], ["zz"])])
    def test_results_without_an_id(self, results: list[Any], expected: list[str]) -> None:
        """Results that name no call answer those left over; one screen for all answers the last."""
        found = session(user(), agent("", "a", "b", results=results))

        assert expected == [r.call_id for r in found.messages[2].results]

    def test_observation_without_calls(self) -> None:
        """What the environment showed without a call is a result of no call."""
        found = session(user(), agent("x", results=[result(None, "screen")]))

        assert [("", "screen")] == [(r.call_id, r.text) for r in found.messages[2].results]

    @pytest.mark.parametrize("extra", [{"is_error": True}, {"success": False}])
    def test_errors(self, extra: dict[str, Any]) -> None:
        """An error in a result's extra fields is an error."""
        assert session(agent("", "a", results=[result("a", extra=extra)])).messages[1].results[0].is_error

    def test_reasoning_comes_first(self) -> None:
        """Reasoning, text, calls: in this order."""
        blocks = session(agent("Look.", "a", reasoning_content="hm")).messages[0].blocks

        assert (Reasoning(text="hm"), Text(text="Look.")) == blocks[:2]

    def test_reused_call_ids(self) -> None:
        """A call id that comes back is made unique."""
        found = session(agent("", "a", results=[result("a", "1")]), agent("", "a", results=[result("a", "2")]))

        assert ["a", "a#2"] == [r.call_id for m in found.messages for r in m.results]
        assert ["reused-call-id"] == codes(found)

    def test_step_without_a_model_call(self) -> None:
        """A step that the program made itself is in the log and is no request."""
        own = agent("", "a", llm_call_count=0, results=[result("a")])
        found = session(user(), own, agent("Done.", llm_call_count=1))

        assert ("injected", 1, 3) == (found.messages[1].origin, len(found.steps), found.steps[0].start)

    def test_system_step_in_the_middle(self) -> None:
        """A later system step is injected, and so is what it observed."""
        found = session(user(), system("Reset."), system("", observation={"results": [result(None, "done")]}))

        assert [("system", "injected", "Reset."), ("user", "injected", "done")] == [
            (m.role, m.origin, m.text) for m in found.messages[1:]]


class TestParts:
    """Multimodal parts."""

    def test_message_parts(self) -> None:
        """Text, images by data or by place, and other media."""
        parts = [{"type": "text", "text": "see"},
                 {"type": "image", "source": {"media_type": "image/png", "path": "data:image/png;base64,AAAA"}},
                 {"type": "image", "source": {"media_type": "image/jpeg", "path": "images/1.jpg"}},
                 {"type": "audio", "source": {"media_type": "audio/wav", "path": "a.wav"}}]
        blocks = session(user(parts)).messages[0].blocks

        assert ["text", "image", "image", "opaque"] == [b.kind for b in blocks]
        assert [("image/png", 3), ("image/jpeg", 0)] == [(b.mime, b.size_bytes) for b in blocks if isinstance(b, Image)]
        assert ["audio"] == [b.label for b in blocks if isinstance(b, Opaque)]

    def test_result_parts(self) -> None:
        """A result may hold text and images."""
        parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"},
                 {"type": "image", "source": {"media_type": "image/png", "path": "x.png"}}]
        (made,) = session(agent("", "a", results=[result("a", parts)])).messages[1].results

        assert ("a\nb", 1) == (made.text, len(made.images))

    @pytest.mark.parametrize(("message", "shown"), [
        (None, ""), ("", ""), ([], ""), (7, "7"), ([None], "null"), (["x"], "x"), ({"type": "text", "text": "y"}, "y")])
    def test_odd_messages(self, message: Any, shown: str) -> None:
        """A message of a wrong type is shown as it is."""
        assert shown == session(user(message)).messages[0].text


class TestUsage:
    """Metrics of steps."""

    @pytest.mark.parametrize(("metrics", "expected"), [
        ({"prompt_tokens": 100, "completion_tokens": 7, "cached_tokens": 60},
         Usage(input_uncached=40, cache_read=60, output=7)),
        ({"prompt_tokens": 100, "completion_tokens": 1, "cached_tokens": 10, "extra": {
            "cache_creation_input_tokens": 80, "cache_creation": {"ephemeral_1h_input_tokens": 30}}},
         Usage(input_uncached=10, cache_read=10, cache_write_5m=50, cache_write_1h=30, output=1)),
        ({"prompt_tokens": 5, "cached_tokens": 9, "completion_tokens": 3, "extra": {"reasoning_tokens": 2}},
         Usage(cache_read=5, output=3, reasoning=2)),
        ({"prompt_tokens": 0, "completion_tokens": 0}, None), ({}, None), (None, None), ("x", None),
        ({"prompt_tokens": "12", "completion_tokens": None, "extra": []}, None)])
    def test_metrics(self, metrics: Any, expected: Usage | None) -> None:
        """Prompt tokens include what was read from and written to the cache."""
        assert expected == session(agent("x", metrics=metrics)).steps[0].usage

    def test_copied_context(self) -> None:
        """Copied steps are in the log and neither requests nor billed again."""
        copied = agent("old", "a", results=[result("a")], is_copied_context=True, metrics={"prompt_tokens": 50})
        found = session(user(is_copied_context=True), copied, user("on"),
                        agent("new", metrics={"prompt_tokens": 9, "completion_tokens": 1}))

        assert (5, 1, 4, 9) == (
            len(found.messages), len(found.steps), found.steps[0].start, found.usage.input_total)
        assert ["copied_context"] == [m.detail for m in found.messages if m.role == "assistant" and m.detail]

    def test_aggregated_metrics(self) -> None:
        """Metrics that sum several calls count once, with a note."""
        found = session(agent("x", llm_call_count=3, metrics={"prompt_tokens": 30}))

        assert (1, 30, ["aggregated-usage"]) == (len(found.steps), found.usage.input_total, codes(found))

    def test_model_of_a_step(self) -> None:
        """A step's own model comes before the agent's."""
        found = session(agent("x"), agent("y", model_name="other"))

        assert ["m", "other"] == [s.model for s in found.steps]


class TestCompactions:
    """System steps that mark a compaction."""

    @pytest.mark.parametrize(("extra", "trigger", "before"), [
        ({"compactMetadata": {"trigger": "auto", "preTokens": 155}}, "auto", 155),
        ({"context_management": {"type": "compaction", "boundary": "replace"}}, None, None)])
    def test_mark_and_summary(self, extra: dict[str, Any], trigger: str | None, before: int | None) -> None:
        """The prompt after the mark is the summary: it is in the window and not in the log."""
        found = session(system(), user(), agent("x"), system("Compacted.", extra=extra), user("Summary."), agent("y"))
        (made,) = found.compactions

        assert ("full", 3, trigger, before, "Summary.", True) == (
            made.kind, made.position, made.trigger, made.counter_before, made.summary, made.summary_readable)
        assert (0, "Summary.") == tuple(p.text if isinstance(p, Message) else p for p in made.window)
        assert (["You are an agent.", "go", "x", "y"], 6) == ([m.text for m in found.messages], found.message_count)

    def test_mark_without_a_summary(self) -> None:
        """Where no prompt follows, the summary is not readable."""
        mark = system("x", extra={"context_management": {"type": "compaction"}})
        found = session(system(), user(), mark, agent("y"), mark)

        assert [(2, (0,), None, False), (3, (0,), None, False)] == [
            (c.position, c.window, c.summary, c.summary_readable) for c in found.compactions]

    def test_first_prompt_that_stays(self) -> None:
        """An agent whose first prompt is its instructions keeps it."""
        mark = system("x", extra={"context_management": {"type": "compaction"}})
        found = session(user(), agent("x"), mark, user("Handoff."), agent=AGENT | {"name": "terminus-2"})

        assert (0, "Handoff.") == tuple(
            p.text if isinstance(p, Message) else p for p in found.compactions[0].window)

    @pytest.mark.parametrize("extra", [
        None, {}, {"context_management": "x"}, {"context_management": {"type": "other"}}])
    def test_no_mark(self, extra: Any) -> None:
        """Other system steps are no compaction."""
        assert () == session(user(), system("x", extra=extra)).compactions


class TestSubagents:
    """Embedded and referenced trajectories."""

    def _below(self, name: str, **more: Any) -> dict[str, Any]:
        return trajectory(user("task"), agent("z", "q", metrics={"prompt_tokens": 5}), trajectory_id=name, **more)

    def test_embedded(self) -> None:
        """An embedded trajectory is a sub-agent of the call that refers to it, and is billed."""
        reference = [{"trajectory_id": "t-1"}]
        found = session(agent("", "a", results=[result("a", None, subagent_trajectory_ref=reference)]),
                        subagent_trajectories=[self._below("t-1")])
        (below,) = found.subagents

        assert ("s/t-1", "a", 2, 5) == (below.id, below.parent_call, len(below.messages), found.usage.input_total)
        assert [] == codes(found)

    def test_nested(self) -> None:
        """Sub-agents of sub-agents are sub-agents too."""
        found = session(user(), subagent_trajectories=[self._below("t-1", subagent_trajectories=[self._below("t-2")])])

        assert ["s/t-1", "s/t-1/t-2"] == [t.id for t in found.subagents]

    def test_of_a_system_step(self) -> None:
        """A sub-agent that the program started hangs on no call."""
        mark = system("x", extra={"context_management": {"type": "compaction"}}, observation={
            "results": [{"subagent_trajectory_ref": [{"trajectory_id": "t-1"}]}]})
        found = session(user(), mark, user("S"), subagent_trajectories=[self._below("t-1")])

        assert [None] == [t.parent_call for t in found.subagents]

    def test_elsewhere(self) -> None:
        """Trajectories in other files are noted."""
        reference = [{"session_id": "x", "trajectory_path": "sub.json"}]
        found = session(agent("", "a", results=[result("a", "done", subagent_trajectory_ref=reference)]))

        assert ((), ["subagent-elsewhere"]) == (found.subagents, codes(found))

    @pytest.mark.parametrize("listed", [None, {}, "x", [None], [{"steps": 3}]])
    def test_odd_lists(self, listed: Any) -> None:
        """A list of a wrong type costs nothing else."""
        assert 1 == len(session(user(), subagent_trajectories=listed).messages)


class TestFiles:
    """What stands around the steps."""

    def test_continued(self) -> None:
        """A file that goes on elsewhere says so; the next one names it as its parent."""
        first = session(user(), continued_trajectory_ref="trajectory.cont-1.json")
        second = session(user(is_copied_context=True), session_id="s-cont-1")
        third = session(user(is_copied_context=True), session_id="s-cont-2")

        assert (["continued-elsewhere"], None) == (codes(first), first.parent_session)
        assert ("s", "s-cont-1") == (second.parent_session, third.parent_session)

    @pytest.mark.parametrize(("head", "name"), [
        ({"session_id": "x"}, "x"), ({"session_id": None, "trajectory_id": "t"}, "t"),
        ({"session_id": None}, "trajectory"), ({"session_id": 5}, "trajectory")])
    def test_names(self, head: dict[str, Any], name: str) -> None:
        """A session is named by its id, its document's id, or its file."""
        assert name == session(user(), **head).session_id

    @pytest.mark.parametrize("version", ["1.0", "1.4", "1.5", "1.6", "1.7", "1.8"])
    def test_versions(self, version: str) -> None:
        """Every version is read."""
        assert 1 == len(session(user(), version=version).messages)

    def test_one_a_line(self) -> None:
        """Several trajectories, one a line, are sessions of their own."""
        rows = b"\n".join(json.dumps(trajectory(user(n), session_id=n)).encode() for n in ("a", "b"))

        assert ["a", "b"] == [t.session_id for t in read_bytes(rows)]

    def test_array(self) -> None:
        """Several trajectories in one array are sessions of their own."""
        data = json.dumps([trajectory(user(n), session_id=n) for n in ("a", "b")]).encode()

        assert ["a", "b"] == [t.session_id for t in read_bytes(data)]

    @pytest.mark.parametrize(("result_json", "value", "detail"), [
        ({"verifier_result": {"rewards": {"reward": 1.0}}}, "pass", "reward 1.0"),
        ({"verifier_result": {"rewards": {"reward": 0}}}, "fail", "reward 0"),
        ({"verifier_result": {"rewards": {"reward": 0.5}}}, "partial", "reward 0.5"),
        ({"exception_info": {"exception_type": "AgentTimeoutError"}}, "fail", "AgentTimeoutError")])
    def test_outcome_beside(self, tmp_path: Path, result_json: Any, value: str, detail: str) -> None:
        """The reward stands in the trial's result beside the agent's folder."""
        (tmp_path / "agent").mkdir()
        (tmp_path / "agent" / "trajectory.json").write_text(json.dumps(trajectory(user())))
        (tmp_path / "result.json").write_text(json.dumps(result_json))
        (found,) = read(tmp_path / "agent" / "trajectory.json")

        assert found.outcome is not None
        assert (value, detail) == (found.outcome.value, found.outcome.detail)

    @pytest.mark.parametrize("text", ["{", "[]", "{}", '{"verifier_result": {"rewards": {"reward": "x"}}}'])
    def test_no_outcome(self, tmp_path: Path, text: str) -> None:
        """A result that says nothing is no outcome."""
        (tmp_path / "trajectory.json").write_text(json.dumps(trajectory(user())))
        (tmp_path / "result.json").write_text(text)

        assert None is read(tmp_path / "trajectory.json")[0].outcome

    @pytest.mark.parametrize("steps", [None, {}, "x", 3])
    def test_odd_steps(self, steps: Any) -> None:
        """Steps of a wrong type are an empty session with a note."""
        (found,) = read_bytes(json.dumps({"schema_version": "ATIF-v1.7", "steps": steps}).encode())

        assert ((), ["no-steps"]) == (found.messages, codes(found))

    @pytest.mark.parametrize("odd", [
        None, 7, {"source": "robot", "message": "x"}, {}, {"source": "agent", "tool_calls": "x", "observation": []},
        {"source": "agent", "message": "x", "observation": {"results": [None, {"source_call_id": 5, "content": "y"}]}}])
    def test_odd_step(self, odd: Any) -> None:
        """A step of a wrong type never costs the rest."""
        found = session(user(), odd, agent("", "a", results=[result("a")]))

        assert "a" in [r.call_id for m in found.messages for r in m.results]

    def test_unknown_sources(self) -> None:
        """An unknown source is kept as text, with one note for all of a kind."""
        found = session({"source": "robot", "message": "a"}, {"source": "robot", "message": "b"})

        assert (["unknown-type"], [("injected", "robot")] * 2) == (
            codes(found), [(m.origin, m.detail) for m in found.messages])

    @pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\n", b""])
    def test_marks_and_line_ends(self, mark: bytes) -> None:
        """A byte-order mark and Unicode line ends inside texts change nothing."""
        data = mark + json.dumps(trajectory(user("a\u2028b\u2029c")), ensure_ascii=False, indent=1).encode()

        assert "a\u2028b\u2029c" == read_bytes(data)[0].messages[0].text

    @pytest.mark.parametrize(("value", "expected"), [
        ({"schema_version": "ATIF-v1.7"}, "atif"), ({"steps": [{"step_id": 1, "source": "user"}]}, "atif"),
        ({"schema_version": "2.0", "steps": []}, None), ({"steps": [1]}, None)])
    def test_detection(self, value: Any, expected: str | None) -> None:
        """The schema's name or the shape of the steps tells the format."""
        assert expected == detect(parse_source(json.dumps(value).encode(), "x.json"))


class TestSharedFile:
    """The converted session."""

    def test_counts(self, transcripts: Path) -> None:
        """Sixty steps, sixty calls, one compaction, and the totals that the file itself states."""
        path = transcripts / "atif" / "trajectory-v1.5-converted.json"
        (found,), totals = read(path), json.loads(path.read_text())["final_metrics"]

        assert (60, 60, 49, 1) == (found.message_count, len(list(found.main.tool_calls())), len(found.steps),
                                   len(found.compactions))
        assert (totals["total_prompt_tokens"], totals["total_cached_tokens"], totals["total_completion_tokens"]) == (
            found.usage.input_total, found.usage.cache_read, found.usage.output)

    def test_compaction(self, transcripts: Path) -> None:
        """The compaction's counter, trigger and summary; the recap is no human prompt."""
        (found,) = read(transcripts / "atif" / "trajectory-v1.5-converted.json")
        (made,) = found.compactions

        assert ("auto", 155068, True) == (made.trigger, made.counter_before, made.summary_readable)
        assert not any(m.text.startswith("This session is being continued") for m in found.messages)
