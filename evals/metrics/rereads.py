"""Reading again: what a lane would force (B9), what was read again (B10), what no tool brings back (B11)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evals.metrics.base import Measurement, Trial, missing
from evals.needs import Needs
from evals.rereading import OWN_WORDS, ReadClass
from evals.tally import RECOVERABLE
from evals.watch import Study, Watched, study, watched

_CLASSES: tuple[ReadClass, ...] = ("first", "changed", "new-range")


@dataclass(frozen=True)
class WouldBeRereads:
    """Simulated repairs: the agent notices what is gone and runs the same call again (level L1)."""

    name: str = "would-be-rereads"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """Repairs, their tokens, repairs per 100 steps, and lost content that no call would bring back."""
        found, steps = watched(trial), len(trial.lane.views)
        numbers = {"would_be_rereads": float(len(found.repairs)),
                   "would_be_reread_tokens": sum(r.tokens for r in found.repairs),
                   "irrecoverable_losses": float(found.irrecoverable)}
        made = [Measurement(name=n, value=v, level="L1") for n, v in numbers.items()]
        if not steps:
            return [*made, missing("rereads_per_100_steps", "the session has no model call", "L1")]
        rate = Measurement(name="rereads_per_100_steps", value=100 * len(found.repairs) / steps, level="L1")
        return [*made, rate]


@dataclass(frozen=True)
class IrrecoverableShare:
    """Share by weight of what was not kept that only a person or the assistant had said."""

    name: str = "irrecoverable-share"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """`irrecoverable_share`; missing where everything was kept."""
        own = study(trial.session)
        share = irrecoverable_share(own.evidence.needs, watched(trial).fates, own.censored)
        if share is None:
            return [missing("irrecoverable_share", "nothing that was needed was lost")]
        return [Measurement(name="irrecoverable_share", value=share)]


def irrecoverable_share(needs: Needs, fates: bytearray, censored: bytes) -> float | None:
    """Weight of lost needs whose every source is a person's or the assistant's text, over that of all lost needs.

    What the assistant wrote into a file can be read again.
    """
    lost = [i for i, fate in enumerate(fates) if fate >= RECOVERABLE and not censored[i]]
    whole = sum(needs.rows[i].weight for i in lost)
    if not whole:
        return None
    return sum(needs.rows[i].weight for i in lost if needs.sources[i] | OWN_WORDS == OWN_WORDS) / whole


@dataclass(frozen=True)
class RecordedRereads:
    """The recorded reads of files by why they were made, and the ones that a lane would have spared."""

    name: str = "recorded-rereads"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """Counts by class; `lost_copy`: the earlier copy had left the recorded view; avoided: the lane shows it."""
        own = study(trial.session)
        counts = read_counts(own, watched(trial))
        return [Measurement(name=n, value=v) for n, v in counts.items()]


def read_counts(own: Study, lane: Watched) -> dict[str, int]:
    """Recorded reads by class under the recorded view, and those of lost copies that the lane still shows."""
    kinds = [r.kind for r in own.reads]
    shown = own.recorded.copies
    same = [n for n, kind in enumerate(kinds) if kind == "same"]
    lost = [n for n in same if not shown[n]]
    counts = {f"reads_{kind.replace('-', '_')}": kinds.count(kind) for kind in _CLASSES}
    return {"reads_recorded": len(kinds), **counts, "reads_lost_copy": len(lost),
            "reads_redundant": len(same) - len(lost), "rereads_avoided": sum(lane.copies[n] for n in lost)}
