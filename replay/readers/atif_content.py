"""Parts of ATIF steps as blocks and usage."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from replay.blocks import Block, Image, Opaque, Reasoning, Text, ToolCall
from replay.readers.common import image, json_text, whole
from replay.readers.native import mapping
from replay.transcript import Usage


def content_blocks(content: Any) -> list[Block]:
    """A message or a result: a string, or parts of text, images and other media (1.6 and later)."""
    if isinstance(content, str):
        return [Text(text=content)] if content else []
    parts = content if isinstance(content, list) else [] if content is None else [content]
    return [_part(part) for part in parts]


def _part(part: Any) -> Block:
    if not isinstance(part, dict):
        return Text(text=json_text(part))
    if isinstance(part.get("text"), str):
        return Text(text=part["text"])
    source = part.get("source")
    if isinstance(source, dict) and part.get("type") == "image":
        return _image(source)
    return Opaque(label=str(part.get("type") or "part"), size_bytes=len(json_text(part)))


def _image(source: Mapping[str, Any]) -> Image:
    """An image by its data; where only its place is recorded, that place stands for it and the size is 0."""
    mime, path = str(source.get("media_type") or "image/png"), source.get("path")
    data = source.get("data") or (path if isinstance(path, str) and path.startswith("data:") else None)
    if isinstance(data, str):
        return image(mime, data)
    return Image(mime=mime, size_bytes=0, sha256=hashlib.sha256(json_text(path).encode()).hexdigest())


def reasoning_blocks(step: Mapping[str, Any]) -> list[Block]:
    """The reasoning of a step."""
    text = step.get("reasoning_content")
    return [Reasoning(text=text)] if isinstance(text, str) and text else []


def call_of(native: Mapping[str, Any], call_id: str) -> ToolCall:
    """A tool call."""
    arguments = native.get("arguments")
    return ToolCall(id=call_id, name=str(native.get("function_name") or "unknown"),
                    arguments="{}" if arguments is None else json_text(arguments),
                    is_object=not isinstance(arguments, str))


def usage_of(metrics: Any) -> Usage | None:
    """The usage of a step; its prompt count includes the cache, what was written to it stands in `extra`."""
    if not isinstance(metrics, dict):
        return None
    extra, total = mapping(metrics.get("extra")), whole(metrics.get("prompt_tokens"))
    read = min(whole(metrics.get("cached_tokens")), total)
    if not extra:
        return Usage(input_uncached=total - read, cache_read=read, output=whole(metrics.get("completion_tokens")))
    write = min(_written(extra), total - read)
    hour = min(_for_an_hour(extra), write)
    return Usage(input_uncached=total - read - write, cache_read=read, cache_write_5m=write - hour, cache_write_1h=hour,
                 output=whole(metrics.get("completion_tokens")), reasoning=_reasoning(extra))


def _written(extra: Mapping[str, Any]) -> int:
    names = ("cache_creation_input_tokens", "cache_write_tokens", "cache_creation_tokens")
    return next((count for name in names if (count := whole(extra.get(name)))), 0)


def _for_an_hour(extra: Mapping[str, Any]) -> int:
    return whole(mapping(extra.get("cache_creation")).get("ephemeral_1h_input_tokens"))


def _reasoning(extra: Mapping[str, Any]) -> int:
    return whole(extra.get("reasoning_tokens")) or whole(extra.get("reasoning_output_tokens"))
