"""What several readers need: times, images, JSON text, and a builder for a thread's log and steps."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import orjson

from replay.blocks import Block, Image
from replay.transcript import NOTHING, Message, Origin, ReadNote, RecordedCompaction, Role, Step, Thread, Usage

_LATEST = 1e20
"""Beyond this a number is no time in any unit."""
_MOST_TOKENS = 1e12


def seconds(value: Any) -> float | None:
    """Seconds since the epoch from ISO 8601 text (no zone: UTC) or epoch s, ms, µs or ns; None otherwise."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return _epoch(float(value)) if abs(value) < _LATEST else None
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return _epoch_text(str(value))
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _epoch_text(value: str) -> float | None:
    return _epoch(float(value)) if value.isascii() and value.isdigit() and len(value) < 20 else None


def _epoch(value: float) -> float:
    for limit, unit in ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3)):
        if value > limit:
            return value / unit
    return value


def whole(value: Any) -> int:
    """A token count as a whole number; 0 for what is not a number or is negative."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0
    return int(value) if 0 < value < _MOST_TOKENS else 0


def json_text(value: Any) -> str:
    """Compact JSON text in the order of the keys; the string itself where the value is one."""
    if isinstance(value, str):
        return value
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, orjson.JSONEncodeError):
        return _lenient_text(value)


def _lenient_text(value: Any) -> str:
    """JSON text of what orjson refuses: lone surrogates, huge numbers, very deep nesting (then as Python prints it)."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except RecursionError:
        return "[nested too deeply to be shown]"


def image(mime: str, data: Any) -> Image:
    """An image block from base64 text (a `data:` URL too); the data itself is not kept."""
    text = data if isinstance(data, str) else ""
    if text.startswith("data:"):
        head, _, text = text.partition(",")
        mime = head[5:].partition(";")[0] or mime
    try:
        raw = base64.b64decode(text, validate=False)
    except (binascii.Error, ValueError):
        raw = text.encode("utf-8", "replace")
    return Image(mime=mime, size_bytes=len(raw), sha256=hashlib.sha256(raw).hexdigest())


def leftover(native: Mapping[str, Any], *modelled: str) -> Mapping[str, Any]:
    """The native fields that are not among the modelled ones."""
    rest = {key: value for key, value in native.items() if key not in modelled}
    return MappingProxyType(rest) if rest else NOTHING


@dataclass
class ThreadBuilder:
    """Collects the log, steps and compactions of one thread while its file is read."""

    id: str
    parent_call: str | None = None
    messages: list[Message] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    compactions: list[RecordedCompaction] = field(default_factory=list)

    def add(self, role: Role, blocks: Iterable[Block], origin: Origin, **more: Any) -> Message:
        """Append a message to the log."""
        message = Message(index=len(self.messages), role=role, blocks=tuple(blocks), origin=origin, **more)
        self.messages.append(message)
        return message

    def respond(self, blocks: Iterable[Block], usage: Usage | None = None, *, model: str | None = None,
                time: float | None = None, request_id: str | None = None, error: str | None = None,
                **more: Any) -> Step:
        """Append a model response as a message and as a step."""
        start = len(self.messages)
        self.add("assistant", blocks, "model", time=time, **more)
        return self._step(start, start, usage, model, time, request_id, error)

    def fail(self, error: str, usage: Usage | None = None, *, model: str | None = None,
             time: float | None = None, request_id: str | None = None) -> Step:
        """Append a step whose response left nothing in the log."""
        return self._step(len(self.messages), None, usage, model, time, request_id, error)

    def _step(self, start: int, response: int | None, usage: Usage | None, model: str | None,
              time: float | None, request_id: str | None, error: str | None) -> Step:
        counted = usage if usage is not None and usage.total > 0 else None
        step = Step(number=len(self.steps) + 1, start=start, response=response, usage=counted, model=model,
                    time=time, request_id=request_id, error=error)
        self.steps.append(step)
        return step

    def build(self) -> Thread:
        """The finished thread."""
        return Thread(id=self.id, messages=tuple(self.messages), steps=tuple(self.steps),
                      compactions=tuple(self.compactions), parent_call=self.parent_call)


def not_an_object(line: int, byte: int, value: Any) -> ReadNote:
    """The note for a JSON value that stands where a record should be."""
    return ReadNote(code="not-an-object", text=f"expected a JSON object, found {type(value).__name__}; kept out",
                    line=line, byte=byte)
