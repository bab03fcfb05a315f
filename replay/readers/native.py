"""Small questions to native JSON whose fields may be missing or of a wrong type."""

from __future__ import annotations

from collections.abc import Mapping, Set
from types import MappingProxyType
from typing import Any

from replay.transcript import NOTHING


def mapping(value: Any) -> Mapping[str, Any]:
    """The object itself; an empty one for anything else."""
    return value if isinstance(value, dict) else NOTHING


def string(value: Any) -> str | None:
    """The text itself; None for anything else and for empty text."""
    return value if isinstance(value, str) and value else None


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list, in order; none for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def rest(native: Mapping[str, Any], modelled: Set[str]) -> Mapping[str, Any]:
    """The fields that are not among the modelled ones."""
    if native.keys() <= modelled:
        return NOTHING
    return MappingProxyType({key: value for key, value in native.items() if key not in modelled})
