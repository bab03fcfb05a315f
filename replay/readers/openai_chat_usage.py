"""Token usage as OpenAI-style interfaces report it, in chat and in Responses spelling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replay.readers.common import whole
from replay.transcript import Usage


def usage_of(native: Any, response: Any = None) -> Usage | None:
    """The usage of one response; None where there is none.

    Prompt counts include cached tokens and completion counts include reasoning, unless the names are Anthropic's.
    Where only a total is known it counts as uncached input. `response` may hold a fuller copy of the usage.
    """
    full = response.get("usage") if isinstance(response, dict) else None
    if not isinstance(native, dict):
        native = full
    if not isinstance(native, dict):
        return None
    details = full if isinstance(full, dict) else native
    if _is_exclusive(native):
        return _exclusive(native)
    return _inclusive(native, details)


def _inclusive(native: Mapping[str, Any], details: Mapping[str, Any]) -> Usage:
    output = _first(native, "completion_tokens", "output_tokens")
    prompt = _first(native, "prompt_tokens", "input_tokens") or max(whole(native.get("total_tokens")) - output, 0)
    read = min(_cached(details), prompt)
    write = min(whole(details.get("cache_creation_input_tokens")), prompt - read)
    return Usage(input_uncached=prompt - read - write, cache_read=read, cache_write_5m=write, output=output,
                 reasoning=_nested(details, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens"))


def _cached(details: Mapping[str, Any]) -> int:
    return (_nested(details, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens")
            or _first(details, "prompt_cache_hit_tokens", "cache_read_input_tokens"))


def _is_exclusive(native: Mapping[str, Any]) -> bool:
    """Anthropic's names: there the input count leaves out what was cached."""
    return "prompt_tokens" not in native and "input_tokens_details" not in native and (
        "cache_read_input_tokens" in native or "cache_creation_input_tokens" in native)


def _exclusive(native: Mapping[str, Any]) -> Usage:
    write = whole(native.get("cache_creation_input_tokens"))
    hour = min(_nested(native, ("cache_creation",), "ephemeral_1h_input_tokens"), write)
    return Usage(
        input_uncached=whole(native.get("input_tokens")), cache_read=whole(native.get("cache_read_input_tokens")),
        cache_write_5m=write - hour, cache_write_1h=hour, output=whole(native.get("output_tokens")))


def _first(native: Mapping[str, Any], *names: str) -> int:
    return next((count for name in names if (count := whole(native.get(name)))), 0)


def _nested(native: Mapping[str, Any], groups: tuple[str, ...], name: str) -> int:
    for group in groups:
        inner = native.get(group)
        if isinstance(inner, dict):
            return whole(inner.get(name))
    return 0
