"""Items of a captured request as pieces with a role: of chat, Responses, Anthropic, Gemini and Pydantic-AI requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from replay.blocks import Block, Opaque, Text, ToolCall, ToolResult
from replay.readers.common import json_text
from replay.readers.native import mapping, objects, string
from replay.transcript import Role

_ROLES: Mapping[str, Role] = {"system": "system", "developer": "developer", "user": "user", "assistant": "assistant",
                              "model": "assistant", "tool": "tool"}
_PYDANTIC_ROLES: Mapping[str, Role] = {"system-prompt": "system", "user-prompt": "user", "tool-return": "tool",
                                       "retry-prompt": "tool", "text": "assistant", "thinking": "assistant",
                                       "tool-call": "assistant"}

NO_ITEM = -1


_NO_TEXT = ("tool_use", "thinking", "redacted_thinking")
"""Blocks of Anthropic's protocol in a response that are no text of it."""


@dataclass(frozen=True)
class Piece:
    """What one speaker said in a request: a message, or a part of one where several speakers share it.

    Every later request shows it again, so what is asked of it is worked out once.
    """

    role: Role
    blocks: tuple[Block, ...]
    item: int
    """Id of the item that it stands in, or that it begins in."""

    @cached_property
    def text(self) -> str:
        """All text and result text, joined by newlines."""
        return "\n".join(b.text for b in self.blocks if isinstance(b, (Text, ToolResult)))

    @cached_property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of a response."""
        return tuple(b for b in self.blocks if isinstance(b, ToolCall))

    @cached_property
    def answers(self) -> tuple[str, ...]:
        """Ids of the calls that it answers."""
        return tuple(b.call_id for b in self.blocks if isinstance(b, ToolResult))


class ItemTable:
    """The distinct items of a capture by id, with the pieces of each."""

    def __init__(self, items: Mapping[int, Any]) -> None:
        """Wrap the table; an item is taken apart when a request first shows it."""
        self._items = items
        self._pieces: dict[int, tuple[Piece, ...]] = {}

    def native(self, number: int) -> Any:
        """The item as it was sent; None where the table lacks it."""
        return self._items.get(number)

    def pieces(self, numbers: Iterable[int]) -> list[Piece]:
        """The pieces of a request's items, in order; a response is one piece."""
        found: list[Piece] = []
        for number in numbers:
            for piece in self._of(number):
                if found and self._same_response(found[-1], piece):
                    found[-1] = replace(found[-1], blocks=found[-1].blocks + piece.blocks)
                else:
                    found.append(piece)
        return found

    def _of(self, number: int) -> tuple[Piece, ...]:
        if number not in self._pieces:
            self._pieces[number] = tuple(_of_item(number, mapping(self.native(number))))
        return self._pieces[number]

    def _same_response(self, before: Piece, piece: Piece) -> bool:
        """The Responses protocol sends the text and each call of a response as items of their own."""
        if not before.role == piece.role == "assistant":
            return False
        return before.item == piece.item or mapping(self.native(piece.item)).get("type") == "function_call"


def _of_item(number: int, native: Mapping[str, Any]) -> Iterator[Piece]:
    if isinstance(native.get("parts"), list):
        yield from _of_parts(number, native)
    elif native.get("type") == "function_call":
        yield Piece("assistant", (_call(native.get("call_id"), native.get("name"), native.get("arguments")),), number)
    elif native.get("type") == "function_call_output":
        result = ToolResult(call_id=_id(native.get("call_id")), text=_text(native.get("output")))
        yield Piece("tool", (result,), number)
    elif native.get("type") == "reasoning":
        return  # stands beside the response that it led to, and says nothing of its own
    elif native.get("role") == "tool":
        result = ToolResult(call_id=_id(native.get("tool_call_id")), name=string(native.get("name")),
                            text=_text(native.get("content")))
        yield Piece("tool", (result,), number)
    else:
        yield from _of_message(number, native)


