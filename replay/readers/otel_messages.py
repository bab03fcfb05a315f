"""Messages as instrumentation writes them, in a dozen spellings, as one kind of turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from replay.blocks import Block, Image, Reasoning, Text, ToolCall, ToolResult
from replay.readers.common import json_text
from replay.readers.openai_chat_blocks import Pairing, assistant_blocks, content_blocks, result
from replay.readers.otel_values import decoded
from replay.transcript import Role

_ROLES: Mapping[str, Role] = {
    "system": "system", "developer": "developer", "user": "user", "human": "user", "assistant": "assistant",
    "ai": "assistant", "model": "assistant", "tool": "tool", "function": "tool", "aimessage": "assistant",
    "aimessagechunk": "assistant", "humanmessage": "user", "systemmessage": "system", "toolmessage": "tool"}
_HOLDERS = ("messages", "input_messages", "output_messages", "contents", "choices", "candidates", "generations",
            "chat_history", "history", "prompt", "input", "output", "response", "completion", "text", "value")
"""Keys that hold messages, or what holds them, in the order in which they are tried."""
_DEEP = 8
UNNAMED = "unnamed-"
"""How the ids of calls begin that came without one."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a prompt or of an answer."""

    role: Role
    blocks: tuple[Block, ...]
    key: tuple[str, ...]
    """The same for the same message in another prompt, whatever became of a result's text."""
    words: str
    """The text; for results that of the results."""


@dataclass
class Turns:
    """Turns of native messages; a message that was seen before costs little."""

    cut: int = 0
    """Values that begin like messages but are cut."""
    _known: dict[bytes, tuple[Turn, ...]] = field(default_factory=dict)
    _last: tuple[list[Any], list[tuple[Turn, ...]]] = ([], [])
    """The prompt before, and the turns of each of its messages."""

    def of(self, value: Any, role: Role = "user") -> tuple[Turn, ...] | None:
        """The turns in a value of any spelling; None where it holds none. Bare text is said by `role`."""
        value = decoded(value)
        if isinstance(value, str) and value.startswith(("[{", '{"')):
            self.cut += 1
            return None
        if role == "user" and isinstance(value, list) and len(value) > 1:
            return tuple(self._prompt(value)) or None
        return tuple(turn for native in _natives(value, role, 0) for turn in self._turns(native)) or None

    def _prompt(self, rows: list[Any]) -> Iterator[Turn]:
        """The turns of a list of messages; most begin with the messages of the list before."""
        before, known = self._last
        common = 0
        for row, old in zip(rows, before, strict=False):
            if row != old:
                break
            common += 1
        found = known[:common]
        if common or all(isinstance(row, dict) and "role" in row for row in rows):
            found += [tuple(turn for native in _natives(row, "user", 1) for turn in self._turns(native))
                      for row in rows[common:]]
            self._last = rows, found
            yield from (turn for turns in found for turn in turns)
        else:
            yield from (turn for native in _natives(rows, "user", 0) for turn in self._turns(native))

    def _turns(self, native: dict[str, Any]) -> tuple[Turn, ...]:
        try:
            key = orjson.dumps(native, option=orjson.OPT_NON_STR_KEYS)
        except TypeError:
            return _turns(native)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _turns(native)
        return known


def _natives(value: Any, role: Role, depth: int) -> Iterator[dict[str, Any]]:
    """The native messages in a value."""
    if depth > _DEEP or value is None or value == "":
        return
    if isinstance(value, str):
        yield {"role": role, "content": value}
    elif isinstance(value, list):
        if value and isinstance(value[0], list):
            # A batch of prompts: the first is the one that was answered; what stands beside it is still said.
            value = [*value[0], *(item for item in value[1:] if not isinstance(item, list))]
        if value and all(isinstance(item, dict) and _is_part(item) for item in value):
            yield {"role": role, "content": value}
            return
        for item in value:
            yield from _natives(item, role, depth + 1)
    elif isinstance(value, dict):
        yield from _natives_in(value, role, depth)


def _is_part(value: Mapping[str, Any]) -> bool:
    return "role" not in value and isinstance(value.get("type"), str) and value["type"].lower() not in _ROLES and (
        "text" in value or "content" in value or "input" in value or "arguments" in value or "thinking" in value)


def _natives_in(value: dict[str, Any], role: Role, depth: int) -> Iterator[dict[str, Any]]:
    """The messages in an object. A role that is none gives way to the one that the place implies."""
    inner = value.get("message")
    if isinstance(inner, (dict, list)):
        yield from _natives(inner, role, depth + 1)
    elif isinstance(value.get("kwargs"), dict) and isinstance(value.get("id"), list):
        yield {"role": str(value["id"][-1]), **value["kwargs"]}
    elif _role(value) is not None and ("content" in value or "parts" in value or "tool_calls" in value
                                       or "contents" in value):
        yield value
    elif "content" in value and "parts" not in value:
        if isinstance(value["content"], dict):
            yield from _natives(value["content"], role, depth + 1)
        else:
            yield {**value, "role": role}
    elif isinstance(value.get("parts"), list):
        yield {**value, "role": role}
    elif isinstance(value.get("tool_calls"), list) and value["tool_calls"]:
        yield {**value, "role": "assistant"}
    else:
        key = next((k for k in _HOLDERS if value.get(k)), None)
        if key is not None:
            yield from _natives(decoded(value[key]), role, depth + 1)


