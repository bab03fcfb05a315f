"""MyCodeAgent traces and archived demos: messages, usage, tool pairing, compactions, sub-agents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replay.blocks import Reasoning
from replay.readers.mycodeagent import MyCodeAgent
from replay.readers.registry import read, read_bytes
from replay.readers.source import open_source, parse_source
from replay.transcript import Message, Transcript, Usage


def event(name: str, payload: Any, step: int = 1) -> dict[str, Any]:
    """One trace line."""
    return {"ts": "2026-01-01T00:00:00Z", "session_id": "s-1", "step": step, "event": name, "payload": payload}


def output(raw: str = "ok", calls: list[dict[str, Any]] | None = None, **usage: int) -> dict[str, Any]:
    return event("model_output", {"raw": raw, "usage": usage or None, "meta": {}, "tool_calls": calls or [],
                                  "raw_response": {"id": "r-1", "model": "m-1", "usage": usage}})


def written(role: str, content: str, **metadata: Any) -> dict[str, Any]:
    return event("message_written", {"role": role, "content": content, "metadata": metadata})


def trace(*events: Any) -> Transcript:
    data = b"".join(json.dumps(e).encode() + b"\n" for e in events)
    (found,) = read_bytes(data, format="mycodeagent")
    return found


def user_input(text: str) -> dict[str, Any]:
    return event("user_input", {"text": text, "processed": text}, 0)


class TestDerivedLog:
    """Traces that do not hold the messages."""

    def test_inputs_outputs_and_feedback(self) -> None:
        """The log is the person's input, the model's outputs and the gate's feedback as a nudge."""
        found = trace(event("system_messages", {"messages": [{"role": "system", "content": "S"}]}, 0),
                      user_input("do"), output("done"), event("completion_gate_verdict", {
                          "verdict": "fail", "blocking_feedback": "run the tests"}), output("done"))

        assert ["human", "model", "nudge", "model"] == [m.origin for m in found.messages]
        assert (3, "S") == (found.message_count, found.system_prompt)

    def test_results_follow_the_order_of_the_calls(self) -> None:
        """Results are matched to calls by the parameters they repeat and put into the order of the calls."""
        found = trace(
            event("tool_call", {"tool": "Read", "args": {"p": 1}, "tool_call_id": "a"}),
            event("tool_call", {"tool": "Read", "args": {"p": 2}, "tool_call_id": "b"}),
            event("tool_result", {"tool": "Read", "result": {"context": {"params_input": {"p": 2}}, "n": "second"}}),
            event("tool_result", {"tool": "Read", "result": {"context": {"params_input": {"p": 1}}, "n": "first"}}))

        assert [("a", "first"), ("b", "second")] == [(r.call_id, json.loads(r.text)["n"])
                                                     for m in found.messages for r in m.results]

    def test_masked_ids_are_paired_with_the_output(self) -> None:
        """The trace masks call ids in tool events; the ids of the model's output stand."""
        found = trace(user_input("do"), output("", [{"id": "c1", "name": "Read", "arguments": "{}"}]),
                      event("tool_call", {"tool": "Read", "args": {}, "tool_call_id": "***"}),
                      event("tool_result", {"tool": "Read", "result": {"status": "success"}}))

        assert ["c1"] == [c.id for c in found.main.tool_calls()]
        assert ["c1"] == [r.call_id for m in found.messages for r in m.results]

    def test_a_result_without_a_call(self) -> None:
        """A result that no call explains is kept, without an id."""
        found = trace(user_input("do"), event("tool_result", {"tool": "Read", "result": {"status": "error"}}))

        assert [("", True)] == [(r.call_id, r.is_error) for m in found.messages for r in m.results]

    def test_calls_known_from_their_states_only(self) -> None:
        """Where only life-cycle events tell of calls, the calls are taken from those."""
        found = trace(event("transcript_message", {"role": "user", "content": "go", "metadata": {}}),
                      event("transcript_tool_lifecycle", {
                          "status": "completed", "tool_call_id": "r", "tool_name": "Read", "result": {"n": 1}}),
                      event("transcript_tool_lifecycle", {
                          "status": "started", "tool_call_id": "e", "tool_name": "Edit", "args": {"path": "n"}}))

        assert ["r", "e"] == [c.id for c in found.main.tool_calls()]
        assert 1 == found.message_count


