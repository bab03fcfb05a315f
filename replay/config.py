"""TOML tables into dataclasses and back; every error carries the file and the dotted key."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import types
import typing
from collections.abc import Mapping
from typing import Any

from replay.errors import ConfigError, UnknownName
from replay.policy.parts import DEFAULT_USE, PARTS


def build(cls: type, table: Mapping[str, Any], where: str, key: str = "") -> Any:
    """Make a dataclass from a table: unknown keys, wrong types and missing values are errors with their place."""
    fields = {f.name: f for f in dataclasses.fields(cls) if f.init}
    hints = typing.get_type_hints(cls)
    values = {}
    for name, value in table.items():
        place = f"{key}.{name}" if key else name
        if name not in fields:
            raise ConfigError(where, place, _unknown_key(name, fields))
        values[name] = _value(fields[name], hints[name], value, where, place)
    missing = [n for n, f in fields.items() if n not in values and _required(f)]
    if missing:
        raise ConfigError(where, key, f"missing {', '.join(missing)}")
    try:
        return cls(**values)
    except ConfigError as error:
        raise ConfigError(where, f"{key}.{error.key}" if key else error.key, error.reason) from error


def part(kind: str, table: Any, where: str, key: str) -> Any:
    """Make a part from `{use = "name", …}`, from `"name"`, or from `use = "package.module:Class"`."""
    settings = {"use": table} if isinstance(table, str) else dict(table) if isinstance(table, Mapping) else None
    if settings is None:
        raise ConfigError(where, key, "expected a table with `use`, or a name")
    name = settings.pop("use", DEFAULT_USE.get(kind))
    if not isinstance(name, str):
        raise ConfigError(where, f"{key}.use", f"expected one of {', '.join(PARTS[kind])} or package.module:Class")
    return build(_part_class(kind, name, f"{where}: {key}.use"), settings, where, key)


def to_spec(value: Any) -> dict[str, Any]:
    """A dataclass as plain data: what differs from the defaults, parts with their `use`."""
    spec: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        current = getattr(value, field.name)
        if not _required(field) and current == _default(field):
            continue
        kind, kinds = field.metadata.get("part"), field.metadata.get("parts")
        if kinds:
            spec[field.name] = [part_spec(kinds, part) for part in current]
        else:
            spec[field.name] = part_spec(kind, current) if kind else _plain(current)
    return spec


def part_spec(kind: str, value: Any) -> dict[str, Any]:
    """The spec of a part with its `use`."""
    names = {cls: name for name, cls in PARTS[kind].items()}
    use = names.get(type(value), f"{type(value).__module__}:{type(value).__qualname__}")
    return {"use": use, **to_spec(value)}


def load_object(target: str, where: str) -> Any:
    """The object that `package.module:attribute` names. Raises ConfigError."""
    module, _, attribute = target.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(where, "", f"cannot import {target}: {error}") from error


def _part_class(kind: str, name: str, where: str) -> type:
    if name in PARTS[kind]:
        return PARTS[kind][name]
    if ":" not in name:
        raise UnknownName(kind, name, PARTS[kind], where)
    found = load_object(name, where)
    if not (isinstance(found, type) and dataclasses.is_dataclass(found)):
        raise ConfigError(where, "", f"{name} is not a dataclass")
    return found


def _unknown_key(name: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name, known, n=2)
    return f"unknown key; did you mean {' or '.join(near)}?" if near else f"unknown key; known: {', '.join(known)}"


def _required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return to_spec(value)
    return [_plain(v) for v in value] if isinstance(value, tuple) else value


def _value(field: dataclasses.Field[Any], hint: Any, value: Any, where: str, key: str) -> Any:
    kind = field.metadata.get("part")
    if kind:
        return part(kind, value, where, key)
    kinds = field.metadata.get("parts")
    if kinds:
        if not isinstance(value, (list, tuple)):
            raise ConfigError(where, key, f"expected a list of tables with `use`, found {value!r}")
        return tuple(part(kinds, entry, where, f"{key}[{i}]") for i, entry in enumerate(value))
    return _typed(hint, value, where, key)


def _typed(hint: Any, value: Any, where: str, key: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        return _one_of(arguments, value, where, key)
    if origin is typing.Literal:
        if value not in arguments:
            raise ConfigError(where, key, f"expected one of {', '.join(map(str, arguments))}, found {value!r}")
        return value
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise ConfigError(where, key, f"expected a list, found {value!r}")
        return tuple(_typed(arguments[0], v, where, f"{key}[{i}]") for i, v in enumerate(value))
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        if not isinstance(value, Mapping):
            raise ConfigError(where, key, f"expected a table, found {value!r}")
        return build(hint, value, where, key)
    return _scalar(hint, value, where, key)


def _one_of(options: tuple[Any, ...], value: Any, where: str, key: str) -> Any:
    if value is None and type(None) in options:
        return None
    return _typed(next(o for o in options if o is not type(None)), value, where, key)


def _scalar(hint: Any, value: Any, where: str, key: str) -> Any:
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(hint, type) or (isinstance(value, hint) and not (hint is int and isinstance(value, bool))):
        return value
    raise ConfigError(where, key, f"expected {hint.__name__}, found {value!r}")
