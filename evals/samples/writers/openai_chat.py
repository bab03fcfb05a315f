"""Writes a recording as one document of chat messages with the tools that were offered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import orjson

from evals.samples.dialects import OPENAI_CHAT
from evals.samples.ids import Ids
from evals.samples.recording import Entry, Recording
from evals.samples.writers.common import Row


def write(recording: Recording, ids: Ids) -> bytes:
    """The bytes of the document, indented so that it reads well."""
    document = {"id": ids.word("chat-", 16), "model": recording.scenario.model,
                "messages": [_message(entry) for entry in recording.entries()],
                "tools": [_tool(name, OPENAI_CHAT.keys[kind]) for kind, name in OPENAI_CHAT.names.items()]}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"


def _tool(name: str, keys: Sequence[str]) -> Mapping[str, object]:
    numbers = ("start_line", "line_count")
    properties = {key: {"type": "integer" if key in numbers else "string"} for key in keys}
    parameters = {"type": "object", "properties": properties, "required": [keys[0]]}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def _message(entry: Entry) -> Row:
    if entry.kind == "result":
        return {"role": "tool", "tool_call_id": entry.call.id, "content": entry.text}
    if entry.kind != "response":
        return {"role": entry.role, "content": entry.text}
    message: Row = {"role": "assistant", "content": entry.text or None}
    if entry.calls:
        message["tool_calls"] = [{"id": call.id, "type": "function",
                                  "function": {"name": call.name, "arguments": call.text}} for call in entry.calls]
    return message
