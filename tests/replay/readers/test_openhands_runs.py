"""OpenHands runs: usage, condensations, delegates, outcomes, and the shared sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from replay.readers.registry import detect, read, read_bytes
from replay.readers.source import open_source
from replay.transcript import Message, Transcript, Usage


def prompt(own: Any, content: str = "go", source: Any = "user", **more: Any) -> dict[str, Any]:
    return {"id": own, "timestamp": "2025-01-27T22:44:56.9", "source": source, "message": content, "action": "message",
            "args": {"content": content, "image_urls": None, "wait_for_response": False, **more}}


def response(name: str, *calls: str, content: str = "Look.", usage: Any = None) -> dict[str, Any]:
    made = [{"id": c, "type": "function", "function": {"name": "execute_bash", "arguments": '{"command":"ls"}'}}
            for c in calls]
    return {"id": name, "model": "m", "usage": usage,
            "choices": [{"message": {"role": "assistant", "content": content, "tool_calls": made}}]}


def act(own: Any, call: str, raw: Any, **more: Any) -> dict[str, Any]:
    metadata = {"function_name": "execute_bash", "tool_call_id": call, "model_response": raw}
    return {"id": own, "source": "agent", "action": "run", "args": {"command": "ls", "thought": "Look."},
            "tool_call_metadata": metadata, **more}


def seen(own: Any, cause: Any, content: Any = "out", kind: str = "run", **more: Any) -> dict[str, Any]:
    return {"id": own, "source": "agent", "cause": cause, "observation": kind, "content": content,
            "extras": {"command": "ls", "metadata": {"exit_code": 0}}, **more}


def system(own: int = 0) -> dict[str, Any]:
    return {"id": own, "source": "agent", "action": "system",
            "args": {"content": "You are OpenHands.", "tools": [{"type": "function"}], "openhands_version": "0.46.0"}}


def state(own: int, name: str) -> dict[str, Any]:
    return {"id": own, "source": "environment", "observation": "agent_state_changed", "content": "",
            "extras": {"agent_state": name}}


def tokens(prompt_tokens: int, output: int, name: str = "", model: str = "default") -> dict[str, Any]:
    return {"model": model, "prompt_tokens": prompt_tokens, "completion_tokens": output, "cache_read_tokens": 0,
            "cache_write_tokens": 0, "response_id": name}


def session(*events: Any) -> Transcript:
    (found,) = read_bytes(json.dumps(list(events)).encode(), "trajectory.json")
    assert "openhands" == found.format
    return found


def instance(*events: Any, **more: Any) -> dict[str, Any]:
    return {"instance_id": "a__b-1", "history": list(events), **more}


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def codes(found: Transcript) -> list[str]:
    return [note.code for note in found.notes]


def told(found: Transcript) -> list[tuple[str, str]]:
    return [(m.role, m.text) for m in found.messages]


class TestUsage:
    """Each response once, and what was billed beside."""

    def test_raw_usage_once(self) -> None:
        """Raw usage counts once a response, with its cached part."""
        usage = {"prompt_tokens": 100, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 70},
                 "cache_creation_input_tokens": 20}
        raw = response("r", "a", usage=usage)
        found = session(prompt(0), act(1, "a", raw), seen(2, 1, tool_call_metadata={"model_response": raw}))

        assert Usage(input_uncached=10, cache_read=70, cache_write_5m=20, output=9) == found.usage

    def test_running_totals(self) -> None:
        """Without raw usage a step is billed what the running total grew by; a smaller total is a new start."""
        events = [prompt(0)]
        for n, total in enumerate((10, 25, 5)):
            metrics = {"accumulated_token_usage": tokens(total, n)}
            raw = response(f"r{n}", f"c{n}")
            events += [act(2 * n + 1, f"c{n}", raw, llm_metrics=metrics), seen(2 * n + 2, 2 * n + 1)]

        assert [10, 15, 5] == [s.usage.input_total if s.usage else None for s in session(*events).steps]

    def test_listed_calls(self) -> None:
        """A listed call belongs to the response with its id, or to a text answer without one."""
        first = {"token_usages": [tokens(10, 1, "r")]}
        second = {"token_usages": [tokens(10, 1, "r"), tokens(30, 3, "other")]}
        found = session(prompt(0), act(1, "a", response("r", "a"), llm_metrics=first), seen(2, 1),
                        prompt(3, "Done.", "agent") | {"llm_metrics": second})

        assert [10, 30] == [s.usage.input_total if s.usage else None for s in found.steps]
        assert () == found.abandoned

    def test_requests_beside_the_talk(self) -> None:
        """A draft editor's requests are billed, each once, and are no step of the talk."""
        editor = {"token_usages": [tokens(40, 4, "e1", "draft")], "accumulated_token_usage": tokens(40, 4, "", "draft")}
        raw = response("r", "a", usage={"prompt_tokens": 10, "completion_tokens": 2})
        found = session(prompt(0), act(1, "a", raw), seen(2, 1, kind="edit", llm_metrics=editor),
                        seen(3, None, kind="edit", llm_metrics=editor))

        assert (1, [1], 50) == (len(found.steps), [len(t.steps) for t in found.abandoned], found.usage.input_total)

    def test_growth_beside_the_talk(self) -> None:
        """What a total grew by at a condensation was billed to the condenser."""
        totals = [{"accumulated_token_usage": tokens(n, 1)} for n in (10, 17)]
        condensed = {"id": 3, "source": "agent", "action": "condensation", "args": {"forgotten_event_ids": []},
                     "llm_metrics": totals[1]}
        found = session(prompt(0), act(1, "a", response("r", "a"), llm_metrics=totals[0]), seen(2, 1), condensed)

        assert [7] == [s.usage.input_total for t in found.abandoned for s in t.steps if s.usage]

    def test_usage_of_an_evaluation(self) -> None:
        """The list of an evaluation's metrics is shared out in order where its length fits."""
        metrics = {"token_usages": [tokens(10, 1, "x"), tokens(20, 2, "y")]}
        events = [prompt(0), act(1, "a", None), seen(2, 1), act(3, "b", None), seen(4, 3)]
        (found,) = read_bytes(lines(instance(*events, metrics=metrics)))

        assert [10, 20] == [s.usage.input_total if s.usage else None for s in found.steps]

    @pytest.mark.parametrize("metrics", [None, [], "x", {"token_usages": "x"}, {"accumulated_token_usage": []},
                                         {"token_usages": [None, {"response_id": 3}]}])
    def test_odd_metrics(self, metrics: Any) -> None:
        """Metrics of a wrong type are no usage."""
        found = session(prompt(0), act(1, "a", response("r", "a"), llm_metrics=metrics),
                        seen(2, 1, llm_metrics=metrics))

        assert [None] == [s.usage for s in found.steps]


