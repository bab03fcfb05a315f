"""Compaction events (metric A6): how many, planned or reactive, what they gained, whether they thrash."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from evals.metrics.base import Measurement, Trial, missing
from replay.events import Event

THRASH_GAP_STEPS = 3
GAIN_NAMES = ("compaction_gain_tokens", "compaction_ratio", "first_compaction_step")
EFFECTIVE_SHARE = 0.1
"""A compaction is effective when it frees at least this share of the window."""


@dataclass(frozen=True)
class CompactionEvents:
    """Counts of events, their gain, thrash (two within three steps) and where the run ended."""

    name: str = "compaction-events"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """All counts; gain and first step are missing where nothing was compacted."""
        events = trial.lane.events
        full = [e for e in events if e.kind == "full"]
        counts = {
            "compactions_planned": sum(not e.reactive for e in full),
            "compactions_reactive": sum(e.reactive for e in full),
            "micro_compactions": sum(e.kind == "micro" for e in events),
            "compactions_futile": sum(e.futile for e in full),
            "compactions_thrashing": _thrash(full),
            "compactions_effective": sum(_effective(e, trial.capacity.window) for e in full),
            "compactions_refused": sum(e.kind == "skipped" for e in events),
            "requests_refused": sum(e.attempts for e in events if e.kind == "refused"),
        }
        made = [Measurement(name=n, value=v) for n, v in counts.items()]
        return [*made, *_gains(full), _end(trial)]


def _thrash(full: Sequence[Event]) -> int:
    return sum(b.step - a.step <= THRASH_GAP_STEPS for a, b in pairwise(full))


def _effective(event: Event, window: int) -> bool:
    return event.gain is not None and event.gain >= EFFECTIVE_SHARE * window


def _ratio(event: Event) -> float:
    """Tokens after ÷ tokens before; 1 for a window without tokens."""
    return (event.tokens_after or 0) / event.tokens_before if event.tokens_before else 1.0


def _gains(full: Sequence[Event]) -> list[Measurement]:
    gains = [e.gain for e in full if e.gain is not None]
    if not gains:
        return [missing(n, "no compaction") for n in GAIN_NAMES]
    return [Measurement(name="compaction_gain_tokens", value=median(gains)),
            Measurement(name="compaction_ratio", value=median(_ratio(e) for e in full if e.gain is not None)),
            Measurement(name="first_compaction_step", value=full[0].step)]


def _end(trial: Trial) -> Measurement:
    if trial.lane.ended is None:
        return missing("ended_at_step", "the run went through")
    return Measurement(name="ended_at_step", value=trial.lane.ended)
