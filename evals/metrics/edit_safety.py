"""Edit safety (B3): could the recorded edits have been typed from what a lane shows?

An unsafe edit is certain to need another look at the file, or a guess; it is not certain to fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from evals.metrics.base import Measurement, Trial, missing
from evals.spans_files import normal
from evals.watch import Study, study, watched


@dataclass(frozen=True)
class EditSafety:
    """Share of edits whose old text a view still shows, and how the others fare."""

    name: str = "edit-safety"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """`edit_safety` in [0, 1] over all assessable edits; whole-file writes and pure inserts are not assessable."""
        own = study(trial.session)
        counts = Counter(watched(trial).verdicts)
        assessable = counts["exact"] + counts["lines"] + counts["unsafe"]
        numbers = {"edits_assessable": assessable, "edits_exact": counts["exact"], "edits_lines": counts["lines"],
                   "edits_unsafe": counts["unsafe"], "edits_unseen": counts["unseen"], **_outside(own)}
        made = [Measurement(name=n, value=v) for n, v in numbers.items()]
        if not assessable:
            return [missing("edit_safety", "no edit replaces text that stands in the log"), *made]
        safe = counts["exact"] + counts["lines"]
        return [Measurement(name="edit_safety", value=safe / assessable), *made]


def _outside(own: Study) -> dict[str, int]:
    """Edits that replace no text, and edits that were compared without spaces at line ends or carriage returns."""
    kept = vars(own)
    if "_outside" not in kept:
        empty = sum(len(d.writes) + sum(not e.old.strip() for e in d.edits) for d in own.deeds)
        trimmed = sum(normal(p.attempt.part.old) != p.attempt.part.old for p in own.plans)
        kept["_outside"] = {"edits_not_assessable": empty, "edits_normalised": trimmed}
    found: dict[str, int] = kept["_outside"]
    return found
