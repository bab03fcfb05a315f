"""Needed-evidence retention (B1): of what the recorded actions took from earlier blocks, how much a lane still shows.

The headline counts only needs that the recorded view held itself; what is held is an upper bound of what a model would
use, what is lost is the reliable side.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evals.metrics.base import Measurement, Trial, missing
from evals.spans import Kind
from evals.tally import RECOVERABLE, SPLITS, Tally
from evals.watch import FATES, Fate, study, watched
from replay.redact import Redactor

SHARES = ("evidence_retention", "evidence_retention_macro", "evidence_retention_unweighted", "evidence_verbatim",
          "evidence_summary", "evidence_recoverable", "evidence_lost")
SPLIT_NAMES = {name: f"evidence_retention_{name}" for name in SPLITS}
LONGEST_TEXT = 120
"""Characters of a lost span that are shown."""


@dataclass(frozen=True)
class Retention:
    """Shares of needed evidence by fate, also by source and by kind of span, and the share that is censored."""

    name: str = "retention"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """All shares in [0, 1]; without a need that weighs something there is none."""
        scale = study(trial.session).scale
        made = [Measurement(name="evidence_needs", value=len(scale.needs))]
        if not len(scale.needs):
            return [*made, *(missing(n, "no action needs anything that stands in the log")
                             for n in ("evidence_censored_share", *SHARES, *SPLIT_NAMES.values()))]
        made.append(Measurement(name="evidence_censored_share", value=scale.censored_share))
        if not scale.total:
            return [*made, *(missing(n, "the recorded view held none of what was needed")
                             for n in (*SHARES, *SPLIT_NAMES.values()))]
        return [*made, *_shares(Tally(scale, watched(trial).fates))]


def _shares(tally: Tally) -> Iterable[Measurement]:
    by_fate = tally.shares()
    values = [tally.held(), tally.scale.by_step(tally.kept), tally.unweighted(), *by_fate]
    yield from (Measurement(name=n, value=v) for n, v in zip(SHARES, values, strict=True))
    for name, value in tally.scale.splits(tally.kept).items():
        reason = "nothing of this sort was needed" if value is None else None
        yield Measurement(name=SPLIT_NAMES[name], value=value, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A need that a lane's view no longer held, with its place in the session."""

    step: int
    """Number of the step, from 1."""
    index: int
    """Log index of the action."""
    text: str
    """The span, keys and passwords blanked, cut to `LONGEST_TEXT` characters."""
    kind: Kind
    weight: float
    source: int
    """Log index of the newest message before the action that holds it."""
    fate: Fate
    """`recoverable` or `lost`."""
    tool: str
    """Tool that the action called."""


def losses(trial: Trial, most: int | None = None) -> list[Loss]:
    """What the lane lost although the recorded view held it, heaviest first, then in the order of the session.

    `most`: only so many of the heaviest; None: all.
    """
    own, fates = study(trial.session), watched(trial).fates
    rows = own.evidence.needs.rows
    lost = (i for i, fate in enumerate(fates) if fate >= RECOVERABLE and not own.censored[i])
    return [_loss(trial, i) for i in sorted(lost, key=lambda i: (-rows[i].weight, rows[i].step))[:most]]


def _loss(trial: Trial, number: int) -> Loss:
    evidence, fates = study(trial.session).evidence, watched(trial).fates
    need, step = evidence.needs.rows[number], evidence.log.steps[evidence.needs.rows[number].step]
    text = Redactor().text(need.span.text)
    return Loss(step=step.number, index=step.start, kind=need.span.kind, weight=need.weight, tool=need.tool,
                text=text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT - 1] + "…",
                source=evidence.index.units[evidence.needs.latest[number]].message, fate=FATES[fates[number]])


def losses_by_step(trial: Trial) -> list[tuple[int, int]]:
    """For each view how many of its action's needs were lost and how many of its edits could not have been typed."""
    own, seen = study(trial.session), watched(trial)
    counts = [[0, 0] for _ in trial.lane.views]
    for i, fate in enumerate(seen.fates):
        if fate >= RECOVERABLE and not own.censored[i]:
            counts[own.evidence.needs.rows[i].step][0] += 1
    for step, numbers in own.edits_at.items():
        counts[step][1] = sum(seen.verdicts[n] == "unsafe" for n in numbers)
    return [(lost, unsafe) for lost, unsafe in counts]
