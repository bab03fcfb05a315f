"""What the action of one step used of what came before it, and what became of that in several lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evals.browse import OpenSession
from evals.spans import Kind
from evals.watch import FATES, Fate, study, watched

FATE_MEANINGS: Mapping[Fate, str] = {
    "verbatim": "word for word in the view", "summary": "in a summary, not word for word where it stood",
    "recoverable": "not in the view, but a call in view would bring it back",
    "lost": "not in the view, and nothing in view leads back to it",
}
"""What each fate of a piece of evidence says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """One piece of evidence that an action took from what came before."""

    text: str
    kind: Kind
    tool: str
    """Tool that the action called."""
    weight: float
    source: int
    """Log index of the newest message before the action that holds it."""
    first: int
    """Log index of the oldest message that holds it."""
    counted: bool
    """The recorded view held it; else the agent had it from elsewhere and no lane is blamed."""
    fates: Mapping[str, Fate]
    """By policy."""


def used_at(opened: OpenSession, step: int, policies: Sequence[str]) -> list[Used]:
    """The evidence of a step (from 1), heaviest first; empty where the action names nothing that came before."""
    own = study(opened.session)
    seen = {p: watched(opened.followed(p)).fates for p in policies}
    needs, units = own.evidence.needs, own.evidence.index.units
    numbers = sorted(needs.bounds.get(step - 1, ()), key=lambda i: -needs.rows[i].weight)
    return [Used(text=need.span.text, kind=need.span.kind, tool=need.tool, weight=need.weight,
                 source=units[needs.latest[i]].message, first=units[needs.first[i]].message,
                 counted=not own.censored[i], fates={p: FATES[fates[i]] for p, fates in seen.items()})
            for i, need in ((i, needs.rows[i]) for i in numbers)]


def fate_counts(used: Sequence[Used], policy: str) -> dict[Fate, int]:
    """How many pieces of evidence met each fate in a lane, only those that count."""
    return {fate: sum(u.counted and u.fates[policy] == fate for u in used) for fate in FATES}
