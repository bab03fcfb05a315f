"""Two stored runs of the same sessions: what changed under a policy, by how much, on which sessions, from which step.

A run is compared with an earlier one of the same cohort, window, tokenizer, prices and cache model; the policy's code,
its settings, or the program may differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.board import FULL_COVERAGE, shown, signed
from evals.browse import light_summary_of
from evals.leaderboard import HEADLINES, Headline
from evals.stats import Paired, paired_by_unit
from evals.stats_comparable import require_comparable
from evals.stats_significance import holm
from evals.store import load_table
from replay.errors import ConfigError

SAME, NO_DIFFERENCE, WORSE, BETTER, CHANGED = ("the same on every session", "no difference shown", "worse", "better",
                                               "changed")
"""Verdicts on a metric; worse and better only where the adjusted p is below 5 % and one direction is better."""
ALPHA = 0.05
TIERS: Mapping[str, tuple[str, ...]] = {
    "what the model sees": ("fingerprint",), "how the request fares": ("status",),
    "counted tokens and decisions": ("tokens", "estimated_tokens", "threshold", "events"),
    "the bill": ("cost_units", "cache_read_tokens"),
}
"""What of a step can differ, the gravest first, and the columns that tell."""
METRIC_COLUMNS = ("measurement", "first run", "second run", "change", "95 % interval", "p (Holm)", "worse", "better",
                  "same", "verdict")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A metric's paired change from the first run to the second, over sessions."""

    metric: str
    title: str
    verdict: str
    difference: float | None
    words: tuple[str, ...]
    """The cells behind the title, as `METRIC_COLUMNS` names them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionChange:
    """What became of one session."""

    session: str
    step: int | None
    """The first step that differs; None where none does, or where a trial failed."""
    steps: int
    """Steps that differ."""
    what: str
    values: Mapping[str, tuple[float | None, float | None]]
    """By metric, the value in the first run and in the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Regression:
    """One policy of a run against one of another run."""

    settings: tuple[str, ...]
    """Differences of the two policies' settings, one a line."""
    changes: tuple[Change, ...]
    sessions: tuple[SessionChange, ...]
    """Sessions in which anything differs, earliest step first."""
    unchanged: int

    def worst(self, metric: str) -> list[SessionChange]:
        """The sessions that differ, those first whose value of the metric went furthest the wrong way."""
        sign = -1 if any(h.metric == metric and h.better == "high" for h in HEADLINES) else 1
        return sorted(self.sessions, key=lambda s: -sign * (moved(s, metric) or 0.0))


def moved(session: SessionChange, metric: str) -> float | None:
    """By how much a session's value changed; None where either run could not measure it."""
    before, after = session.values.get(metric, (None, None))
    return None if before is None or after is None else after - before


def moved_words(session: SessionChange, metric: str) -> tuple[str, str, str]:
    """The value before, after, and the change, in words."""
    before, after = session.values.get(metric, (None, None))
    return shown(metric, before), shown(metric, after), signed(metric, moved(session, metric))


def check_alike(first: Path, second: Path) -> None:
    """Raises ConfigError, with every reason, where the runs are not two of the same sessions and settings."""
    a, b = light_summary_of(first), light_summary_of(second)
    if "live" in a or "live" in b:
        raise ConfigError("runs", "", "cannot be compared step by step: in one of them agents really ran, so that no "
                          "step of it is a step of the other; expected two runs of recorded sessions")
    require_comparable(a, b)


def regression(first: Path, second: Path, ours: str, theirs: str) -> Regression:
    """What changed from the first run's policy `ours` to the second run's `theirs`.

    Raises ConfigError where the runs are unlike.
    """
    check_alike(first, second)
    a, b = light_summary_of(first), light_summary_of(second)
    before, after = _trials(first, ours), _trials(second, theirs)
    homes = {s["session"]: s.get("repository") or f"session {s['session']}" for s in a["sessions"]}
    steps = _first_steps(first, second, ours, theirs)
    sessions = tuple(sorted(_sessions(before, after, steps), key=lambda s: (s.step is None, s.step or 0, s.session)))
    return Regression(settings=tuple(_settings(_spec(a, ours), _spec(b, theirs))), sessions=sessions,
                      changes=tuple(_changes(before, after, homes)), unchanged=len(homes) - len(sessions))


_Trials = Mapping[str, Mapping[str, Any]]


def _trials(run: Path, policy: str) -> dict[str, dict[str, Any]]:
    """A policy's trials by session; a metric that a run lacks is not in them."""
    wanted = ("session", "ok", "error", "ended", *(h.metric for h in HEADLINES))
    rows = load_table(run, "trials", wanted, policy=policy).to_dict("records")
    return {r["session"]: r | {"run_ended": float(_known(r["ended"]) is not None) if r["ok"] else None} for r in rows}


def _known(value: Any) -> float | None:
    return None if value is None or value != value else float(value)


def _changes(before: _Trials, after: _Trials, homes: Mapping[str, str]) -> Iterator[Change]:
    measured = [h for h in HEADLINES if any(h.metric in t for t in before.values())
                and any(h.metric in t for t in after.values())]
    found = [_paired(h.metric, before, after, homes) for h in measured]
    tested = [p.p for p, _ in found if p is not None]
    adjusted = iter(holm(tested))
    for headline, (pair, gaps) in zip(measured, found, strict=True):
        if pair is not None:
            yield _change(headline, pair, gaps, next(adjusted), (before, after))


