"""Metrics: views become named numbers, each with its level."""

from __future__ import annotations

from collections.abc import Mapping

from evals.metrics.base import Measurement, Metric, Trial
from evals.metrics.compaction import CompactionEvents
from evals.metrics.cost import Cost, Elisions
from evals.metrics.integrity import Identification, Pairing
from evals.metrics.size import Churn, ViewSize

_BUILT_IN: tuple[Metric, ...] = (ViewSize(), Churn(), CompactionEvents(), Pairing(), Identification(),
                                 Cost(), Elisions())
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in _BUILT_IN}
"""The metrics that every trial is measured with."""

__all__ = ["METRICS", "Measurement", "Metric", "Trial"]
