"""V2: do edits that the metric calls unsafe fail more often? Judged under what the harness itself had sent."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from evals.edits import EditPlan, Verdict
from evals.needs import Evidence
from evals.spans_files import EditAttempt
from evals.spans_paths import same_path
from evals.validity_stats import Counts, Ratio, risk_ratio
from evals.visibility import Sight
from evals.watch import Study, study
from replay.engine import Session

Failure = Literal["not-found", "not-unique", "file-changed", "not-read", "other"]
_SAYINGS: dict[Failure, tuple[str, ...]] = {
    "not-unique": (r"found \d+ (matches|occurrences)", r"multiple (matches|occurrences)", r"(not|be) unique",
                   r"\d+ times in", r"appears \d+ times"),
    "file-changed": (r"(modified|changed) since", r"unexpectedly modified"),
    "not-read": (r"not been read", r"must (first )?(be )?read", r"read it first", r"read the file (first|before)"),
    "not-found": (r"not found", r"could not find", r"no (match|occurrences)", r"did not (match|appear)",
                  r"failed to find", r"does not (exist in the file|contain)", r"\b0 occurrences")}
FAILURES: tuple[tuple[Failure, re.Pattern[str]], ...] = tuple(
    (name, re.compile("|".join(sayings), re.IGNORECASE)) for name, sayings in _SAYINGS.items())
"""What tools say when an edit fails, the most telling first."""
LOOK_BACK = 2
"""Steps before an edit within which a read of its file counts as a repair."""
_SAID = 600
"""Characters of a result that are searched for its reason; what follows is mostly the file."""


@dataclass(frozen=True, slots=True)
class JudgedEdit:
    """One recorded edit that replaces text."""

    harness: str
    verdict: Verdict
    failure: Failure | None
    modified: bool
    """The newest text of the file in the log is older than another edit of it."""
    reread: bool
    """Its file, read before, was read again in one of the two steps before it."""
    safe_without: bool | None
    """Whether it would have been safe without that read; None where there was none."""


def failure_of(text: str, is_error: bool) -> Failure | None:
    """Why an edit failed, by its result; None where it did not."""
    if not is_error:
        return None
    said = text[:_SAID]
    return next((name for name, pattern in FAILURES if pattern.search(said)), "other")


def judged(session: Session) -> Iterator[JudgedEdit]:
    """The edits of a session, judged under the recorded views."""
    own, sight = study(session), Sight(study(session).evidence)
    for step, view in enumerate(session.recorded.views):
        numbers = own.edits_at.get(step, ())
        sight.follow(view.window)
        yield from (_judge(session, own, own.plans[n], step, sight) for n in numbers)


def _judge(session: Session, own: Study, plan: EditPlan, step: int, sight: Sight) -> JudgedEdit:
    made, attempt = own.evidence, plan.attempt
    verdict = plan.verdict(made, sight)
    hidden = frozenset(_rereads(own, attempt, step))
    without = plan.verdict(made, _Masked(made, sight, hidden)) in ("exact", "lines") if hidden else None
    result = attempt.act.result
    failure = failure_of(made.index.units[result].text, attempt.act.failed) if result is not None else None
    newest = attempt.sources[0] if attempt.sources else None
    return JudgedEdit(harness=session.transcript.format, verdict=verdict, failure=failure, reread=bool(hidden),
                      modified=bool(newest and newest.later), safe_without=without)


def _rereads(own: Study, attempt: EditAttempt, step: int) -> Iterator[int]:
    """Blocks of the results of reads of the file again, in the steps right before its edit."""
    for before in range(max(0, step - LOOK_BACK), step):
        for number in own.reads_at.get(before, ()):
            read = own.reads[number]
            if read.kind != "first" and same_path(read.reading.path, attempt.part.path) and read.act.result is not None:
                yield read.act.result


class _Masked(Sight):
    """A view without some of its blocks."""

    def __init__(self, made: Evidence, sight: Sight, hidden: frozenset[int]) -> None:
        self._made, self._sight, self._hidden = made, sight, hidden

    def shows(self, unit: int) -> bool:
        return unit not in self._hidden and self._sight.shows(unit)

    def holds(self, number: int, before: int) -> str:
        if self._sight.inserted[number]:
            return "summary"
        places = self._made.places[number]
        return "verbatim" if any(map(self.shows, places[:bisect_left(places, before)])) else "gone"


def edit_report(edits: Iterable[JudgedEdit]) -> dict[str, Any]:
    """Every count of V2; `stopped` says why there is no verdict."""
    known = list(edits)
    sure = [e for e in known if e.verdict != "unseen"]
    unsafe = [e for e in sure if e.verdict == "unsafe"]
    table = _table(sure, "not-found")
    ratio = risk_ratio(table)
    missed = table.lost_hit + table.kept_hit
    return {"edits": len(known), "verdicts": dict(Counter(e.verdict for e in known)),
            "failures": dict(Counter(e.failure for e in known if e.failure)),
            "risk_ratios": {name: _row(sure, name) for name, _ in FAILURES},
            "by_harness": _strata(sure, {e.harness: e.harness for e in sure}, "harness"),
            "by_file": {label: _row([e for e in sure if e.modified == flag], "not-found")
                        for label, flag in (("modified since it was shown", True), ("as it was shown", False))},
            "sensitivity": table.lost_hit / missed if missed else None,
            "precision": table.lost_hit / len(unsafe) if unsafe else None, **_repairs(sure), **_verdict(table, ratio)}


def _table(edits: Iterable[JudgedEdit], failure: str) -> Counts:
    counts = Counter((e.verdict == "unsafe", e.failure == failure) for e in edits)
    return Counts(counts[True, True], counts[True, False], counts[False, True], counts[False, False])


def _row(edits: Iterable[JudgedEdit], failure: str) -> dict[str, Any]:
    table = _table(edits, failure)
    ratio = risk_ratio(table)
    return {"unsafe": table.lost_hit + table.lost_missed, "unsafe_failed": table.lost_hit,
            "safe": table.kept_hit + table.kept_missed, "safe_failed": table.kept_hit,
            "risk_ratio": ratio.value, "low": ratio.low, "high": ratio.high}


def _strata(edits: list[JudgedEdit], names: Mapping[str, str], key: str) -> dict[str, Any]:
    return {name: _row([e for e in edits if getattr(e, key) == name], "not-found") for name in sorted(names)}


def _repairs(edits: list[JudgedEdit]) -> dict[str, Any]:
    """Safe edits that a read just before made safe."""
    safe = [e for e in edits if e.verdict in ("exact", "lines")]
    after = [e for e in safe if e.reread]
    made = sum(e.safe_without is False for e in after)
    return {"safe_edits": len(safe), "safe_after_reread": len(after), "made_safe_by_reread": made,
            "made_safe_share": made / len(safe) if safe else None}


def _verdict(table: Counts, ratio: Ratio) -> dict[str, Any]:
    if not table.lost_hit + table.lost_missed or not table.lost_hit + table.kept_hit:
        return {"passes": None, "stopped": "no unsafe edit, or no edit whose text was not found: nothing to compare"}
    return {"passes": ratio.low is not None and ratio.low > 1, "stopped": None}
