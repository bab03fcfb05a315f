"""The real OpenAI client against the endpoint: chat completions and responses, streamed and whole."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest

PROMPT = {"role": "user", "content": "Fix the parser."}
TOOLS: list[Any] = [{"type": "function", "function": {"name": "read", "parameters": {"type": "object", "properties": {}}}}]
CALL = {"id": "call-1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a.py"}'}}
ASSISTANT = {"role": "assistant", "content": "I look at a.py.", "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "call-1", "content": "print(1)"}


@pytest.fixture
def connect(serve: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """A client of a running endpoint, and the endpoint."""
    clients: list[openai.OpenAI] = []

    def make(**settings: Any) -> Any:
        running = serve(**settings)
        clients.append(openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0))
        return clients[-1], running
    yield make
    for client in clients:
        client.close()


def ask(client: Any, *messages: Any, **more: Any) -> Any:
    """A chat completion with the read tool."""
    return client.chat.completions.create(model="m", messages=list(messages), tools=TOOLS, **more)


def test_recorded_turns_come_in_order(connect: Callable[..., Any]) -> None:
    """Each request gets the recorded response: text, calls with their ids, and why it ended."""
    client, running = connect()
    first = ask(client, PROMPT).choices[0]
    second = ask(client, PROMPT, ASSISTANT, RESULT).choices[0]

    assert ("I look at a.py.", "tool_calls") == (first.message.content, first.finish_reason)
    assert [("call-1", "read", {"path": "a.py"})] == [
        (c.id, c.function.name, json.loads(c.function.arguments)) for c in first.message.tool_calls]
    assert ["call-2", "call-3"] == [c.id for c in second.message.tool_calls]
    assert [] == running.endpoint.tally.divergences


def test_streamed_completion_is_the_same(connect: Callable[..., Any]) -> None:
    """The chunks of a stream add up to the recorded response and its usage."""
    client, _ = connect()
    with client.chat.completions.stream(model="m", messages=[PROMPT], tools=TOOLS,
                                        stream_options={"include_usage": True}) as stream:
        whole = stream.get_final_completion()
    message = whole.choices[0].message

    assert ("I look at a.py.", "call-1", "read") == (
        message.content, message.tool_calls[0].id, message.tool_calls[0].function.name)
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens > 0


@pytest.mark.parametrize(("rule", "tokens", "cached"), [("recorded", 1000, 900), ("counted", 40, 0)])
def test_usage_follows_the_rule(connect: Callable[..., Any], rule: str, tokens: int, cached: int) -> None:
    """Recorded: what was billed, cache reads included; counted: tokens of messages and tools as sent."""
    client, _ = connect(usage=rule)
    used = ask(client, PROMPT).usage

    assert abs(tokens - used.prompt_tokens) <= 20
    assert cached == used.prompt_tokens_details.cached_tokens


def test_bytes_are_divided_by_four(connect: Callable[..., Any]) -> None:
    """The rule of scripted endpoints: a quarter of the body, rounded up."""
    client, _ = connect(usage="bytes/4")
    raw = client.chat.completions.with_raw_response.create(model="m", messages=[PROMPT], tools=TOOLS)

    assert -(-len(raw.http_request.content) // 4) == raw.parse().usage.prompt_tokens


@pytest.mark.parametrize("stream", [False, True])
def test_wanted_refusal_is_a_context_length_error(connect: Callable[..., Any], stream: bool) -> None:
    """The request of a named step is refused once as OpenAI refuses, and then goes through."""
    client, running = connect(refuse={1: 1}, window=5_000)
    with pytest.raises(openai.BadRequestError, match=r"maximum context length is \d+ tokens") as refused:
        ask(client, PROMPT, stream=stream)

    assert "context_length_exceeded" == refused.value.code
    assert "I look at a.py." == ask(client, PROMPT).choices[0].message.content
    assert {"refused": 1, "step": 1} == dict(running.endpoint.tally.requests)


def test_limit_refuses_what_is_too_long(connect: Callable[..., Any]) -> None:
    """Every request above the limit is refused, whatever it is for."""
    client, _ = connect(limit=200)
    with pytest.raises(openai.BadRequestError, match="200 tokens"):
        ask(client, PROMPT, {"role": "user", "content": "word " * 300})

    assert "I look at a.py." == ask(client, PROMPT).choices[0].message.content


def test_refusals_on_demand_while_it_runs(connect: Callable[..., Any]) -> None:
    """A script may ask for the next refusal, and for the state."""
    client, _ = connect()
    state = client.post("/../rewindow/refuse", body={"times": 1}, cast_to=object)
    with pytest.raises(openai.BadRequestError):
        ask(client, PROMPT)

    assert 1 == state["refuse_next"]
    assert 0 == client.get("/../rewindow/state", cast_to=object)["refuse_next"]


def test_summary_request_gets_the_recorded_summary(connect: Callable[..., Any]) -> None:
    """Asked without tools and in words of summarising: before the recorded compaction lines of the log, then its text."""
    client, running = connect()
    ask(client, PROMPT)
    wish = {"role": "user", "content": "Summarise this conversation for another model."}
    early = client.chat.completions.create(model="m", messages=[wish]).choices[0].message.content
    ask(client, PROMPT, ASSISTANT, RESULT)
    running.endpoint.lines[0].next = 4
    late = client.chat.completions.create(model="m", messages=[wish]).choices[0].message.content

    assert "Fix the parser." in early
    assert "Parser fixed." == late
    assert {"extractive": 1, "recorded": 1} == dict(running.endpoint.tally.summaries)


def test_summary_stands_in_the_element_that_was_asked_for(connect: Callable[..., Any]) -> None:
    """A harness that reads the summary from an element finds it there."""
    client, _ = connect(summaries="extractive")
    ask(client, PROMPT)
    wish = "Summarise. Answer as <state_snapshot>…</state_snapshot>."
    said = client.chat.completions.create(model="m", messages=[{"role": "user", "content": wish}])

    assert said.choices[0].message.content.startswith("<state_snapshot>\n## Goal")


def test_title_request_is_beside_the_session(connect: Callable[..., Any]) -> None:
    """A request without tools that asks for no summary moves nothing on."""
    client, running = connect()
    ask(client, PROMPT)
    said = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Name this chat."}])

    assert "Fix the parser." == said.choices[0].message.content
    assert 2 == running.endpoint.state()["next_step"]


def test_unknown_path_and_broken_body_are_told(connect: Callable[..., Any]) -> None:
    """A body without messages gets one line that says so, and counts for nothing."""
    client, running = connect()
    with pytest.raises(openai.BadRequestError, match="messages: expected a list"):
        client.post("/chat/completions", body={"model": "m"}, cast_to=object)

    assert 0 == running.endpoint.count


def responses_call(client: Any, **more: Any) -> Any:
    """A response with the read tool."""
    tool = {"type": "function", "name": "read", "parameters": {"type": "object", "properties": {}}, "strict": False}
    return client.responses.create(model="m", tools=[tool], **more)


def test_responses_protocol(connect: Callable[..., Any]) -> None:
    """Items of the Responses protocol stand for the same turns."""
    client, running = connect()
    first = responses_call(client, input="Fix the parser.", instructions="You code.")
    given = [{"role": "user", "content": "Fix the parser."}, *(item.model_dump() for item in first.output),
             {"type": "function_call_output", "call_id": "call-1", "output": "print(1)"}]
    second = responses_call(client, input=given, instructions="You code.")

    assert ("I look at a.py.", "read") == (first.output_text, first.output[1].name)
    assert ["call-2", "call-3"] == [item.call_id for item in second.output]
    assert [] == running.endpoint.tally.divergences


def test_responses_may_continue_by_id(connect: Callable[..., Any]) -> None:
    """A request that names the response before it is the whole history."""
    client, running = connect()
    first = responses_call(client, input="Fix the parser.")
    result = {"type": "function_call_output", "call_id": "call-1", "output": "print(1)"}
    second = responses_call(client, input=[result], previous_response_id=first.id)

    assert ["call-2", "call-3"] == [item.call_id for item in second.output]
    assert [] == running.endpoint.tally.divergences
    with pytest.raises(openai.BadRequestError, match="resp_gone"):
        responses_call(client, input=[result], previous_response_id="resp_gone")


def test_streamed_responses_are_the_same(connect: Callable[..., Any]) -> None:
    """The events of a stream add up to the recorded response."""
    client, _ = connect()
    with client.responses.stream(model="m", input="Fix the parser.") as stream:
        kinds = [event.type for event in stream]
        whole = stream.get_final_response()

    assert ("I look at a.py.", "read", '{"path":"a.py"}') == (
        whole.output_text, whole.output[1].name, whole.output[1].arguments)
    assert ("response.created", "response.completed") == (kinds[0], kinds[-1])


def test_streamed_response_that_is_too_long_fails_in_the_stream(connect: Callable[..., Any]) -> None:
    """OpenAI tells it as an event, which is where harnesses look."""
    client, _ = connect(refuse={1: 1})
    events = list(responses_call(client, input="Fix the parser.", stream=True))

    assert ("response.failed", "context_length_exceeded") == (events[-1].type, events[-1].response.error.code)
