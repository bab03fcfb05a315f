"""OpenAI's chat completions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from replay.serving.answers import CREATED, Answer, Refused, event, text_pieces
from replay.serving.requests import Parsed

_OWN = ("messages", "tools")


class Chat:
    """`POST /v1/chat/completions`."""

    name = "openai-chat"
    path = "/v1/chat/completions"

    def parse(self, body: Mapping[str, Any]) -> Parsed:
        """Take a body apart. Raises ValueError where the messages are missing."""
        if not isinstance(body.get("messages"), list):
            raise ValueError("messages: expected a list of messages")
        return Parsed(items=body["messages"], tools=body.get("tools") or (),
                      params={key: value for key, value in body.items() if key not in _OWN})

    def body(self, answer: Answer) -> dict[str, Any]:
        """A completion."""
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or None, "refusal": None}
        if answer.calls:
            message["tool_calls"] = _calls(answer)
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _reason(answer)}
        return {**_head(answer, "chat.completion"), "choices": [choice], "usage": _usage(answer)}

    def events(self, answer: Answer, params: Mapping[str, Any]) -> Iterator[bytes]:
        """The completion as chunks; usage comes where `stream_options` asks for it."""
        yield _chunk(answer, {"role": "assistant", "content": ""})
        yield from (_chunk(answer, {"content": piece}) for piece in text_pieces(answer.text))
        for index, call in enumerate(_calls(answer)):
            yield _chunk(answer, {"tool_calls": [{"index": index, **call}]})
        yield _chunk(answer, {}, _reason(answer))
        options = params.get("stream_options")
        if isinstance(options, dict) and options.get("include_usage"):
            yield event({**_head(answer, "chat.completion.chunk"), "choices": [], "usage": _usage(answer)})
        yield b"data: [DONE]\n\n"

    def error(self, refused: Refused) -> dict[str, Any]:
        """An error body as OpenAI sends it."""
        kind = "invalid_request_error"
        return {"error": {"message": refused.message, "type": kind, "param": "messages", "code": refused.code}}

    def error_events(self, refused: Refused, number: int) -> bytes | None:
        """None: an error comes as a status and a body, streaming or not."""
        return None

    def overflow(self, tokens: int, limit: int) -> str:
        """OpenAI's words for a request that is too long."""
        return (f"This model's maximum context length is {limit} tokens. However, your messages resulted in {tokens} "
                "tokens. Please reduce the length of the messages.")


def _head(answer: Answer, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-rewindow-{answer.number}", "object": kind, "created": CREATED, "model": answer.model}


def _chunk(answer: Answer, delta: dict[str, Any], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    return event({**_head(answer, "chat.completion.chunk"), "choices": [choice]})


def _calls(answer: Answer) -> list[dict[str, Any]]:
    return [{"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in answer.calls]


def _reason(answer: Answer) -> str:
    return "tool_calls" if answer.calls else "stop"


def _usage(answer: Answer) -> dict[str, Any]:
    used = answer.usage
    return {"prompt_tokens": used.input_total, "completion_tokens": used.output,
            "total_tokens": used.input_total + used.output,
            "prompt_tokens_details": {"cached_tokens": used.cache_read},
            "completion_tokens_details": {"reasoning_tokens": used.reasoning}}