class TestCondensations:
    """Forgotten events and summaries."""

    def _events(self, **arguments: Any) -> list[Any]:
        made = [system(0), prompt(1)]
        for n in range(3):
            own = 2 + 2 * n
            made += [act(own, f"c{n}", response(f"r{n}", f"c{n}")), seen(own + 1, own, str(n))]
        return [*made, {"id": 8, "source": "agent", "action": "condensation", "args": arguments}, prompt(9, "on")]

    @pytest.mark.parametrize("which", [
        {"forgotten_event_ids": [2, 3, 4, 5]},
        {"forgotten_event_ids": None, "forgotten_events_start_id": 2, "forgotten_events_end_id": 5}])
    def test_summary_at_its_offset(self, which: dict[str, Any]) -> None:
        """Ids or a range are forgotten, the summary stands at its offset among the events that stay."""
        (made,) = session(*self._events(**which, summary="S", summary_offset=2)).compactions

        assert ("full", 8, "S", True) == (made.kind, made.position, made.summary, made.summary_readable)
        assert (0, 1, "S", 6, 7) == tuple(p.text if isinstance(p, Message) else p for p in made.window)
        assert ["summary"] == [p.origin for p in made.window if isinstance(p, Message)]

    def test_without_a_summary(self) -> None:
        """A condensation may only forget."""
        (made,) = session(*self._events(forgotten_event_ids=[2, 3])).compactions

        assert ((0, 1, 4, 5, 6, 7), None, False) == (made.window, made.summary, made.summary_readable)

    def test_second_condensation(self) -> None:
        """Forgetting adds up; only the latest summary is shown."""
        events = self._events(forgotten_event_ids=[2, 3], summary="S1", summary_offset=2)
        second = {"id": 10, "source": "agent", "action": "condensation", "args": {
            "forgotten_event_ids": [4, 5], "summary": "S2", "summary_offset": 2}}
        found = session(*events, second)

        assert (0, 1, "S2", 6, 7, 8) == tuple(
            p.text if isinstance(p, Message) else p for p in found.compactions[1].window)

    def test_start_stays(self) -> None:
        """The program puts the system prompt and the first prompt back when they were forgotten."""
        events = self._events(forgotten_event_ids=[0, 1, 2, 3, 4, 5], summary="S", summary_offset=0)
        (made,) = session(*events).compactions

        assert (0, 1, "S", 6, 7) == tuple(p.text if isinstance(p, Message) else p for p in made.window)

    def test_half_a_pair(self) -> None:
        """A call whose result was forgotten is not sent, nor a result whose call was."""
        (made,) = session(*self._events(forgotten_event_ids=[3, 4])).compactions

        assert (0, 1, 6, 7) == made.window

    def test_some_calls_of_a_response(self) -> None:
        """A response keeps only the calls whose results are still known."""
        raw = response("r", "a", "b")
        found = session(system(0), prompt(1), act(2, "a", raw), seen(3, 2), act(4, "b", raw), seen(5, 4),
                        {"id": 6, "action": "condensation", "args": {"forgotten_event_ids": [3]}, "source": "agent"})
        kept = found.compactions[0].window[2]

        assert isinstance(kept, Message)
        assert (["b"], 4) == ([c.id for c in kept.calls], found.compactions[0].window[3])

    @pytest.mark.parametrize("arguments", [
        {}, {"forgotten_event_ids": "x"}, {"forgotten_events_start_id": "a", "forgotten_events_end_id": 3},
        {"forgotten_event_ids": [None, [1], {}], "summary": 5, "summary_offset": "x"}])
    def test_odd_arguments(self, arguments: dict[str, Any]) -> None:
        """Arguments of a wrong type forget nothing."""
        (made,) = session(*self._events(**arguments)).compactions

        assert tuple(range(8)) == made.window

    def test_requests_are_no_compaction(self) -> None:
        """A request for a condensation leaves nothing."""
        found = session(prompt(0), {"id": 1, "action": "condensation_request", "args": {}, "source": "agent"})

        assert ((), []) == (found.compactions, codes(found))


