"""A part of a run's sessions, by harness, length and outcome, compared anew from the stored trials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals import leaderboard
from evals.leaderboard import ENOUGH_REPOSITORIES, HEADLINES
from evals.leaderboard_front import SIZE_AXES
from evals.recommendation import recommend
from evals.stats_strata import terciles
from evals.store import load_table

WAYS = ("harness", "length", "outcome")
"""What sessions can be filtered by."""
_ENOUGH = 3
"""Fewer sessions have no third of the length."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What is asked of a session; an empty choice asks nothing."""

    harness: tuple[str, ...] = ()
    length: tuple[str, ...] = ()
    outcome: tuple[str, ...] = ()

    @property
    def is_all(self) -> bool:
        """Whether every session is chosen."""
        return not (self.harness or self.length or self.outcome)


def facts(summary: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """For every session its harness (format), its length's third, and its outcome."""
    sessions = summary["sessions"]
    lengths = terciles({s["session"]: float(s["steps"]) for s in sessions}) if len(sessions) >= _ENOUGH else {}
    ends = {row["session"]: row["value"] for row in (summary.get("outcomes") or {}).get("labels", ())}
    return {s["session"]: {"harness": s["format"], "length": lengths.get(s["session"], "any"),
                           "outcome": ends.get(s["session"], "unknown")} for s in sessions}


def options(found: Mapping[str, Mapping[str, str]], way: str) -> dict[str, int]:
    """The values of one way to filter, with how many sessions have each; the commonest first."""
    return dict(Counter(fact[way] for fact in found.values()).most_common())


def chosen(found: Mapping[str, Mapping[str, str]], selection: Selection) -> list[str]:
    """The sessions that fit every choice, in the order of the run."""
    asked = {way: getattr(selection, way) for way in WAYS}
    return [s for s, fact in found.items() if all(not asked[way] or fact[way] in asked[way] for way in WAYS)]


def compared(run: Path, summary: Mapping[str, Any], sessions: Sequence[str]) -> dict[str, Any]:
    """Leaderboard, paired differences and recommendation on some sessions of a run, in the shape of its summary.

    Only the headline measurements: those that ranks, fronts and recommendations rest on.
    """
    data = table(run, summary, sessions)
    shown = [h for h in HEADLINES if h.family == "headline" and any(h.metric in v for r in data.values()
                                                                    for v in r.values())]
    kept = {s: r for s, r in _repositories(summary).items() if s in set(sessions)}
    groups = kept if ENOUGH_REPOSITORIES <= len(set(kept.values())) < len(kept) else None
    return {"leaderboard": leaderboard.leaderboard(data, groups, shown),
            "pairs": leaderboard.pairs(data, summary["baseline"], groups, shown),
            "recommendation": recommend(data, len(sessions), groups)}


def _repositories(summary: Mapping[str, Any]) -> dict[str, str]:
    return {s["session"]: s.get("repository") or f"session {s['session']}" for s in summary["sessions"]}


Values = dict[str, dict[str, dict[str, float | None]]]


def table(run: Path, summary: Mapping[str, Any], sessions: Sequence[str]) -> Values:
    """The headline values of some sessions under every policy of a run, from its stored trials."""
    headline = [h.metric for h in HEADLINES if h.family == "headline"]
    wanted = [*headline, *(a.metric for a in SIZE_AXES), "pairing_violations"]
    columns = ["session", "policy", "ok", "ended", *dict.fromkeys(wanted)]
    rows = load_table(run, "trials", columns).to_dict("records")
    asked, policies = set(sessions), [p["name"] for p in summary["policies"]]
    made: Values = {p: {} for p in policies}
    for row in rows:
        if row["session"] in asked and row["policy"] in made:
            made[row["policy"]][row["session"]] = _values(row, wanted)
    return made


def _values(row: Mapping[str, Any], wanted: Sequence[str]) -> dict[str, float | None]:
    found = {m: _known(row[m]) for m in wanted if m in row}
    return found | {"run_ended": float(_known(row["ended"]) is not None) if row["ok"] else None}


def _known(value: Any) -> float | None:
    return None if value is None or value != value else float(value)
