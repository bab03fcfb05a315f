"""Metrics: views become named numbers, each with its level."""

from __future__ import annotations

from collections.abc import Mapping

from evals.metrics.artifacts import ArtifactTrail
from evals.metrics.base import Measurement, Metric, Trial
from evals.metrics.compaction import CompactionEvents
from evals.metrics.cost import Cost, Elisions
from evals.metrics.distance import EvidenceDistance
from evals.metrics.edit_safety import EditSafety
from evals.metrics.errors import ErrorMemory
from evals.metrics.instructions import Instructions
from evals.metrics.integrity import Identification, Pairing
from evals.metrics.latency import ModelTime
from evals.metrics.read_state import ReadState
from evals.metrics.repair import RepairAdjustedCost
from evals.metrics.rereads import IrrecoverableShare, RecordedRereads, WouldBeRereads
from evals.metrics.retention import Retention
from evals.metrics.size import Churn, ViewSize
from evals.metrics.summary_quality import Groundedness, SummaryBounds
from evals.metrics.tasks import OpenTasks

BASIC: tuple[Metric, ...] = (ViewSize(), Churn(), CompactionEvents(), Pairing(), Identification(), Cost(), Elisions(),
                             ModelTime())
"""Sizes, events, validity and cost: every trial is measured with them."""
LOSSES: tuple[Metric, ...] = (Instructions(), OpenTasks(), ArtifactTrail(), ReadState(), ErrorMemory(), Retention(),
                              EvidenceDistance(), EditSafety(), WouldBeRereads(), IrrecoverableShare(),
                              RecordedRereads(), Groundedness(), SummaryBounds(), RepairAdjustedCost())
"""What was lost that the agent later used. They read every text of a session, which takes as long again as all else."""
METRICS: Mapping[str, Metric] = {metric.name: metric for metric in (*BASIC, *LOSSES)}
"""The built-in metrics by name."""

__all__ = ["BASIC", "LOSSES", "METRICS", "Measurement", "Metric", "Trial"]
