"""Records of Rewindow's own format as parts of the transcript model; None for a record that cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, cast, get_args

from replay.blocks import Block, Image, Opaque, Reasoning, Text, ToolCall, ToolResult
from replay.transcript import NOTHING, Message, Origin, Outcome, ReadNote, RecordedCompaction, Role, Step, Usage

_ROLES, _ORIGINS = frozenset(get_args(Role)), frozenset(get_args(Origin))
_OUTCOMES = frozenset({"pass", "fail", "partial", "unknown"})
Native = Mapping[str, Any]


def text(value: Any) -> str | None:
    """The value where it is a string."""
    return value if isinstance(value, str) else None


def count(value: Any) -> int | None:
    """The value where it is a whole number from 0."""
    return value if type(value) is int and value >= 0 else None


def time(value: Any) -> float | None:
    """The value where it is a number."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def mapping(value: Any) -> Native:
    """The value where it is an object, else an empty one."""
    return MappingProxyType(value) if isinstance(value, dict) and value else NOTHING


def header(native: Native) -> dict[str, Any]:
    """The fields of a session's header, as the transcript takes them."""
    found: dict[str, Any] = {name: text(native.get(name)) for name in (
        "parent_session", "harness_version", "model", "cwd", "system_prompt")}
    found |= {name: value for name in ("format", "session_id") if (value := text(native.get(name))) is not None}
    found |= {"window": count(native.get("window")), "outcome": _outcome(native.get("outcome")),
              "message_count": count(native.get("message_count")) or 0, "extra": mapping(native.get("extra"))}
    return found


def _outcome(native: Any) -> Outcome | None:
    if not isinstance(native, dict) or not _is_one_of(native.get("value"), _OUTCOMES):
        return None
    return Outcome(value=native["value"], source=text(native.get("source")) or "", detail=text(native.get("detail")))


def note(native: Native) -> ReadNote | None:
    """A note on how the session was read first."""
    code, words = text(native.get("code")), text(native.get("text"))
    if code is None or words is None:
        return None
    return ReadNote(code=code, text=words, line=count(native.get("line")), byte=count(native.get("byte")))


def message(native: Native, index: int | None = None) -> Message | None:
    """A message; `index` for one that is in no log."""
    role, origin, listed = native.get("role"), native.get("origin"), native.get("blocks")
    at = count(native.get("index")) if index is None else index
    if at is None or not _is_one_of(role, _ROLES) or not _is_one_of(origin, _ORIGINS) or not isinstance(listed, list):
        return None
    return Message(index=at, role=cast("Role", role), origin=cast("Origin", origin), blocks=_blocks(listed),
                   id=text(native.get("id")), time=time(native.get("time")), line=count(native.get("line")),
                   detail=text(native.get("detail")), extra=mapping(native.get("extra")))


def _is_one_of(value: Any, choices: frozenset[str]) -> bool:
    return isinstance(value, str) and value in choices


def _blocks(listed: Iterable[Any]) -> tuple[Block, ...]:
    made = (_block(native) for native in listed if isinstance(native, dict))
    return tuple(block for block in made if block is not None)


def _block(native: Native) -> Block | None:
    kind = native.get("kind")
    return _BLOCKS[kind](native) if isinstance(kind, str) and kind in _BLOCKS else None


def _call(native: Native) -> Block:
    return ToolCall(id=_words(native, "id"), name=_words(native, "name"), arguments=_words(native, "arguments"),
                    is_object=native.get("is_object") is not False)


def _result(native: Native) -> Block:
    listed = native.get("images")
    images = tuple(i for n in listed if isinstance(n, dict) and (i := _image(n))) if isinstance(listed, list) else ()
    return ToolResult(call_id=_words(native, "call_id"), text=_words(native, "text"), name=text(native.get("name")),
                      images=images, is_error=native.get("is_error") is True)


def _image(native: Native) -> Image:
    return Image(mime=_words(native, "mime"), size_bytes=count(native.get("size_bytes")) or 0,
                 sha256=_words(native, "sha256"))


_BLOCKS: Mapping[str, Callable[[Native], Block]] = {
    "text": lambda native: Text(text=_words(native, "text")),
    "reasoning": lambda native: Reasoning(text=_words(native, "text"), opaque_bytes=_size(native, "opaque_bytes")),
    "tool_call": _call, "tool_result": _result, "image": _image,
    "opaque": lambda native: Opaque(label=_words(native, "label"), size_bytes=_size(native, "size_bytes")),
}


def _words(native: Native, name: str) -> str:
    return text(native.get(name)) or ""


def _size(native: Native, name: str) -> int:
    return count(native.get(name)) or 0


def step(native: Native) -> Step | None:
    """A model call."""
    start, number = count(native.get("start")), count(native.get("number"))
    if start is None or number is None:
        return None
    return Step(number=number, start=start, response=count(native.get("response")), usage=usage(native.get("usage")),
                model=text(native.get("model")), time=time(native.get("time")),
                request_id=text(native.get("request_id")), error=text(native.get("error")))


def usage(native: Any, *, is_side: bool = False) -> Usage | None:
    """Token counts; None where there are none."""
    if not isinstance(native, dict):
        return None
    counts = {name: count(native.get(name)) or 0 for name in (
        "input_uncached", "cache_read", "cache_write_5m", "cache_write_1h", "output", "reasoning")}
    return Usage(**counts, side=None if is_side else usage(native.get("side"), is_side=True))


def compaction(native: Native) -> RecordedCompaction | None:
    """A recorded compaction."""
    position, kind = count(native.get("position")), native.get("kind")
    if position is None or kind not in ("full", "micro", "clear"):
        return None
    listed, elided = native.get("window"), native.get("elided")
    window = tuple(part for n in listed if (part := _part(n)) is not None) if isinstance(listed, list) else ()
    more = {"placeholder": native["placeholder"]} if isinstance(native.get("placeholder"), str) else {}
    return RecordedCompaction(
        position=position, kind=kind, window=window, trigger=text(native.get("trigger")),
        elided=tuple(i for i in elided if count(i) is not None) if isinstance(elided, list) else (),
        counter_before=count(native.get("counter_before")), counter_after=count(native.get("counter_after")),
        summary=text(native.get("summary")), summary_readable=native.get("summary_readable") is True,
        line=count(native.get("line")), extra=mapping(native.get("extra")), **more)


def _part(native: Any) -> int | Message | None:
    return message(native, index=-1) if isinstance(native, dict) else count(native)
