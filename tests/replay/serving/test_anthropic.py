"""The real Anthropic client against the endpoint, streamed and whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

anthropic = pytest.importorskip("anthropic", reason="the anthropic package is not installed")
PROMPT = {"role": "user", "content": "Fix the parser."}
TOOLS = [{"name": "read", "input_schema": {"type": "object", "properties": {}}}]


@pytest.fixture
def connect(serve: Callable[..., Any]) -> Iterator[Callable[..., Any]]:
    """A client of a running endpoint, and the endpoint."""
    clients: list[Any] = []

    def make(**settings: Any) -> Any:
        running = serve(**settings)
        clients.append(anthropic.Anthropic(base_url=running.url, api_key="none", max_retries=0))
        return clients[-1], running
    yield make
    for client in clients:
        client.close()


def ask(client: Any, *messages: Any) -> Any:
    """A message with the read tool."""
    return client.messages.create(model="m", max_tokens=100, system="You code.", messages=list(messages), tools=TOOLS)


def later(first: Any, result: str = "print(1)") -> list[Any]:
    """The second request: what came, and the result of its call."""
    block = {"type": "tool_result", "tool_use_id": "call-1", "content": [{"type": "text", "text": result}]}
    return [PROMPT, {"role": "assistant", "content": [b.model_dump() for b in first.content]},
            {"role": "user", "content": [block, {"type": "text", "text": "<reminder>", "cache_control": {"type": "ephemeral"}}]}]


def test_recorded_turns_come_in_order(connect: Callable[..., Any]) -> None:
    """Text and tool use of each turn, with the recorded usage split as Anthropic splits it."""
    client, running = connect(usage="recorded")
    first = ask(client, PROMPT)
    second = ask(client, *later(first))

    assert ["I look at a.py.", {"path": "a.py"}] == [first.content[0].text, first.content[1].input]
    assert ("tool_use", 100, 900, 20) == (first.stop_reason, first.usage.input_tokens,
                                          first.usage.cache_read_input_tokens, first.usage.output_tokens)
    assert ["call-2", "call-3"] == [b.id for b in second.content]
    assert [] == running.endpoint.tally.divergences


def test_streamed_message_is_the_same(connect: Callable[..., Any]) -> None:
    """The events of a stream add up to the recorded response."""
    client, _ = connect()
    with client.messages.stream(model="m", max_tokens=100, messages=[PROMPT], tools=TOOLS) as stream:
        whole = stream.get_final_message()

    assert ("I look at a.py.", "read", {"path": "a.py"}, "tool_use") == (
        whole.content[0].text, whole.content[1].name, whole.content[1].input, whole.stop_reason)


def test_refusal_is_anthropics(connect: Callable[..., Any]) -> None:
    """The words by which harnesses know that a prompt is too long."""
    client, _ = connect(limit=30)

    with pytest.raises(anthropic.BadRequestError, match=r"prompt is too long: \d+ tokens > 30 maximum"):
        ask(client, PROMPT, {"role": "user", "content": "word " * 100})


def test_other_result_is_a_divergence(connect: Callable[..., Any]) -> None:
    """A result that is not the recorded one stops the run, with the step."""
    client, running = connect()
    first = ask(client, PROMPT)

    with pytest.raises(anthropic.UnprocessableEntityError, match="stopped at step 2: result"):
        ask(client, *later(first, "print(2)"))
    assert 1 == len(running.told)


def test_tokens_are_counted_without_moving_on(connect: Callable[..., Any]) -> None:
    """What the endpoint for counting says is what a request would be billed."""
    client, running = connect()
    counted = client.messages.count_tokens(model="m", system="You code.", messages=[PROMPT], tools=TOOLS).input_tokens

    assert 1 == running.endpoint.state()["next_step"]
    assert counted == ask(client, PROMPT).usage.input_tokens
