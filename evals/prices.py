"""Prices by model and date, from the bundled `genai-prices`; no price known means no figure, never a zero."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

from replay.errors import ConfigError

MTOK = 1_000_000


class NoPrice(ConfigError):
    """No price is known for a model."""

    def __init__(self, model: str) -> None:
        super().__init__("prices", "", f"no price known for model {model!r} in the bundled list")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """US dollars a token."""

    input: float
    output: float
    read: float | None
    """A token read from the cache; None: not listed."""
    write_5m: float | None
    write_1h: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a model costs, as of a date: base rates and, for some, higher ones for long requests."""

    model: str
    provider: str
    table: str
    """Version of the price list."""
    tiers: tuple[tuple[int, Rates], ...]
    """Input tokens above which the rates hold for the whole request, ascending; the first is (0, base)."""
    context_window: int | None = None

    def rates(self, input_tokens: float) -> Rates:
        """The rates of a request: a whole request is billed at the tier that its input reaches."""
        return next(rates for start, rates in reversed(self.tiers) if input_tokens > start or not start)


def price(model: str, when: float | None = None) -> Price:
    """The price of a model at a time in seconds since the epoch (None: the newest). Raises NoPrice."""
    return _price(model, None if when is None else datetime.fromtimestamp(when, UTC).date().isoformat())


@cache
def _price(model: str, day: str | None) -> Price:
    from importlib.metadata import version

    import genai_prices

    moment = None if day is None else datetime.fromisoformat(day).replace(tzinfo=UTC)
    try:
        found = genai_prices.calc_price(genai_prices.Usage(input_tokens=1, output_tokens=1), model_ref=model,
                                        genai_request_timestamp=moment)
    except LookupError as error:
        raise NoPrice(model) from error
    listed = found.model_price
    if listed.input_mtok is None or listed.output_mtok is None:
        raise NoPrice(model)
    return Price(model=found.model.id, provider=found.provider.id, table=f"genai-prices {version('genai-prices')}",
                 tiers=_tiers(listed), context_window=found.model.context_window)


def _tiers(listed: Any) -> tuple[tuple[int, Rates], ...]:
    starts = {0} | {tier.start for tier in getattr(listed.input_mtok, "tiers", ())}
    return tuple((start, _rates(listed, start)) for start in sorted(starts))


def _rates(listed: Any, start: int) -> Rates:
    def rate(name: str) -> float | None:
        value = getattr(listed, name, None)
        for tier in getattr(value, "tiers", ()):
            if tier.start <= start and start:
                return float(tier.price) / MTOK
        base = getattr(value, "base", value)
        return None if base is None else float(base) / MTOK

    return Rates(input=rate("input_mtok") or 0.0, output=rate("output_mtok") or 0.0, read=rate("cache_read_mtok"),
                 write_5m=rate("cache_write_mtok"), write_1h=rate("cache_write_1h_mtok"))
