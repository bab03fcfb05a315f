"""Traces as Opik and Langfuse export them, and real prompts as spans."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from replay.blocks import Text, ToolCall, ToolResult
from replay.detected import describe
from replay.readers.registry import detect, read, read_bytes
from replay.readers.source import parse_source
from replay.transcript import Message, Transcript, Usage

GO = {"role": "user", "content": "go"}
LOOK = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "k1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]}
RESULT = {"role": "tool", "tool_call_id": "k1", "content": "a b"}
DONE = {"role": "assistant", "content": "done"}


def at(number: int) -> str:
    """A moment."""
    return f"2026-01-01T00:00:{number:02}Z"


def trace(**more: Any) -> dict[str, Any]:
    """An Opik trace."""
    return {"id": "t1", "name": "run", "start_time": at(0), "end_time": at(9), "thread_id": "th", "input": {"q": "go"},
            "output": {"a": "done"}, "feedback_scores": [], **more}


def llm(number: int, sent: Any, got: Any, **more: Any) -> dict[str, Any]:
    """An Opik span of a model call."""
    return {"id": f"s{number}", "trace_id": "t1", "parent_span_id": None, "type": "llm", "name": "chat",
            "start_time": at(number), "end_time": at(number), "input": {"messages": sent},
            "output": {"choices": [{"message": got}]}, "model": "m", "provider": "openai",
            "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}, **more}


def tool(number: int, output: Any, **more: Any) -> dict[str, Any]:
    """An Opik span of a tool."""
    return {"id": f"s{number}", "trace_id": "t1", "parent_span_id": None, "type": "tool", "name": "ls",
            "start_time": at(number), "input": {}, "output": output, **more}


SPANS = (trace(), llm(1, [GO], LOOK), tool(2, {"output": "a b"}), llm(3, [GO, LOOK, RESULT], DONE))


def only(data: Any) -> Transcript:
    """The one session of a document."""
    (found,) = read_bytes(json.dumps(data).encode())
    return found


def words(found: Transcript) -> list[tuple[str, str]]:
    """Role and text of every log message."""
    return [(m.role, m.text) for m in found.messages]


TALK = [("user", "go"), ("assistant", ""), ("tool", "a b"), ("assistant", "done")]


class TestOpik:
    """Traces and spans."""

    @pytest.mark.parametrize("data", [
        json.dumps(SPANS), json.dumps({"content": SPANS, "page": 1, "total": 4}),
        json.dumps({"traces": SPANS[:1], "spans": SPANS[1:]}), "\n".join(map(json.dumps, SPANS)),
        "\n".join(json.dumps({"content": [span]}) for span in SPANS)],
        ids=["list", "page", "traces-and-spans", "lines", "pages"])
    def test_shapes_of_an_export(self, data: str) -> None:
        """Lists, pages, lines and objects with both give the same session."""
        (found,) = read_bytes(data.encode())

        assert (TALK, "th", 2, 20) == (words(found), found.session_id, len(found.steps), found.usage.input_total)
        assert ("otel", "opik") == (found.format, found.extra["source"])

    def test_spans_without_their_trace(self) -> None:
        """Spans alone are a session named after their trace."""
        found = only(SPANS[1:])

        assert (TALK, "t1") == (words(found), found.session_id)

    def test_threads_gather_traces(self) -> None:
        """Traces of one thread are one session; each turn's prompt goes on from the one before."""
        sent = [GO, LOOK, RESULT, DONE, {"role": "user", "content": "more"}]
        again = [trace(id="t2"), llm(5, sent, DONE, trace_id="t2")]

        assert [*TALK, ("user", "more"), ("assistant", "done")] == words(only([*SPANS, *again]))

    def test_anthropic_counts(self) -> None:
        """Counts in the provider's own spelling; a cached part that is larger than the input lies beside it."""
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "original_usage.cache_read_input_tokens": 50,
                 "original_usage.cache_creation_input_tokens": 7}
        found = only([llm(1, [GO], DONE, usage=usage)])

        assert (Usage(input_uncached=3, cache_read=50, cache_write_5m=7, output=2), False) == (
            found.usage, found.extra["input_includes_cached"])

    @pytest.mark.parametrize("output", [
        {"content": [{"type": "text", "text": "done"}], "role": "assistant"}, {"content": "done"},
        {"generations": [[{"message": {"type": "ai", "content": "done"}}]]}, {"output": "done"},
        {"messages": [DONE]}, "done", {"candidates": [{"content": {"role": "model", "parts": [{"text": "done"}]}}]},
        {"choices": [{"message": DONE}, {"x": 1}]}])
    def test_outputs_of_other_vendors(self, output: Any) -> None:
        """The answer is found in each vendor's response."""
        assert [("user", "go"), ("assistant", "done")] == words(only([llm(1, [GO], None, output=output)]))

    def test_a_batch_of_prompts(self) -> None:
        """The first prompt of a batch was answered; a message beside it is said as well."""
        assert [("user", "go"), ("user", "now"), ("assistant", "done")] == words(
            only([llm(1, [[GO], {"role": "user", "content": "now"}, [RESULT]], DONE)]))

    def test_an_error(self) -> None:
        """A call with error info is a step without an answer."""
        found = only([llm(1, [GO], None, output=None, error_info={"exception_type": "E", "message": "overloaded"})])

        assert [("overloaded", None)] == [(s.error, s.response) for s in found.steps]

    def test_traces_alone(self) -> None:
        """A trace without spans stands for one call with what it says went in and came out."""
        found = only([trace(input={"messages": [GO]}, output={"output": "done"})])

        assert ([("user", "go"), ("assistant", "done")], 1) == (words(found), len(found.steps))

    def test_the_last_result(self) -> None:
        """What a tool gave back after the last call is taken from its span."""
        found = only([llm(1, [GO], LOOK), tool(2, {"output": "late"}, metadata={"tool_call_id": "k1"})])

        assert ("tool", "late") == words(found)[-1]

    def test_unknown_span_types(self) -> None:
        """A span type that is not known is named."""
        found = only([*SPANS, tool(5, None, type="latch")])

        assert ["unknown span kind 'latch' x 1; kept out of the log"] == [n.text for n in found.notes]

    @pytest.mark.parametrize("odd", [7, None, {"id": "x"}, [3]])
    def test_rows_of_another_kind(self, odd: Any) -> None:
        """A row that is neither trace nor span costs only itself."""
        found = only([*SPANS, odd])

        assert (TALK, 1) == (words(found), len(found.notes))

    @pytest.mark.parametrize("more", [{"input": 3}, {"output": []}, {"usage": 4}, {"usage": {"prompt_tokens": "x"}},
                                      {"start_time": 5}, {"parent_span_id": "s1"}, {"metadata": 3}, {"model": {}}])
    def test_fields_of_a_wrong_type(self, more: dict[str, Any]) -> None:
        """A field of a wrong type never costs the call."""
        assert 1 == len(only([llm(1, [GO], DONE, **more)]).steps)