def _role(native: Mapping[str, Any]) -> Role | None:
    for key in ("role", "type"):
        name = native.get(key)
        if isinstance(name, str) and name.lower() in _ROLES:
            return _ROLES[name.lower()]
    return None


def _turns(native: dict[str, Any]) -> tuple[Turn, ...]:
    """The turns of one native message: one, or its results and then what else it says."""
    role = _role(native) or "user"
    content = [p for part in _parts(native) for p in _chat_parts(part)]
    pairing = Pairing()
    if role == "assistant":
        calls = _calls(native)
        return (_turn("assistant", assistant_blocks({**native, "content": content, "tool_calls": calls}, pairing)),)
    if role == "tool" and not any(part.get("type") == "tool_result" for part in content):
        return (_turn("tool", [result(native, native.get("content") or content, pairing)]),)
    blocks = content_blocks(content, pairing)
    results = [b for b in blocks if isinstance(b, ToolResult)]
    rest = [b for b in blocks if not isinstance(b, ToolResult)]
    turns = [_turn("tool", results)] if results else []
    return (*turns, _turn("user" if role == "tool" else role, rest)) if rest or not turns else tuple(turns)


def _calls(native: Mapping[str, Any]) -> list[Any]:
    listed = native.get("tool_calls")
    rows = [row.get("tool_call", row) for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    extra = native.get("additional_kwargs")
    if not rows and isinstance(extra, dict) and isinstance(extra.get("tool_calls"), list):
        rows = [row for row in extra["tool_calls"] if isinstance(row, dict)]
    return rows


def _parts(native: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = native.get("parts") or native.get("contents") or native.get("content")
    content = decoded(content) if isinstance(content, str) and content.startswith('[{"type"') else content
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    rows = content if isinstance(content, list) else [content] if isinstance(content, dict) else []
    return [row.get("message_content", row) if isinstance(row, dict) else {"type": "text", "text": json_text(row)}
            for row in rows if row is not None]


def _chat_parts(part: dict[str, Any]) -> list[dict[str, Any]]:
    """A content part in chat spelling."""
    kind = part.get("type")
    if kind in ("tool_call_response", "tool-result", "server_tool_call_response"):
        body = next((part[k] for k in ("response", "result", "output") if k in part), part.get("content"))
        return [{"type": "tool_result", "tool_call_id": part.get("id") or part.get("toolCallId"),
                 "name": part.get("name") or part.get("toolName"), "content": _body(body)}]
    if kind == "tool-call":
        return [{"type": "tool_call", "id": part.get("toolCallId"), "name": part.get("toolName"),
                 "arguments": part.get("args", part.get("input"))}]
    if kind in ("text", "reasoning") and isinstance(part.get("content"), str):
        return [{"type": kind, "text": part["content"]}]
    if kind is None:
        return _gemini_part(part)
    return [_blob(part) if kind == "blob" else part]


def _body(body: Any) -> Any:
    """Vercel wraps a result in its type; other results stand as they are."""
    if isinstance(body, dict) and set(body) == {"type", "value"}:
        return body["value"]
    return body


def _gemini_part(part: dict[str, Any]) -> list[dict[str, Any]]:
    call = part.get("functionCall") or part.get("function_call")
    if isinstance(call, dict):
        return [{"type": "tool_call", "id": call.get("id"), "name": call.get("name"), "arguments": call.get("args")}]
    told = part.get("functionResponse") or part.get("function_response")
    if isinstance(told, dict):
        return [{"type": "tool_result", "tool_call_id": told.get("id"), "name": told.get("name"),
                 "content": json_text(told.get("response"))}]
    if isinstance(part.get("text"), str):
        return [{"type": "reasoning" if part.get("thought") else "text", "text": part["text"]}]
    return [part]


def _blob(part: Mapping[str, Any]) -> dict[str, Any]:
    mime = str(part.get("mime_type") or part.get("mimeType") or "application/octet-stream")
    data = part.get("data") or part.get("content")
    if not mime.startswith("image/"):
        return {"type": "file", "mime_type": mime, "size": len(data) if isinstance(data, str) else 0}
    return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}


def _turn(role: Role, blocks: Iterable[Block]) -> Turn:
    kept = tuple(blocks)
    results = [b for b in kept if isinstance(b, ToolResult)]
    words = "\n".join(b.text for b in (results or kept) if isinstance(b, (Text, ToolResult))).strip()
    return Turn(role, kept, _key(role, kept, words), words)


def _key(role: Role, blocks: Iterable[Block], words: str) -> tuple[str, ...]:
    blocks = tuple(blocks)
    answered = [b.call_id for b in blocks if isinstance(b, ToolResult)]
    if answered and all(answered):
        return ("tool", *answered)
    calls = [b for b in blocks if isinstance(b, ToolCall)]
    if calls and not any(c.id.startswith(UNNAMED) for c in calls):
        return ("calls", *(c.id for c in calls))
    pictures = [b.sha256 for b in blocks if isinstance(b, Image)]
    return (role, words, *(f"{c.name} {c.arguments}" for c in calls), *pictures)


def is_empty(turn: Turn) -> bool:
    """Whether a turn says nothing."""
    return not any(not isinstance(b, (Text, Reasoning)) or b.text for b in turn.blocks)


def instructions(turns: Iterable[Turn] | None) -> str | None:
    """The text of instructions that are kept apart from the messages."""
    words = "\n".join(turn.words for turn in turns or () if turn.words)
    return words or None


