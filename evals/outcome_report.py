"""What a run's outcomes allow to say: labels, the share that is unknown, bounds for each policy, associations.

A policy that was only replayed has no success rate. Where its views never differed from the record the recorded outcome
is its outcome; everywhere else it may be anything, and the bounds say so (D3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evals.outcome_files import OutcomeTable
from evals.outcomes import UNKNOWN, Label
from evals.outcomes_math import label_bounds, outcome_bounds
from evals.rank_correlation import spearman
from evals.trial import SessionRow

DESCRIPTORS = ("peak_view_tokens", "input_tokens", "compactions_planned", "half_life_tokens", "safe_tail_95_tokens",
               "recorded_reads")
"""Measurements of the recorded lane that describe a session."""
FEWEST_SESSIONS = 10
"""An association of fewer labelled sessions is not printed."""


def labelled(rows: Sequence[SessionRow], table: OutcomeTable | None) -> tuple[dict[str, Label], list[str]]:
    """The label of each session, the table's before its own, and the names in the table that no session has."""
    used: set[str] = set()
    labels: dict[str, Label] = {}
    for row in rows:
        found = table.find(_names(row)) if table else None
        if found:
            used.add(found[0])
        labels[row.session] = found[1] if found else row.outcome or UNKNOWN
    return labels, sorted(set(table.labels) - used) if table else []


def _names(row: SessionRow) -> Iterator[str]:
    name = row.path.replace("\\", "/").rpartition("/")[2]
    yield from (row.session, row.session.partition("~")[0], row.path, name, name.partition(".")[0])


def outcome_summary(rows: Sequence[SessionRow], policies: Sequence[str],
                    table: OutcomeTable | None = None) -> dict[str, Any]:
    """Labels with their evidence, the recorded pass rate's bounds, bounds for every policy, associations."""
    labels, unmatched = labelled(rows, table)
    given = list(labels.values())
    known = [v for v in given if v.value != "unknown"]
    recorded = label_bounds([None if v.passed is None else bool(v.passed) for v in given])
    return {
        "labels": [_label(session, label) for session, label in labels.items()],
        "known": len(known), "unknown_share": 1 - len(known) / len(given) if given else None,
        "recorded": {"low": recorded.low if recorded else None, "high": recorded.high if recorded else None,
                     "passed": sum(v.value == "pass" for v in given), "n": len(given)},
        "policies": [_bounds(p, rows, labels) for p in policies],
        "associations": _associations(rows, labels), "unmatched": unmatched}


def _label(session: str, label: Label) -> dict[str, Any]:
    return {"session": session, "value": label.value, "source": label.source, "message": label.message,
            "confidence": label.confidence, "detail": label.detail}


def _bounds(policy: str, rows: Sequence[SessionRow], labels: Mapping[str, Label]) -> dict[str, Any]:
    """Worst-case bounds of a policy's pass rate over all sessions; failed trials identify nothing."""
    passed = [labels[r.session].passed for r in rows]
    same = [_identified(r, policy) for r in rows]
    bounds = outcome_bounds(passed, same)
    usable = [y for y, s in zip(passed, same, strict=True) if s and y is not None]
    return {"policy": policy, "low": bounds.low if bounds else None, "high": bounds.high if bounds else None,
            "n": len(rows), "identified": sum(same), "identified_labelled": len(usable),
            "identified_passed": int(sum(usable))}


def _identified(row: SessionRow, policy: str) -> bool:
    """Whether every view of the policy equals the recorded one, and the run went through."""
    trial = next((t for t in row.trials if t.policy == policy and t.ok), None)
    return trial is not None and trial.ended is None and trial.value("identified_share") == 1.0


def _associations(rows: Sequence[SessionRow], labels: Mapping[str, Label]) -> list[dict[str, Any]]:
    """Rank correlation of descriptors of the recorded sessions with passing; association, never cause (D2)."""
    known = [(r, y) for r in rows if (y := labels[r.session].passed) is not None]
    found = []
    for name in ("steps", "recorded_compactions", *DESCRIPTORS):
        pairs = [(x, y) for r, y in known if (x := _describe(r, name)) is not None]
        rho = spearman([x for x, _ in pairs], [y for _, y in pairs]) if len(pairs) >= FEWEST_SESSIONS else None
        if rho is not None:
            found.append({"descriptor": name, "rank_correlation": rho, "n": len(pairs)})
    return found


def _describe(row: SessionRow, name: str) -> float | None:
    if name in ("steps", "recorded_compactions"):
        return float(getattr(row, name))
    return row.recorded.value(name) if row.recorded else None


def outcome_lines(outcomes: Mapping[str, Any]) -> list[str]:
    """The outcomes of a run in sentences; none where nothing is known about any session."""
    if not outcomes.get("known"):
        return []
    recorded, total = outcomes["recorded"], outcomes["recorded"]["n"]
    lines = [f"Outcomes: {recorded['passed']} of {outcomes['known']} labelled sessions passed as recorded; "
             f"{outcomes['unknown_share']:.0%} of {total} are unknown, so the recorded pass rate lies between "
             f"{recorded['low']:.0%} and {recorded['high']:.0%}."]
    for row in outcomes["policies"]:
        lines.append(f"  {row['policy']}: not identified by replay; between {row['low']:.0%} and {row['high']:.0%} "
                     f"({row['identified']} of {row['n']} sessions have the recorded views throughout).")
    if outcomes["unmatched"]:
        lines.append(f"  No session was found for {len(outcomes['unmatched'])} rows of the outcome table, "
                     f"the first of them {outcomes['unmatched'][0]}.")
    return lines
