"""Are the plan's open items still in view (B7)? An item counts to the letter anywhere, or by its words in a summary."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evals.mentions import asked_per_view, visible_share
from evals.metrics.base import Measurement, Trial, missing
from evals.presence import IntArray, Presence, steps_with
from evals.watchlist import Watchlist, watchlist

NAMES = ("open_task_retention", "open_task_retention_last", "plan_stale_share", "plan_absent_share")


@dataclass(frozen=True)
class OpenTasks:
    """Open items visible ÷ open items, mean over the steps that have some; whether the plan in view is the latest."""

    name: str = "open-tasks"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """Retention over all steps and at the last; share of steps whose newest visible plan is an old one, or none."""
        found = watchlist(trial.session)
        return found.once(trial.lane, self.name, lambda: _measured(trial, found))


def _measured(trial: Trial, found: Watchlist) -> list[Measurement]:
    if not found.plans:
        return [missing(n, "the session has no todo or plan tool") for n in NAMES]
    asked = found.asked("tasks")
    seen = found.pieces(trial.lane, "tasks").per_view(found.views)
    share = visible_share(seen, asked)
    return [_or_missing(NAMES[0], share, "no step had an open item"), _last(seen, asked),
            *_plans_shown(trial, found)]


def _or_missing(name: str, value: float | None, reason: str) -> Measurement:
    return missing(name, reason) if value is None else Measurement(name=name, value=value)


def _last(seen: Any, asked: Any) -> Measurement:
    if not len(asked) or not asked[-1]:
        return missing(NAMES[1], "no item is open at the last step")
    return Measurement(name=NAMES[1], value=float(seen[-1] / asked[-1]))


def _plans_shown(trial: Trial, found: Watchlist) -> list[Measurement]:
    """How often the newest visible plan is not the latest one, and how often there is none."""
    messages, until, some = _latest(found)
    if not bool(some.any()):
        return [missing(n, "no step follows the plan") for n in NAMES[2:]]
    shown = found.presence(trial.lane)
    newest, any_plan = _shown(shown, messages, until), _shown(shown, messages, np.full_like(until, found.views))
    flags = (any_plan > 0) & (newest == 0) & some, (any_plan == 0) & some
    return [Measurement(name=n, value=float(flag.sum() / some.sum())) for n, flag in zip(NAMES[2:], flags, strict=True)]


def _latest(found: Watchlist) -> tuple[IntArray, IntArray, Any]:
    """Log indices of the plans, up to which view each is the latest one, and the views that have a latest one."""
    if "latest" not in found.notes:
        following = [p.message for p in found.plans[1:]]
        asked = [found.until(p.message, n) for p, n in zip(found.plans, [*following, None], strict=True)]
        found.notes["latest"] = (np.array([p.message for p in found.plans], np.int64),
                                 np.array([b for _, b in asked], np.int64), asked_per_view(asked, found.views) > 0)
    made: tuple[IntArray, IntArray, Any] = found.notes["latest"]
    return made


def _shown(shown: Presence, messages: IntArray, until: IntArray) -> Any:
    """For each view how many of the messages it shows, each counted up to its own limit."""
    total = np.zeros(shown.views, np.int64)
    for stretch in shown.stretches:
        start = np.maximum(stretch.shown[messages], stretch.first)
        stop = np.minimum(np.minimum(stretch.gone[messages], until), stretch.stop)
        kept = start < stop
        total += steps_with((start[kept], stop[kept]), shown.views)
    return total
