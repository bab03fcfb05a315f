"""Lines and documents of OpenAI-style logs into talks: which messages belong to one session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from replay.readers.common import json_text, not_an_object, seconds
from replay.readers.odd_types import OddTypes
from replay.readers.openai_chat_talk import NO_META, Meta, Place, Talk, is_item
from replay.readers.openai_chat_usage import usage_of
from replay.readers.source import Record
from replay.transcript import ReadNote

REQUESTS = ("request", "request_body", "body", "kwargs")
RESPONSES = ("response", "response_body", "completion")
_IDS = ("session_id", "conversation_id", "thread_id", "trajectory_id", "instance_id", "custom_id", "id")
_NEAR = 8
"""How many talks with the same first prompt are tried before a line starts its own."""


class Exchange(NamedTuple):
    """One request's messages with the response that was logged for it, if any."""

    sent: list[Any]
    got: list[Any]
    meta: Meta
    previous: str | None
    head: Mapping[str, Any]


def exchange_of(value: Mapping[str, Any]) -> Exchange | None:
    """The request and response in a logged object; None where it holds no messages."""
    request = request_of(value)
    sent, response = _sent(request), _response(value)
    if sent is None and not (isinstance(response, dict) and ("choices" in response or "output" in response)):
        return None
    got = _got(response)
    if sent is None and not got:
        return None
    previous = request.get("previous_response_id")
    return Exchange(sent or [], got, _meta(value, response), previous if isinstance(previous, str) else None, value)


