"""Token counts of spans, and whether their input counts include what was read from a cache."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from replay.readers.common import whole
from replay.transcript import Usage

_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt", "ai.usage.promptTokens",
          "ai.usage.inputTokens", "llm.usage.prompt_tokens", "input", "prompt_tokens", "input_tokens", "promptTokens",
          "original_usage.prompt_tokens", "original_usage.input_tokens")
_OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion",
           "ai.usage.completionTokens", "ai.usage.outputTokens", "llm.usage.completion_tokens", "output",
           "completion_tokens", "output_tokens", "completionTokens", "original_usage.completion_tokens",
           "original_usage.output_tokens")
_TOTAL = ("gen_ai.usage.total_tokens", "llm.token_count.total", "llm.usage.total_tokens", "total", "total_tokens",
          "totalTokens", "original_usage.total_tokens")
_READ = ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens",
         "llm.token_count.prompt_details.cache_read", "gen_ai.usage.input_tokens.cached", "ai.usage.cachedInputTokens",
         "cache_read_input_tokens", "input_cached_tokens", "input_cache_read", "cached_tokens",
         "original_usage.cache_read_input_tokens", "original_usage.prompt_tokens_details.cached_tokens",
         "original_usage.input_tokens_details.cached_tokens", "prompt_tokens_details.cached_tokens")
_WRITTEN = ("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_write.input_tokens",
            "gen_ai.usage.cache_creation_input_tokens", "llm.token_count.prompt_details.cache_write",
            "cache_creation_input_tokens", "input_cache_creation", "original_usage.cache_creation_input_tokens")
_THOUGHT = ("gen_ai.usage.reasoning.output_tokens", "gen_ai.usage.output_tokens.reasoning",
            "llm.token_count.completion_details.reasoning", "ai.usage.reasoningTokens", "output_reasoning_tokens",
            "reasoning_tokens", "original_usage.completion_tokens_details.reasoning_tokens",
            "original_usage.output_tokens_details.reasoning_tokens", "completion_tokens_details.reasoning_tokens")


class Counts(NamedTuple):
    """Token counts as a span gives them."""

    given: int = 0
    output: int = 0
    read: int = 0
    written: int = 0
    thought: int = 0
    total: int = 0


def counts_of(native: Mapping[str, Any]) -> Counts | None:
    """The counts in a span's attributes or usage object; None where there are none."""
    flat = dict(_flat(native)) if any(isinstance(value, dict) for value in native.values()) else native
    found = Counts(*(_first(flat, names) for names in (_INPUT, _OUTPUT, _READ, _WRITTEN, _THOUGHT, _TOTAL)))
    return found if any(found) else None


def _flat(native: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in native.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _first(flat: Mapping[str, Any], names: Iterable[str]) -> int:
    return next((count for name in names if (count := whole(flat.get(name)))), 0)


def includes_cache(listed: Iterable[Counts | None], default: bool) -> tuple[bool | None, str]:
    """Whether input counts include cached tokens, and how that is known; None where no cache was used.

    A cached part that is larger than the input tells that they do not; a total that adds up tells either way; else
    it is what the format's own description says (`default`).
    """
    cached = [c for c in listed if c is not None and c.read + c.written]
    if not cached:
        return None, "no cached tokens were reported"
    if any(c.read + c.written > c.given for c in cached):
        return False, "a cached part is larger than its input count"
    for counts in cached:
        if counts.total and counts.total == counts.given + counts.output:
            return True, "totals are input plus output"
        if counts.total and counts.total == counts.given + counts.read + counts.written + counts.output:
            return False, "totals are input, cache and output together"
    return default, "not told; taken from the description of the format"


def usage_of(counts: Counts | None, is_inclusive: bool) -> Usage | None:
    """Counts as usage; where only a total is known it counts as uncached input."""
    if counts is None:
        return None
    given = counts.given or max(counts.total - counts.output - (0 if is_inclusive else counts.read + counts.written), 0)
    cached = counts.read + counts.written if is_inclusive else 0
    return Usage(input_uncached=max(given - cached, 0), cache_read=counts.read, cache_write_5m=counts.written,
                 output=counts.output, reasoning=counts.thought)
