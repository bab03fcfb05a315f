"""Attribute values of spans: typed values, JSON in strings, lists spelt out in dotted names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import orjson


def plain_value(value: Any) -> Any:
    """A typed value of OTLP as plain data; a value that is plain already is given back."""
    if not isinstance(value, dict):
        return value
    for key, inner in value.items():
        if key == "intValue":
            return _whole(inner)
        if key in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
            return inner
        if key == "arrayValue":
            return [plain_value(item) for item in _values(inner)]
        if key == "kvlistValue":
            return attributes_of(_values(inner))
    return value or None


def _values(inner: Any) -> list[Any]:
    values = inner.get("values") if isinstance(inner, dict) else inner
    return values if isinstance(values, list) else []


def _whole(value: Any) -> Any:
    try:
        return int(value)
    except (TypeError, ValueError):
        return value


def attributes_of(listed: Any) -> dict[str, Any]:
    """Attributes as a mapping: from a list of keys and typed values, or from a mapping."""
    if isinstance(listed, Mapping):
        return {str(key): plain_value(value) for key, value in listed.items()}
    rows: Iterable[Any] = listed if isinstance(listed, list) else ()
    return {row["key"]: plain_value(row.get("value")) for row in rows
            if isinstance(row, dict) and isinstance(row.get("key"), str)}


def decoded(value: Any) -> Any:
    """The data in a string that is JSON of an object or a list; anything else as it stands."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def spelt_out(attributes: Mapping[str, Any], prefix: str) -> list[Any]:
    """The list that stands in attributes named `prefix.0.…`, `prefix.1.…`; empty where there is none."""
    start = prefix + "."
    tree: dict[str, Any] = {}
    for name, value in attributes.items():
        if name.startswith(start):
            _grow(tree, name[len(start):].split("."), value)
    made = _as_lists(tree)
    return made if isinstance(made, list) else []


def _grow(tree: dict[str, Any], path: list[str], value: Any) -> None:
    for step in path[:-1]:
        inner = tree.setdefault(step, {})
        if not isinstance(inner, dict):
            return
        tree = inner
    tree[path[-1]] = value


def _as_lists(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value and all(key.isdigit() for key in value):
        return [_as_lists(value[key]) for key in sorted(value, key=int)]
    return {key: _as_lists(inner) for key, inner in value.items()}
