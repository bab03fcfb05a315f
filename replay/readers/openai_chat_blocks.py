"""OpenAI-style content, chat and Responses spelling, into blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from replay.blocks import Block, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from replay.readers.call_ids import CallIds
from replay.readers.common import image, json_text

_CALL_PARTS = ("tool_call", "tool_use")
RESULT_PARTS = ("tool_result", "tool_response")
"""Types of content parts that hold a tool's result."""


@dataclass
class Pairing:
    """Log ids of calls and results; calls without an id are answered in order, by name."""

    ids: CallIds = field(default_factory=CallIds)
    _waiting: list[tuple[str, str]] = field(default_factory=list)
    _made: int = 0

    def respond(self) -> None:
        """A new response begins: what was not answered by now is answered no more."""
        self._waiting = []

    def call(self, native: Any, name: str) -> str:
        """The log id of a call."""
        if native not in (None, ""):
            return self.ids.call(str(native))
        self._made += 1
        own = self.ids.call(f"unnamed-{self._made}")
        self._waiting.append((own, name))
        return own

    def result(self, native: Any, name: str | None) -> str:
        """The log id of the call that a result answers; empty where nothing tells."""
        if native not in (None, ""):
            return self.ids.result(str(native))
        for place, (own, called) in enumerate(self._waiting):
            if name in (None, called):
                del self._waiting[place]
                return own
        return ""


def content_blocks(content: Any, pairing: Pairing, skip: frozenset[str] = frozenset()) -> list[Block]:
    """The blocks of a message's content; calls whose native id is in `skip` stand elsewhere and are left out."""
    if isinstance(content, str):
        return [Text(text=content)] if content else []
    items = content if isinstance(content, list) else [] if content is None else [content]
    blocks = (_part(item, pairing, skip) for item in items)
    return [block for block in blocks if block is not None]


def _part(part: Any, pairing: Pairing, skip: frozenset[str]) -> Block | None:
    if not isinstance(part, dict):
        return None if part is None else Text(text=json_text(part))
    kind = str(part.get("type"))
    if kind in _CALL_PARTS:
        return None if _call_id(part) in skip else part_call(part, pairing)
    if kind in RESULT_PARTS:
        return result(part, part.get("content"), pairing)
    if isinstance(part.get("text"), str):
        thinks = kind.startswith(("reasoning", "thinking", "summary"))
        return Reasoning(text=part["text"]) if thinks else Text(text=part["text"])
    if kind == "refusal" and isinstance(part.get("refusal"), str):
        return Text(text=part["refusal"])
    if kind in ("thinking", "redacted_thinking", "reasoning"):
        return thought(part)
    return _media(kind, part)


def thought(part: Mapping[str, Any]) -> Reasoning:
    """Reasoning with its text, and the size of what is signed or encrypted."""
    hidden = next((v for k in ("signature", "data", "encrypted_content") if isinstance(v := part.get(k), str)), "")
    text = part.get("thinking") or part.get("reasoning")
    return Reasoning(text=text if isinstance(text, str) else "", opaque_bytes=len(hidden))


def _media(kind: str, part: Mapping[str, Any]) -> Block:
    source = part.get("image_url") or part.get("source") or part.get("image")
    if isinstance(source, dict):
        if isinstance(source.get("data"), str):
            return image(str(source.get("media_type") or "image/png"), source["data"])
        source = source.get("url")
    if isinstance(source, str) and source.startswith("data:image/"):
        return image("image/png", source)
    return Opaque(label=kind if kind != "None" else "part", size_bytes=len(json_text(part)))


def part_call(part: Mapping[str, Any], pairing: Pairing) -> ToolCall:
    """A tool call in any spelling: chat `tool_calls` entry, content part, Responses item, old function_call."""
    inner = next((v for k in ("function", "custom") if isinstance(v := part.get(k), dict)), part)
    name = str(inner.get("name") or part.get("name") or _kind_name(part))
    arguments = next((v for k in ("arguments", "input", "args", "action") if (v := inner.get(k)) is not None), None)
    return ToolCall(id=pairing.call(_call_id(part), name), name=name, is_object=not isinstance(arguments, str),
                    arguments="{}" if arguments is None else json_text(arguments))


def _kind_name(part: Mapping[str, Any]) -> str:
    return str(part.get("type") or "unknown").removesuffix("_call")


def _call_id(part: Mapping[str, Any]) -> str:
    value = part.get("call_id") or part.get("tool_call_id") or part.get("id")
    return "" if value is None else str(value)


def result(native: Mapping[str, Any], content: Any, pairing: Pairing) -> ToolResult:
    """A tool result in any spelling: tool message, content part, Responses item."""
    blocks = content_blocks(_readable(content), pairing)
    name = native.get("name")
    name = name if isinstance(name, str) and name else None
    call_id = native.get("tool_call_id") or native.get("call_id") or native.get("tool_use_id")
    return ToolResult(
        call_id=pairing.result(call_id, name), name=name, text="\n".join(b.text for b in blocks if isinstance(b, Text)),
        images=tuple(b for b in blocks if isinstance(b, Image)), is_error=native.get("is_error") is True)


def _readable(content: Any) -> Any:
    """A tool's content where it is text or content parts; as JSON text where it is plain data."""
    if isinstance(content, dict) and "content" in content and "type" not in content:
        content = content["content"]
    if isinstance(content, dict):
        return content if "type" in content else json_text(content)
    if isinstance(content, list) and not all(map(_is_part, content)):
        return json_text(content)
    return content


def _is_part(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, dict) and "type" in value)


def assistant_blocks(native: Mapping[str, Any], pairing: Pairing) -> list[Block]:
    """The blocks of an assistant message: reasoning, content, calls (each once where it is written twice)."""
    pairing.respond()
    listed = native.get("tool_calls")
    calls = [call for call in listed if isinstance(call, dict)] if isinstance(listed, list) else []
    blocks: list[Block] = []
    reasoning = native.get("reasoning_content") or native.get("reasoning")
    if isinstance(reasoning, str):
        blocks.append(Reasoning(text=reasoning))
    twice = frozenset(filter(None, map(_call_id, calls)))
    blocks.extend(content_blocks(native.get("content"), pairing, twice))
    if isinstance(refusal := native.get("refusal"), str) and refusal:
        blocks.append(Text(text=refusal))
    blocks.extend(part_call(call, pairing) for call in calls)
    if isinstance(old := native.get("function_call"), dict):
        blocks.append(part_call(old, pairing))
    return blocks


def item_blocks(item: Mapping[str, Any], pairing: Pairing) -> list[Block]:
    """The blocks of one Responses item that the model made."""
    kind = str(item.get("type"))
    if kind == "reasoning":
        shown = [*_texts(item.get("summary")), *_texts(item.get("content"))]
        hidden = item.get("encrypted_content")
        return [Reasoning(text="\n".join(shown), opaque_bytes=len(hidden) if isinstance(hidden, str) else 0)]
    if is_client_call(item):
        return [part_call(item, pairing)]
    if item.get("role") == "assistant":
        return content_blocks(item.get("content"), pairing)
    return [Opaque(label=kind, size_bytes=len(json_text(item)))]


def _texts(parts: Any) -> list[str]:
    rows = parts if isinstance(parts, list) else []
    return [part["text"] for part in rows if isinstance(part, dict) and isinstance(part.get("text"), str)]


def is_client_call(item: Mapping[str, Any]) -> bool:
    """Whether a Responses item is a call that the client answers, not one that the service ran itself."""
    kind = item.get("type")
    return isinstance(kind, str) and kind.endswith("_call") and item.get("call_id") is not None
