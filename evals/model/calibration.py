"""A judge against people: agreement, sensitivity, specificity, and the rate that they correct a judged one to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from replay.errors import ConfigError

ENOUGH = 50
"""Labelled answers from which on a calibration can be relied on."""
LEAST_INFORMED = 0.3
"""Sensitivity + specificity − 1, below which a judge says too little to correct a rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A judge's answers of yes and no beside those of people."""

    n: int
    kappa: float | None
    sensitivity: float | None
    """Share of the people's yes to which the judge says yes."""
    specificity: float | None
    """Share of the people's no to which the judge says no."""
    observed: float | None
    """Share of yes among all of the judge's answers, labelled or not."""
    corrected: float | None
    reason: str | None = None
    """Why there is no corrected rate."""

    def to_json(self) -> dict[str, Any]:
        """Plain data; `enough` tells whether as many answers are labelled as are needed."""
        return {**asdict(self), "enough": self.n >= ENOUGH}


def labels(path: Path) -> dict[str, bool]:
    """Labels by request fingerprint, from JSON lines with `request` and `label`. Raises ConfigError."""
    found: dict[str, bool] = {}
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise ConfigError("--labels", str(path), f"cannot be read: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        row = _row(path, number, line) if line.strip() else None
        if row is not None:
            found[row["request"]] = row["label"]
    return found


def _row(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise ConfigError(f"{path}:{number}", "", f"not valid JSON: {error}") from error
    if not (isinstance(row, dict) and isinstance(row.get("request"), str) and isinstance(row.get("label"), bool)):
        raise ConfigError(f"{path}:{number}", "", 'expected {"request": fingerprint, "label": true or false}')
    return row


def calibrate(judged: Mapping[str, bool], people: Mapping[str, bool]) -> Calibration:
    """Both by the fingerprint of the request."""
    both = [(judged[k], people[k]) for k in judged if k in people]
    yes, no = [j for j, p in both if p], [j for j, p in both if not p]
    sensitivity, specificity = _share(yes), _share(not j for j in no)
    observed = _share(judged.values())
    value, reason = corrected(observed, sensitivity, specificity)
    return Calibration(n=len(both), kappa=_kappa(both), sensitivity=sensitivity, specificity=specificity,
                       observed=observed, corrected=value, reason=reason)


def corrected(observed: float | None, sensitivity: float | None,
              specificity: float | None) -> tuple[float | None, str | None]:
    """(observed + specificity − 1) ÷ (sensitivity + specificity − 1) within [0, 1], or why there is none."""
    if observed is None or sensitivity is None or specificity is None:
        return None, "people labelled no yes, or no no, of this judge"
    informed = sensitivity + specificity - 1
    if informed < LEAST_INFORMED:
        return None, "the judge tells yes from no too badly for a correction"
    return min(1.0, max(0.0, (observed + specificity - 1) / informed)), None


def _kappa(both: Sequence[tuple[bool, bool]]) -> float | None:
    if not both:
        return None
    n = len(both)
    same = sum(j == p for j, p in both) / n
    yes_j, yes_p = sum(j for j, _ in both) / n, sum(p for _, p in both) / n
    chance = yes_j * yes_p + (1 - yes_j) * (1 - yes_p)
    return None if chance == 1 else (same - chance) / (1 - chance)


def _share(found: Iterable[bool]) -> float | None:
    values = list(found)
    return sum(values) / len(values) if values else None
