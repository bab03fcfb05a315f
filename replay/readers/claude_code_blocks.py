"""Blocks and usage from the Anthropic-style messages inside Claude Code records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from replay.blocks import Block, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from replay.readers.common import image, json_text, whole
from replay.transcript import Usage

UNKNOWN_BLOCK = "unknown-block"
"""Code of a complaint whose words are the type of a block that nobody knows."""
_OPAQUE = frozenset({
    "server_tool_use", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
    "bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "tool_search_tool_result",
    "mcp_tool_use", "mcp_tool_result", "container_upload", "search_result", "tool_reference", "compaction", "fallback"})
"""Types of blocks that are known, and sent as they stand."""
Complain = Callable[[str, str], None]
"""Takes the code and the words of a note about the line at hand."""


def blocks_of(content: Any, complain: Complain) -> list[Block]:
    """The blocks of a message's content, tool results left out; anything malformed is complained about."""
    if isinstance(content, str):
        return [Text(text=content)] if content else []
    if not isinstance(content, list):
        complain("no-content", "a message without usable content; kept as an empty message")
        return []
    found: list[Block] = []
    for part in content:
        if not isinstance(part, dict):
            complain("bad-block", f"a content block is {type(part).__name__}, not an object; read as text")
            found.append(Text(text=part if isinstance(part, str) else json_text(part)))
        elif part.get("type") != "tool_result":
            found.append(_block(part, complain))
    return found


def is_result(part: Any) -> bool:
    """Whether a part of a message's content is a tool result."""
    return isinstance(part, dict) and part.get("type") == "tool_result"


def merged(contents: Iterable[Any]) -> Any:
    """The content of one response from the contents of its rows, in order.

    Each row holds the next block. What a row repeats from its start is taken once, and so is each call.
    """
    parts: list[Any] = []
    calls: set[str] = set()
    for content in contents:
        row = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(row, list):
            continue
        if parts and row[:len(parts)] == parts:
            row = row[len(parts):]
        for part in row:
            call = part.get("id") if isinstance(part, dict) and part.get("type") == "tool_use" else None
            if isinstance(call, str):
                if call in calls:
                    continue
                calls.add(call)
            parts.append(part)
    return parts


def _block(part: Mapping[str, Any], complain: Complain) -> Block:
    kind = part.get("type")
    if kind == "text":
        return Text(text=_string(part, "text", complain))
    if kind == "tool_use":
        return _call(part, complain)
    if kind == "thinking":
        return Reasoning(text=_string(part, "thinking", complain), opaque_bytes=_length(part.get("signature")))
    if kind == "redacted_thinking":
        return Reasoning(text="", opaque_bytes=_length(part.get("data")))
    if kind == "image":
        return _image(part)
    if kind == "document":
        return _document(part)
    if not isinstance(kind, str) or kind not in _OPAQUE:
        complain(UNKNOWN_BLOCK, str(kind))
    return Opaque(label=str(kind), size_bytes=len(json_text(part).encode("utf-8", "replace")))


def _string(part: Mapping[str, Any], key: str, complain: Complain) -> str:
    found = part.get(key)
    if isinstance(found, str):
        return found
    complain("bad-block", f"the {key} of a block is {type(found).__name__}, not a string")
    return "" if found is None else json_text(found)


def _length(value: Any) -> int:
    return len(value.encode("utf-8", "replace")) if isinstance(value, str) else 0


def _call(part: Mapping[str, Any], complain: Complain) -> ToolCall:
    call_id, name, arguments = part.get("id"), part.get("name"), part.get("input")
    if not isinstance(call_id, str) or not isinstance(name, str):
        complain("bad-block", "a tool call without an id or a name; it cannot be paired")
    return ToolCall(id=call_id if isinstance(call_id, str) else "", name=name if isinstance(name, str) else "",
                    arguments=json_text({} if arguments is None else arguments),
                    is_object=not isinstance(arguments, str))


def _image(part: Mapping[str, Any]) -> Image:
    source = part.get("source")
    source = source if isinstance(source, dict) else {}
    mime = source.get("media_type")
    return image(mime if isinstance(mime, str) else "", source.get("data") or source.get("url"))


def _document(part: Mapping[str, Any]) -> Block:
    source = part.get("source")
    source = source if isinstance(source, dict) else {}
    data = source.get("data")
    if source.get("type") == "text" and isinstance(data, str):
        return Text(text=data)
    return Opaque(label="document", size_bytes=_length(data))


def result_of(part: Mapping[str, Any], call_id: str, name: str | None) -> ToolResult:
    """A tool result as the model saw it: the texts joined by newlines, images by hash."""
    content = part.get("content")
    is_error = part.get("is_error") is True
    if isinstance(content, str):
        return ToolResult(call_id=call_id, text=content, name=name, is_error=is_error)
    texts, images = _result_parts(content if isinstance(content, list) else [] if content is None else [content])
    return ToolResult(call_id=call_id, text="\n".join(texts), name=name, images=images, is_error=is_error)


def _result_parts(content: Iterable[Any]) -> tuple[list[str], tuple[Image, ...]]:
    texts: list[str] = []
    images: list[Image] = []
    for part in content:
        if isinstance(part, dict) and part.get("type") == "image":
            images.append(_image(part))
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            texts.append(part["text"])
        else:
            texts.append(json_text(part))
    return texts, tuple(images)


def usage_of(rows: Iterable[Any]) -> Usage | None:
    """Usage of one response from the `usage` of its lines: that with the largest output, the last of equals."""
    best, most = None, -1
    for row in rows:
        if isinstance(row, dict) and (output := whole(row.get("output_tokens"))) >= most:
            best, most = row, output
    return None if best is None else _usage(best)


def _usage(row: Mapping[str, Any]) -> Usage:
    split = row.get("cache_creation")
    split = split if isinstance(split, dict) else {}
    hour, short = whole(split.get("ephemeral_1h_input_tokens")), whole(split.get("ephemeral_5m_input_tokens"))
    # Writes that the split does not cover were made with the default lifetime.
    short += max(0, whole(row.get("cache_creation_input_tokens")) - hour - short)
    return Usage(input_uncached=whole(row.get("input_tokens")), cache_read=whole(row.get("cache_read_input_tokens")),
                 cache_write_5m=short, cache_write_1h=hour, output=whole(row.get("output_tokens")),
                 side=_side(row.get("iterations")))


def _side(iterations: Any) -> Usage | None:
    """Passes of the service itself (such as its own compaction), which the row's sums leave out."""
    if not isinstance(iterations, list) or len(iterations) < 2:
        return None
    passes = [i for i in iterations if isinstance(i, dict) and i.get("type") not in ("message", None)]
    return sum((_usage({**i, "iterations": None}) for i in passes), Usage()) if passes else None
