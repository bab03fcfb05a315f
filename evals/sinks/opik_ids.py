"""Identifiers that come out the same whenever the same thing is pushed, in the form that Opik demands."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from typing import Any

import orjson

_TIME_BITS = 80
"""A UUID of version 7 begins with 48 bits of milliseconds; behind them stand 80 bits."""
_OWN = (1 << _TIME_BITS) - 1


def digest(*parts: Any) -> str:
    """Hex SHA-256 of plain data; the order of keys does not matter."""
    return hashlib.sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


def made_id(milliseconds: int, *parts: Any) -> str:
    """A UUID of version 7 with this time whose other bits are a hash of the parts."""
    raw = bytearray(milliseconds.to_bytes(6, "big") + bytes.fromhex(digest(*parts))[:10])
    raw[6] = 0x70 | raw[6] & 0x0F
    raw[8] = 0x80 | raw[8] & 0x3F
    return str(uuid.UUID(bytes=bytes(raw)))


def milliseconds_of(known: str) -> int:
    """The time in an identifier, in milliseconds since the epoch."""
    return uuid.UUID(known).int >> _TIME_BITS


def is_same(one: str, other: str) -> bool:
    """Whether two identifiers were made of the same parts, at whatever time. False for what is no UUID."""
    try:
        return uuid.UUID(one).int & _OWN == uuid.UUID(other).int & _OWN
    except ValueError:
        return False


def cohort_of(sessions: Mapping[str, Any]) -> str:
    """The version of a set of sessions: twelve hex digits that change with their names and with what they hold."""
    return digest(sorted(sessions.items()))[:12]
