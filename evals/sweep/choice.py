"""The best setting of a sweep, chosen on one half of the sessions and put to the test on the other."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evals.leaderboard_front import Table, number, shared
from evals.stats_bootstrap import interval


@dataclass(frozen=True, slots=True)
class Objective:
    """What a sweep is about: a metric, and which way is better."""

    metric: str
    better: str
    """`low` or `high`."""

    def best(self, means: Mapping[str, float]) -> str:
        """The policy with the best mean; of equals the first."""
        return (min if self.better == "low" else max)(means, key=lambda p: means[p])


def halves(sessions: Sequence[str], repositories: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The sessions in two halves that share no repository: the choosing and the confirming one.

    Repositories are dealt out largest first, in an order that their names' digests give, each to the smaller half; the
    second half is empty where all sessions come from one repository.
    """
    groups: dict[str, list[str]] = {}
    for session in sessions:
        groups.setdefault(repositories.get(session, f"session {session}"), []).append(session)
    order = sorted(groups, key=lambda g: (-len(groups[g]), hashlib.sha256(g.encode("utf-8", "replace")).digest()))
    parts: tuple[list[str], list[str]] = ([], [])
    for name in order:
        parts[len(parts[1]) < len(parts[0])].extend(groups[name])
    return parts


def choose(data: Table, points: Sequence[str], base: str, objective: Objective,
           repositories: Mapping[str, str]) -> dict[str, Any]:
    """The chosen setting and what became of it on the sessions that had no part in choosing it.

    Settings under which a session of the choosing half ends in a refused request or breaks a pair are not chosen. The
    difference is paired, of the chosen setting to the unchanged policy, with a 95 % interval over repositories.
    """
    first, second = halves(shared(data, [objective.metric]), repositories)
    chosen = _best(data, points, first, objective)
    if chosen is None:
        return _nothing("no setting gets through every session of the choosing half", first, second)
    if not second:
        return _nothing("all sessions come from one repository: a choice could not be put to the test", first, second)
    found = _difference(data, chosen, base, second, objective, repositories)
    other = _best(data, points, second, objective)
    return {"policy": chosen, "chosen_on": len(first), "confirmed_on": len(second), "other_half": other,
            "confirmed": _is_better(found, objective), **found, "why": _why(chosen, other, found, objective)}


def _best(data: Table, points: Sequence[str], sessions: Sequence[str], objective: Objective) -> str | None:
    through = [p for p in points if not any(_fails(data[p][s]) for s in sessions)]
    means = {p: float(np.mean([number(data[p][s][objective.metric]) for s in sessions])) for p in through if sessions}
    return objective.best(means) if means else None


def _fails(values: Mapping[str, float | None]) -> bool:
    return bool(values.get("run_ended") or values.get("pairing_violations"))


def _difference(data: Table, chosen: str, base: str, sessions: Sequence[str], objective: Objective,
                repositories: Mapping[str, str]) -> dict[str, Any]:
    gaps = [number(data[chosen][s][objective.metric]) - number(data[base][s][objective.metric]) for s in sessions]
    clusters = [repositories.get(s, f"session {s}") for s in sessions]
    span = interval(gaps, clusters)
    bounded = span.coverage > 0
    return {"difference": float(np.mean(gaps)), "low": span.low if bounded else None,
            "high": span.high if bounded else None, "coverage": span.coverage}


def _is_better(found: Mapping[str, Any], objective: Objective) -> bool | None:
    """Whether the whole interval lies on the better side; None where there is no interval."""
    if found["low"] is None or found["coverage"] < 0.945:
        return None
    return bool(found["high"] < 0 if objective.better == "low" else found["low"] > 0)


def _why(chosen: str, other: str | None, found: Mapping[str, Any], objective: Objective) -> str:
    verdict = _is_better(found, objective)
    if verdict is None:
        told = "too few repositories are left to put it to the test"
    elif verdict:
        told = "the other half confirms that it is better than the unchanged policy"
    else:
        told = "the other half does not confirm that it is better than the unchanged policy"
    same = "that half chooses the same setting" if other == chosen else f"that half would choose {other}"
    return f"{told}; {same}"


def _nothing(why: str, first: Sequence[str], second: Sequence[str]) -> dict[str, Any]:
    return {"policy": None, "chosen_on": len(first), "confirmed_on": len(second), "other_half": None, "confirmed": None,
            "difference": None, "low": None, "high": None, "coverage": None, "why": why}
