"""Messages of a view as chat messages that Opik shows well and that can be read back without loss.

The plain spelling of chat is used wherever it says everything; else the content is a list of parts. Images stand as a
card with their hash, since a transcript does not keep their data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from replay.blocks import Block, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from replay.transcript import Message

_LEAST_KEPT = 200
"""Characters of a text that are kept however small a view must become."""


def chat_messages(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Messages in chat spelling, one for each."""
    return [chat_message(m) for m in messages]


def chat_message(message: Message) -> dict[str, Any]:
    """One message in chat spelling."""
    if message.role == "assistant":
        return _assistant(message)
    blocks = message.blocks
    if len(blocks) == 1 and isinstance(result := blocks[0], ToolResult) and result.call_id and _is_plain(result.text):
        return _result(result)
    return {"role": message.role, "content": _content(blocks)}


def _result(result: ToolResult) -> dict[str, Any]:
    shaped: dict[str, Any] = {"role": "tool", "tool_call_id": result.call_id, "content": _result_content(result)}
    if result.name:
        shaped["name"] = result.name
    return shaped | ({"is_error": True} if result.is_error else {})


def _assistant(message: Message) -> dict[str, Any]:
    said = [b for b in message.blocks if not isinstance(b, ToolCall)]
    calls = message.calls
    if list(message.blocks) != [*said, *calls]:
        return {"role": "assistant", "content": _content(message.blocks)}
    shaped: dict[str, Any] = {"role": "assistant"}
    if said and isinstance(first := said[0], Reasoning) and first.text:
        shaped["reasoning_content"] = first.text
        said = said[1:]
    shaped["content"] = _content(said)
    listed = [{"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}} for c in calls]
    return shaped | ({"tool_calls": listed} if listed else {})


def _content(blocks: Sequence[Block]) -> str | list[dict[str, Any]]:
    """Text where that is all there is, else parts."""
    if not blocks:
        return ""
    if len(blocks) == 1 and isinstance(only := blocks[0], Text) and only.text and _is_plain(only.text):
        return only.text
    return [_part(b) for b in blocks]


def _is_plain(text: str) -> bool:
    """Whether a reader will not take the text for parts that were written as JSON."""
    return not text.startswith('[{"type"')


def _part(block: Block) -> dict[str, Any]:
    if isinstance(block, ToolCall):
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.arguments}
    if isinstance(block, ToolResult):
        shaped = {"type": "tool_result", "tool_use_id": block.call_id, "content": _result_content(block)}
        return shaped | ({"name": block.name} if block.name else {}) | ({"is_error": True} if block.is_error else {})
    if isinstance(block, Reasoning):
        return {"type": "reasoning", "text": block.text}
    return {"type": "text", "text": block.text if isinstance(block, Text) else _card(block)}


def _result_content(result: ToolResult) -> str | list[dict[str, Any]]:
    if not result.images:
        return result.text
    return [_part(Text(text=result.text)), *map(_part, result.images)]


def _card(block: Image | Opaque) -> str:
    if isinstance(block, Image):
        return f"[image {block.mime}, {block.size_bytes:,} bytes, sha256 {block.sha256}]"
    return f"[{block.label}, {block.size_bytes:,} bytes, not readable]"


def within(value: Any, most_bytes: int) -> tuple[Any, bool]:
    """Plain data whose JSON is about `most_bytes` long at most, and whether texts had to be cut for it; 0: no bound.

    The longest texts are cut first, in their middle, and say how much is missing.
    """
    if not most_bytes or len(orjson.dumps(value)) <= most_bytes:
        return value, False
    lengths = sorted(map(len, _texts(value)))
    room = most_bytes - (len(orjson.dumps(value)) - sum(lengths))
    return _cut(value, max(_fair_share(lengths, room), _LEAST_KEPT)), True


def _fair_share(lengths: Sequence[int], room: int) -> int:
    """The length to which texts must be cut so that all fit; `lengths` in rising order."""
    for place, length in enumerate(lengths):
        share = room // (len(lengths) - place)
        if length > share:
            return share
        room -= length
    return 0


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _cut(value: Any, most: int) -> Any:
    if isinstance(value, str) and len(value) > most:
        kept = most // 2
        return f"{value[:kept]}\n[… {len(value) - 2 * kept:,} characters left out …]\n{value[-kept:]}"
    if isinstance(value, dict):
        return {key: _cut(inner, most) for key, inner in value.items()}
    return [_cut(inner, most) for inner in value] if isinstance(value, list) else value