class TestDelegates:
    """Sub-agents inside the stream."""

    def test_events_of_a_delegate(self) -> None:
        """Events between a delegate action and its observation are a sub-agent's; the parent sees the result."""
        task = {"id": 2, "source": "agent", "action": "delegate", "args": {"agent": "Browser", "inputs": {"task": "t"}},
                "tool_call_metadata": act(1, "d", response("r", "d"))["tool_call_metadata"]}
        result = {"id": 6, "source": "agent", "observation": "delegate", "content": "finished", "cause": 2,
                  "extras": {"outputs": {"content": "found"}}}
        found = session(prompt(0), task, prompt(3, "TASK: t"), act(4, "x", response("r2", "x")), seen(5, 4), result)
        (below,) = found.subagents

        assert [("user", "go"), ("assistant", "Look."), ("tool", "found")] == told(found)
        assert ("d", ["nudge", "model", "tool"]) == (below.parent_call, [m.origin for m in below.messages])
        assert (1, 1) == (len(found.steps), found.message_count)

    def test_delegate_without_an_end(self) -> None:
        """A delegate that the stream ends in is still a sub-agent."""
        task = {"id": 1, "source": "agent", "action": "delegate", "args": {"agent": "B", "inputs": {}}}
        found = session(prompt(0), task, prompt(2, "TASK: t"))

        assert (2, [1]) == (len(found.messages), [len(t.messages) for t in found.subagents])


