"""Measures: how full a harness believes its window to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from replay.policy.base import Moment
from replay.policy.estimators import Characters

ESTIMATOR = {"part": "estimator"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimated:
    """The estimator's size of the window, with the pending prompt counted besides (`pending`)."""

    estimator: Characters = field(default_factory=Characters, metadata=ESTIMATOR)
    pending: bool = False
    """Count the current run's prompt once more although the window already holds it."""

    def tokens(self, moment: Moment) -> int:
        """Estimated tokens in the window."""
        extra = moment.pending_chars if self.pending else 0
        return self.estimator.tokens(moment.log, moment.window, extra)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """Tokens that the provider reported for the last call, or for all calls of the run.

    `after_change`: once a stage changed the window the report describes an older window. `keep` uses it
    all the same, `estimate` replaces it by the estimator's size of the window, `unknown` gives None.
    """

    fields: tuple[Literal["input", "output"], ...] = ("input",)
    """`input` (caches included) and `output`."""
    sum_over: Literal["call", "run"] = "call"
    trailing: bool = False
    """Add the estimator's size of what arrived since the call."""
    pending: bool = False
    """Add the current run's prompt, although the call has already seen it."""
    after_change: Literal["keep", "estimate", "unknown"] = "keep"
    at_start: Literal["unknown", "estimate"] = "unknown"
    """Before the first answered call of a session or process: not known, or the estimator's size of the window."""
    estimator: Characters = field(default_factory=Characters, metadata=ESTIMATOR)

    def tokens(self, moment: Moment) -> int | None:
        """Reported tokens; before the first answered call what `at_start` says."""
        told = moment.told
        if told.stale and self.after_change != "keep":
            known = self.after_change == "estimate"
            return self.estimator.tokens(moment.log, moment.window) if known else None
        if not told.calls:
            return self.estimator.tokens(moment.log, moment.window) if self.at_start == "estimate" else None
        base = told.run_input if self.sum_over == "run" else told.input if "input" in self.fields else 0
        base += told.output if "output" in self.fields else 0
        return base + self._beyond(moment)

    def is_stale(self, moment: Moment) -> bool:
        """Whether the figure describes a window from before its last change."""
        return moment.told.stale and moment.told.calls > 0 and self.after_change == "keep"

    def _beyond(self, moment: Moment) -> int:
        extra = moment.pending_chars // self.estimator.divisor if self.pending else 0
        if not self.trailing:
            return extra
        # The response itself was reported as output; what arrived after it is estimated.
        end = moment.window.end
        return extra + self.estimator.tokens_of(moment.log, min(moment.told.end + 1, end), end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Larger:
    """The larger of an estimate and a report, the most pessimistic of the two."""

    estimate: Estimated = field(default_factory=Estimated, metadata={"part": "measure"})
    report: Reported = field(default_factory=Reported, metadata={"part": "measure"})

    def tokens(self, moment: Moment) -> int:
        """The larger figure; before the first call a report counts its pending part alone."""
        reported = self.report.tokens(moment)
        if reported is None and self.report.pending:
            reported = moment.pending_chars // self.report.estimator.divisor
        return max(self.estimate.tokens(moment), reported or 0)


MEASURES: Mapping[str, type] = {"estimate": Estimated, "report": Reported, "larger": Larger}
"""Names for `use = …` in a measure table."""
