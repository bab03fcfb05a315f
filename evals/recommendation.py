"""The one policy that the measurements single out, how sure that is, and what would change it; or that they cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evals.leaderboard_front import QUALITY_AXES, Table, axes, front, measured
from evals.stats_binary import mcnemar_of, zero_event_upper

Advice = dict[str, str | None]
ENOUGH = 6
"""Below so many sessions no interval of 95 % exists, and what they lose decides nothing."""
_WORDS = ", ".join(a.title for a in QUALITY_AXES)


def recommend(data: Table, sessions: int, clusters: Mapping[str, str] | None = None) -> Advice:
    """The recommended policy (None where these sessions cannot decide), why, how sure, and what would change it."""
    if not sessions or not data:
        return _advice(None, "no session could be measured", "", "sessions with model calls")
    faults = {p: _faults(rows) for p, rows in data.items()}
    usable = [p for p, fault in faults.items() if not fault]
    refused = "; ".join(f"{p}: {fault}" for p, fault in faults.items() if fault)
    if not usable:
        return _advice(None, f"no policy gets through every session at this window. {refused}",
                       "", "a larger window, or a policy that compacts earlier")
    if len(usable) == 1 and len(data) > 1:
        why = f"the only policy that gets through all {sessions} sessions. {refused}"
        return _advice(usable[0], why, _sure(data, usable[0], sessions), "one session that it does not get through")
    return _among(data, usable, sessions, clusters, refused)


def _among(data: Table, usable: Sequence[str], sessions: int, clusters: Mapping[str, str] | None,
           refused: str) -> Advice:
    """Several policies get through: only what they lose can decide."""
    left = f" {refused}" if refused else ""
    rivals = {p: data[p] for p in usable}
    if axes(rivals) != QUALITY_AXES:
        why = (f"{', '.join(usable)} get through all {sessions} sessions; sizes alone do not say which of them loses "
               f"less of what the agent needed.{left}")
        return _advice(None, why, _room(sessions), f"measured losses ({_WORDS}), or a session that one of them fails")
    count = measured(rivals, QUALITY_AXES)
    best = sorted(front(data, clusters, usable), key=usable.index)
    if count < ENOUGH:
        why = (f"these sessions cannot decide between {', '.join(usable)}: only {count} of {sessions} have all of "
               f"{_WORDS}, and fewer than {ENOUGH} allow no 95 % statement.{left}")
        return _advice(None, why, _room(sessions), "more sessions with edits and standing instructions")
    if len(best) == 1:
        why = f"in at least 95 % of resampled sessions no worse than any other on {_WORDS}, and better on one.{left}"
        return _advice(best[0], why, _room(sessions), "sessions of another kind, or prices and repairs that differ")
    why = (f"these sessions cannot decide: none of {', '.join(best)} is beaten on {_WORDS} in 95 % of resampled "
           f"sessions.{left}")
    return _advice(None, why, _room(sessions), f"more sessions than {sessions}, or a decision which of the axes counts")


def _advice(policy: str | None, why: str, uncertainty: str, would_change: str) -> Advice:
    told = f"{why.rstrip('. ')}. {uncertainty}".rstrip(". ") if uncertainty else why
    return {"policy": policy, "why": told, "uncertainty": uncertainty or None, "would_change": would_change}


def _room(sessions: int) -> str:
    return f"No failure in {sessions} sessions still allows up to {zero_event_upper(sessions):.1%} of failures (95 %)"


def _sure(data: Table, chosen: str, sessions: int) -> str:
    """How far the nearest rival's failures could be chance."""
    rivals = {p: _failed(data[p], data[chosen]) for p in data if p != chosen}
    nearest = min(rivals, key=lambda p: sum(rivals[p]))
    p = mcnemar_of(rivals[nearest], [0.0] * len(rivals[nearest])).p
    return (f"{_room(sessions)}; against {nearest}, which fails {sum(rivals[nearest]):.0f}, exact p {p:.3f}. Getting "
            "through says nothing of what it loses")


def _failed(rows: Mapping[str, Mapping[str, float | None]],
            other: Mapping[str, Mapping[str, float | None]]) -> list[float]:
    return [float(bool(v.get("run_ended") or v.get("pairing_violations"))) for s, v in rows.items() if s in other]


def _faults(rows: Mapping[str, Mapping[str, float | None]]) -> str:
    ended = sum(bool(v.get("run_ended")) for v in rows.values())
    broken = sum(bool(v.get("pairing_violations")) for v in rows.values())
    failed = sum(v.get("run_ended") is None for v in rows.values())
    found = [f"{ended} of {len(rows)} sessions end in a refused request"] if ended else []
    found += [f"broken pairs in {broken} sessions"] if broken else []
    found += [f"failed on {failed} sessions"] if failed else []
    return ", ".join(found)