def request_of(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The request inside a logged object; the object itself where it is not wrapped."""
    request = next((r for name in REQUESTS if (r := _object(value.get(name))) is not None), value)
    inner = _object(request.get("body"))
    return request if inner is None else inner


def _object(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return None
    return value if isinstance(value, dict) else None


def _sent(request: Mapping[str, Any]) -> list[Any] | None:
    messages = request.get("messages")
    if isinstance(messages, list):
        return messages
    given = request.get("input")
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return given if isinstance(given, list) and any(_is_native(item) for item in given) else None


def _response(value: Mapping[str, Any]) -> Any:
    for name in RESPONSES:
        found = value.get(name)
        if found is not None:
            parsed = _object(found)
            return (_object(parsed.get("body")) or parsed) if parsed is not None else found
    return value if "choices" in value or isinstance(value.get("output"), list) else None


def _got(response: Any) -> list[Any]:
    if isinstance(response, str):
        return [{"role": "assistant", "content": response}] if response else []
    if not isinstance(response, dict):
        return []
    choices, output = response.get("choices"), response.get("output")
    if isinstance(choices, list):
        return [c["message"] for c in choices[:1] if isinstance(c, dict) and isinstance(c.get("message"), dict)]
    if isinstance(output, list):
        return [item for item in output if _is_native(item)]
    return [response] if response.get("role") == "assistant" else []


def _meta(value: Mapping[str, Any], response: Any) -> Meta:
    body = response if isinstance(response, dict) else {}
    usage = usage_of(body.get("usage")) or usage_of(value.get("usage"))
    error = body.get("error") or (value.get("error") if body is not value else None)
    made = next((body[k] for k in ("created", "created_at") if body.get(k) is not None), None)
    model = body.get("model") or value.get("model")
    response_id = body.get("id") if body.get("choices") is not None or body.get("output") is not None else None
    return Meta(usage=usage, model=model if isinstance(model, str) else None, time=seconds(made),
                request_id=response_id if isinstance(response_id, str) else None,
                error=_message_of(error) if error else None)


def _message_of(error: Any) -> str:
    text = error.get("message") if isinstance(error, dict) else error
    return text if isinstance(text, str) else json_text(error)


def _is_native(value: Any) -> bool:
    return isinstance(value, dict) and (isinstance(value.get("role"), str) or is_item(value))


@dataclass
class Log:
    """Collects the talks of a file while its records are read."""

    notes: list[ReadNote]
    odd: OddTypes
    talks: list[Talk] = field(default_factory=list)
    loose: Talk | None = None
    """The talk of a file with one message a line."""
    _near: dict[tuple[str, str], list[Talk]] = field(default_factory=dict)
    _by_response: dict[str, Talk] = field(default_factory=dict)
    _latest: Any = None

    def add(self, record: Record, is_document: bool) -> None:
        """Take in one record: a message, an exchange, or a list of either."""
        value, place = record.value, Place(None if is_document else record.line, record.byte)
        if isinstance(value, list):
            self._list(value, place)
        elif not isinstance(value, dict):
            self.notes.append(not_an_object(record.line, record.byte, value))
        elif _is_native(value) and "messages" not in value:
            self._message(value, record)
        else:
            self._exchange(value, place)

    def _list(self, rows: list[Any], place: Place) -> None:
        if any(map(_is_native, rows)):
            self._take(Exchange(rows, [], NO_META, None, {}), place)
            return
        for row in rows:
            if isinstance(row, dict):
                self._exchange(row, place)
            else:
                self.notes.append(not_an_object(place.line or 1, place.byte, row))

    def _message(self, value: dict[str, Any], record: Record) -> None:
        if value == self._latest and _is_marked(value):
            self.notes.append(ReadNote(code="duplicate", text="the message before is written again; read once",
                                       line=record.line, byte=record.byte))
            return
        self._latest = value
        self._loose().extend([value], Place(record.line, record.byte))

    def _loose(self) -> Talk:
        if self.loose is None:
            self.loose = Talk(id=None)
            self.talks.append(self.loose)
        return self.loose

    def _exchange(self, value: dict[str, Any], place: Place) -> None:
        found = exchange_of(value)
        if found is None:
            self.odd.add(value.get("type") or ", ".join(list(value)[:5]) or "(empty)", place.line or 1, place.byte)
        elif not found.sent and self.loose is not None:
            self._respond(self.loose, found, place)
        else:
            self._take(found, place)

    def _take(self, found: Exchange, place: Place) -> None:
        if _ends_with(found.sent, found.got):
            found = found._replace(sent=found.sent[:-len(found.got)])
        talk = self._by_response.get(found.previous or "")
        if talk is not None:
            talk.extend(found.sent, place)
            self._respond(talk, found, place)
            return
        near = self._near.setdefault(_first_prompt(found.sent), [])
        for talk in reversed(near[-_NEAR:]):
            if self._continue(talk, found, place):
                return
        talk = Talk(id=next((v for name in _IDS if isinstance(v := found.head.get(name), str)), None), head=found.head)
        talk.extend(found.sent, place)
        near.append(talk)
        self.talks.append(talk)
        self._respond(talk, found, place)

    def _continue(self, talk: Talk, found: Exchange, place: Place) -> bool:
        """Take the exchange as the next of a talk, where one's messages are a prefix of the other's."""
        same = _common(talk.natives, found.sent)
        if same < len(talk.natives) and same < len(found.sent):
            if same != talk.open_at:
                return False
            self._edit(talk, found.sent[same])
        elif same < len(talk.natives) and found.got:
            return self._again(talk, found, place)
        talk.extend(found.sent[max(same, len(talk.natives)):], place)
        if len(found.sent) > same or found.got:
            talk.open_at = None
        self._respond(talk, found, place)
        return True

    def _edit(self, talk: Talk, following: Any) -> None:
        """A later request holds something else in the last response's place: an edited copy, or not that response."""
        at = talk.open_at or 0
        if not (isinstance(following, dict) and (following.get("role") == "assistant" or is_item(following))):
            talk.unused.append((talk.natives[at:], talk.metas.pop(at, NO_META)))
        del talk.natives[at:], talk.places[at:]

    def _again(self, talk: Talk, found: Exchange, place: Place) -> bool:
        """The same request once more: its response is known, or takes the place of one that was not used."""
        at = len(found.sent)
        if _common(found.got, talk.natives[at:]) == len(found.got):
            talk.metas.setdefault(at, found.meta)
            return True
        if at != talk.open_at:
            return False
        talk.unused.append((talk.natives[at:], talk.metas.pop(at, NO_META)))
        del talk.natives[at:], talk.places[at:]
        self._respond(talk, found, place)
        return True

    def _respond(self, talk: Talk, found: Exchange, place: Place) -> None:
        at, meta = len(talk.natives), found.meta
        if found.got:
            talk.metas[at], talk.open_at = meta, at
            talk.extend(found.got, place)
        elif meta.error:
            talk.failures.setdefault(at, []).append(meta)
        elif meta.usage and (last := _last_answer(found.sent)) is not None:
            talk.metas.setdefault(last, meta)
        if meta.request_id:
            self._by_response[meta.request_id] = talk


def _last_answer(sent: list[Any]) -> int | None:
    last = sent[-1] if sent else None
    return len(sent) - 1 if isinstance(last, dict) and last.get("role") == "assistant" else None


def _ends_with(sent: list[Any], got: list[Any]) -> bool:
    """Whether the request's messages already hold the logged response at their end."""
    return 0 < len(got) <= len(sent) and _common(got, sent[-len(got):]) == len(got)


def _common(first: list[Any], second: list[Any]) -> int:
    """How many messages two lists share at their start."""
    shorter = min(len(first), len(second))
    if first[:shorter] == second[:shorter]:
        return shorter
    pairs = zip(first, second, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b and _key(a) != _key(b)), shorter)


def _key(native: Any) -> Any:
    """What makes a message the same for the model, whatever empty fields a client adds or drops."""
    if not isinstance(native, dict):
        return native
    calls = native.get("tool_calls")
    return (native.get("role"), native.get("type") or "message", native.get("content") or "", calls or [],
            native.get("tool_call_id") or native.get("call_id"), native.get("arguments"), native.get("output"))


def _first_prompt(sent: list[Any]) -> tuple[str, str]:
    for native in sent:
        if isinstance(native, dict) and native.get("role") not in ("system", "developer"):
            return str(native.get("role")), json_text(native.get("content"))[:500]
    return "", ""


def _is_marked(value: Mapping[str, Any]) -> bool:
    """Whether a message carries something that two different messages would not share."""
    return any(value.get(name) for name in ("id", "tool_call_id", "tool_calls", "timestamp", "created_at", "call_id"))
