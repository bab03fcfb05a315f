"""Makes the sample sessions from their scenarios."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from evals.samples.ids import Ids
from evals.samples.recorder import record
from evals.samples.recording import Recording
from evals.samples.scenario import Scenario, load
from evals.samples.workspace import Workspace
from evals.samples.writers import SUFFIXES, WRITERS
from replay.tokens import tokenizer

DATASETS = Path(__file__).resolve().parents[2] / "datasets"
"""The data folder of a checkout; an installed package has none."""
PLAYERS = 4
"""Sessions that are played at the same time; they wait for their tools most of the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A session file as it must stand in the data folder."""

    scenario: Scenario
    recording: Recording
    data: bytes

    @property
    def path(self) -> str:
        """Path below the data folder."""
        suffix = SUFFIXES.get(self.scenario.format, ".jsonl")
        return f"samples/{self.scenario.format}/{self.scenario.name}{suffix}"

    @property
    def sha256(self) -> str:
        """Checksum of the file."""
        return hashlib.sha256(self.data).hexdigest()


def make(scenario: Scenario, datasets: Path = DATASETS) -> Sample:
    """Play a scenario and write it down. Raises FileNotFoundError where its repository is missing."""
    with Workspace(datasets / "samples" / "repositories" / scenario.repository) as workspace:
        recording = record(scenario, workspace)
    data = WRITERS[scenario.format](recording, Ids(f"{scenario.name}/file"))
    return Sample(scenario=scenario, recording=recording, data=data[:len(data) - scenario.cut_bytes])


def make_all(datasets: Path = DATASETS) -> list[Sample]:
    """Every sample in the order of the scenarios' file names; they are played side by side."""
    scenarios = [load(path) for path in sorted((datasets / "samples" / "scenarios").glob("*.toml"))]
    tokenizer()
    with ThreadPoolExecutor(max_workers=PLAYERS) as players:
        return list(players.map(lambda scenario: make(scenario, datasets), scenarios))
