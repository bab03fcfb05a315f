"""The tier with tolerances: over all sessions, is the candidate no worse than the golden by more than the margin?

The bound of a one-sided 95 % interval decides, not the point estimate; what too few sessions cannot show is a failure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evals.gate.record import HEADLINE, SCALE, Record
from replay.errors import ConfigError, UnknownName

if TYPE_CHECKING:
    from evals.stats_margins import Margin

NEEDS: Mapping[str, tuple[str, ...]] = {
    "evidence_retention": ("extractor",),
    "edit_safety": ("extractor",),
    "instruction_permanent_losses": ("extractor",),
    "repair_adjusted_cost": ("extractor", "tokenizer", "cache"),
    "peak_view_tokens": ("tokenizer",),
    "rereads_per_100_steps": ("extractor",),
}
"""Measurement to the versions that it depends on: where one of them changed it is not compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The verdict on one metric."""

    name: str
    metric: str
    verdict: str
    """`non-inferior`, `inferior`, `undecided`, or `not checked` with the reason in `why`."""
    estimate: float | None = None
    bound: float | None = None
    limit: float | None = None
    n: int = 0
    why: str = ""

    @property
    def passed(self) -> bool:
        """Whether the gate may pass."""
        return self.verdict in ("non-inferior", "not checked")

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {name: getattr(self, name) for name in ("name", "metric", "verdict", "estimate", "bound", "limit", "n",
                                                       "why")}

    def __str__(self) -> str:
        if self.verdict == "not checked":
            return f"{self.name}: not checked: {self.why}"
        numbers = f"change {self.estimate:.4g}, bound {self.bound:.4g}, limit {self.limit:.4g}" \
            if self.estimate is not None else self.why
        return f"{self.name}: {self.verdict} over {self.n} sessions ({numbers})"


def margins(named: Sequence[str]) -> dict[str, Margin]:
    """The gate's margins with those of the call in their places. Raises ConfigError for what is no `METRIC=NUMBER`."""
    from dataclasses import replace

    from evals.stats_margins import GATE_MARGINS

    found = dict(GATE_MARGINS)
    for text in named:
        name, _, size = text.partition("=")
        key = next((k for k, metric in HEADLINE.items() if name.strip() in (k, metric)), None)
        if key is None:
            raise UnknownName("metric", name, [*HEADLINE.values()], "--margin")
        found[key] = replace(found[key], size=_size(text, size.strip(), found[key].scale))
    return found


def _size(where: str, text: str, scale: str) -> float:
    """A difference such as `0.02` or `2%`; for a ratio also the factor itself, `1.02`."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError as error:
        raise ConfigError("--margin", where, "expected METRIC=NUMBER, such as edit_safety=0.02 or 2%") from error
    if not 0 <= value < float("inf"):
        raise ConfigError("--margin", where, "expected a number that is not negative")
    return value + 1 if scale == "ratio" and value < 1 else value


def bounds(pairs: Sequence[tuple[Record, Record]], allowed: Mapping[str, Margin],
           stale: Mapping[str, str]) -> list[Bound]:
    """The verdict on every metric over pairs (candidate, golden); `stale`: version to what changed."""
    return [_bound(name, metric, pairs, allowed[name], stale) for name, metric in HEADLINE.items()]


def _bound(name: str, metric: str, pairs: Sequence[tuple[Record, Record]], margin: Margin,
           stale: Mapping[str, str]) -> Bound:
    changed = [stale[need] for need in NEEDS[metric] if need in stale]
    if changed:
        return Bound(name=name, metric=metric, verdict="not checked", why="; ".join(changed))
    found = [(_value(a, metric), _value(b, metric)) for a, b in pairs]
    both = [(x, y) for x, y in found if x is not None and y is not None]
    gone = sum(x is None and y is not None for x, y in found)
    if gone:
        why = f"{gone} sessions have no value any more"
        return Bound(name=name, metric=metric, verdict="undecided", n=len(both), why=why)
    if not both:
        return Bound(name=name, metric=metric, verdict="not checked", why="no session has a value")
    return _judged(name, metric, [x for x, _ in both], [y for _, y in both], margin)


def _judged(name: str, metric: str, ours: list[float], golden: list[float], margin: Margin) -> Bound:
    if ours == golden:
        same = 0.0 if margin.scale == "difference" else 1.0
        return Bound(name=name, metric=metric, verdict="non-inferior", estimate=same, bound=same, limit=margin.limit,
                     n=len(ours))
    if margin.scale == "ratio" and not sum(golden):
        return Bound(name=name, metric=metric, verdict="inferior", n=len(ours),
                     why=f"the golden's sum is 0, now {sum(ours):.4g}: there is no ratio to it")
    from evals.stats_margins import noninferior

    found = noninferior(ours, golden, margin)
    return Bound(name=name, metric=metric, verdict=found.kind, estimate=found.estimate, bound=found.bound,
                 limit=found.limit, n=found.n)


def _value(record: Record, metric: str) -> float | None:
    for line in record.tiers.get("tolerance", ()):
        name, _, value = line.partition(" ")
        if name == metric:
            return None if value == "none" else int(value) / SCALE
    return None