def generation(number: int, sent: Any, got: Any, **more: Any) -> dict[str, Any]:
    """A Langfuse observation of a model call."""
    return {"id": f"o{number}", "traceId": "t1", "type": "GENERATION", "name": "chat", "startTime": at(number),
            "endTime": at(number), "model": "m", "input": sent, "output": got,
            "usageDetails": {"input": 10, "output": 2, "cache_read_input_tokens": 5, "total": 17}, **more}


def exported(*observations: Any, **more: Any) -> dict[str, Any]:
    """A Langfuse trace with its observations."""
    return {"id": "t1", "name": "run", "timestamp": at(0), "sessionId": "chat-1", "observations": list(observations),
            **more}


class TestLangfuse:
    """Traces with observations."""

    CALLS = (generation(1, [GO], LOOK),
             {"id": "o2", "traceId": "t1", "type": "TOOL", "startTime": at(2), "output": "a b"},
             generation(3, [GO, LOOK, RESULT], DONE))

    @pytest.mark.parametrize("data", [
        json.dumps(exported(*CALLS)), json.dumps([exported(*CALLS)]), json.dumps({"data": [exported(*CALLS)]}),
        json.dumps({"trace": {"id": "t1", "sessionId": "chat-1"}, "observations": CALLS}),
        json.dumps(exported(*CALLS)) + "\n"],
        ids=["one", "list", "page", "apart", "line"])
    def test_shapes_of_an_export(self, data: str) -> None:
        """Traces alone, in lists, in pages and with the trace apart give the same session."""
        (found,) = read_bytes(data.encode())

        assert (TALK, "chat-1", 2) == (words(found), found.session_id, len(found.steps))
        assert (Usage(input_uncached=20, cache_read=10, output=4), False, "langfuse") == (
            found.usage, found.extra["input_includes_cached"], found.extra["source"])

    def test_observations_alone(self) -> None:
        """Observations without their trace are a session named after it."""
        found = only(list(self.CALLS))

        assert (TALK, "t1") == (words(found), found.session_id)

    def test_content_as_text(self) -> None:
        """Input and output can be JSON in a string."""
        found = only(exported(generation(1, json.dumps([GO]), json.dumps(DONE))))

        assert [("user", "go"), ("assistant", "done")] == words(found)

    def test_an_error(self) -> None:
        """A generation of level ERROR is a step with its message."""
        found = only(exported(generation(1, [GO], None, level="ERROR", statusMessage="overloaded")))

        assert ["overloaded"] == [s.error for s in found.steps]

    def test_a_sub_agent(self) -> None:
        """Generations under an agent inside the trace's agent are a thread of their own."""
        agents = [{"id": name, "traceId": "t1", "type": "AGENT", "name": name, "startTime": at(0),
                   "parentObservationId": above} for name, above in (("main", None), ("helper", "main"))]
        found = only(exported(*agents, generation(1, [GO], DONE, parentObservationId="main"), generation(
            2, [{"role": "user", "content": "find"}], {"role": "assistant", "content": "found"},
            parentObservationId="helper")))

        assert ([("user", "go"), ("assistant", "done")], ["helper"]) == (words(found), [t.id for t in found.subagents])

    def test_unknown_types(self) -> None:
        """An observation type that is not known is named."""
        found = only(exported(*self.CALLS, {"id": "z", "traceId": "t1", "type": "LATCH", "startTime": at(5)}))

        assert ["unknown-type"] == [n.code for n in found.notes]

    def test_detection(self) -> None:
        """Exports are told by their keys; other lists are not taken."""
        documents = [json.dumps(d).encode() for d in (exported(), list(SPANS))]

        assert ["otel", "otel"] == [detect(parse_source(d, "x")) for d in documents]
        assert "otel" != detect(parse_source(b'[{"id": 1, "input": "x"}]', "x"))