class TestWrittenLog:
    """Traces that hold every message."""

    def test_messages_come_from_the_written_ones(self) -> None:
        """Each message stands once, and the model's output lends its usage, model and reasoning."""
        answer = output("ok", prompt_tokens=10, completion_tokens=2, total_tokens=12)
        answer["payload"]["raw_response"]["choices"] = [{"message": {"reasoning_content": "hmm"}}]
        found = trace(event("run_start", {"run_id": 1}, 0), written("user", "do"), user_input("do"), answer,
                      written("assistant", "ok", action_type="final"))

        assert ["human", "model"] == [m.origin for m in found.messages]
        assert Usage(input_uncached=10, output=2) == found.steps[0].usage
        assert ("m-1", "r-1", Reasoning(text="hmm")) == (
            found.steps[0].model, found.steps[0].request_id, found.messages[1].blocks[0])

    def test_masked_results_follow_their_calls(self) -> None:
        """Tool messages whose ids are masked answer the calls in order."""
        calls = [{"id": "a", "name": "Read", "arguments": {}}, {"id": "b", "name": "LS", "arguments": {}}]
        found = trace(written("user", "do"), written("assistant", "", action_type="tool_call", tool_calls=calls),
                      written("tool", "1", tool_name="Read", tool_call_id="***"),
                      written("tool", "2", tool_name="LS", tool_call_id="***"))

        assert [("a", "1"), ("b", "2")] == [(r.call_id, r.text) for m in found.messages for r in m.results]

    @pytest.mark.parametrize("following", [
        (output("ok", prompt_tokens=5), written("assistant", "ok")), (event("terminal", {"reason": "max_steps"}),),
        (written("user", "again"),), ()])
    def test_output_without_a_message(self, following: tuple[dict[str, Any], ...]) -> None:
        """A model output that left no message is a step of its own and its usage counts."""
        found = trace(written("user", "do"), output("", prompt_tokens=7, completion_tokens=0), *following)

        assert (None, 7) == (found.steps[0].response, found.steps[0].usage and found.steps[0].usage.input_total)

    def test_cached_tokens_from_the_raw_response(self) -> None:
        """Cached tokens are part of the prompt count and are told apart."""
        answer = output("ok", prompt_tokens=10, completion_tokens=2)
        answer["payload"]["raw_response"]["usage"] = {"prompt_tokens": 10, "completion_tokens": 2,
                                                      "prompt_tokens_details": {"cached_tokens": 6}}
        found = trace(written("user", "a"), answer, written("assistant", "ok"))

        assert Usage(input_uncached=4, cache_read=6, output=2) == found.usage

    def test_failed_calls_are_steps(self) -> None:
        """A model call that raised is a step with the kind of the error."""
        found = trace(written("user", "a"), event("model_error_classified", {"stage": "model_invoke", "kind": "api"}))

        assert ["api"] == [s.error for s in found.steps]


class TestCompactions:
    """Compactions of a trace."""

    DECISION = event("context_compaction_decision", {"should_compact": True, "estimated_tokens": 903})
    DONE = event("context_compaction_completed", {"checkpoint_id": "k", "compacted": True, "messages_before": 3,
                                                  "retain_start_idx": 2, "summary_len": 20})
    LOG = (written("user", "a"), written("assistant", "b"), written("user", "c"))

    def test_announced_then_written(self) -> None:
        """The announcement and its checkpoint are one compaction, with the harness's estimate."""
        found = trace(*self.LOG, self.DECISION, self.DONE, event("checkpoint", {
            "checkpoint_id": "k", "payload": {"summary": "S", "retain_start_idx": 2, "source_message_count": 3}}))

        (made,) = found.compactions
        assert ("S", 903, "auto", 3) == (made.summary, made.counter_before, made.trigger, made.position)
        assert (2,) == made.window[1:]

    @pytest.mark.parametrize("told", [-1, 0, True, "903", None])
    def test_an_estimate_that_counts_nothing(self, told: Any) -> None:
        """A compaction whose estimate is no number of tokens has none."""
        decision = event("context_compaction_decision", {"should_compact": True, "estimated_tokens": told})

        assert [None] == [c.counter_before for c in trace(*self.LOG, decision, self.DONE).compactions]

    def test_text_from_the_final_context(self) -> None:
        """Without a checkpoint the summary is read from the context that the trace shows."""
        found = trace(*self.LOG, self.DONE, event("history_compression_final_context", {
            "messages": [{"role": "system", "content": "## Archived History Summary\nS"}]}))

        assert ("S", True) == (found.compactions[0].summary, found.compactions[0].summary_readable)

    def test_summary_that_is_nowhere(self) -> None:
        """A summary whose text the trace does not hold is unreadable, not empty."""
        (made,) = trace(*self.LOG, self.DONE).compactions

        assert (None, False) == (made.summary, made.summary_readable)
        assert isinstance(made.window[0], Message)
        assert 20 == getattr(made.window[0].blocks[0], "size_bytes", None)