def _of_message(number: int, native: Mapping[str, Any]) -> Iterator[Piece]:
    """A chat message: a user's text parts are pieces of their own, since different speakers may share them."""
    role = _ROLES.get(str(native.get("role")), "user")
    content = native.get("content")
    named = [(c.get("id"), mapping(c.get("function"))) for c in objects(native.get("tool_calls"))]
    calls = tuple(_call(i, function.get("name"), function.get("arguments")) for i, function in named)
    if role == "user" and isinstance(content, list):
        yield from (_user_part(part, number) for part in content)
        return
    if isinstance(content, list):
        calls += tuple(_call(p.get("id"), p.get("name"), p.get("input")) for p in objects(content)
                       if p.get("type") == "tool_use")
        content = [p for p in content if mapping(p).get("type") not in _NO_TEXT]
    text = _text(content)
    yield Piece(role, (*((Text(text=text),) if text or not calls else ()), *calls), number)


def _user_part(part: Any, number: int) -> Piece:
    """A part of what a user message holds: in Anthropic's protocol that is also where results stand."""
    native = mapping(part)
    if native.get("type") != "tool_result":
        return Piece("user", (Text(text=_text([part])),), number)
    result = ToolResult(call_id=_id(native.get("tool_use_id")), text=_text(native.get("content")),
                        is_error=native.get("is_error") is True)
    return Piece("tool", (result,), number)


def _of_parts(number: int, native: Mapping[str, Any]) -> Iterator[Piece]:
    """A Gemini content or a Pydantic-AI message; parts of a response go together, others are pieces."""
    speaker = _ROLES.get(str(native.get("role")), "user")
    for part in objects(native["parts"]):
        kind = string(part.get("part_kind"))
        role = _PYDANTIC_ROLES.get(kind, speaker) if kind else "tool" if "functionResponse" in part else speaker
        yield Piece(role, (_pydantic_block(part, kind) if kind else _gemini_block(part),), number)


def _pydantic_block(part: Mapping[str, Any], kind: str) -> Block:
    if kind == "tool-call":
        return _call(part.get("tool_call_id"), part.get("tool_name"), part.get("args"))
    if kind in ("tool-return", "retry-prompt"):
        return ToolResult(call_id=_id(part.get("tool_call_id")), name=string(part.get("tool_name")),
                          text=_text(part.get("content")))
    return Text(text=_text(part.get("content")))


def _gemini_block(part: Mapping[str, Any]) -> Block:
    if isinstance(part.get("functionCall"), dict):
        call = part["functionCall"]
        return _call(call.get("id"), call.get("name"), call.get("args"))
    if isinstance(part.get("functionResponse"), dict):
        answer = part["functionResponse"]
        output = mapping(answer.get("response"))
        text = output["output"] if isinstance(output.get("output"), str) else json_text(answer.get("response"))
        return ToolResult(call_id=_id(answer.get("id")), name=string(answer.get("name")), text=text)
    text = part.get("text")
    return Text(text=text) if isinstance(text, str) else Opaque(label="part", size_bytes=len(json_text(part)))


def _call(call_id: Any, name: Any, arguments: Any) -> ToolCall:
    return ToolCall(id=_id(call_id), name=string(name) or "unknown", arguments=json_text(arguments),
                    is_object=not isinstance(arguments, str))


def _id(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _text(content: Any) -> str:
    """Text of a content: a string, text parts joined, or a card for a prompt that the capture left out."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict) and "replaced" in content:
        return f"[{content['replaced']}, {content.get('chars')} characters, sha256 {str(content.get('sha256'))[:16]}]"
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") if isinstance(part, dict) else str(part) for part in content)
    return "" if content is None else json_text(content)


def result_piece(call_id: str, text: str) -> Piece:
    """A result that stands in no item of the table."""
    return Piece("tool", (ToolResult(call_id=call_id, text=text),), NO_ITEM)


def is_left_out(native: Any) -> bool:
    """Whether a capture holds only the length and digest of an item's text."""
    return isinstance(mapping(mapping(native).get("content")).get("replaced"), str)


def response_blocks(response: Mapping[str, Any]) -> list[Block]:
    """The blocks of what the model answered."""
    text = string(response.get("text"))
    calls = [_call(c.get("id"), c.get("name"), c.get("arguments")) for c in objects(response.get("tool_calls"))]
    return [*([Text(text=text)] if text else []), *calls]
