"""Do standing constraints survive (B6)? Rules of people and rule files, followed until they are taken back.

A constraint counts at a step when a visible message has it to the letter, or one sentence of a visible message has four
fifths of its content words and its polarity (`anchored`). What is found is lexical: a paraphrase counts as lost, and a
rule that stands in view may still be ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from evals.constraints import Constraint
from evals.metrics.base import Measurement, Trial, missing
from evals.watchlist import LETTER, SENSE, Watchlist, watchlist

NAMES = ("instruction_retention", "instruction_verbatim_share", "instruction_anchored_share",
         "instruction_permanent_losses")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What became of one constraint in a lane."""

    constraint: Constraint
    steps: int
    """Steps that it held for."""
    verbatim: int
    """Of those, steps that showed it to the letter."""
    anchored: int
    """Steps that showed its sense alone."""
    first_lost: int | None
    """Number of the first step that did not show it; None: it was never lost."""
    permanently_lost: bool
    """It still holds at the last step and is not visible there."""

    @property
    def lost(self) -> int:
        """Steps that did not show it."""
        return self.steps - self.verbatim - self.anchored


@dataclass(frozen=True)
class Instructions:
    """Instruction retention: mean over (constraint, step) of being visible, with permanent losses."""

    name: str = "instructions"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """Retention and its split, and the number of constraints lost at the last step."""
        found = watchlist(trial.session)
        return found.once(trial.lane, self.name, lambda: _measured(trial, found))


def _measured(trial: Trial, found: Watchlist) -> list[Measurement]:
    asked = sum(max(0, b - a) for a, b in found.sections["constraints"].asked)
    count = Measurement(name="constraints", value=len(found.constraints))
    if not asked:
        reason = "no standing constraint was found" if not found.constraints else "no step follows the constraints"
        return [count, *(missing(n, reason) for n in NAMES)]
    visible, verbatim = (float(found.pieces(trial.lane, "constraints", g).steps(1 + len(found.constraints)).sum())
                         for g in (SENSE, LETTER))
    values = (visible / asked, verbatim / asked, (visible - verbatim) / asked, _permanent(found, trial))
    return [count, *(Measurement(name=n, value=v) for n, v in zip(NAMES, values, strict=True))]


def _permanent(found: Watchlist, trial: Trial) -> int:
    """Constraints that hold at the last step and are not visible there."""
    pieces = found.pieces(trial.lane, "constraints")
    seen_last = set(pieces.phrase[pieces.stop == found.views].tolist())
    holding = (n for n, (a, b) in enumerate(found.sections["constraints"].asked) if a < b == found.views)
    return sum(n not in seen_last for n in holding)


def fates(trial: Trial) -> Iterator[Fate]:
    """Every constraint of a session with what became of it in a lane, in the order in which they were said."""
    found = watchlist(trial.session)
    sense, letter = (found.pieces(trial.lane, "constraints", g) for g in (SENSE, LETTER))
    for number, (constraint, asked) in enumerate(
            zip(found.constraints, found.sections["constraints"].asked, strict=True)):
        seen = np.zeros(found.views + 1, bool)
        for start, stop in zip(sense.start[sense.phrase == number], sense.stop[sense.phrase == number], strict=True):
            seen[start:stop] = True
        lost = [n for n in range(*asked) if not seen[n]]
        verbatim = int((letter.stop - letter.start)[letter.phrase == number].sum())
        steps = max(0, asked[1] - asked[0])
        yield Fate(constraint=constraint, steps=steps, verbatim=verbatim, anchored=steps - len(lost) - verbatim,
                   first_lost=lost[0] + 1 if lost else None,
                   permanently_lost=bool(lost) and lost[-1] == found.views - 1)
