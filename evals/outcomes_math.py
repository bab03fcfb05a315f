"""Arithmetic of outcomes: pass rates over trials, cost per solved task, and bounds where replay cannot know."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb, fsum

ENOUGH_SAMPLES = 10
"""Effective sample size below which a reweighted estimate is refused."""
ENOUGH_SHARE = 0.1
"""The same as a share of the sessions."""


def pass_at_k(trials: int, passed: int, k: int) -> float | None:
    """Chance that at least one of k trials passes, from `passed` of `trials`; None when there are fewer than k."""
    _check(trials, passed, k)
    return None if trials < k else 1 - comb(trials - passed, k) / comb(trials, k)


def pass_hat_k(trials: int, passed: int, k: int) -> float | None:
    """Chance that all of k trials pass (pass^k), from `passed` of `trials`; None when there are fewer than k."""
    _check(trials, passed, k)
    return None if trials < k else comb(passed, k) / comb(trials, k)


def _check(trials: int, passed: int, k: int) -> None:
    if k < 1 or not 0 <= passed <= trials:
        raise ValueError(f"expected 0 ≤ passed ≤ trials and k ≥ 1, found {passed} of {trials} trials, k = {k}")


def mean_over_tasks(values: Iterable[float | None]) -> tuple[float | None, int]:
    """Mean over the tasks that have a value, and how many do not."""
    given = list(values)
    known = [v for v in given if v is not None]
    return (fsum(known) / len(known) if known else None), len(given) - len(known)


def cost_per_solved(costs: Sequence[float], solved: float) -> float | None:
    """The cost of all trials, failures too, over the number solved; None when nothing was solved."""
    return fsum(costs) / solved if solved > 0 else None


def effectiveness(outcomes: Sequence[float], costs: Sequence[float], budget: float) -> float | None:
    """Area under the solve rate as the budget of each task grows from zero to `budget`, scaled to 0–1.

    A solved task counts more the cheaper it was, one beyond the budget not at all. None without tasks; raises
    ValueError for a budget that is not positive.
    """
    if budget <= 0:
        raise ValueError(f"the budget must be above zero, not {budget}")
    if not outcomes:
        return None
    pairs = zip(outcomes, costs, strict=True)
    return fsum(y * max(0.0, 1 - c / budget) for y, c in pairs) / len(outcomes)


def solve_rates(outcomes: Sequence[float], costs: Sequence[float], budgets: Sequence[float]) -> list[float]:
    """The share of tasks that are solved within each budget: the curve under which `effectiveness` is the area."""
    pairs = list(zip(outcomes, costs, strict=True))
    return [fsum(y for y, c in pairs if c <= b) / len(pairs) for b in budgets] if pairs else []


@dataclass(frozen=True, slots=True)
class Bounds:
    """Smallest and largest mean that the data allow, without assumptions."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """How much the data leave open."""
        return self.high - self.low


def outcome_bounds(passed: Sequence[float | None], identified: Sequence[bool]) -> Bounds | None:
    """Worst-case bounds of the mean outcome under a policy that was only replayed; None without sessions.

    Outcomes count where the policy's views never differed from the recorded ones (`identified`) and the label is known;
    elsewhere everything from 0 to 1 is possible.
    """
    pairs = list(zip(passed, identified, strict=True))
    if not pairs:
        return None
    known = [y for y, same in pairs if same and y is not None]
    return Bounds(fsum(known) / len(pairs), (fsum(known) + len(pairs) - len(known)) / len(pairs))


def label_bounds(labels: Sequence[bool | None]) -> Bounds | None:
    """The pass rate if all unknown labels were failures, and if all were passes; None without labels."""
    return outcome_bounds([None if v is None else float(v) for v in labels], [True] * len(labels))


def effective_samples(weights: Sequence[float]) -> float:
    """How many equally weighted sessions the weights are worth; 0 without any weight."""
    squares = fsum(w * w for w in weights)
    return fsum(weights) ** 2 / squares if squares else 0.0


def reweighted_mean(outcomes: Sequence[float], weights: Sequence[float]) -> tuple[float | None, str]:
    """The weighted mean outcome, or None with the reason for refusing: too few sessions carry the weight."""
    ess = effective_samples(weights)
    words = f"effective sample size {ess:.2f} of {len(weights)} sessions"
    if ess < ENOUGH_SAMPLES or ess / len(weights) < ENOUGH_SHARE:
        return None, f"refused: {words}; at least {ENOUGH_SAMPLES} and {ENOUGH_SHARE:.0%} are needed"
    return fsum(w * y for w, y in zip(weights, outcomes, strict=True)) / fsum(weights), words
