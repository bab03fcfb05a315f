"""Gemini contents as blocks: text, thoughts, function calls and responses, inline data; and token counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from replay.blocks import Block, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from replay.readers.common import image, json_text, whole
from replay.transcript import Origin, Usage

SNAPSHOT = "<state_snapshot>"
"""Where the summary of a compression begins."""
ACKNOWLEDGEMENTS = ("Got it. Thanks for the additional context!", "Got it. Thanks for the context!")
"""What the program says in the model's name after a summary or a context."""
_WRAPPERS = ("session_context", "hook_context", "system-reminder", "environment_context")
_OLD_CONTEXT = ("This is the Gemini CLI. We are setting up", "This is the Qwen Code. We are setting up")


class Speaker(NamedTuple):
    """Who wrote a user message, and what kind it is."""

    origin: Origin
    detail: str | None = None


def parts_of(content: Any) -> list[dict[str, Any]]:
    """The parts of a content: a list of parts, one part, or plain text."""
    if isinstance(content, str):
        return [{"text": content}] if content else []
    if isinstance(content, dict):
        return [content]
    if not isinstance(content, list):
        return []
    return [{"text": part} if isinstance(part, str) else part for part in content if isinstance(part, (dict, str))]


def block(part: Mapping[str, Any]) -> Block:
    """One part that is neither a call nor a response."""
    text = part.get("text")
    if isinstance(text, str):
        seal = part.get("thoughtSignature")
        sealed = len(seal) if isinstance(seal, str) else 0
        return Reasoning(text=text, opaque_bytes=sealed) if part.get("thought") else Text(text=text)
    data = part.get("inlineData")
    if isinstance(data, dict):
        return _inline(data)
    label = next((key for key in part if key not in ("thoughtSignature", "thought")), "empty part")
    return Opaque(label=label, size_bytes=len(json_text(part)))


def _inline(data: Mapping[str, Any]) -> Image | Opaque:
    mime = str(data.get("mimeType") or "application/octet-stream")
    found = image(mime, data.get("data"))
    return found if mime.startswith("image/") else Opaque(label=mime, size_bytes=found.size_bytes)


def call(native: Any, call_id: str) -> ToolCall:
    """A function call; `native` has name and args."""
    told = native if isinstance(native, dict) else {}
    arguments = told.get("args")
    return ToolCall(id=call_id, name=str(told.get("name") or "unknown"),
                    arguments=json_text({} if arguments is None else arguments),
                    is_object=not isinstance(arguments, str))


def response(native: Any, call_id: str, is_error: bool = False, images: Iterable[Image] = ()) -> ToolResult:
    """A function response: its output or error text, else its whole JSON."""
    told = native if isinstance(native, dict) else {}
    body = told.get("response")
    failed = isinstance(body, dict) and "error" in body and "output" not in body
    name = told.get("name")
    inner = [block(p) for p in parts_of(told.get("parts"))]
    return ToolResult(call_id=call_id, text=_body_text(body), name=name if isinstance(name, str) else None,
                      images=(*(b for b in inner if isinstance(b, Image)), *images), is_error=is_error or failed)


def _body_text(body: Any) -> str:
    if isinstance(body, dict):
        for key in ("output", "error", "content", "result"):
            if key in body and (len(body) == 1 or isinstance(body[key], str)):
                return json_text(body[key])
    return "" if body is None else json_text(body)


def call_id_of(part: Mapping[str, Any], key: str) -> str | None:
    """The id in a call or a response; the name where there is no id; None where the part is something else."""
    native = part.get(key)
    if not isinstance(native, dict):
        return None
    return str(native.get("id") or native.get("name") or "")


def speaker(text: str) -> Speaker:
    """Who wrote a user message, from how it begins."""
    head = text.lstrip()[:80]
    for name in _WRAPPERS:
        if head.startswith(f"<{name}"):
            return Speaker("injected", name)
    if head.startswith(_OLD_CONTEXT):
        return Speaker("injected", "session_context")
    return Speaker("human")


def thoughts(native: Any) -> list[Reasoning]:
    """The thoughts that are kept beside a message, as they are sent again on resume."""
    found = []
    for thought in native if isinstance(native, list) else []:
        told = thought if isinstance(thought, dict) else {}
        subject, words = told.get("subject"), told.get("description")
        head = f"**{subject}** " if isinstance(subject, str) and subject else ""
        found.append(Reasoning(text=head + (words if isinstance(words, str) else "")))
    return found


def usage_of(native: Any) -> Usage | None:
    """Tokens of a message; the input count includes the cache, the output count excludes thoughts."""
    if not isinstance(native, dict):
        return None
    return _usage(whole(native.get("input")), whole(native.get("cached")), whole(native.get("output")),
                  whole(native.get("thoughts")), whole(native.get("tool")))


def metadata_usage(native: Any) -> Usage | None:
    """The same from a response's own usage metadata; some services count thoughts in the candidates."""
    if not isinstance(native, dict):
        return None
    prompt, output = whole(native.get("promptTokenCount")), whole(native.get("candidatesTokenCount"))
    thought = whole(native.get("thoughtsTokenCount"))
    if thought and whole(native.get("totalTokenCount")) == prompt + output:
        output = max(output - thought, 0)
    return _usage(prompt, whole(native.get("cachedContentTokenCount")), output, thought,
                  whole(native.get("toolUsePromptTokenCount")))


def _usage(prompt: int, cached: int, output: int, thought: int, tool: int) -> Usage:
    read = min(cached, prompt)
    return Usage(input_uncached=prompt - read + tool, cache_read=read, output=output + thought, reasoning=thought)
