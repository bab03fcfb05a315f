"""Parts of OpenCode's messages as blocks, and its token counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from replay.blocks import Block, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from replay.readers.common import image, json_text, whole
from replay.readers.odd_types import OddTypes
from replay.readers.opencode_records import mapping, plain
from replay.transcript import Usage

MARKER = "What did we do so far?"
"""What the model is shown for a part of type `compaction`."""
RUN_BY_PERSON = "The following tool was executed by the user"
"""What the model is shown for a part of type `subtask`; a shell command of the person is introduced so too."""
INTERRUPTED = "[Tool execution was interrupted]"
"""What later requests hold for a call that never ended."""
_QUIET = frozenset({"step-start", "step-finish", "snapshot", "patch", "agent", "retry", "compaction", "tool"})
_AS_TEXT = frozenset({"text/plain", "application/x-directory"})
"""Attached files of these types are told in text parts of their own."""
_SEALED = frozenset({"signature", "reasoningEncryptedContent", "redactedData"})


def user_blocks(parts: Sequence[Mapping[str, Any]], odd: OddTypes, line: int | None) -> Iterator[tuple[bool, Block]]:
    """The blocks of a user message, each with whether the program wrote it."""
    for part in parts:
        kind = str(part.get("type"))
        if kind == "text":
            if isinstance(part.get("text"), str) and not part.get("ignored"):
                yield bool(part.get("synthetic")), Text(text=part["text"])
        elif kind == "file":
            if str(part.get("mime")) not in _AS_TEXT:
                yield bool(part.get("synthetic")), file_block(part)
        elif kind == "subtask":
            yield True, Text(text=RUN_BY_PERSON)
        elif kind not in _QUIET:
            odd.add(kind, line or 0, 0)
            yield True, Opaque(label=str(kind), size_bytes=len(json_text(part)))


def response_block(part: Mapping[str, Any], odd: OddTypes, line: int | None) -> Block | None:
    """The block of a part of a response that is no tool call; None for what the model never sees."""
    kind = str(part.get("type"))
    if kind == "text":
        text = part.get("text")
        return Text(text=text) if isinstance(text, str) and text else None
    if kind == "reasoning":
        return _reasoning(part)
    if kind == "file":
        return file_block(part)
    if kind in _QUIET:
        return None
    odd.add(kind, line or 0, 0)
    return Opaque(label=str(kind), size_bytes=len(json_text(part)))


def _reasoning(part: Mapping[str, Any]) -> Reasoning:
    text = part.get("text")
    sealed = sum(len(value) for told in mapping(part.get("metadata")).values() if isinstance(told, dict)
                 for name, value in told.items() if name in _SEALED and isinstance(value, str))
    return Reasoning(text=text if isinstance(text, str) else "", opaque_bytes=sealed)


def file_block(part: Mapping[str, Any]) -> Image | Opaque:
    """An attached file: an image by hash, anything else by type and size."""
    mime, url = str(part.get("mime") or "application/octet-stream"), part.get("url")
    if not (isinstance(url, str) and url.startswith("data:")):
        return Opaque(label=f"{mime} {plain(part.get('filename')) or url or ''}".strip(), size_bytes=0)
    found = image(mime, url)
    return found if mime.startswith("image/") else Opaque(label=mime, size_bytes=found.size_bytes)


def call_block(part: Mapping[str, Any], call_id: str) -> ToolCall:
    """The call of a tool part."""
    state = mapping(part.get("state"))
    given = state.get("input")
    if not given and isinstance(state.get("raw"), str) and state["raw"]:
        given = state["raw"]
    return ToolCall(id=call_id, name=plain(part.get("tool")) or "unknown",
                    arguments=json_text({} if given is None else given), is_object=not isinstance(given, str))


def result_block(part: Mapping[str, Any], call_id: str) -> ToolResult | None:
    """The result of a tool part, in full even where it was pruned later; None while the tool runs."""
    state = mapping(part.get("state"))
    text, is_error, status = state.get("output"), False, state.get("status")
    if status == "error":
        told = mapping(state.get("metadata"))
        if told.get("interrupted") is True and isinstance(told.get("output"), str):
            text = told["output"]
        else:
            text, is_error = state.get("error"), True
    elif status != "completed":
        return None
    files = state.get("attachments")
    shown = [file_block(f) for f in files if isinstance(f, dict)] if isinstance(files, list) else []
    return ToolResult(call_id=call_id, text="" if text is None else json_text(text), name=plain(part.get("tool")),
                      images=tuple(f for f in shown if isinstance(f, Image)), is_error=is_error)


def pruned_at(part: Mapping[str, Any]) -> float | None:
    """When the result of a tool part was pruned, in milliseconds; None if it was not."""
    moment = mapping(mapping(part.get("state")).get("time")).get("compacted")
    return float(moment) if isinstance(moment, (int, float)) and not isinstance(moment, bool) and moment else None


def usage_of(native: Any) -> Usage | None:
    """Tokens of a response; the input count excludes the cache, the output count excludes reasoning."""
    if not isinstance(native, dict):
        return None
    cache, thought = mapping(native.get("cache")), whole(native.get("reasoning"))
    return Usage(
        input_uncached=whole(native.get("input")), cache_read=whole(cache.get("read")),
        cache_write_5m=whole(cache.get("write")), output=whole(native.get("output")) + thought, reasoning=thought)


def segments(parts: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The parts of a message by model call: old versions kept several calls in one message."""
    found: list[list[dict[str, Any]]] = [[]]
    for part in parts:
        if part.get("type") == "step-start" and any(p.get("type") in ("text", "reasoning", "tool", "step-finish")
                                                    for p in found[-1]):
            found.append([])
        found[-1].append(part)
    return found
