"""A policy as a TOML text that loads to the same policy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from replay.policy.load import PRESET_FOLDER, preset_names, spec
from replay.policy.policy import Policy


def policy_text(made: Policy) -> str:
    """A preset's own text with its sources, under its name; any other policy's spec."""
    if made.name in preset_names():
        text = (PRESET_FOLDER / f"{made.name}.toml").read_text(encoding="utf-8")
        return f'name = "{made.name}"\n{text}'
    return "\n".join(_table(spec(made), ())) + "\n"


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """Plain values first, since what follows on a table's head belongs to it; tables as lists under their own heads."""
    yield from (f"{key} = {_value(value)}" for key, value in table.items() if not _is_tables(value))
    for key, value in table.items():
        if not _is_tables(value):
            continue
        inner = (*path, key)
        for entry in value if isinstance(value, (list, tuple)) else [value]:
            head = ".".join(inner)
            yield f"\n[[{head}]]" if isinstance(value, (list, tuple)) else f"\n[{head}]"
            yield from _table(entry, inner)


def _is_tables(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, (list, tuple)) and bool(value)
                                          and all(isinstance(v, Mapping) for v in value))


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value, value))}]"
    # JSON's strings, numbers and truth values are TOML's but for one character that TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
