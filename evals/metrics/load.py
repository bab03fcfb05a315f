"""Which metrics a run has: the built-in ones, those that installed packages offer, and those that the user names.

A package offers a metric as an entry point of the group `rewindow.metrics`; a user names one as `package.module:Class`.
Either is a class that is made without arguments, or an object, with `name` and `measure(trial)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from evals.metrics import BASIC, LOSSES
from evals.metrics.base import Measurement, Metric, Trial, missing
from replay.config import load_object
from replay.errors import ConfigError

GROUP = "rewindow.metrics"


@dataclass(frozen=True)
class Unloadable:
    """Stands for an installed metric that could not be imported, so that the run goes on and says so."""

    name: str
    reason: str

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """One missing measurement with the reason."""
        return [missing(self.name, self.reason)]


def metrics(named: Sequence[str] = (), losses: bool = True) -> tuple[Metric, ...]:
    """Built-in (with `losses` those too), installed and named metrics. Raises ConfigError for a name that is none."""
    return (*BASIC, *(LOSSES if losses else ()), *_installed(), *map(named_metric, named))


@cache
def named_metric(target: str) -> Metric:
    """The metric that `package.module:Class` names. Raises ConfigError."""
    if ":" not in target:
        raise ConfigError("--metric", target, "expected package.module:Class")
    return _made(load_object(target, "--metric"), f"--metric {target}")


@cache
def _installed() -> tuple[Metric, ...]:
    return tuple(map(_from_entry_point, sorted(entry_points(group=GROUP), key=lambda e: e.name)))


def _from_entry_point(point: EntryPoint) -> Metric:
    try:
        return _made(point.load(), point.value)
    except Exception as error:  # noqa: BLE001 - somebody else's package must not keep a run from starting
        return Unloadable(point.name, f"{point.value} cannot be loaded: {type(error).__name__}: {error}")


def _made(found: Any, where: str) -> Metric:
    made = found() if isinstance(found, type) else found
    if not isinstance(getattr(made, "name", None), str) or not callable(getattr(made, "measure", None)):
        raise ConfigError(where, "", "expected a class or object with `name` and `measure(trial)`")
    metric: Metric = made
    return metric


def measured(trial: Trial, metric: Metric) -> list[Measurement]:
    """What a metric answers; one that raises or answers something else is a missing measurement with the reason."""
    try:
        answers = list(metric.measure(trial))
    except Exception as error:  # noqa: BLE001 - a failed metric is a row, the run goes on
        return [missing(metric.name, f"{type(error).__name__}: {error}")]
    wrong = next((a for a in answers if not isinstance(a, Measurement)), None)
    if wrong is not None:
        return [missing(metric.name, f"answered {type(wrong).__name__} where a Measurement was expected")]
    return answers


def built_in(trial: Trial, losses: bool = True) -> dict[str, Measurement]:
    """What the built-in metrics measure of a trial, by name."""
    chosen = (*BASIC, *(LOSSES if losses else ()))
    return {measurement.name: measurement for metric in chosen for measurement in measured(trial, metric)}


def measure_all(trial: Trial, named: Sequence[str] = (), losses: bool = True,
                known: Mapping[str, Measurement] | None = None) -> tuple[Measurement, ...]:
    """All measurements of a trial; where two metrics use one name the first keeps it and the second says so.

    `known`: what `built_in` gave for a lane that shows the same.
    """
    found = dict(built_in(trial, losses) if known is None else known)
    for metric in (*_installed(), *map(named_metric, named)):
        for measurement in measured(trial, metric):
            if measurement.name in found:
                taken = f"{metric.name}.{measurement.name}"
                measurement = missing(taken, f"another metric measures {measurement.name} already")
            found[measurement.name] = measurement
    return tuple(found.values())
