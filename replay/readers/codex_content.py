"""Response items of Codex as blocks: texts, images, reasoning, tool calls and their results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from replay.blocks import Block, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from replay.readers.common import image, json_text

_NAMES = {"local_shell_call": "local_shell", "web_search_call": "web_search", "tool_search_call": "tool_search",
          "image_generation_call": "image_generation", "mcp_call": "mcp"}
_HEADERS = ("Chunk ID", "Command:", "Process ", "Wall time", "Exit code:")
_EXITED, _EXIT = "Process exited with code ", "Exit code: "


def blocks(content: Any) -> list[Block]:
    """The parts of a message's content, in order; what is neither text nor image is opaque."""
    if isinstance(content, str):
        return [Text(text=content)]
    return [_part(part) for part in content] if isinstance(content, list) else []


def _part(part: Any) -> Block:
    if isinstance(part, str):
        return Text(text=part)
    if not isinstance(part, dict):
        return Opaque(label=type(part).__name__, size_bytes=len(json_text(part)))
    text = part.get("text")
    if isinstance(text, str):
        return Text(text=text)
    if "image_url" in part:
        return _image(part["image_url"])
    encrypted = part.get("encrypted_content")
    size = len(encrypted) if isinstance(encrypted, str) else len(json_text(part))
    return Opaque(label=str(part.get("type") or "part"), size_bytes=size)


def _image(url: Any) -> Block:
    address = url.get("url") if isinstance(url, dict) else url
    if isinstance(address, str) and address.startswith("data:"):
        return image("image/png", address)
    return Opaque(label="image_url", size_bytes=len(json_text(address)))


def reasoning(payload: Mapping[str, Any]) -> Reasoning:
    """Visible reasoning (its summary, else its raw text) and the size of the encrypted part."""
    encrypted = payload.get("encrypted_content")
    text = _texts(payload.get("summary")) or _texts(payload.get("content"))
    return Reasoning(text=text, opaque_bytes=len(encrypted) if isinstance(encrypted, str) else 0)


def _texts(parts: Any) -> str:
    if isinstance(parts, str):
        return parts
    return "\n".join(block.text for block in blocks(parts) if isinstance(block, Text))


def call_id(payload: Mapping[str, Any], line: int) -> str:
    """The id of a call or of the call that a result answers; one without an id is named after its line."""
    native = payload.get("call_id") or payload.get("id")
    return native if isinstance(native, str) else f"{payload.get('type')}:{line}"


def call(payload: Mapping[str, Any], line: int) -> tuple[ToolCall, *tuple[Image, ...]]:
    """A tool call; a generated image follows its call."""
    kind = str(payload.get("type"))
    arguments = _arguments(payload)
    made = ToolCall(id=call_id(payload, line), name=_name(payload, kind), arguments=json_text(arguments),
                    is_object=not isinstance(arguments, str))
    drawn = payload.get("result") if kind == "image_generation_call" else None
    return (made, image("image/png", drawn)) if drawn else (made,)


def _name(payload: Mapping[str, Any], kind: str) -> str:
    name, space = payload.get("name"), payload.get("namespace")
    if not isinstance(name, str) or not name:
        return _NAMES.get(kind, kind)
    if not isinstance(space, str) or not space or name.startswith(space):
        return name
    return space + name if space.endswith("_") or name.startswith("_") else f"{space}__{name}"


def _arguments(payload: Mapping[str, Any]) -> Any:
    for key in ("arguments", "input", "action"):
        if payload.get(key) is not None:
            return payload[key]
    prompt = payload.get("revised_prompt")
    return {"prompt": prompt} if prompt else {}


def result(payload: Mapping[str, Any], call: str, name: str | None, event: Mapping[str, Any]) -> ToolResult:
    """What a tool gave back to a call, as the model saw it; the event is the UI's record of the same call."""
    output = payload.get("output", payload.get("tools"))
    success: Any = None
    if isinstance(output, dict) and ("content" in output or "success" in output):
        success = output.get("success", None if "is_error" not in output else not output["is_error"])
        output = output.get("content")
    text, images = _output(output)
    failed = success is False or is_failure(text) or _event_failed(event)
    return ToolResult(call_id=call, text=text, name=name, images=images, is_error=failed)


def _output(output: Any) -> tuple[str, tuple[Image, ...]]:
    if isinstance(output, str) or output is None:
        return output or "", ()
    parts = blocks(output) if isinstance(output, list) else []
    if not parts or any(isinstance(p, Opaque) and p.label != "image_url" for p in parts):
        return json_text(output), tuple(p for p in parts if isinstance(p, Image))
    texts = [p.text for p in parts if isinstance(p, Text)]
    return "\n".join(texts), tuple(p for p in parts if isinstance(p, Image))


def is_failure(text: str) -> bool:
    """Whether the text of a tool result reports a failure: an exit code other than 0, a refusal, an abort."""
    if text.startswith('{"output"'):
        return _metadata_failed(text)
    if text.startswith(_HEADERS):
        return _exit_code(text) not in ("", "0")
    head, colon, _ = text[:100].partition(":")
    return text.startswith("aborted") or bool(colon and head.endswith(" failed"))


def _exit_code(text: str) -> str:
    if text.startswith(_EXIT):
        return text[len(_EXIT):].partition("\n")[0].strip()
    end = text.find("\nOutput:")
    at = text.rfind(_EXITED, 0, end if end >= 0 else 2000)
    return text[at + len(_EXITED):].partition("\n")[0].strip() if at >= 0 else ""


def _metadata_failed(text: str) -> bool:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    metadata = value.get("metadata")
    return isinstance(metadata, dict) and metadata.get("exit_code") not in (None, 0)


def _event_failed(event: Mapping[str, Any]) -> bool:
    result = event.get("result")
    return (event.get("exit_code") not in (None, 0) or event.get("success") is False
            or (isinstance(result, dict) and "Err" in result))
