"""What was lost that the agent later used: the tables of every report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from evals.leaderboard import HEADLINES, LOSSES

WORST_COLUMNS = ("policy", "session", "step", "what the view no longer held", "kind", "the agent then called", "fate")
PER_POLICY = 3
"""Losses that are shown of each policy."""


def worst_rows(summary: Mapping[str, Any], per_policy: int = PER_POLICY) -> list[tuple[str, ...]]:
    """The heaviest losses of each policy over all sessions, with their place; empty where losses were not measured."""
    rows = []
    for policy in (p["name"] for p in summary["policies"]):
        found = [(loss, trial) for trial in summary["trials"] if trial["policy"] == policy
                 for loss in trial.get("worst_losses", ())]
        ordered = sorted(found, key=lambda pair: (-pair[0]["weight"], pair[1]["session"], pair[0]["step"]))
        rows += [_row(policy, trial, loss) for loss, trial in islice(_distinct(ordered), per_policy)]
    return rows


def _distinct(found: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Any:
    """One loss for each action: a multi-line edit loses many lines at once."""
    seen = set()
    for loss, trial in found:
        place = trial["session"], loss["step"]
        if place not in seen:
            seen.add(place)
            yield loss, trial


def _row(policy: str, trial: Mapping[str, Any], loss: Mapping[str, Any]) -> tuple[str, ...]:
    return (policy, trial["session"], f"{loss['step']:,}", " ".join(loss["text"].split()), loss["kind"],
            loss["tool"] or "–", loss["fate"])


def loss_metrics(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name and title of the headline measurements of losses that the run has."""
    known = {r["metric"] for r in summary["leaderboard"]}
    return [(h.metric, h.title) for h in HEADLINES if h.metric in LOSSES and h.metric in known]