class TestOutcomes:
    """How sessions ended."""

    @pytest.mark.parametrize(("head", "value", "source"), [
        ({"test_result": {"report": {"resolved": True}}}, "pass", "test_result.report.resolved"),
        ({"report": {"resolved": False}, "error": "x"}, "fail", "report.resolved"),
        ({"issue": {}, "success": True, "result_explanation": "done"}, "pass", "success"),
        ({"issue": {}, "success": False}, "fail", "success"), ({"error": "AgentStuckInLoopError"}, "fail", "error")])
    def test_evaluations(self, head: dict[str, Any], value: str, source: str) -> None:
        """A grade comes before the resolver's guess, an error last."""
        (found,) = read_bytes(lines(instance(prompt(0), **head)))

        assert found.outcome is not None
        assert (value, source) == (found.outcome.value, found.outcome.source)

    @pytest.mark.parametrize(("last", "value"), [("finished", "unknown"), ("error", "fail"), ("stopped", "partial")])
    def test_last_state(self, last: str, value: str) -> None:
        """A stream tells by the agent's last state."""
        found = session(prompt(0), state(1, "running"), state(2, last))

        assert found.outcome is not None
        assert (value, last) == (found.outcome.value, found.outcome.detail)

    def test_finish(self) -> None:
        """A finish is a claim, and a call without a result."""
        done = {"id": 1, "source": "agent", "action": "finish", "args": {"task_completed": "true"}}
        found = session(prompt(0), done, prompt(2, "thanks"))

        assert (["finish"], 3) == ([c.name for c in found.main.tool_calls()], len(found.messages))
        assert None is found.outcome

    def test_replies_of_the_program(self) -> None:
        """In an evaluation the prompts after the first are the program's."""
        (found,) = read_bytes(lines(instance(prompt(0), prompt(1, "Hm?", "agent"), prompt(2, "Please continue."))))

        assert ["human", "model", "nudge"] == [m.origin for m in found.messages]


class TestSharedFiles:
    """Real sessions."""

    def test_event_array(self, transcripts: Path) -> None:
        """The UI's download: counts, three condensations, and usage with the draft editor's thirteen requests."""
        (found,) = read(transcripts / "openhands" / "trajectory-events.json")

        assert (8, 88, 88, 3) == (found.message_count, len(list(found.main.tool_calls())), len(found.steps),
                                  len(found.compactions))
        assert ([13], "0.46.0", "unknown") == (
            [len(t.steps) for t in found.abandoned], found.harness_version, found.outcome and found.outcome.value)

    def test_usage_of_the_event_array(self, transcripts: Path) -> None:
        """The usage is the sum of the distinct raw responses and of the listed editor calls."""
        path = transcripts / "openhands" / "trajectory-events.json"
        events, (found,) = json.loads(path.read_text()), read(path)
        raw = {r["id"]: r["usage"] for e in events if (r := (e.get("tool_call_metadata") or {}).get("model_response"))}
        listed = {u["response_id"]: u for e in events for u in (e.get("llm_metrics") or {}).get("token_usages", [])}

        assert sum(u["prompt_tokens"] for u in [*raw.values(), *listed.values()]) == found.usage.input_total
        assert sum(u["completion_tokens"] for u in [*raw.values(), *listed.values()]) == found.usage.output

    def test_replay_file(self, transcripts: Path) -> None:
        """Four events: a prompt, an edit with its result, a finish."""
        (found,) = read(transcripts / "openhands" / "runtime-basic.json")

        assert (1, 2, 2) == (found.message_count, len(list(found.main.tool_calls())), len(found.steps))

    def test_resolver_output(self, transcripts: Path) -> None:
        """Two instances: two messages and twenty-six calls in all."""
        found = read(transcripts / "openhands" / "resolver-output.jsonl")

        assert (["neubig/pr-viewer#5", "neubig/pr-viewer#1"], [1, 1], [4, 22]) == (
            [t.session_id for t in found], [t.message_count for t in found],
            [len(list(t.main.tool_calls())) for t in found])
        assert ["pass", "pass"] == [t.outcome.value for t in found if t.outcome]

    def test_detection_of_all(self, transcripts: Path) -> None:
        """Every file is told by its content."""
        found = {detect(open_source(p)) for p in (transcripts / "openhands").iterdir()}

        assert {"openhands"} == found
