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


class Prefixes:
    """The prefixes of a lane's requests, one after the other, with what each would be billed."""

    def __init__(self, overhead: float) -> None:
        """Before the first request. `overhead`: billed tokens of the unlogged system prompt in front of every view."""
        self.links: list[bytes] = [CHAIN_START]
        self.billed: list[float] = [overhead]
        self._counted: list[int] = [0]

    def take(self, view: View) -> int:
        """Follow the chain to the next view; the number of links that stay."""
        fresh = view.print
        common = min(fresh.kept + 1, len(self.links))
        del self.links[common:], self.billed[common:], self._counted[common:]
        billed, counted = self.billed[-1], self._counted[-1]
        growth = view.counted - counted
        scale = max(0.0, (view.figure.tokens - billed) / growth) if growth > 0 else 1.0
        self.links += fresh.links
        self.billed += [billed + scale * (size - counted) for size in fresh.sizes]
        self._counted += fresh.sizes
        return common


class PrefixCache:
    """The state of a provider's cache while a lane's requests go out one after the other.

    For models that keep entries and clocks that let them live; `serve` bills the others without a state.
    """

    def __init__(self, model: CacheModel, prefixes: Prefixes, clock: Clock = "recorded") -> None:
        """An empty cache. `prefixes` are taken forward by whoever makes the requests."""
        self._model = model
        self._clock = clock
        self._prefixes = prefixes
        self._used: dict[bytes, float] = {}
        self._last_request: float | None = None

    def request(self, view: View, time: float | None, common: int, held: int) -> Served:
        """Bill a view, sent at a time in seconds (None: unknown, taken as at once after the one before).

        `common` of its links stay of the `held` ones behind the start that the request before had.
        """
        now = self._now(time)
        total = float(view.figure.tokens)
        found = self._find(common, now) if self._last_request is not None else None
        if edits_cache(view) and self._fresh(self._last_request, now):
            # The same messages stand in front as in the request before, some in another form.
            found = max(found or 0, held)
        hit = 0.0 if found is None else min(total, self._prefixes.billed[found])
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

    def _find(self, common: int, now: float) -> int | None:
        """Position of the longest live entry; 0 is the overhead alone, which every request shares."""
        links = self._prefixes.links
        last, lookback = len(links) - 1, self._model.lookback_messages
        lowest = 0 if lookback is None else max(0, last - lookback)
        # What the request before held has an entry for every message, as old as that request.
        alike = common if self._model.entries == "every-message" and self._fresh(self._last_request, now) else 0
        for position in range(last, max(lowest, alike) - 1, -1):
            if self._fresh(self._used.get(links[position]), now):
                return position
        if alike > lowest:
            return alike - 1
        return 0 if alike or self._fresh(self._used.get(links[0]), now) else None

    def _fresh(self, used: float | None, now: float) -> bool:
        return used is not None and (self._clock == "warm" or now - used <= self._model.ttl_seconds)

    def _rounded(self, hit: float) -> float:
        if hit < self._model.minimum_tokens:
            return 0.0
        return hit if self._model.step_tokens <= 1 else hit // self._model.step_tokens * self._model.step_tokens

    def _keep(self, common: int, now: float, total: float) -> None:
        if total < self._model.minimum_tokens:
            return
        links = self._prefixes.links
        if self._model.entries == "every-message":
            self._used.update(dict.fromkeys(links[common:], now))
        # Every request marks the end of the system prompt and its own end.
        self._used[links[0]] = self._used[links[-1]] = now


def edits_cache(view: View) -> bool:
    """Whether all that changed in a view since the one before was changed in the provider's own cache."""
    changes = [e.keeps_cache for e in view.events if e.kind in ("full", "micro", "clear")]
    return bool(changes) and all(changes)


def serve(views: Iterable[tuple[View, float | None]], model: CacheModel, overhead: float,
          clock: Clock = "recorded") -> list[Served]:
    """Bill a lane's views in order; the cache starts empty."""
    return serve_by(views, model, overhead, clock)[clock]


def serve_by(views: Iterable[tuple[View, float | None]], model: CacheModel, overhead: float,
             *clocks: Clock) -> dict[Clock, list[Served]]:
    """The same by several clocks: the prefixes are followed once."""
    prefixes, pairs = Prefixes(overhead), list(views)
    served: dict[Clock, list[Served]] = {clock: [] for clock in clocks}
    for clock in {"cold"} | set(clocks if model.entries == "never" else ()):
        if clock in served:
            served[clock] = [_unhit(float(view.figure.tokens), model) for view, _ in pairs]
    states = [(PrefixCache(model, prefixes, clock), bills) for clock, bills in served.items() if not bills]
    for view, time in pairs if states else ():
        held = len(prefixes.links) - 1
        common = prefixes.take(view)
        for state, bills in states:
            bills.append(state.request(view, time, common, held))
    return served


def _unhit(total: float, model: CacheModel) -> Served:
    """A request that finds nothing in the cache."""
    written = total if model.entries != "never" and total >= model.minimum_tokens else 0.0
    return Served(read=0.0, written=written, uncached=total - written)
