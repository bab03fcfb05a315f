"""Rendering: the exact messages of a view, as OpenAI or Anthropic dictionaries or as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from replay.blocks import Block, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from replay.engine import View
from replay.log import Log, message_class
from replay.transcript import Message
from replay.window import Inserted, Window, pieces

Shape = Literal["text", "openai", "anthropic"]
Form = Literal["verbatim", "elided", "summary", "injected"]


@dataclass(frozen=True, slots=True)
class Shown:
    """One message of a view: what the model sees and where it comes from."""

    message: Message
    index: int | None
    """Log index; None for what is not in the log."""
    form: Form
    kind: str
    """Class of its tokens (`replay.log.CLASSES`)."""


def shown_messages(log: Log, window: Window) -> Iterator[Shown]:
    """The messages of a view, in order."""
    for item in window.items:
        if isinstance(item, Inserted):
            is_summary = item.kind == "summary"
            yield Shown(item.message, None, "summary" if is_summary else "injected",
                        "summary" if is_summary else "injected")
            continue
        for start, stop, rendering in pieces(window.marks, item.start, item.stop):
            shown = log.messages if rendering is None else log.rendered(rendering)
            for index in range(start, stop):
                message = log.messages[index]
                form: Form = "verbatim" if shown[index] is message else "elided"
                yield Shown(shown[index], index, form, message_class(message))


def render(log: Log, window: Window, shape: Shape) -> list[dict[str, Any]]:
    """A view in a provider's shape; `text` gives role, origin and plain text."""
    messages = [s.message for s in shown_messages(log, window)]
    if shape == "openai":
        return [d for m in messages for d in openai_messages(m)]
    if shape == "anthropic":
        return anthropic_messages(messages)
    return [text_message(s) for s in shown_messages(log, window)]


def text_message(shown: Shown) -> dict[str, Any]:
    """A message as plain text with its log index and form."""
    return {"index": shown.index, "role": shown.message.role, "form": shown.form, "class": shown.kind,
            "text": plain_text(shown.message)}


def plain_text(message: Message) -> str:
    """All blocks as text: calls as `name(arguments)`, images and opaque blocks as a card."""
    return "\n".join(filter(None, map(_plain_block, message.blocks)))


def _plain_block(block: Block) -> str:
    if isinstance(block, ToolCall):
        return f"→ {block.name}({block.arguments})"
    if isinstance(block, ToolResult):
        return "\n".join([block.text, *map(_card, block.images)])
    return block.text if isinstance(block, (Text, Reasoning)) else _card(block)


def _card(block: Image | Opaque) -> str:
    if isinstance(block, Image):
        return f"[image {block.mime}, {block.size_bytes} bytes, sha256 {block.sha256[:12]}]"
    return f"[{block.label}, {block.size_bytes} bytes, not readable]"


def openai_messages(message: Message) -> Iterator[dict[str, Any]]:
    """A message in OpenAI's chat shape; results become one `tool` message each, those without an id a user one."""
    texts = [b for b in message.blocks if isinstance(b, (Text, Image, Opaque))]
    if message.role == "assistant":
        yield _openai_assistant(message)
        return
    for result in message.results:
        body = "\n".join([result.text, *map(_card, result.images)])
        if result.call_id:
            yield {"role": "tool", "tool_call_id": result.call_id, "content": body}
        else:
            yield {"role": "user", "content": f"Observation ({result.name or 'unknown'}): {body}"}
    if texts or not message.results:
        role = "user" if message.role == "tool" else message.role
        yield {"role": role, "content": "\n".join(map(_plain_block, texts))}


def _openai_assistant(message: Message) -> dict[str, Any]:
    content = "\n".join(_plain_block(b) for b in message.blocks if isinstance(b, (Text, Image, Opaque)))
    shaped: dict[str, Any] = {"role": "assistant", "content": content}
    reasoning = "\n".join(b.text for b in message.blocks if isinstance(b, Reasoning) and b.text)
    if reasoning:
        shaped["reasoning_content"] = reasoning
    calls = [{"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
             for c in message.calls]
    return shaped | ({"tool_calls": calls} if calls else {})


def anthropic_messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages in Anthropic's shape: system text first as role `system`, neighbours of one role merged."""
    shaped: list[dict[str, Any]] = []
    for message in messages:
        role = {"developer": "system", "tool": "user"}.get(message.role, message.role)
        content = [_anthropic_block(b) for b in message.blocks]
        if shaped and shaped[-1]["role"] == role:
            shaped[-1]["content"].extend(content)
        else:
            shaped.append({"role": role, "content": content})
    return shaped


def _anthropic_block(block: Block) -> dict[str, Any]:
    if isinstance(block, ToolCall):
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.mapping}
    if isinstance(block, ToolResult):
        parts = [{"type": "text", "text": block.text}, *({"type": "text", "text": _card(i)} for i in block.images)]
        return {"type": "tool_result", "tool_use_id": block.call_id, "content": parts, "is_error": block.is_error}
    if isinstance(block, Reasoning):
        return {"type": "thinking", "thinking": block.text}
    return {"type": "text", "text": _plain_block(block)}


def lineage(view: View, log: Log) -> Mapping[str, list[int]]:
    """What became of every log message by this step: kept, elided, summarised, dropped, injected.

    `injected` lists positions in the view, since those messages are in no log.

    """
    shown = list(shown_messages(log, view.window))
    kept = [s.index for s in shown if s.index is not None and s.form == "verbatim"]
    elided = [s.index for s in shown if s.index is not None and s.form == "elided"]
    visible = {*kept, *elided}
    spoken_for = {i for s in view.window.summaries() for span in s.covers for i in range(span.start, span.stop)}
    gone = [i for i in range(view.window.end) if i not in visible]
    return {"kept": kept, "elided": elided, "summarised": [i for i in gone if i in spoken_for],
            "dropped": [i for i in gone if i not in spoken_for],
            "injected": [n for n, s in enumerate(shown) if s.index is None]}
