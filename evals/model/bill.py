"""What the calls cost: an estimate before, a ceiling during, an exact bill after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from evals.model.asks import Ask, Reply, Spent
from evals.model.config import Models
from evals.prices import MTOK, NoPrice, price
from replay.errors import ConfigError

NOWHERE = 1e-12
"""Sums of dollars are compared with this much slack."""


@dataclass(frozen=True, slots=True)
class Tariff:
    """Dollars for what was spent, by the user's own prices or the bundled list."""

    models: Models

    def usd(self, model: str, spent: Spent) -> float | None:
        """Dollars; None where no price is known."""
        if self.models.price_input is not None and self.models.price_output is not None:
            return (spent.input * self.models.price_input + spent.output * self.models.price_output) / MTOK
        try:
            rates = price(model).rates(spent.input)
        except NoPrice:
            return None
        read = rates.input if rates.read is None else rates.read
        return (spent.input - spent.cached) * rates.input + spent.cached * read + spent.output * rates.output

    def most(self, ask: Ask) -> float | None:
        """The most that one answer to a request can cost."""
        return self.usd(ask.model, Spent(input=ask.input_tokens, output=ask.max_tokens))


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is still to be asked, before it is."""

    requests: int
    cached: int
    least_usd: float | None
    """Inputs alone, at about four bytes a token; None where no price is known."""
    most_usd: float | None
    """With answers of full length and inputs counted high."""


class Bill:
    """Counts requests, tokens and dollars, and keeps them under a ceiling. Safe to use from several threads."""

    def __init__(self, models: Models) -> None:
        """An empty bill; a ceiling over models without a known price is refused when the first one is asked."""
        self._lock = Lock()
        self.tariff = Tariff(models)
        self.ceiling = models.budget_usd
        self._reserved = 0.0
        self.lines: dict[tuple[str, str], Line] = {}

    def reserve(self, ask: Ask) -> bool:
        """Set aside the most that a request can cost; False where the ceiling leaves no room for it."""
        most = self.tariff.most(ask)
        if self.ceiling is None:
            return True
        if most is None:
            raise ConfigError("--budget-usd", "", f"no price known for {ask.model!r}: give price_input and "
                              "price_output (dollars a million tokens) in the [model] section; 0 for your own model")
        with self._lock:
            fits = self._usd() + self._reserved + most <= self.ceiling + NOWHERE
            self._reserved += most if fits else 0.0
            return fits

    def settle(self, ask: Ask, reply: Reply, attempts: int) -> None:
        """Book what a request really took, and free what was set aside."""
        cost = self.tariff.usd(ask.model, reply.spent)
        with self._lock:
            if self.ceiling is not None:
                self._reserved -= self.tariff.most(ask) or 0.0
            line = self.lines.setdefault((ask.purpose, ask.model), Line())
            line.answered += 1
            line.attempts += attempts
            line.spent += reply.spent
            line.usd = None if cost is None or line.usd is None else line.usd + cost

    def hit(self, ask: Ask) -> None:
        """Book an answer that was taken from the cache."""
        with self._lock:
            self.lines.setdefault((ask.purpose, ask.model), Line()).cached += 1

    def _usd(self) -> float:
        return sum(line.usd or 0.0 for line in self.lines.values())

    @property
    def usd(self) -> float | None:
        """Dollars so far; None where a model without a known price was asked."""
        return None if any(line.usd is None for line in self.lines.values()) else self._usd()

    @property
    def requests(self) -> int:
        """HTTP requests that were made, every attempt counted."""
        return sum(line.attempts for line in self.lines.values())

    def to_json(self) -> dict[str, Any]:
        """The bill as plain data, a line for each purpose and model."""
        lines = [{"purpose": purpose, "model": model, **line.to_json()}
                 for (purpose, model), line in sorted(self.lines.items())]
        return {"usd": self.usd, "requests": self.requests, "cached": sum(n.cached for n in self.lines.values()),
                "ceiling_usd": self.ceiling, "lines": lines}

    def estimate(self, asks: Iterable[Ask], cached: int) -> Estimate:
        """What distinct requests that no cache holds will take."""
        asks = list(asks)
        least = [self.tariff.usd(a.model, Spent(input=a.input_tokens * 3 // 4)) for a in asks]
        most = [self.tariff.most(a) for a in asks]
        return Estimate(len(asks), cached, _total(least), _total(most))


@dataclass
class Line:
    """One purpose and model on a bill."""

    answered: int = 0
    attempts: int = 0
    cached: int = 0
    spent: Spent = field(default_factory=Spent)
    usd: float | None = 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain data; `usd_per_item` is what one answered question cost."""
        each = self.usd / self.answered if self.usd is not None and self.answered else None
        return {"answered": self.answered, "requests": self.attempts, "cached": self.cached,
                "input_tokens": self.spent.input, "cached_input_tokens": self.spent.cached,
                "output_tokens": self.spent.output, "estimated": self.spent.estimated, "usd": self.usd,
                "usd_per_item": each}


def _total(costs: Iterable[float | None]) -> float | None:
    found = list(costs)
    return None if any(c is None for c in found) else sum(c for c in found if c is not None)
