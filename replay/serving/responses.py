"""OpenAI's Responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from replay.serving.answers import CREATED, Answer, Refused, event, text_pieces
from replay.serving.requests import Parsed

_OWN = ("input", "instructions", "tools", "previous_response_id")


class Responses:
    """`POST /v1/responses`."""

    name = "openai-responses"
    path = "/v1/responses"

    def parse(self, body: Mapping[str, Any]) -> Parsed:
        """Take a body apart; instructions stand in front as a system item. Raises ValueError without an input."""
        given = body.get("input")
        if isinstance(given, str):
            given = [{"type": "message", "role": "user", "content": given}]
        if not isinstance(given, list):
            raise ValueError("input: expected a text or a list of items")
        said = body.get("instructions")
        front = [{"role": "system", "content": said}] if isinstance(said, str) and said else []
        previous = body.get("previous_response_id")
        return Parsed(items=[*front, *given], tools=body.get("tools") or (),
                      params={key: value for key, value in body.items() if key not in _OWN},
                      previous=previous if isinstance(previous, str) else None)

    def body(self, answer: Answer) -> dict[str, Any]:
        """A finished response."""
        return _response(answer, "completed", output_items(answer))

    def events(self, answer: Answer, params: Mapping[str, Any]) -> Iterator[bytes]:
        """The events of a response, numbered."""
        for number, (kind, data) in enumerate(_events(answer)):
            yield event({"type": kind, "sequence_number": number, **data}, kind)

    def error(self, refused: Refused) -> dict[str, Any]:
        """An error body as OpenAI sends it."""
        kind = "invalid_request_error"
        return {"error": {"message": refused.message, "type": kind, "param": "input", "code": refused.code}}

    def error_events(self, refused: Refused, number: int) -> bytes | None:
        """A stream that is too long fails inside the stream, as OpenAI's does."""
        if not refused.is_overflow:
            return None
        answer = Answer(number=number, model="recorded")
        failed = {**_response(answer, "failed", []), "usage": None,
                  "error": {"code": refused.code, "message": refused.message}}
        started = event({"type": "response.created", "sequence_number": 0,
                         "response": _response(answer, "in_progress", [])}, "response.created")
        return started + event({"type": "response.failed", "sequence_number": 1, "response": failed},
                               "response.failed")

    def overflow(self, tokens: int, limit: int) -> str:
        """OpenAI's words for a request that is too long."""
        return "Your input exceeds the context window of this model. Please adjust your input and try again."


def response_id(answer: Answer) -> str:
    """The id by which a later request may continue this response."""
    return f"resp_rewindow_{answer.number}"


def output_items(answer: Answer) -> list[dict[str, Any]]:
    """The items of a response: its message, then its calls."""
    message = {"type": "message", "id": f"msg_rewindow_{answer.number}", "role": "assistant", "status": "completed",
               "content": [_text_part(answer.text)]}
    calls = [{"type": "function_call", "id": f"fc_rewindow_{answer.number}_{n}", "call_id": c.id, "name": c.name,
              "arguments": c.arguments, "status": "completed"} for n, c in enumerate(answer.calls)]
    return [*([message] if answer.text or not calls else []), *calls]


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _response(answer: Answer, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
    used = answer.usage
    usage = {"input_tokens": used.input_total, "input_tokens_details": {"cached_tokens": used.cache_read},
             "output_tokens": used.output, "output_tokens_details": {"reasoning_tokens": used.reasoning},
             "total_tokens": used.input_total + used.output}
    return {"id": response_id(answer), "object": "response", "created_at": CREATED, "status": status,
            "error": None, "incomplete_details": None, "instructions": None, "metadata": {}, "model": answer.model,
            "output": output, "parallel_tool_calls": True, "temperature": None, "tool_choice": "auto", "tools": [],
            "top_p": None, "usage": usage if status == "completed" else None}


_Event = tuple[str, dict[str, Any]]


def _events(answer: Answer) -> Iterator[_Event]:
    output = output_items(answer)
    yield "response.created", {"response": _response(answer, "in_progress", [])}
    yield "response.in_progress", {"response": _response(answer, "in_progress", [])}
    for index, item in enumerate(output):
        is_message = item["type"] == "message"
        blank: dict[str, Any] = {"content": []} if is_message else {"arguments": ""}
        empty = {**item, "status": "in_progress", **blank}
        yield "response.output_item.added", {"output_index": index, "item": empty}
        yield from (_message_events if is_message else _call_events)(item, index)
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield "response.completed", {"response": _response(answer, "completed", output)}


def _message_events(item: Mapping[str, Any], index: int) -> Iterator[_Event]:
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    part = item["content"][0]
    yield "response.content_part.added", {**place, "part": _text_part("")}
    for piece in text_pieces(part["text"]):
        yield "response.output_text.delta", {**place, "delta": piece, "logprobs": []}
    yield "response.output_text.done", {**place, "text": part["text"], "logprobs": []}
    yield "response.content_part.done", {**place, "part": part}


def _call_events(item: Mapping[str, Any], index: int) -> Iterator[_Event]:
    place = {"item_id": item["id"], "output_index": index}
    yield "response.function_call_arguments.delta", {**place, "delta": item["arguments"]}
    yield "response.function_call_arguments.done", {**place, "arguments": item["arguments"], "name": item["name"]}
