"""Whether views are valid (B5) and how far their numbers reach (identification, §2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evals.metrics.base import Measurement, Trial, missing
from replay.engine import divergence
from replay.invariants import PairingChecker, Violation
from replay.log import Log
from replay.window import Inserted, Item, Span, Window


@dataclass(frozen=True)
class Pairing:
    """Distinct broken call/result pairs in any view that the unmodified log does not have itself."""

    name: str = "pairing"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """`pairing_violations`: 0 or the policy is unusable."""
        log = trial.session.log
        whole = PairingChecker()
        for message, ids in zip(log.messages, log.pairs, strict=True):
            whole.take(message, *ids)
        own = {(v.fault, v.call_id) for v in whole.current()}
        found = {(v.fault, v.call_id) for v in view_violations(log, [v.window for v in trial.lane.views])}
        return [Measurement(name="pairing_violations", value=len(found - own)),
                Measurement(name="pairing_violations_recorded", value=len(own))]


def view_violations(log: Log, windows: Sequence[Window]) -> list[Violation]:
    """The violations of every view; a view that only grew costs what was added."""
    checker, end = PairingChecker(), 0
    shape: tuple[object, ...] = ()
    found: list[Violation] = []
    for window in windows:
        if _parts_no_pair(log, window):
            continue
        key = _shape(window.items)
        if key != shape or not window.items or not isinstance(window.items[-1], Span):
            found += checker.violations
            checker, shape = PairingChecker(), key
            for index in window.indices():
                # Inserted messages neither call nor answer.
                checker.take(log.messages[index], *log.pairs[index])
        else:
            for index in range(end, window.items[-1].stop):
                checker.take(log.messages[index], *log.pairs[index])
        end = window.items[-1].stop if window.items and isinstance(window.items[-1], Span) else window.end
        found += checker.current()[len(checker.violations):]
    return found + checker.violations


def _parts_no_pair(log: Log, window: Window) -> bool:
    """Whether the window is in order and no gap parts a call from its result: then it is as whole as the log."""
    end = 0
    for item in window.items:
        if isinstance(item, Inserted):
            continue
        if item.start < end or log.joints[item.start] != item.start:
            return False
        if item.stop < window.end and log.joints[item.stop] != item.stop:
            return False
        end = item.stop
    return True


def _shape(items: tuple[Item, ...]) -> tuple[object, ...]:
    """What stays the same while a view only grows at its end; summaries pair with nothing."""
    keys: list[object] = [None if isinstance(i, Inserted) else (i.start, i.stop) for i in items]
    if items and isinstance(items[-1], Span):
        keys[-1] = (items[-1].start,)
    return tuple(keys)


@dataclass(frozen=True)
class Identification:
    """The first step whose view differs from what was recorded, and the share of steps before it.

    Up to there a policy's numbers are exact; behind it they hold under the condition that the agent had
    acted as recorded.
    """

    name: str = "identification"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """`first_divergence` (missing where there is none) and `identified_share`."""
        steps = len(trial.lane.views)
        if not steps:
            return [missing(n, "the session has no model call") for n in ("first_divergence", "identified_share")]
        first = divergence(trial.lane, trial.session.recorded)
        share = 1.0 if first is None else (first - 1) / steps
        at = (missing("first_divergence", "every view equals the recorded one") if first is None
              else Measurement(name="first_divergence", value=first))
        return [at, Measurement(name="identified_share", value=share)]
