"""Metrics: views become named numbers, each with its level."""

from __future__ import annotations

from collections.abc import Mapping

from evals.metrics.artifacts import ArtifactTrail
from evals.metrics.base import Measurement, Metric, Trial
from evals.metrics.compaction import CompactionEvents
from evals.metrics.cost import Cost, Elisions
from evals.metrics.errors import ErrorMemory
from evals.metrics.instructions import Instructions
from evals.metrics.integrity import Identification, Pairing
from evals.metrics.read_state import ReadState
from evals.metrics.size import Churn, ViewSize
from evals.metrics.tasks import OpenTasks

_BUILT_IN: tuple[Metric, ...] = (ViewSize(), Churn(), CompactionEvents(), Pairing(), Identification(),
                                 Cost(), Elisions(), Instructions(), OpenTasks(), ArtifactTrail(), ReadState(),
                                 ErrorMemory())
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _BUILT_IN}
"""The metrics that every trial is measured with."""

__all__ = ["METRICS", "Measurement", "Metric", "Trial"]
