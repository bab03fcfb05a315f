"""V0: does the cache model explain what providers really served? Checked against recorded cache reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from evals.caches import CacheModel, Served
from evals.costing import LaneCost, Pricing, request_times
from replay.engine import Session, View
from replay.transcript import Step, Usage

WITHIN = 0.02
"""A prediction counts as right within this share of the request's input tokens."""
_GAPS = ((300.0, "up to 5 minutes"), (3600.0, "5 minutes to 1 hour"), (float("inf"), "over 1 hour"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two successive requests with usage: what was served of the second, and what the model said."""

    gap: float | None
    """Seconds between the requests."""
    input_tokens: int
    recorded_read: int
    predicted_read: float
    identity: bool
    """The read equals what the request before had read and written."""
    cause: str | None
    """Why the prediction is off; None where it is right."""

    @property
    def right(self) -> bool:
        """Whether the prediction is within 2 % of the input."""
        return abs(self.predicted_read - self.recorded_read) <= WITHIN * self.input_tokens


@dataclass
class CacheCheck:
    """The sums of V0 over sessions."""

    sessions: int = 0
    steps: int = 0
    input_tokens: int = 0
    recorded_read: int = 0
    predicted_read: float = 0.0
    pairs: list[Pair] = field(default_factory=list)

    def add(self, session: Session) -> None:
        """Take in a session; one without recorded cache reads says nothing about caches and is left out."""
        used = [s.usage for s in session.log.steps if s.usage]
        if not any(u.cache_read for u in used):
            return
        self.sessions += 1
        cost = LaneCost(session, session.recorded, Pricing())
        before: tuple[Step, float | None] | None = None
        for step, view, served, time in zip(session.log.steps, session.recorded.views, cost.served,
                                            request_times(session), strict=True):
            if step.usage is None:
                before = None
                continue
            self._count(step.usage, served)
            if before is not None and before[0].usage is not None:
                self.pairs.append(_pair(before[0], before[0].usage, step, step.usage, view, served,
                                        _gap(before[1], time), cost.model))
            before = (step, time)

    def merge(self, other: CacheCheck) -> None:
        """Take in the sums of other sessions."""
        self.sessions += other.sessions
        self.steps += other.steps
        self.input_tokens += other.input_tokens
        self.recorded_read += other.recorded_read
        self.predicted_read += other.predicted_read
        self.pairs += other.pairs

    def _count(self, usage: Usage, served: Served) -> None:
        self.steps += 1
        self.input_tokens += usage.input_total
        self.recorded_read += usage.cache_read
        self.predicted_read += served.read

    def to_json(self) -> dict[str, Any]:
        """Every count of the check; `passes` are the stop rules of the experiment."""
        warm = [p for p in self.pairs if p.gap is None or p.gap <= 300]
        bias = (self.predicted_read - self.recorded_read) / self.input_tokens if self.input_tokens else None
        right = sum(p.right for p in warm) / len(warm) if warm else None
        causes = Counter(p.cause for p in self.pairs if p.cause)
        total = sum(p.input_tokens for p in self.pairs)
        lost = sum(abs(p.predicted_read - p.recorded_read) for p in self.pairs if p.cause == "unexplained")
        return {"sessions": self.sessions, "steps": self.steps, "input_tokens": self.input_tokens,
                "recorded_read_share": self.recorded_read / self.input_tokens if self.input_tokens else None,
                "bias": bias, "warm_pairs": len(warm), "warm_within_2_percent": right,
                "identity_share": _share(p.identity for p in self.pairs),
                "by_gap": {name: self._bin(low, high) for low, high, name in _bins()},
                "misses": dict(causes), "unexplained_token_share": lost / total if total else None,
                "passes": bias is not None and right is not None and abs(bias) < 0.03 and right >= 0.85}

    def _bin(self, low: float, high: float) -> dict[str, Any]:
        inside = [p for p in self.pairs if p.gap is not None and low <= p.gap < high]
        return {"pairs": len(inside), "within_2_percent": _share(p.right for p in inside),
                "recorded_hits": _share(p.recorded_read > 0 for p in inside)}


def _bins() -> Iterable[tuple[float, float, str]]:
    low = 0.0
    for high, name in _GAPS:
        yield low, high, name
        low = high


def _share(flags: Iterable[bool]) -> float | None:
    found = list(flags)
    return sum(found) / len(found) if found else None


def _gap(before: float | None, now: float | None) -> float | None:
    return None if before is None or now is None else max(0.0, now - before)


def _pair(before: Step, old: Usage, step: Step, new: Usage, view: View, served: Served, gap: float | None,
          model: CacheModel) -> Pair:
    pair = Pair(gap=gap, input_tokens=new.input_total, recorded_read=new.cache_read, predicted_read=served.read,
                identity=new.cache_read == old.cache_read + old.cache_write_5m + old.cache_write_1h, cause=None)
    if pair.right:
        return pair
    cause = _cause(before, step, view, gap, model, served.read > new.cache_read)
    return Pair(gap=gap, input_tokens=pair.input_tokens, recorded_read=pair.recorded_read,
                predicted_read=pair.predicted_read, identity=pair.identity, cause=cause)


def _cause(before: Step, step: Step, view: View, gap: float | None, model: CacheModel, too_high: bool) -> str:
    if before.model != step.model:
        return "model switch"
    if any(e.kind in ("full", "micro", "clear") for e in view.events):
        return "compaction"
    if gap is not None and gap > model.ttl_seconds * 0.9:
        return "age of the entry"
    lookback = model.lookback_messages
    if lookback is not None and len(view.print.links) > lookback:
        return "breakpoint lookback"
    return "unexplained" if too_high else "shared with another session or request"
