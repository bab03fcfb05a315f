"""Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from replay.serving.answers import Answer, Refused, event, text_pieces
from replay.serving.requests import Parsed
from replay.writers.json_lines import json_bytes

_OWN = ("messages", "system", "tools")


class Anthropic:
    """`POST /v1/messages`."""

    name = "anthropic"
    path = "/v1/messages"

    def parse(self, body: Mapping[str, Any]) -> Parsed:
        """Take a body apart; the system text stands in front. Raises ValueError where the messages are missing."""
        if not isinstance(body.get("messages"), list):
            raise ValueError("messages: expected a list of messages")
        front = [{"role": "system", "content": body["system"]}] if body.get("system") else []
        return Parsed(items=[*front, *body["messages"]], tools=body.get("tools") or (),
                      params={key: value for key, value in body.items() if key not in _OWN})

    def body(self, answer: Answer) -> dict[str, Any]:
        """A message."""
        return _message(answer, _blocks(answer), _reason(answer), answer.usage.output)

    def events(self, answer: Answer, params: Mapping[str, Any]) -> Iterator[bytes]:
        """The message as events."""
        yield event({"type": "message_start", "message": _message(answer, [], None, 1)}, "message_start")
        for index, block in enumerate(_blocks(answer)):
            yield from _block_events(block, index)
        delta = {"stop_reason": _reason(answer), "stop_sequence": None}
        yield event({"type": "message_delta", "delta": delta, "usage": {"output_tokens": answer.usage.output}},
                    "message_delta")
        yield event({"type": "message_stop"}, "message_stop")

    def error(self, refused: Refused) -> dict[str, Any]:
        """An error body as Anthropic sends it."""
        kind = "invalid_request_error"
        return {"type": "error", "error": {"type": kind, "message": refused.message}, "request_id": None}

    def error_events(self, refused: Refused, number: int) -> bytes | None:
        """None: an error comes as a status and a body, streaming or not."""
        return None

    def overflow(self, tokens: int, limit: int) -> str:
        """Anthropic's words for a request that is too long."""
        return f"prompt is too long: {tokens} tokens > {limit} maximum"


def _message(answer: Answer, content: list[dict[str, Any]], reason: str | None, output: int) -> dict[str, Any]:
    used = answer.usage
    usage = {"input_tokens": used.input_uncached, "cache_read_input_tokens": used.cache_read, "output_tokens": output,
             "cache_creation_input_tokens": used.cache_write_5m + used.cache_write_1h}
    return {"id": f"msg_rewindow_{answer.number}", "type": "message", "role": "assistant", "model": answer.model,
            "content": content, "stop_reason": reason, "stop_sequence": None, "usage": usage}


def _blocks(answer: Answer) -> list[dict[str, Any]]:
    text = [{"type": "text", "text": answer.text}] if answer.text or not answer.calls else []
    return [*text, *({"type": "tool_use", "id": c.id, "name": c.name, "input": c.mapping} for c in answer.calls)]


def _reason(answer: Answer) -> str:
    return "tool_use" if answer.calls else "end_turn"


def _block_events(block: Mapping[str, Any], index: int) -> Iterator[bytes]:
    is_text = block["type"] == "text"
    empty = {**block, "text": ""} if is_text else {**block, "input": {}}
    yield event({"type": "content_block_start", "index": index, "content_block": empty}, "content_block_start")
    deltas = ([{"type": "text_delta", "text": piece} for piece in text_pieces(block["text"])] if is_text else
              [{"type": "input_json_delta", "partial_json": json_bytes(block["input"]).decode()}])
    for delta in deltas:
        yield event({"type": "content_block_delta", "index": index, "delta": delta}, "content_block_delta")
    yield event({"type": "content_block_stop", "index": index}, "content_block_stop")
