"""Whether two runs may be compared at all, and the fair scalar between two curves when their thresholds differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from replay.errors import ConfigError

_SETTINGS: Mapping[str, str] = {
    "window": "context windows", "output_reserve": "output reserves", "tokenizer": "tokenizers",
    "prices": "price tables", "cache_model": "cache models", "summariser": "summarisers", "schema": "schema versions",
}
"""Keys of a run's summary that must be equal, and what each is."""
_NAMED = 3


def comparable(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Reasons why the summaries of two runs cannot be compared; empty when they can."""
    reasons = [f"different {words}: {_word(a.get(key))} and {_word(b.get(key))}"
               for key, words in _SETTINGS.items() if a.get(key) != b.get(key)]
    return reasons + _cohorts(_cohort(a), _cohort(b))


def require_comparable(a: Mapping[str, Any], b: Mapping[str, Any], anyway: bool = False) -> list[str]:
    """The reasons, for a warning, when told to compare anyway; else raises ConfigError with them."""
    reasons = comparable(a, b)
    if reasons and not anyway:
        raise ConfigError("runs", "", f"cannot be compared: {'; '.join(reasons)}")
    return reasons


def _cohort(summary: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    """Session to what it held."""
    return {str(s["session"]): (s.get("steps"), s.get("messages")) for s in summary.get("sessions", ())}


def _cohorts(a: Mapping[str, tuple[Any, ...]], b: Mapping[str, tuple[Any, ...]]) -> list[str]:
    reasons = []
    if a.keys() != b.keys():
        only = (f"{len(a.keys() - b.keys())} only in the first{_some(a.keys() - b.keys())}",
                f"{len(b.keys() - a.keys())} only in the second{_some(b.keys() - a.keys())}")
        reasons.append(f"different cohorts: {len(a.keys() & b.keys())} sessions in both, {', '.join(only)}")
    changed = {s for s in a.keys() & b.keys() if a[s] != b[s]}
    if changed:
        reasons.append(f"different content of {len(changed)} sessions of the same id{_some(changed)}")
    return reasons


def _some(names: set[str]) -> str:
    shown = sorted(names)[:_NAMED]
    return f" ({', '.join(shown)}{', …' if len(names) > _NAMED else ''})" if names else ""


def _word(value: Any) -> str:
    return "none" if value is None else str(value)


def area_between(ours: Sequence[tuple[float, float]], theirs: Sequence[tuple[float, float]]) -> float | None:
    """Mean height of one curve above the other over the tokens that both cover; None where they share no stretch.

    Curves are (tokens, value) points with straight lines between them: how policies with different thresholds are
    compared at equal size.
    """
    a, b = (np.array(sorted(curve), dtype=float).reshape(-1, 2) for curve in (ours, theirs))
    if not len(a) or not len(b):
        return None
    low, high = max(a[0, 0], b[0, 0]), min(a[-1, 0], b[-1, 0])
    if low >= high:
        return None
    inner = np.concatenate([a[:, 0], b[:, 0]])
    at = np.unique(np.concatenate([[low, high], inner[(inner > low) & (inner < high)]]))
    apart = np.interp(at, a[:, 0], a[:, 1]) - np.interp(at, b[:, 0], b[:, 1])
    return float(np.sum((apart[1:] + apart[:-1]) / 2 * np.diff(at)) / (high - low))
