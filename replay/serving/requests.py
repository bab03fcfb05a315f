"""A request of a harness, whatever its protocol: items, pieces, tools, size."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from replay.readers.wire_items import ItemTable, Piece
from replay.writers.json_lines import json_bytes

_CACHE_MARK = "cache_control"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The body of a request, taken apart by its protocol."""

    items: Sequence[Any]
    """Messages or input items in the order sent, system text in front."""
    tools: Sequence[Any] = ()
    """Tool schemas."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """All other keys."""
    previous: str | None = None
    """Id of the response that this request continues, where the protocol lets the endpoint keep the history."""

    @property
    def tool_names(self) -> tuple[str, ...]:
        """Names of the offered tools; built-in tools by their type."""
        return tuple(_tool_name(t) for t in self.tools if isinstance(t, dict))


def _tool_name(tool: Mapping[str, Any]) -> str:
    function = tool.get("function")
    named = function.get("name") if isinstance(function, dict) else tool.get("name")
    return str(named or tool.get("type") or "unknown")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as the endpoint works with it."""

    number: int
    """From 1, in the order of arrival."""
    path: str
    parsed: Parsed
    ids: tuple[int, ...]
    """Its items in the table of distinct items."""
    pieces: tuple[Piece, ...]
    size: int
    """Bytes of the body as it came."""

    @property
    def model(self) -> str:
        """The model that was asked for."""
        return str(self.parsed.params.get("model") or "recorded")

    @property
    def streams(self) -> bool:
        """Whether the answer is to come as events."""
        return self.parsed.params.get("stream") is True


class Items:
    """The distinct items of all requests. Marks of prompt caches wander from request to request and are left out."""

    def __init__(self) -> None:
        """Start empty."""
        self._ids: dict[bytes, int] = {}
        self.natives: dict[int, Any] = {}
        self.table = ItemTable(self.natives)

    def ids(self, items: Sequence[Any]) -> tuple[int, ...]:
        """The number of each item; new ones are taken in."""
        return tuple(self._id(_unmarked(item)) for item in items)

    def _id(self, item: Any) -> int:
        key = hashlib.sha256(json_bytes(item)).digest()
        known = self._ids.setdefault(key, len(self._ids))
        self.natives.setdefault(known, item)
        return known


def _unmarked(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    plain = {key: value for key, value in item.items() if key != _CACHE_MARK}
    if isinstance(plain.get("content"), list):
        plain["content"] = [_unmarked(part) for part in plain["content"]]
    return plain
