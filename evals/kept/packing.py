"""What is kept as bytes, and back without trusting them."""

from __future__ import annotations

import hashlib
import io
import pickle
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import zstandard

from replay import blocks, transcript

_CHECKED = 32
"""Bytes of the checksum in front."""
_MOST_BYTES = 4 << 30
"""No entry unpacks to more."""
_CLASSES = {(module.__name__, name): getattr(module, name) for module, names in (
    (transcript, ("Transcript", "Thread", "Message", "Step", "Usage", "RecordedCompaction", "ReadNote", "Outcome")),
    (blocks, ("Text", "Reasoning", "ToolCall", "ToolResult", "Image", "Opaque"))) for name in names}


def seal(value: Any) -> bytes:
    """Transcripts and plain data as bytes: a checksum, then what it is of."""
    raw = io.BytesIO()
    writer = pickle.Pickler(raw, protocol=5)
    writer.dispatch_table = {MappingProxyType: _opened}
    writer.dump(value)
    data = zstandard.ZstdCompressor(level=1).compress(raw.getvalue())
    return hashlib.sha256(data).digest() + data


def unseal(data: bytes) -> Any:
    """What was sealed; None for bytes that `seal` did not write as they are.

    Only the classes of transcripts are ever made: bytes that name anything else are damaged.
    """
    checksum, body = data[:_CHECKED], data[_CHECKED:]
    if hashlib.sha256(body).digest() != checksum:
        return None
    try:
        raw = zstandard.ZstdDecompressor().decompress(body, max_output_size=_MOST_BYTES)
        return _Reader(io.BytesIO(raw)).load()
    except (zstandard.ZstdError, pickle.UnpicklingError, EOFError, AttributeError, TypeError, ValueError):
        return None


def _opened(mapping: MappingProxyType[str, Any]) -> tuple[Any, ...]:
    return read_only, (dict(mapping),)


def read_only(mapping: dict[str, Any]) -> Mapping[str, Any]:
    """A mapping as transcripts hold them: pickle has no name for their type."""
    return MappingProxyType(mapping)


class _Reader(pickle.Unpickler):
    """Makes transcripts and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """A class by name. Raises UnpicklingError for all but those of transcripts."""
        if (module, name) == (read_only.__module__, read_only.__name__):
            return read_only
        try:
            return _CLASSES[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} is no part of a transcript") from None
