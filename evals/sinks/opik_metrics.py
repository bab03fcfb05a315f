"""Rewindow inside `opik.evaluate`: a task that replays a dataset's item under a policy, and metrics that score it.

    opik.evaluate(dataset, ReplayTask("decode-adr18", window=64_000), scoring_metrics=policy_metrics())

Opik's own judges take the same outputs: G-Eval reads `output`, trajectory accuracy `goal`, `trajectory` and
`final_result`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evals.costing import Pricing
from evals.leaderboard import values
from evals.metrics.base import Measurement, Trial
from evals.metrics.load import measured, metrics
from evals.sinks.opik import quiet
from evals.sinks.opik_messages import within
from evals.sinks.opik_rows import place_of, reason_of
from evals.trial import TrialRow
from replay.engine import DEFAULT_WINDOW, Lane, Session, divergence
from replay.errors import ConfigError
from replay.policy.base import Capacity
from replay.policy.load import policy as load_policy
from replay.policy.policy import Policy
from replay.readers import read
from replay.tokens import TokenCounter, tokenizer
from replay.transcript import Message
from replay.view import plain_text, shown_messages

quiet()

from opik.evaluation.metrics import base_metric, score_result  # noqa: E402 - the library is made quiet first

SUMS = "sums"
"""Name of the metric whose numbers are sums of others: those that a leaderboard adds."""
_MOST_BYTES = 400_000
"""Of the texts of a task's output, which judges read."""


class MetricScores(base_metric.BaseMetric):
    """Scores all numbers of one of Rewindow's metrics, each with its level and place as the reason.

    A number that could not be measured is a failed score with the reason.
    """

    def __init__(self, metric: str, name: str | None = None, track: bool = False) -> None:
        """`metric`: the name of a metric, such as `size`. Raises ConfigError where there is none of this name."""
        known = [*(m.name for m in metrics()), SUMS]
        if metric not in known:
            raise ConfigError("metric", metric, f"no such metric; known: {', '.join(sorted(known))}")
        super().__init__(name=name or metric, track=track)
        self.metric = metric

    def score(self, measurements: Mapping[str, Sequence[Mapping[str, Any]]],
              **ignored: Any) -> list[score_result.ScoreResult]:
        """The scores of a task's output."""
        return [_score(found) for found in measurements.get(self.metric, ())]


class MeasurementScore(base_metric.BaseMetric):
    """Scores one number of a replay by its name, such as `mean_view_tokens`."""

    def __init__(self, measurement: str, name: str | None = None, track: bool = False) -> None:
        """`measurement`: its name, as the tables of a run call it."""
        super().__init__(name=name or measurement, track=track)
        self.measurement = measurement

    def score(self, measurements: Mapping[str, Sequence[Mapping[str, Any]]],
              **ignored: Any) -> score_result.ScoreResult:
        """The score of a task's output."""
        found = next((m for listed in measurements.values() for m in listed if m["name"] == self.measurement), None)
        return _score(found or {"name": self.measurement, "value": None, "reason": "nothing measures this"}, self.name)


def _score(found: Mapping[str, Any], name: str | None = None) -> score_result.ScoreResult:
    value = found["value"]
    return score_result.ScoreResult(name=name or found["name"], value=0.0 if value is None else float(value),
                                    reason=found["reason"], scoring_failed=value is None)


def policy_metrics(losses: bool = False) -> list[base_metric.BaseMetric]:
    """A metric for each that a run is measured with; `losses`: also what was lost that the agent later used."""
    return [MetricScores(name) for name in (*(m.name for m in metrics(losses=losses)), SUMS)]


class ReplayTask:
    """Replays the session of a dataset's item under a policy; what `opik.evaluate` calls a task."""

    def __init__(self, policy: str | Policy, *, window: int = DEFAULT_WINDOW, output_reserve: int = 0,
                 tokenizer: str = "o200k_base", summariser: str = "extractive", pricing: Pricing | None = None,
                 losses: bool = False, named: Sequence[str] = (), root: Path | str = ".",
                 find: Callable[[Mapping[str, Any]], Path] | None = None) -> None:
        """`policy`: as the command line takes it. `losses`: measure what was lost, too. `named`: own metrics as
        `package.module:Class`. `root`: folder that the paths of the items are relative to; `find` gives a session's
        file by other means. Raises ConfigError for what does not exist."""
        self.policy = load_policy(policy) if isinstance(policy, str) else policy
        self.capacity = Capacity(window=window, output_reserve=output_reserve)
        self._tokenizer = tokenizer
        self._summariser = summariser
        self._metrics = metrics(named, losses)
        self._pricing = pricing or Pricing()
        self._find = find or (lambda item: Path(root) / str(item["path"]))
        self.__name__ = f"replay {self.policy.name}"

    def __call__(self, item: dict[str, Any]) -> dict[str, Any]:
        """The outputs of one item. Raises ReadError where its file is gone or holds another session."""
        transcript = read(self._find(item))[int(item.get("position") or 0)]
        session = Session(transcript, TokenCounter(tokenizer(self._tokenizer)))
        lane = session.replay(self.policy, self.capacity, self._summariser)
        trial = Trial(session=session, lane=lane, capacity=self.capacity, pricing=self._pricing)
        found = {metric.name: measured(trial, metric) for metric in self._metrics}
        found[SUMS] = _sums(lane, [m for listed in found.values() for m in listed])
        place = place_of(divergence(lane, session.recorded), len(transcript.steps))
        plain = {name: [_plain(m, place) for m in listed] for name, listed in found.items()}
        return {"session": transcript.session_id, "policy": self.policy.name, "measurements": plain,
                **within(_texts(session, lane), _MOST_BYTES)[0]}


def _sums(lane: Lane, measurements: Sequence[Measurement]) -> list[Measurement]:
    row = TrialRow(policy=lane.policy.name, ok=True, measurements=tuple(measurements), ended=lane.ended)
    known = {m.name for m in measurements}
    return [Measurement(name=name, value=value, reason=None if value is not None else "a part of it is missing")
            for name, value in values(row).items() if name not in known]


def _plain(found: Measurement, place: str) -> dict[str, Any]:
    reason = found.reason if found.value is None else reason_of(found.level, place)
    return {"name": found.name, "value": found.value, "level": found.level, "reason": reason}


def _texts(session: Session, lane: Lane) -> dict[str, Any]:
    """What judges read: the goal, what the policy's last view still shows of the way there, and how it ended."""
    log = session.log
    shown = [s.message for s in shown_messages(log, lane.views[-1].window)] if lane.views else []
    goal = next((m.text for m in log.messages if m.origin == "human"), "")
    last = session.transcript.steps[-1].response if session.transcript.steps else None
    return {"input": goal, "goal": goal, "trajectory": _trajectory(shown),
            "output": "\n\n".join(f"{m.role}: {plain_text(m)}" for m in shown),
            "final_result": "" if last is None else plain_text(log.messages[last])}


def _trajectory(shown: Sequence[Message]) -> list[dict[str, str]]:
    """The visible steps as thought, action and observation."""
    results = {r.call_id: r.text for m in shown for r in m.results}
    return [{"thought": m.text, "action": "\n".join(f"{c.name}({c.arguments})" for c in m.calls),
             "observation": "\n".join(results.get(c.id, "") for c in m.calls)}
            for m in shown if m.role == "assistant"]