class TestOther:
    """Sub-agents, ends, damage."""

    def test_subagents(self) -> None:
        """A child that the trace tells of is a thread, and what is told of it is kept."""
        found = trace(user_input("a"), event("subagent_requested", {"child_session_id": "child-1"}),
                      event("subagent_completed", {"child_session_id": "child-1", "token_usage": 12}))

        assert ["child-1"] == [t.id for t in found.subagents]
        assert 12 == found.extra["subagents"]["child-1"]["token_usage"]

    def test_unknown_events_are_counted(self) -> None:
        """One note tells of each unknown event; known quiet ones make none."""
        found = trace(user_input("a"), event("zz", {}), event("zz", {}), event("tool_schema", {}))

        assert ["unknown-type"] == [n.code for n in found.notes]
        assert "'zz' x 2" in found.notes[0].text

    @pytest.mark.parametrize("bad", [event("user_input", None), event("user_input", []), 5, [], {"payload": {}}])
    def test_damaged_events(self, bad: Any) -> None:
        """A damaged event costs nothing but itself."""
        assert "b" == trace(user_input("a"), output("ok"), bad, user_input("b")).messages[-1].text

    def test_sniff(self) -> None:
        """Trace lines and demo documents are told by their keys."""
        demo = b'{"demo": "x", "trace": [{"event": "user_input", "payload": {}, "step": 0}]}'

        assert 85 == MyCodeAgent().sniff(parse_source(json.dumps(user_input("a")).encode() + b"\n", "x"))
        assert 90 == MyCodeAgent().sniff(parse_source(demo, "x"))


class TestRealDemos:
    """The archived demos of the study set."""

    @pytest.mark.parametrize(("name", "messages", "calls", "compactions"), [
        ("agent-loop", 3, 0, 0), ("context-engineering", 0, 0, 1), ("tool-harness", 0, 3, 0)])
    def test_counts(self, transcripts: Path, name: str, messages: int, calls: int, compactions: int) -> None:
        """Each demo has the counts that the table of the set gives, and no note."""
        path = transcripts / f"mycodeagent/demo-{name}.json"
        (found,) = read(path, "mycodeagent")

        assert (messages, calls, compactions) == (
            found.message_count, len(list(found.main.tool_calls())), len(found.compactions))
        assert () == found.notes
        assert 90 == MyCodeAgent().sniff(open_source(path))

    def test_agent_loop(self, transcripts: Path) -> None:
        """The gate blocks two answers; each was billed 12 tokens, known only as a total."""
        (found,) = read(transcripts / "mycodeagent/demo-agent-loop.json", "mycodeagent")

        assert [12, 12] == [s.usage.total for s in found.steps if s.usage]
        assert ["human", "model", "nudge", "model", "nudge"] == [m.origin for m in found.messages]
        assert found.outcome is not None
        assert ("fail", "completion_gate_blocked") == (found.outcome.value, found.outcome.detail)

    def test_context_engineering(self, transcripts: Path) -> None:
        """The window after the compaction is the view that the document shows, its system prompt aside."""
        (found,) = read(transcripts / "mycodeagent/demo-context-engineering.json", "mycodeagent")
        (made,) = found.compactions

        assert ["summary", "human", "model"] == [m.origin for m in made.window if isinstance(m, Message)]
        assert ("Archived 4 messages.", 903) == (made.summary, made.counter_before)
        assert "Deterministic harness demo." == found.system_prompt

    def test_tool_harness(self, transcripts: Path) -> None:
        """Results that ended out of order stand in the order of the calls, as the demo observed them."""
        (found,) = read(transcripts / "mycodeagent/demo-tool-harness.json", "mycodeagent")

        assert ["read-slow", "grep-fast", "edit-denied"] == [r.call_id for m in found.messages for r in m.results]
        assert all(r.is_error for m in found.messages for r in m.results)
