"""Worked examples of estimators, measures and triggers."""

from __future__ import annotations

from typing import Any

from replay.policy.base import Told
from replay.policy.cuts import KeepTokens
from replay.policy.cuts_forward import KeepTokensForward
from replay.policy.example_tools import (
    decision,
    estimate,
    fires,
    keep_from,
    log_of,
    moment,
    of_kind,
    replay,
    session,
    stage,
)
from replay.policy.examples import Example
from replay.policy.measures import Larger


def _rounding() -> tuple[int, ...]:
    larger, forward, back = stage("mycodeagent").measure, stage("pi-1.6").cut, stage("decode-adr18").cut
    rulers = (of_kind(larger, Larger).estimate.estimator, of_kind(forward, KeepTokensForward).estimator,
              of_kind(back, KeepTokens).estimator)
    return tuple(estimate(ruler, (5, 5, 5)) for ruler in rulers)


def _lag(preset: str, number: int, window: int) -> bool:
    """A call of 90,000 tokens whose result has 30,000."""
    at = moment(log_of(("u", 1), ("a", 1), ("t", 30_000)), window, Told(input=90_000, calls=1, run_input=90_000, end=1))
    return decision(stage(preset, number), at).fires


def _stale(preset: str, number: int) -> tuple[str, int | None]:
    at = moment(log_of(("u", 10), ("s", 10)), told=Told(input=170_000, calls=3, run_input=170_000, stale=True, end=1))
    found = decision(stage(preset, number), at)
    return found.reason, found.estimated_tokens


def _due(preset: str) -> bool:
    """Whether a compaction was due, made or refused, after a run whose calls read 10,000 to 13,000 tokens each."""
    runs = [m for n in (10, 11, 12, 13) for m in (("a", 1, n * 1_000), ("t", 1))]
    told = session(("u", 1), *runs, ("s", 1, 13_000), ("u", 1), ("s", 1, 14_000))
    lane = replay(told, f"{preset}:trigger.at=0.8,tail_tokens=1", 50_000)
    return any(e.threshold == 40_000 for e in lane.events)


def _nudges() -> Any:
    """One prompt and eleven nudges are twelve rounds: the newest ten stay."""
    rounds = [m for _ in range(11) for m in (("n", 1), ("s", 1))]
    return keep_from(stage("mycodeagent").cut, moment(log_of(("u", 1), ("s", 1), *rounds)))


def _minimum() -> tuple[bool, bool]:
    told = Told(input=120_000, calls=1, end=1)
    two = moment(log_of(("u", 1), ("s", 1)), 100_000, told)
    three = moment(log_of(("u", 1), ("s", 1), ("u", 1)), 100_000, told)
    return decision(stage("mycodeagent"), two).fires, decision(stage("mycodeagent"), three).fires


def _images() -> tuple[int | None, int | None, int | None]:
    """Characters of an image in a prompt by 0.58 and 1.6, and in a tool result by 0.58."""
    old, new = (of_kind(stage(name).cut, KeepTokensForward) for name in ("pi-0.58", "pi-1.6"))
    return old.estimator.image_chars, new.estimator.image_chars, old.estimator.result_image_chars


EXAMPLES = (
    Example(number=1, presets=("decode-adr18", "mycodeagent", "pi-1.6"),
            says="three messages of 5 characters: floor of the total, ceiling of each, floor of each",
            expected=(5, 6, 3), found=_rounding),
    Example(number=2, presets=("pi-0.58",),
            says="Pi fires above the window less its reserve: at 83,616 of 100,000 not, at 83,617 yes",
            expected=[False, True], found=lambda: [fires("pi-0.58", n, 100_000) for n in (83_616, 83_617)]),
    Example(number=2, presets=("decode-adr18",),
            says="Decode fires at four fifths of 1,048,576 rounded down: at 838,859 not, at 838,860 yes",
            expected=[False, True], found=lambda: [fires("decode-adr18", n, 1_048_576) for n in (838_859, 838_860)]),
    Example(number=3, presets=("pi-0.58", "pi-1.6"),
            says="usage alone lags behind a result of 30,000: 90,000 of 100,000 do not fire in Pi 0.58, "
            "with what came since they do in Pi 1.6", expected=(False, True),
            found=lambda: (_lag("pi-0.58", 0, 116_384), _lag("pi-1.6", 0, 116_384))),
    Example(number=4, presets=("pi-0.58", "pi-1.6"),
            says="usage from before a compaction is not looked at after a run by Pi, replaced by an estimate "
            "within a run by Pi 1.6", expected=[("usage_unknown", None), ("below_threshold", 20)],
            found=lambda: [_stale("pi-0.58", 0), _stale("pi-1.6", 0)]),
    Example(number=5, presets=("decode", "decode-adr18"),
            says="46,000 input tokens over four calls fire before ADR 0018, the last call's 13,000 do not since",
            expected=(True, False), found=lambda: (_due("decode"), _due("decode-adr18"))),
    Example(number=6, presets=("mycodeagent",),
            says="MyCodeAgent needs three messages", expected=(False, True), found=_minimum),
    Example(number=7, presets=("mycodeagent",),
            says="nudges are rounds: of one prompt and eleven nudges the prompt is summarised", expected=4,
            found=_nudges),
    Example(number=16, presets=("pi-0.58", "pi-1.6"),
            says="an image in a prompt costs nothing in Pi 0.58 and 4,800 characters in 1.6; in a result 4,800",
            expected=(0, 4_800, 4_800), found=_images),
)
