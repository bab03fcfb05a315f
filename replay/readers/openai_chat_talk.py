"""One talk with an OpenAI-style model: native messages or Responses items in order, and its thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from replay.blocks import ToolResult
from replay.readers.common import ThreadBuilder, leftover, seconds
from replay.readers.odd_types import OddTypes
from replay.readers.openai_chat_blocks import (
    RESULT_PARTS,
    Pairing,
    assistant_blocks,
    content_blocks,
    item_blocks,
    result,
)
from replay.readers.openai_chat_usage import usage_of
from replay.transcript import Thread, Usage

MODEL_ITEMS = frozenset({
    "reasoning", "function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call",
    "computer_call", "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call",
    "tool_search_call", "mcp_call", "mcp_list_tools", "mcp_approval_request", "compaction", "compaction_summary",
    "context_compaction",
})
"""Types of Responses items that the model (or the service for it) made."""
_CONTENT = ("content", "tool_calls", "function_call", "reasoning_content", "refusal", "role", "usage")


class Place(NamedTuple):
    """Where a native message was first seen."""

    line: int | None
    byte: int


class Meta(NamedTuple):
    """What a logged response tells beside its content."""

    usage: Usage | None = None
    model: str | None = None
    time: float | None = None
    request_id: str | None = None
    error: str | None = None


NO_META = Meta()
NOWHERE = Place(None, 0)


@dataclass
class Talk:
    """The native messages of one session, without repeats."""

    id: str | None
    natives: list[Any] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    metas: dict[int, Meta] = field(default_factory=dict)
    """By the index of the first native message of the response."""
    failures: dict[int, list[Meta]] = field(default_factory=dict)
    """Requests that got nothing usable, by how many messages they sent."""
    unused: list[tuple[list[Any], Meta]] = field(default_factory=list)
    """Responses that the talk did not go on from."""
    open_at: int | None = None
    """Index of the last logged response while no later request repeats it."""
    head: Mapping[str, Any] = field(default_factory=dict)
    """The object that held the first messages."""

    def extend(self, natives: list[Any], place: Place) -> None:
        """Append native messages."""
        self.natives.extend(natives)
        self.places.extend([place] * len(natives))


def is_item(native: Mapping[str, Any]) -> bool:
    """Whether this is a Responses item that no chat message looks like."""
    kind = native.get("type")
    return isinstance(kind, str) and (kind in MODEL_ITEMS or kind.endswith("_call_output"))


def _is_model_item(native: Mapping[str, Any]) -> bool:
    """Whether this is part of a response among Responses items."""
    if native.get("role") == "assistant":
        return "tool_calls" not in native
    return is_item(native) and native["type"] in MODEL_ITEMS


@dataclass
class TalkThread:
    """Builds the thread of a talk."""

    odd: OddTypes
    thread: ThreadBuilder
    pairing: Pairing = field(default_factory=Pairing)
    count: int = 0
    """Messages: chat messages one each, the items of one response together one."""
    _group: list[Mapping[str, Any]] = field(default_factory=list)
    _group_meta: Meta = NO_META
    _group_place: Place = NOWHERE

    def build(self, talk: Talk) -> Thread:
        """The thread of the whole talk."""
        grouped = any(isinstance(native, dict) and is_item(native) for native in talk.natives)
        for index, (native, place) in enumerate(zip(talk.natives, talk.places, strict=True)):
            if index in talk.metas or index in talk.failures:
                self._flush()
            self._fail(talk.failures.get(index, ()))
            self._add(native, place, talk.metas.get(index, NO_META), grouped)
        self._flush()
        self._fail(talk.failures.get(len(talk.natives), ()))
        return self.thread.build()

    def _fail(self, metas: list[Meta] | tuple[()]) -> None:
        for meta in metas:
            self.thread.fail(meta.error or "no message", meta.usage, model=meta.model, time=meta.time,
                             request_id=meta.request_id)

    def _add(self, native: Any, place: Place, meta: Meta, grouped: bool) -> None:
        if not isinstance(native, dict):
            self.odd.add(f"a {type(native).__name__}", place.line or 1, place.byte)
            return
        role = native.get("role")
        if grouped and _is_model_item(native):
            if not self._group:
                self._group_meta, self._group_place = meta, place
            self._group.append(native)
            return
        self._flush()
        self.count += 1
        if role == "assistant":
            self._assistant(native, place, meta)
        else:
            self._other(native, str(role or native.get("type")), place)

    def _flush(self) -> None:
        """Close a group of Responses items: they are one response."""
        group, self._group = self._group, []
        if group:
            self.count += 1
            self.pairing.respond()
            blocks = [block for item in group for block in item_blocks(item, self.pairing)]
            meta = self._group_meta
            self.thread.respond(blocks, meta.usage, model=meta.model, time=meta.time, request_id=meta.request_id,
                                error=meta.error, line=self._group_place.line)

    def _assistant(self, native: Mapping[str, Any], place: Place, meta: Meta) -> None:
        model, native_id = native.get("model"), native.get("id")
        self.thread.respond(
            assistant_blocks(native, self.pairing), meta.usage or usage_of(native.get("usage")),
            model=meta.model or (model if isinstance(model, str) else None), time=meta.time or time_of(native),
            request_id=meta.request_id, error=meta.error, id=native_id if isinstance(native_id, str) else None,
            line=place.line, extra=leftover(native, *_CONTENT))

    def _other(self, native: Mapping[str, Any], role: str, place: Place) -> None:
        more: dict[str, Any] = {"time": time_of(native), "line": place.line,
                                "extra": leftover(native, "role", "content", "tool_call_id", "call_id", "output")}
        if role in ("tool", "function") or role.endswith("_call_output"):
            self.thread.add("tool", self._results(native), "tool", **more)
        elif role in ("system", "developer"):
            blocks = content_blocks(native.get("content"), self.pairing)
            self.thread.add("system" if role == "system" else "developer", blocks, "system", **more)
        else:
            self._user(native, role, place, more)

    def _results(self, native: Mapping[str, Any]) -> list[ToolResult]:
        content = native.get("content") if "content" in native else native.get("output")
        rows = content if isinstance(content, list) else []
        if any(isinstance(part, dict) and str(part.get("type")) in RESULT_PARTS for part in rows):
            return [block for block in content_blocks(rows, self.pairing) if isinstance(block, ToolResult)]
        return [result(native, content, self.pairing)]

    def _user(self, native: Mapping[str, Any], role: str, place: Place, more: dict[str, Any]) -> None:
        """A user message; tool results in it (another vendor's spelling) make a message of their own."""
        blocks = content_blocks(native.get("content"), self.pairing)
        results = [block for block in blocks if isinstance(block, ToolResult)]
        rest = [block for block in blocks if not isinstance(block, ToolResult)]
        if results:
            self.thread.add("tool", results, "tool", **more)
        if role != "user":
            self.odd.add(role, place.line or 1, place.byte)
            self.thread.add("user", rest, "injected", detail=role, **more)
        elif rest or not results:
            self.thread.add("user", rest, "human", **more)


def time_of(native: Mapping[str, Any]) -> float | None:
    """The time of a message, under the names that logs give it."""
    for name in ("timestamp", "created_at", "created", "time"):
        if name in native:
            return seconds(native[name])
    for name in ("_metadata", "metadata"):
        if isinstance(inner := native.get(name), dict) and "timestamp" in inner:
            return seconds(inner["timestamp"])
    return None


def unused_thread(talk: Talk, number: int, odd: OddTypes) -> Thread:
    """The thread of a response that the talk did not go on from: it was billed."""
    natives, meta = talk.unused[number]
    branch = Talk(id=f"unused-{number + 1}", metas={0: meta})
    branch.extend(natives, NOWHERE)
    return TalkThread(odd, ThreadBuilder(id=branch.id or "")).build(branch)
