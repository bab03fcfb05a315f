"""pydantic-ai messages, as Decode stores them, into blocks and usage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from replay.blocks import Block, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from replay.readers.call_ids import CallIds
from replay.readers.common import image, json_text, seconds, whole
from replay.readers.odd_types import OddTypes
from replay.transcript import Origin, Role, Usage

_URL_SAFE = str.maketrans("-_", "+/")
_QUIET = frozenset({"instruction-delta", "instruction-digest", "instruction-baseline", "tool-availability-delta",
                    "capability-load-delta", "model-settings-delta"})
"""Request parts that steer the framework and are not text for the model."""
_FAULTS = frozenset({"failed", "denied", "interrupted", "retried"})


class Group(NamedTuple):
    """The parts of one native request that make one message of the log."""

    role: Role
    origin: Origin
    blocks: list[Block]
    detail: str | None = None


def parts_of(native: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The part objects of a message."""
    parts = native.get("parts")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def time_of(native: Mapping[str, Any]) -> float | None:
    """When a message was made: its own time, else its first part's."""
    own = seconds(native.get("timestamp"))
    if own is not None:
        return own
    return next((t for part in parts_of(native) if (t := seconds(part.get("timestamp"))) is not None), None)


def request_groups(native: Mapping[str, Any], ids: CallIds, odd: OddTypes, line: int = 0, byte: int = 0) -> list[Group]:
    """The messages of a request: tool results together, prompts together, each kind where its first part stands."""
    groups: dict[str, Group] = {}
    for part in parts_of(native):
        found = _request_part(part, ids, odd, line, byte)
        if found is not None:
            key = found.role if found.origin == "tool" else f"{found.role} {found.origin}"
            groups.setdefault(key, found._replace(blocks=[])).blocks.extend(found.blocks)
    return list(groups.values())


def _request_part(part: Mapping[str, Any], ids: CallIds, odd: OddTypes, line: int, byte: int) -> Group | None:
    kind = str(part.get("part_kind"))
    if kind == "tool-return" or (kind == "retry-prompt" and part.get("tool_name")):
        return Group("tool", "tool", [_result(part, ids)])
    if kind == "user-prompt":
        return Group("user", "human", user_blocks(part.get("content")))
    if kind in ("retry-prompt", "retry-feedback", "compaction"):
        return Group("user", "injected", [Text(text=result_text(part.get("content")))], kind)
    if kind in ("system-prompt", "instruction"):
        return Group("system", "system", [Text(text=result_text(part.get("content")))])
    if kind not in _QUIET:
        odd.add(f"request part {kind}", line, byte)
        return Group("user", "injected", [_opaque(part)], kind)
    return None


def _result(part: Mapping[str, Any], ids: CallIds) -> ToolResult:
    content, name = part.get("content"), part.get("tool_name")
    fault = part.get("part_kind") == "retry-prompt" or str(part.get("outcome")) in _FAULTS
    return ToolResult(call_id=ids.result(_id(part)), text=result_text(content), images=_images(content),
                      name=name if isinstance(name, str) else None, is_error=fault)


def result_text(content: Any) -> str:
    """What a tool gave back, as text: a string as it stands, nothing as empty, else JSON without its files."""
    if isinstance(content, str):
        return content
    if content is None or _is_file(content):
        return ""
    if isinstance(content, list) and any(map(_is_file, content)):
        return "\n".join(json_text(item) for item in content if not _is_file(item))
    return json_text(content)


def _is_file(value: Any) -> bool:
    return isinstance(value, dict) and value.get("kind") == "binary" and "data" in value


def _images(content: Any) -> tuple[Image, ...]:
    if isinstance(content, str):
        return ()
    items = content if isinstance(content, list) else [content]
    return tuple(found for item in items if _is_file(item) and isinstance(found := _file(item), Image))


def user_blocks(content: Any) -> list[Block]:
    """The blocks of a user prompt: a string, or a list of text, files and links."""
    if isinstance(content, str):
        return [Text(text=content)] if content else []
    items = content if isinstance(content, list) else [content]
    return [block for item in items if (block := _user_block(item)) is not None]


def _user_block(item: Any) -> Block | None:
    if isinstance(item, str):
        return Text(text=item)
    if not isinstance(item, dict) or item.get("kind") == "cache-point":
        return None
    if _is_file(item):
        return _file(item)
    if isinstance(item.get("content"), str):
        return Text(text=item["content"])
    url = item.get("url")
    if isinstance(url, str) and url.startswith("data:image/"):
        return image("image/png", url)
    return _opaque(item)


def _file(item: Mapping[str, Any]) -> Image | Opaque:
    mime = str(item.get("media_type") or "application/octet-stream")
    data = item["data"] if isinstance(item["data"], str) else ""
    found = image(mime, data.translate(_URL_SAFE) if "-" in data or "_" in data else data)
    return found if mime.startswith("image/") else Opaque(label=mime, size_bytes=found.size_bytes)


def _opaque(part: Mapping[str, Any]) -> Opaque:
    label = part.get("part_kind") or part.get("kind") or "unknown"
    return Opaque(label=str(label), size_bytes=len(json_text(part)))


def response_blocks(native: Mapping[str, Any], ids: CallIds, odd: OddTypes, line: int = 0,
                    byte: int = 0) -> list[Block]:
    """The blocks of a model response, in order."""
    blocks: list[Block] = []
    for part in parts_of(native):
        kind = part.get("part_kind")
        if kind == "tool-call":
            blocks.append(_call(part, ids))
        elif kind == "text":
            blocks.extend(user_blocks(part.get("content")))
        elif kind == "thinking":
            signature = part.get("signature")
            blocks.append(Reasoning(text=result_text(part.get("content")),
                                    opaque_bytes=len(signature) if isinstance(signature, str) else 0))
        elif kind == "file" and _is_file(part.get("content")):
            blocks.append(_file(part["content"]))
        else:
            if kind not in ("builtin-tool-call", "builtin-tool-return", "compaction", "file"):
                odd.add(f"response part {kind}", line, byte)
            blocks.append(_opaque(part))
    return blocks


def _call(part: Mapping[str, Any], ids: CallIds) -> ToolCall:
    arguments = part.get("args")
    return ToolCall(id=ids.call(_id(part)), name=str(part.get("tool_name") or "unknown"),
                    arguments="{}" if arguments is None else json_text(arguments),
                    is_object=not isinstance(arguments, str))


def _id(part: Mapping[str, Any]) -> str:
    value = part.get("tool_call_id")
    return value if isinstance(value, str) else "" if value is None else str(value)


def usage_of(native: Any) -> Usage | None:
    """The usage of a response; its input count includes cache reads and writes, its output count reasoning."""
    if not isinstance(native, dict):
        return None
    details = native.get("details") if isinstance(native.get("details"), dict) else {}
    total = whole(native.get("input_tokens")) or whole(native.get("request_tokens"))
    read = min(whole(native.get("cache_read_tokens")), total)
    write = min(whole(native.get("cache_write_tokens")), total - read)
    hour = min(whole(native.get("cache_write_1h_tokens")), write)
    thought = whole(native.get("output_reasoning_tokens")) or whole((details or {}).get("reasoning_tokens"))
    return Usage(input_uncached=total - read - write, cache_read=read, cache_write_5m=write - hour, cache_write_1h=hour,
                 output=whole(native.get("output_tokens")) or whole(native.get("response_tokens")), reasoning=thought)
