"""What a stored run is in Opik: a dataset of sessions, an experiment for each policy, a scored trace for each trial.

Rows are plain data without identifiers; the keys from which those are made stand beside them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from evals.browse import check_run
from evals.sinks.opik_ids import cohort_of, digest
from evals.store import load_summary, load_table
from replay.policy.load import RECORDED

Row = dict[str, Any]
Key = tuple[Any, ...]
LARGEST_SCORE = 999_999_999.0
"""Opik's scores hold no more."""
_DIGITS = 9
SETTINGS = ("window", "output_reserve", "tokenizer", "prices", "cache_model", "summariser")
"""Keys of a run's summary that make its numbers what they are."""
_LEVELS: Mapping[str, str] = {
    "L0": "counted from the recording", "L1": "under the run's stated models", "L2": "teacher-forced",
    "L3": "from a run of the agent"}


@dataclass(frozen=True)
class Run:
    """A stored run, as it is going to stand in Opik."""

    folder: Path
    dataset_prefix: str = "rewindow"

    @cached_property
    def summary(self) -> Mapping[str, Any]:
        """The run's summary. Raises ReadError."""
        return load_summary(check_run(self.folder))

    @cached_property
    def prints(self) -> Mapping[str, str]:
        """What each session held: a hash over all views that its harness sent."""
        table = load_table(self.folder, "steps", ["session", "fingerprint"], policy=RECORDED.name)
        found = {str(name): digest(list(map(str, rows))) for name, rows in table.groupby("session")["fingerprint"]}
        return {s["session"]: found.get(s["session"], "") for s in self.summary["sessions"]}

    @cached_property
    def cohort(self) -> str:
        """The version of the set of sessions."""
        return cohort_of({s["session"]: [s["steps"], s["messages"], self.prints[s["session"]]]
                          for s in self.summary["sessions"]})

    @property
    def dataset_name(self) -> str:
        """The dataset's name, with the version of the cohort in it."""
        return f"{self.dataset_prefix}-{self.cohort}"

    @property
    def made_at(self) -> int:
        """When the run was stored, in milliseconds since the epoch."""
        return int((self.folder / "summary.json").stat().st_mtime * 1000)

    @property
    def settings(self) -> Row:
        """What all trials of the run share."""
        return {name: self.summary.get(name) for name in SETTINGS}

    def items(self) -> Iterator[tuple[Key, Row]]:
        """The items of the dataset: sessions, with what it takes to replay them."""
        for session in self.summary["sessions"]:
            data = {name: session.get(name) for name in (
                "session", "path", "position", "format", "model", "steps", "messages", "recorded_compactions")}
            yield self.item_key(session["session"]), {
                "source": "sdk", "data": data | {"fingerprint": self.prints[session["session"]]}}

    def experiments(self) -> Iterator[tuple[Key, Row]]:
        """One experiment for each policy, with its spec and the run's settings as configuration."""
        for policy in self.summary["policies"]:
            metadata = {"policy": policy["name"], "spec": policy["spec"], "spec_hash": policy["spec_hash"],
                        **self.settings, "baseline": self.summary["baseline"], "cohort": self.cohort}
            yield self.experiment_key(policy), {"name": f"{policy['name']} on {self.dataset_name}",
                                                "metadata": metadata, "tags": ["rewindow"]}

    def item_key(self, session: str) -> Key:
        """What makes a session's item what it is."""
        return ("item", self.cohort, session)

    def experiment_key(self, policy: Mapping[str, Any]) -> Key:
        """What makes a policy's experiment what it is: policy, settings and sessions."""
        return ("experiment", self.dataset_name, policy["name"], policy["spec_hash"], self.settings)

    def trials(self) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]]:
        """Every session with every policy and their trial, session by session."""
        found = {(t["session"], t["policy"]): t for t in self.summary["trials"]}
        for session in self.summary["sessions"]:
            for policy in self.summary["policies"]:
                if trial := found.get((session["session"], policy["name"])):
                    yield session, policy, trial


def trace_row(session: Mapping[str, Any], trial: Mapping[str, Any]) -> Row:
    """The trace of a trial: which session, and what was measured."""
    row: Row = {
        "name": f"{session['session']} · {trial['policy']}", "source": "experiment",
        "input": {name: session.get(name) for name in ("session", "format", "model", "steps", "messages")},
        "output": {name: trial.get(name) for name in ("ok", "ended", "first_divergence", "metrics", "missing")},
        "metadata": {"rewindow": {"session": session["session"], "policy": trial["policy"], "lane": trial.get("lane")}},
        "tags": ["rewindow", trial["policy"]]}
    if trial.get("error"):
        kind, _, words = str(trial["error"]).partition(": ")
        row["error_info"] = {"exception_type": kind, "message": words, "traceback": ""}
    return row


def score_rows(session: Mapping[str, Any], trial: Mapping[str, Any]) -> list[Row]:
    """A feedback score for each measurement that has a value, with its level and the place up to which it is exact."""
    place = place_of(trial.get("first_divergence"), session["steps"])
    return [{"name": name, "value": round(float(value), _DIGITS), "source": "sdk",
             "reason": reason_of(trial["level"].get(name, "L0"), place)}
            for name, value in trial["metrics"].items() if is_score(value)]


def is_score(value: Any) -> bool:
    """Whether a value can stand in Opik as a score."""
    return value is not None and math.isfinite(value) and abs(value) <= LARGEST_SCORE


def reason_of(level: str, place: str) -> str:
    """A measurement's level and place, in words."""
    return f"{level}, {_LEVELS.get(level, 'of an unknown kind')}; {place}"


def place_of(first_divergence: int | None, steps: int) -> str:
    """Up to where a lane's views are those of the record."""
    if first_divergence is None:
        return f"every view of {steps} steps equals the recorded one"
    return (f"views equal the recorded ones up to step {first_divergence - 1} of {steps}, behind that on condition "
            "that the agent had acted as recorded")


def unscored(summary: Mapping[str, Any]) -> Sequence[str]:
    """Measurements with values that are too large for a score; they stand in the traces only."""
    return sorted({name for trial in summary["trials"] for name, value in trial["metrics"].items()
                   if value is not None and not is_score(value)})
