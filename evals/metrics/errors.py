"""Is what failed still known when it is tried again (B12)? By its result, its error line, or a summary that says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from evals.failures import Retry
from evals.metrics.base import Measurement, Trial, missing
from evals.presence import intact
from evals.watchlist import Watchlist, watchlist


@dataclass(frozen=True)
class ErrorMemory:
    """Calls that repeat a failed one, and the share of them at which the lane still shows the failure."""

    name: str = "error-memory"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """Retries, those that failed again, the share whose failure is visible, and those that would not see it."""
        found = watchlist(trial.session)
        return found.once(trial.lane, self.name, lambda: _measured(trial, found))


def _measured(trial: Trial, found: Watchlist) -> list[Measurement]:
    again = sum(r.failed_again for r in found.retries)
    counts = [Measurement(name="retries", value=len(found.retries)),
              Measurement(name="repeat_failures", value=again)]
    names = ("error_memory_retention", "retries_hidden", "repeat_failures_hidden")
    if not found.retries:
        return [*counts, *(missing(n, "nothing that had failed was tried again") for n in names)]
    hidden = list(hidden_retries(trial, found))
    values = (1 - len(hidden) / len(found.retries), len(hidden), sum(r.failed_again for r in hidden))
    return [*counts, *(Measurement(name=n, value=v) for n, v in zip(names, values, strict=True))]


def hidden_retries(trial: Trial, found: Watchlist) -> Iterator[Retry]:
    """The retries whose view no longer shows that the last try had failed."""
    seen = set(found.pieces(trial.lane, "failures").phrase.tolist())
    for number, retry in enumerate(found.retries):
        view = trial.lane.views[found.position(retry.action.message)]
        result = retry.before.result
        if number not in seen and not (result is not None and intact(view, result, trial.session.log)):
            yield retry