class TestReal:
    """Real traces, and real prompts as spans."""

    def test_the_count_table(self, transcripts: Path) -> None:
        """The public envelope holds two traces without calls: no message, no tool call, no compaction."""
        told = [describe(t) for t in read(transcripts / "otel" / "otlp-resource-spans.jsonl")]

        assert [(0, 0, 0)] * 2 == [(t["messages"], t["tool_calls"], len(t["compactions"])) for t in told]

    @pytest.mark.parametrize(("run", "steps", "full"), [
        ("opencode-1.18.33/small-six-turns", 66, 5), ("opencode-1.18.33/mid-60k", 61, 3),
        ("cline-3.0.65/mid-60k-one-turn", 61, 4), ("langchain-1.5.2/summ-messages30-keep10", 66, 6),
        ("deepagents-0.7.32/profile20k-one-turn", 61, 3)])
    @pytest.mark.parametrize("with_answers", [True, False], ids=["answers", "prompts-only"])
    def test_recorded_views_are_the_prompts(self, shared: Path, run: str, steps: int, full: int,
                                            with_answers: bool) -> None:
        """Requests that harnesses really sent, told as spans, give back every prompt and every compaction."""
        sent = requests(shared / "wire" / run)
        (found,) = read_bytes(json.dumps([spans(n, *one, with_answers) for n, one in enumerate(sent)]).encode())
        prompts = {f"s{n}": prompt for n, (prompt, _) in enumerate(sent)}
        names = [found.messages[s.response].id if s.response is not None else f"s{len(sent) - 1}" for s in found.steps]

        assert (steps, full) == (len(found.steps), sum(c.kind == "full" for c in found.compactions))
        assert [plain(prompts[str(name)]) for name in names] == [view(found, step.start) for step in found.steps]


def requests(folder: Path) -> list[tuple[list[Any], Any]]:
    """The prompts and answers of a run, in chat spelling."""
    table = folder / "items.jsonl"
    raw = table.read_bytes() if table.exists() else gzip.decompress((folder / "items.jsonl.gz").read_bytes())
    items = {row["id"]: row["item"] for row in map(json.loads, raw.splitlines())}
    rows = map(json.loads, (folder / "requests.jsonl").read_bytes().splitlines())
    return [([items[i] for i in row["items"]], row["response"]) for row in rows if row["response"]["status"] == 200]


def spans(number: int, prompt: list[Any], response: Any, with_answer: bool) -> dict[str, Any]:
    """A request as an Opik span."""
    calls = [{"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": json.dumps(
        c["arguments"])}} for c in response.get("tool_calls") or ()]
    got = {"role": "assistant", "content": response["text"], "tool_calls": calls} if with_answer else None
    return {**llm(0, prompt, got, usage=None), "id": f"s{number}", "start_time": 1_796_000_000 + number}


def plain(prompt: list[Any]) -> list[tuple[str, str]]:
    """A prompt in pieces."""
    pieces: list[tuple[str, str]] = []
    for message in prompt:
        content = message.get("content") or ""
        text = content if isinstance(content, str) else "\n".join(p.get("text", "") for p in content) if isinstance(
            content, list) else None
        if message["role"] == "system" or text is None:
            continue
        if message["role"] == "tool":
            pieces.append(("result", text))
        else:
            pieces += [("text", text.strip())] if text else []
            pieces += [("call", call["id"]) for call in message.get("tool_calls") or ()]
    return pieces


def view(found: Transcript, start: int) -> list[tuple[str, str]]:
    """A recorded view in the same pieces."""
    full = [c for c in found.compactions if c.kind == "full" and c.position <= start]
    parts = [*full[-1].window, *range(full[-1].position, start)] if full else list(range(start))
    return [piece for part in parts for piece in pieces_of(found.messages[part] if isinstance(part, int) else part)]


def pieces_of(message: Message) -> list[tuple[str, str]]:
    """A message in the same pieces."""
    if message.role == "system":
        return []
    texts = "\n".join(b.text for b in message.blocks if isinstance(b, Text)).strip()
    found = [("text", texts)] if texts else []
    found += [("result", b.text) for b in message.blocks if isinstance(b, ToolResult)]
    return found + [("call", b.id) for b in message.blocks if isinstance(b, ToolCall)]
