"""Digests: what makes two messages the same, and what does not."""

from __future__ import annotations

import pytest

from replay.blocks import Block, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from replay.canonical import CHAIN_START, chain_of, digest, digests, link
from replay.transcript import Message, Role


def message(*blocks: Block, role: Role = "user") -> Message:
    """A message that is in no log."""
    return Message(index=-1, role=role, blocks=blocks, origin="human", line=7, time=1.0)


def call(arguments: str, call_id: str = "c1", name: str = "Read") -> Message:
    """A message with one call."""
    return message(ToolCall(id=call_id, name=name, arguments=arguments), role="assistant")


@pytest.mark.parametrize(("one", "two"), [
    (call('{"a":1,"b":[2]}'), call('{ "b" : [2],\n "a" : 1 }')), (call("{}", "x"), call("{}", "y")),
    (message(ToolResult(call_id="x", text="t", name="Read")), message(ToolResult(call_id="y", text="t"))),
])
def test_same_to_the_model(one: Message, two: Message) -> None:
    """The order of keys, spaces in arguments and the names of ids make no difference."""
    assert digest(one) == digest(two)


A = Text(text="a")


@pytest.mark.parametrize(("one", "two"), [
    (message(A), message(Text(text="b"))),
    (message(A), message(A, role="assistant")),
    (message(A), message(Reasoning(text="a"))),
    (message(A), message(A, Text(text=""))),
    (message(Text(text="é")), message(Text(text="e\u0301"))),
    (message(Text(text="a\n")), message(Text(text="a\r\n"))),
    (call("{}"), call("{}", name="Write")),
    (call('{"a":1}'), call('{"a":"1"}')),
    (call("not json"), call('"not json"')),
    (message(Image(mime="image/png", size_bytes=1, sha256="0")),
     message(Image(mime="image/png", size_bytes=1, sha256="1"))),
    (message(Opaque(label="sealed", size_bytes=1)), message(Opaque(label="sealed", size_bytes=2))),
])
def test_different_to_the_model(one: Message, two: Message) -> None:
    """Text to the last character, role, kind of block, name, values, images and sizes all count."""
    assert digest(one) != digest(two)


def test_ids_count_by_first_appearance() -> None:
    """Two calls with ids that change places are still told apart within one log."""
    crossed = [call("{}", "a"), call("{}", "b"), message(ToolResult(call_id="b", text="t"))]
    straight = [call("{}", "a"), call("{}", "b"), message(ToolResult(call_id="a", text="t"))]
    renamed = [call("{}", "1"), call("{}", "2"), message(ToolResult(call_id="2", text="t"))]

    assert digests(crossed) != digests(straight)
    assert digests(crossed) == digests(renamed)


@pytest.mark.parametrize("odd", [message(Text(text="\ud800")), call("{" * 3), call("[" * 400 + "]" * 400),
                                 call("1e999")])
def test_odd_content_has_a_digest(odd: Message) -> None:
    """Half a surrogate pair, arguments that are no JSON and arguments nested deeply are digested all the same."""
    assert 32 == len(digest(odd))
    assert digest(odd) == digest(odd)


def test_chain_depends_on_every_link_and_its_place() -> None:
    """A chain is the fold of its links from a fixed start; swapping two changes it."""
    one, two = digest(message(Text(text="a"))), digest(message(Text(text="b")))

    assert link(link(CHAIN_START, one), two) == chain_of([one, two])
    assert chain_of([one, two]) != chain_of([two, one])
    assert CHAIN_START == chain_of([])
