"""The parts of a message: text, reasoning, tool call, tool result, image, opaque."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import orjson


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Plain text, exactly as the model saw or wrote it."""

    text: str
    kind: Literal["text"] = "text"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoning:
    """Visible reasoning, or the size of what was recorded only encrypted."""

    text: str
    opaque_bytes: int = 0
    """Bytes of a signature or of encrypted reasoning; the content is not kept."""
    kind: Literal["reasoning"] = "reasoning"


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """One call of a tool by the model."""

    id: str
    name: str
    arguments: str
    """JSON text of the arguments, or the raw string where it is not JSON."""
    is_object: bool = True
    """The harness stored the arguments as an object (False: as a string)."""
    kind: Literal["tool_call"] = "tool_call"

    @cached_property
    def parsed(self) -> Any:
        """The arguments as data; the raw string where they are not JSON."""
        try:
            return orjson.loads(self.arguments)
        except orjson.JSONDecodeError:
            return self.arguments

    @property
    def mapping(self) -> dict[str, Any]:
        """The arguments as a mapping; `{"input": …}` where they are not an object."""
        value = self.parsed
        return value if isinstance(value, dict) else {"input": value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """An image, by type, size and hash; its data is never kept."""

    mime: str
    size_bytes: int
    sha256: str
    kind: Literal["image"] = "image"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool call gave back, as the model saw it."""

    call_id: str
    text: str
    name: str | None = None
    images: tuple[Image, ...] = ()
    is_error: bool = False
    kind: Literal["tool_result"] = "tool_result"


@dataclass(frozen=True, slots=True, kw_only=True)
class Opaque:
    """Something the model was sent that no reader can look into."""

    label: str
    size_bytes: int
    kind: Literal["opaque"] = "opaque"


Block = Text | Reasoning | ToolCall | ToolResult | Image | Opaque
