"""Messages of Pi as blocks, and the texts that Pi itself puts around summaries and shell commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from replay.blocks import Block, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from replay.readers.common import image, json_text, whole
from replay.transcript import Usage

_SUMMARY = "The conversation history before this point was compacted into the following summary:\n\n<summary>\n"
_SUMMARY_END = "\n</summary>"
_BRANCH = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n"
_BRANCH_END = "</summary>"


_KNOWN = frozenset({"text", "thinking", "toolCall", "image"})


def odd_parts(content: Any) -> Iterator[str]:
    """The types of the parts of a message's content that nobody knows, or that have lost their content."""
    if not isinstance(content, list):
        if content is not None and not isinstance(content, str):
            yield type(content).__name__
        return
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else "text" if isinstance(part, str) else type(part).__name__
        if not isinstance(kind, str) or kind not in _KNOWN:
            yield str(kind)
        elif kind == "text" and isinstance(part, dict) and not isinstance(part.get("text"), str):
            yield "text without text"


def blocks(content: Any) -> list[Block]:
    """The parts of a message's content, in order; what is of no known type is opaque."""
    if isinstance(content, str):
        return [Text(text=content)]
    return [_block(part) for part in content] if isinstance(content, list) else []


def _block(part: Any) -> Block:
    if not isinstance(part, dict):
        return Text(text=part) if isinstance(part, str) else Opaque(label=type(part).__name__, size_bytes=0)
    kind = part.get("type")
    if kind == "text" and isinstance(part.get("text"), str):
        return Text(text=part["text"])
    if kind == "thinking":
        return _thinking(part)
    if kind == "toolCall":
        return _call(part)
    if kind == "image":
        return image(str(part.get("mimeType") or "image/png"), part.get("data"))
    return Opaque(label=str(kind), size_bytes=len(json_text(part)))


def _thinking(part: Mapping[str, Any]) -> Reasoning:
    text, signature = part.get("thinking"), part.get("thinkingSignature")
    return Reasoning(text=text if isinstance(text, str) else "",
                     opaque_bytes=len(signature) if isinstance(signature, str) else 0)


def _call(part: Mapping[str, Any]) -> ToolCall:
    arguments = part.get("arguments")
    return ToolCall(id=str(part.get("id") or ""), name=str(part.get("name") or ""),
                    arguments=json_text({} if arguments is None else arguments),
                    is_object=not isinstance(arguments, str))


def result(message: Mapping[str, Any], call_id: str) -> ToolResult:
    """A tool's result, as the model saw it."""
    parts = blocks(message.get("content"))
    name = message.get("toolName")
    return ToolResult(call_id=call_id, text="\n".join(p.text for p in parts if isinstance(p, Text)),
                      name=name if isinstance(name, str) else None,
                      images=tuple(p for p in parts if isinstance(p, Image)), is_error=message.get("isError") is True)


def usage(native: Any) -> Usage | None:
    """Tokens of a response; input excludes the cache, output includes reasoning."""
    if not isinstance(native, Mapping):
        return None
    written, hour = whole(native.get("cacheWrite")), native.get("cacheWrite1h")
    for_an_hour = min(written, whole(hour)) if hour else 0
    return Usage(input_uncached=whole(native.get("input")), cache_read=whole(native.get("cacheRead")),
                 cache_write_5m=written - for_an_hour, cache_write_1h=for_an_hour, output=whole(native.get("output")),
                 reasoning=whole(native.get("reasoning")))


def compaction_text(summary: str) -> str:
    """What the model is sent for a compaction's summary."""
    return _SUMMARY + summary + _SUMMARY_END


def branch_text(summary: str) -> str:
    """What the model is sent for the summary of a branch that was left."""
    return _BRANCH + summary + _BRANCH_END


def system_text(message: Mapping[str, Any]) -> str:
    """A recorded system prompt: its content, else its sections in order."""
    content, sections = message.get("content"), message.get("sections")
    if content or not isinstance(sections, Mapping):
        return "\n".join(b.text for b in blocks(content) if isinstance(b, Text))
    return "\n\n".join(text for text in sections.values() if isinstance(text, str))


def shell_text(message: Mapping[str, Any]) -> str:
    """What the model is told of a command that the person ran in the session."""
    output, code = message.get("output"), message.get("exitCode")
    parts = [f"Ran `{message.get('command')}`\n" + (f"```\n{output}\n```" if output else "(no output)")]
    if message.get("cancelled"):
        parts.append("(command cancelled)")
    elif code not in (None, 0):
        parts.append(f"Command exited with code {code}")
    if message.get("truncated") and message.get("fullOutputPath"):
        parts.append(f"[Output truncated. Full output: {message['fullOutputPath']}]")
    return "\n\n".join(parts)