def _paired(metric: str, before: _Trials, after: _Trials,
            homes: Mapping[str, str]) -> tuple[Paired | None, list[float]]:
    ours, theirs = ({s: _known(t.get(metric)) for s, t in trials.items()} for trials in (after, before))
    pair, both = paired_by_unit(ours, theirs, clusters=homes)
    return pair, [float(a - b) for a, b in zip(both.values, both.reference, strict=True)]


def _change(headline: Headline, pair: Paired, gaps: list[float], p: float, sides: tuple[_Trials, _Trials]) -> Change:
    metric, sign = headline.metric, -1 if headline.better == "high" else 1
    up, down = sum(sign * g > 0 for g in gaps), sum(sign * g < 0 for g in gaps)
    span = "–" if pair.coverage < FULL_COVERAGE else f"{signed(metric, pair.low)} to {signed(metric, pair.high)}"
    verdict = _verdict(headline, pair, p, up + down)
    counts = (f"{up:,}", f"{down:,}") if headline.better != "none" else ("–", "–")
    means = [shown(metric, _mean(side, sides, metric)) for side in sides]
    return Change(metric=metric, title=headline.title, verdict=verdict, difference=pair.difference,
                  words=(*means, signed(metric, pair.difference), span, f"{p:.3f}", *counts,
                         f"{len(gaps) - up - down:,}", verdict))


def _mean(side: _Trials, sides: tuple[_Trials, _Trials], metric: str) -> float | None:
    """The mean over the sessions that both runs measured."""
    both = [s for s in side if all(_known(t.get(s, {}).get(metric)) is not None for t in sides)]
    return sum(float(side[s][metric]) for s in both) / len(both) if both else None


def _verdict(headline: Headline, pair: Paired, p: float, differing: int) -> str:
    if not differing:
        return SAME
    if p >= ALPHA:
        return NO_DIFFERENCE
    if headline.better == "none":
        return CHANGED
    return WORSE if (pair.difference > 0) == (headline.better == "low") else BETTER


def _first_steps(first: Path, second: Path, ours: str, theirs: str) -> dict[str, tuple[int, int, str]]:
    """For each session with a differing step the first one, how many there are, and what differs at the first."""
    columns = ("session", "step", *(c for names in TIERS.values() for c in names))
    a, b = (load_table(run, "steps", columns, policy=policy).set_index(["session", "step"]).sort_index()
            for run, policy in ((first, ours), (second, theirs)))
    shared = a.index.intersection(b.index)
    a, b = a.loc[shared], b.loc[shared]
    apart = {tier: _apart(a, b, names) for tier, names in TIERS.items()}
    any_of = sum(apart.values())
    found: dict[str, tuple[int, int, str]] = {}
    for session, step in shared[any_of > 0]:
        known = found.get(session)
        what = known[2] if known else ", ".join(t for t, flags in apart.items() if flags.loc[(session, step)])
        found[session] = (known[0], known[1] + 1, what) if known else (int(step), 1, what)
    return found


def _apart(a: Any, b: Any, columns: tuple[str, ...]) -> Any:
    """Which steps differ in any of the columns that both runs have; a missing value equals a missing one."""
    both = [c for c in columns if c in a and c in b]
    differs = (a[both] != b[both]) & ~(a[both].isna() & b[both].isna())
    return differs.any(axis=1)


def _sessions(before: _Trials, after: _Trials, steps: Mapping[str, tuple[int, int, str]]) -> Iterator[SessionChange]:
    metrics = [h.metric for h in HEADLINES]
    for session in sorted({*before, *after}):
        a, b = before.get(session, {}), after.get(session, {})
        values = {m: (_known(a.get(m)), _known(b.get(m))) for m in metrics if m in a or m in b}
        failed = [f"failed in the {word} run: {t.get('error', 'no trial of it')}"
                  for word, t in (("first", a), ("second", b)) if not t.get("ok")]
        if len(failed) == 1:
            yield SessionChange(session=session, step=None, steps=0, what=failed[0], values=values)
        elif session in steps:
            step, count, what = steps[session]
            yield SessionChange(session=session, step=step, steps=count, what=what, values=values)
        elif any(x != y for x, y in values.values()):
            yield SessionChange(session=session, step=None, steps=0, values=values,
                                what="measurements alone: every step is the same")


def _spec(summary: Mapping[str, Any], name: str) -> Any:
    return next(p["spec"] for p in summary["policies"] if p["name"] == name)


def _settings(before: Any, after: Any) -> Iterator[str]:
    """Settings that differ, by their place in the policy; its name, which repeats them, is none."""
    a, b = dict(_flat(before, "")), dict(_flat(after, ""))
    for key in (k for k in dict.fromkeys((*a, *b)) if k != "name"):
        if a.get(key) != b.get(key):
            yield f"{key}: {a.get(key, 'not set')} → {b.get(key, 'not set')}"


def _flat(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        pairs = [(str(k), v) for k, v in value.items()]
    elif isinstance(value, (list, tuple)):
        pairs = [(str(v.get("name", n)) if isinstance(v, Mapping) else str(n), v) for n, v in enumerate(value)]
    else:
        yield place, str(value)
        return
    for name, inner in pairs:
        yield from _flat(inner, f"{place}.{name}" if place else name)
