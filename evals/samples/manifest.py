"""The manifest of the sample sessions, and whether the data folder holds what its scenarios give."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from evals.samples.make import Sample

LICENCE = "MIT"
ORIGIN = "scripted agent with real tools (evals.samples); no model"
HEAD = """# The sample sessions. Written by `python -m evals.samples`; do not edit by hand.

"""


def manifest_text(samples: Iterable[Sample]) -> str:
    """The text of `manifest.toml`."""
    return HEAD + "\n".join(map(_table, samples))


def _table(sample: Sample) -> str:
    scenario, recording = sample.scenario, sample.recording
    values: dict[str, str | int] = {
        "name": scenario.name, "format": scenario.format, "path": sample.path, "sha256": sample.sha256,
        "bytes": len(sample.data), "steps": recording.steps, "compactions": recording.compactions,
        "repository": scenario.repository, "about": scenario.about, "licence": LICENCE, "origin": ORIGIN,
    }
    return "\n".join(["[[session]]", *(f"{key} = {_value(value)}" for key, value in values.items())]) + "\n"


def _value(value: str | int) -> str:
    """A TOML value; JSON strings are TOML strings."""
    return json.dumps(value, ensure_ascii=False)


def files(samples: Sequence[Sample]) -> dict[str, bytes]:
    """Every file that the samples give, by its path below the data folder."""
    found = {sample.path: sample.data for sample in samples}
    return {**found, "manifest.toml": manifest_text(samples).encode()}


def differences(samples: Sequence[Sample], datasets: Path) -> Iterator[str]:
    """One line for each file that is missing, differs, or is no sample's."""
    expected = files(samples)
    for path, data in expected.items():
        place = datasets / path
        if not place.is_file():
            yield f"{path}: missing"
        elif place.read_bytes() != data:
            yield f"{path}: differs from what its scenario gives"
    for place in sorted((datasets / "samples").glob("*/*.json*")):
        path = place.relative_to(datasets).as_posix()
        if path not in expected:
            yield f"{path}: no scenario gives it"


def store(samples: Sequence[Sample], datasets: Path) -> None:
    """Write every file of the samples."""
    for path, data in files(samples).items():
        place = datasets / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
