"""What a provider's prompt cache would have served of a lane's views, under a stated model (level L1)."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from replay.canonical import CHAIN_START
from replay.config import build
from replay.engine import View
from replay.errors import ConfigError, UnknownName

_FILE = Path(__file__).with_name("cache_models.toml")
Clock = Literal["recorded", "warm", "cold"]
"""Age of entries by the recorded times; never expired; expired before every request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheModel:
    """How a provider's cache finds, keeps and bills prefixes."""

    name: str
    what: str = ""
    as_of: str = ""
    entries: Literal["every-message", "request-end", "never"] = "request-end"
    """Where prefixes are kept: behind every message, or behind the system prompt and at each request's end."""
    minimum_tokens: int = 0
    """Shorter prefixes are neither kept nor found."""
    step_tokens: int = 1
    """Hits are rounded down to a multiple of this."""
    lookback_messages: int | None = None
    """How far before a request's end an entry is searched; None: all the way."""
    ttl_seconds: float = math.inf
    """Life of an entry, refreshed on use."""
    hit_probability: float = 1.0
    read: float = 0.1
    """Price of a token read from the cache, as a multiple of the uncached price."""
    write: float = 1.25
    """Price of a token written to the cache."""


class Served(NamedTuple):
    """How one request's tokens would have been billed."""

    read: float
    """Tokens read from the cache (expected value)."""
    written: float
    """Tokens newly written to it."""
    uncached: float

    def units(self, model: CacheModel) -> float:
        """The request in uncached-token equivalents."""
        return self.read * model.read + self.written * model.write + self.uncached


@cache
def models(path: Path = _FILE) -> Mapping[str, CacheModel]:
    """The cache models of a data file by name. Raises ConfigError with the file and key."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(str(path), "", f"cannot be read: {error}") from error
    return {name: build(CacheModel, {**table, "name": name, "as_of": str(table.get("as_of", ""))}, str(path), name)
            for name, table in tables.items()}


def cache_model(name: str) -> CacheModel:
    """A model by name, or `FILE.toml:NAME`. Raises UnknownName or ConfigError."""
    file, colon, inner = name.rpartition(":")
    known = models(Path(file)) if colon else models()
    if inner not in known:
        raise UnknownName("cache model", inner, known, "--cache-model")
    return known[inner]


class PrefixCache:
    """The state of a provider's cache while a lane's requests go out one after the other.

    For models that keep entries and clocks that let them live; `serve` bills the others without a state.
    """

    def __init__(self, model: CacheModel, overhead: float, clock: Clock = "recorded") -> None:
        """An empty cache. `overhead`: billed tokens of the unlogged system prompt in front of every view."""
        self._model = model
        self._clock = clock
        self._links: list[bytes] = [CHAIN_START]
        self._billed: list[float] = [overhead]
        self._counted: list[int] = [0]
        self._used: dict[bytes, float] = {}
        self._last_request: float | None = None

    def request(self, view: View, time: float | None) -> Served:
        """Bill the next view, sent at a time in seconds (None: unknown, taken as at once after the one before)."""
        now = self._now(time)
        held = len(self._links) - 1
        common = self._take(view)
        total = float(view.figure.tokens)
        found = self._find(common, now) if self._last_request is not None else None
        if edits_cache(view) and self._fresh(self._last_request, now):
            # The same messages stand in front as in the request before, some in another form.
            found = max(found or 0, held)
        hit = 0.0 if found is None else min(total, self._billed[found])
        hit = self._rounded(hit) * self._model.hit_probability
        self._keep(common, now, total)
        self._last_request = now
        written = total - hit if total >= self._model.minimum_tokens else 0.0
        return Served(read=hit, written=written, uncached=total - hit - written)

    def _now(self, time: float | None) -> float:
        last = self._last_request
        if last is None:
            return time or 0.0
        # A clock that goes backwards is a resumed or re-ordered record: no time has passed.
        return last if time is None else max(time, last)

    def _take(self, view: View) -> int:
        """Follow the chain to this view; the number of links that stay."""
        fresh = view.print
        common = min(fresh.kept + 1, len(self._links))
        del self._links[common:], self._billed[common:], self._counted[common:]
        billed, counted = self._billed[-1], self._counted[-1]
        growth = view.counted - counted
        scale = max(0.0, (view.figure.tokens - billed) / growth) if growth > 0 else 1.0
        self._links += fresh.links
        self._billed += [billed + scale * (size - counted) for size in fresh.sizes]
        self._counted += fresh.sizes
        return common

    def _find(self, common: int, now: float) -> int | None:
        """Position of the longest live entry; 0 is the overhead alone, which every request shares."""
        last, lookback = len(self._links) - 1, self._model.lookback_messages
        lowest = 0 if lookback is None else max(0, last - lookback)
        # What the request before held has an entry for every message, as old as that request.
        alike = common if self._model.entries == "every-message" and self._fresh(self._last_request, now) else 0
        for position in range(last, max(lowest, alike) - 1, -1):
            if self._fresh(self._used.get(self._links[position]), now):
                return position
        if alike > lowest:
            return alike - 1
        return 0 if alike or self._fresh(self._used.get(self._links[0]), now) else None

    def _fresh(self, used: float | None, now: float) -> bool:
        return used is not None and (self._clock == "warm" or now - used <= self._model.ttl_seconds)

    def _rounded(self, hit: float) -> float:
        if hit < self._model.minimum_tokens:
            return 0.0
        return hit if self._model.step_tokens <= 1 else hit // self._model.step_tokens * self._model.step_tokens

    def _keep(self, common: int, now: float, total: float) -> None:
        if total < self._model.minimum_tokens:
            return
        if self._model.entries == "every-message":
            self._used.update(dict.fromkeys(self._links[common:], now))
        # Every request marks the end of the system prompt and its own end.
        self._used[self._links[0]] = self._used[self._links[-1]] = now


def edits_cache(view: View) -> bool:
    """Whether all that changed in a view since the one before was changed in the provider's own cache."""
    changes = [e.keeps_cache for e in view.events if e.kind in ("full", "micro", "clear")]
    return bool(changes) and all(changes)


def serve(views: Iterable[tuple[View, float | None]], model: CacheModel, overhead: float,
          clock: Clock = "recorded") -> list[Served]:
    """Bill a lane's views in order; the cache starts empty."""
    if clock == "cold" or model.entries == "never":
        return [_unhit(float(view.figure.tokens), model) for view, _ in views]
    state = PrefixCache(model, overhead, clock)
    return [state.request(view, time) for view, time in views]


def _unhit(total: float, model: CacheModel) -> Served:
    """A request that finds nothing in the cache."""
    written = total if model.entries != "never" and total >= model.minimum_tokens else 0.0
    return Served(read=0.0, written=written, uncached=total - written)
