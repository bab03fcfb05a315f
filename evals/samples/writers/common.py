"""What the writers share: times and lines."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import orjson

Row = dict[str, Any]


def iso(seconds: float) -> str:
    """`2026-03-02T09:00:00.000Z`."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def milliseconds(seconds: float) -> int:
    """Whole milliseconds since the epoch."""
    return round(seconds * 1000)


def lines(rows: Iterable[Row]) -> bytes:
    """One JSON object a line."""
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)
