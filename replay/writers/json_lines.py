"""JSON text of any plain data, and files that are complete or absent."""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import orjson

_DEEPEST = 200


def json_bytes(value: Any) -> bytes:
    """Compact JSON. What JSON cannot hold is replaced: halves of surrogate pairs by U+FFFD, NaN by null, numbers
    beyond 64 bits by floats, values nested deeper than 200 levels and foreign types by their text."""
    try:
        return orjson.dumps(value, default=_default)
    except (TypeError, orjson.JSONEncodeError):
        return orjson.dumps(_writable(value, 0))


def _default(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    raise TypeError(type(value).__name__)


def _writable(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode() if _is_broken(value) else value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if -(1 << 63) <= value < 1 << 64 else _finite(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth > _DEEPEST or not isinstance(value, (Mapping, list, tuple, set, frozenset)):
        return _writable(_text(value), depth)
    if isinstance(value, Mapping):
        return {_writable(str(key), depth): _writable(inner, depth + 1) for key, inner in value.items()}
    return [_writable(inner, depth + 1) for inner in (value if isinstance(value, (list, tuple)) else _default(value))]


def _is_broken(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def _finite(value: int) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def _text(value: Any) -> str:
    try:
        return json.dumps(value, default=str)
    except (RecursionError, ValueError):
        return f"({type(value).__name__}, nested too deeply to be written)"


def write_lines(values: Iterable[Any], file: IO[bytes]) -> None:
    """One JSON value a line."""
    import jsonlines

    with jsonlines.Writer(file, dumps=json_bytes) as writer:
        writer.write_all(values)


@contextmanager
def output(path: Path | None) -> Iterator[IO[bytes]]:
    """Standard output, or a file that takes its name only when everything is written."""
    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        Path(scratch).chmod(0o666 & ~_umask())
        Path(scratch).replace(path)
    except BaseException:
        Path(scratch).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
