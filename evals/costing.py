"""What a lane would have cost: cache, requests, outputs and the summariser's bill, under stated models (level L1)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from evals.caches import CacheModel, Clock, Served, cache_model, serve_by
from evals.prices import NoPrice, Price, Rates, price
from replay.engine import Lane, Session, View
from replay.events import Event
from replay.transcript import Step

_MODEL_CACHES = (("claude", "anthropic-bp"), ("gpt", "openai-128"), ("o1", "openai-128"), ("o3", "openai-128"),
                 ("o4", "openai-128"), ("codex", "openai-128"), ("gemini", "gemini-implicit"))
DEFAULT_CACHE = "ideal-prefix"
OUTPUT_PRICE = 5.0
"""Price of an output token in input tokens where no price is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """What a run assumes about caches and prices."""

    cache: str = "auto"
    """A cache model's name, or `auto`: by the model that the session recorded."""
    prices: str | None = None
    """Model whose prices are used for all sessions; None: each session's own model."""


def session_cache(session: Session, pricing: Pricing) -> CacheModel:
    """The cache model of a session under these assumptions."""
    if pricing.cache != "auto":
        return cache_model(pricing.cache)
    model = (pricing.prices or session_model(session) or "").lower()
    name = next((cache for start, cache in _MODEL_CACHES if start in model), DEFAULT_CACHE)
    writes = session.transcript.main.usage
    long_lived = name == "anthropic-bp" and writes.cache_write_1h > writes.cache_write_5m
    return cache_model("anthropic-bp-1h" if long_lived else name)


def session_model(session: Session) -> str | None:
    """The model that answered most of the session's steps."""
    named = Counter(s.model for s in session.transcript.steps if s.model)
    return named.most_common(1)[0][0] if named else session.transcript.model


def request_times(session: Session) -> list[float | None]:
    """When each request went out: the time of the newest message before it, else of its response."""
    messages = session.log.messages
    return [_request_time(step, messages[step.start - 1].time if step.start else None) for step in session.log.steps]


def _request_time(step: Step, newest: float | None) -> float | None:
    return newest if newest is not None else step.time


class LaneCost:
    """The bill of one lane, worked out when it is asked for."""

    def __init__(self, session: Session, lane: Lane, pricing: Pricing) -> None:
        """Nothing is computed yet."""
        self.session = session
        self.lane = lane
        self.pricing = pricing
        self.model = session_cache(session, pricing)
        self._times = request_times(session)

    @cached_property
    def timed(self) -> bool:
        """Whether the transcript has times to age cache entries by."""
        return any(t is not None for t in self._times)

    @property
    def served(self) -> list[Served]:
        """Each request's reads, writes and uncached tokens, by the recorded times (warm where there are none)."""
        return self._served["recorded" if self.timed else "warm"]

    @cached_property
    def _served(self) -> dict[Clock, list[Served]]:
        """The requests by every clock that tells something of its own."""
        overhead = self.session.calibration.overhead or 0.0
        layers = sum(self.session.log.inserted_size(i, self.session.log.tokens) for i in self.lane.head)
        clocks: list[Clock] = ["cold", "recorded" if self.timed else "warm"]
        if self.timed and self._ever_expires:
            clocks.append("warm")
        return serve_by(zip(self.lane.views, self._times, strict=True), self.model, overhead + layers, *clocks)

    def input_units(self, clock: Clock | None = None) -> float:
        """Input of all requests in uncached-token equivalents."""
        return sum(s.units(self.model) for s in self._by(clock))

    def _by(self, clock: Clock | None) -> list[Served]:
        """The requests by a clock; one that tells nothing of its own tells what the recorded times do."""
        return self.served if clock is None else self._served.get(clock, self.served)

    @cached_property
    def _ever_expires(self) -> bool:
        """Whether any two requests are further apart than an entry lives."""
        times = [t for t in self._times if t is not None]
        return any(b - a > self.model.ttl_seconds for a, b in pairwise(times))

    @cached_property
    def output_tokens(self) -> int:
        """Recorded output of all steps (counted where no usage was recorded)."""
        return sum(self.session.output_tokens)

    @property
    def summary_input_tokens(self) -> float:
        """What the summariser read, in billed tokens, without a cache: its prompt is not the agent's prefix."""
        return self.session.calibration.factor * sum(e.summary_input_tokens or 0 for e in self._summaries)

    @property
    def summary_output_tokens(self) -> float:
        """What the summariser wrote, in billed tokens."""
        log = self.session.log
        written = sum(log.inserted_size(e.added, log.tokens) for e in self._summaries if e.added)
        return self.session.calibration.factor * written

    @property
    def _summaries(self) -> list[Event]:
        return [e for e in self.lane.events if e.kind == "full"]

    def summary_units(self, shares_prefix: bool = False) -> float:
        """The summariser's calls in uncached input tokens, its own instruction not counted.

        `shares_prefix`: it is the agent's model and reads the whole view from the agent's cache; otherwise it reads
        what is summarised at the full price.
        """
        summaries = [e for e in self._summaries if e.summariser is not None]
        read = (self.session.calibration.factor * sum(e.tokens_before or 0 for e in summaries) if shares_prefix
                else self.summary_input_tokens)
        return summary_units(read, 0.0, self.summary_output_tokens, self.model if shares_prefix else None,
                             self.output_price)

    @cached_property
    def output_price(self) -> float:
        """Price of an output token in uncached input tokens; `OUTPUT_PRICE` where no price is known."""
        try:
            rates = self.price().rates(0)
        except NoPrice:
            return OUTPUT_PRICE
        return rates.output / rates.input if rates.input else OUTPUT_PRICE

    def price(self) -> Price:
        """The price that applies. Raises NoPrice."""
        name = self.pricing.prices or session_model(self.session)
        if not name:
            raise NoPrice("(none recorded)")
        when = None if self.pricing.prices else next((t for t in self._times if t is not None), None)
        return price(name, when)

    def usd(self, clock: Clock | None = None) -> float:
        """The whole bill: requests, outputs, summariser. Raises NoPrice."""
        listed = self.price()
        served = self._by(clock)
        requests = sum(_request_usd(s, v, listed, self.model) for s, v in zip(served, self.lane.views, strict=True))
        outputs = sum(listed.rates(v.figure.tokens).output * tokens
                      for v, tokens in zip(self.lane.views, self.session.output_tokens, strict=True))
        return requests + outputs + self.summary_usd(listed)

    def summary_usd(self, listed: Price) -> float:
        """The summariser's part of the bill."""
        base = listed.rates(0)
        return self.summary_input_tokens * base.input + self.summary_output_tokens * base.output


def summary_units(read: float, instruction: float, written: float, cache: CacheModel | None,
                  output_price: float) -> float:
    """One summary in uncached input tokens: what it reads, its instruction and what it writes.

    `cache`: it continues the agent's own requests, so that what it reads is served by this cache and the instruction
    alone is new; None: another model or prompt, which reads everything at the full price.
    """
    if cache is None:
        return read + instruction + written * output_price
    return read * cache.read + instruction * cache.write + written * output_price


def _request_usd(served: Served, view: View, listed: Price, model: CacheModel) -> float:
    rates = listed.rates(view.figure.tokens)
    read = rates.read if rates.read is not None else rates.input * model.read
    return served.read * read + served.written * _write_rate(rates, model) + served.uncached * rates.input


def _write_rate(rates: Rates, model: CacheModel) -> float:
    listed = rates.write_1h if model.ttl_seconds > 600 else rates.write_5m
    return listed if listed is not None and model.write != 1.0 else rates.input * model.write
