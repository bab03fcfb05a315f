"""V1: do real compactions make agents read again just what the metrics call lost?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from evals.validity_events import HORIZONS, TAILS, Unit
from evals.validity_stats import Counts, auc_error, mantel_haenszel, pooled_auc

EVENTS_NEEDED = 60
"""Full compactions below which the experiment has no power for a verdict."""
BINS = ((0, 5), (5, 20), (20, 50), (50, 1 << 60))
"""Steps `[first, stop)` since a file was last read or changed."""
RESAMPLES = 500
_SHUFFLES = 200
Score = Callable[[Unit], float]
Hit = Callable[[Unit], bool]
SCORES: dict[str, Score] = {
    "lost_share": lambda u: u.score, "recency": lambda u: -u.age, "frequency": lambda u: u.uses,
    "edited_recently": lambda u: -u.edited_age if u.edited_age is not None else -float("inf")}


def reread_report(units: Sequence[Unit], seed: int = 0) -> dict[str, Any]:
    """Every count of V1; `stopped` says why there is no verdict."""
    real = [u for u in units if not u.placebo]
    events = len({(u.session, u.event) for u in real})
    analyses = {f"within_{steps}_steps{suffix}": _analysis(units, _hit(place, forced), seed)
                for place, steps in enumerate(HORIZONS) for forced, suffix in ((True, ""), (False, "_unforced"))}
    main = f"within_{HORIZONS[-1]}_steps"
    return {"events": events, "sessions": len({u.session for u in real}), "events_needed": EVENTS_NEEDED,
            "units": len(real), "lost": sum(u.lost for u in real), "placebo_units": len(units) - len(real),
            "placebo_events": len({(u.session, u.event) for u in units if u.placebo}), "analyses": analyses,
            "main": main, "tails": _tails(real), **_verdict(events, analyses[main])}


def _hit(place: int, forced: bool) -> Hit:
    return (lambda u: u.again[place]) if forced else (lambda u: u.again_unforced[place])


def _analysis(units: Sequence[Unit], hit: Hit, seed: int) -> dict[str, Any]:
    real = [u for u in units if not u.placebo]
    drawn = _drawn(units, hit, seed)
    positive = sum(map(hit, real))
    negative = len(real) - positive
    return {"read_again": positive, "not_read_again": negative,
            "power_error": auc_error(0.65, positive, negative) if positive and negative else None,
            "auc": {name: _pooled(real, score, hit)._asdict() for name, score in SCORES.items()},
            "auc_gain_over_recency": _interval(_gain(real, hit), [d[0] for d in drawn]),
            "auc_shuffled": _shuffled(real, hit, seed),
            "odds_real": mantel_haenszel(_tables(real, hit)), "bins_real": _shown(real, hit),
            "odds_placebo": mantel_haenszel(_tables([u for u in units if u.placebo], hit)),
            "bins_placebo": _shown([u for u in units if u.placebo], hit),
            "odds_ratio": _interval(_odds_ratio(units, hit), [d[1] for d in drawn]),
            "lost_odds": _interval(_lost_odds(units, hit), [d[2] for d in drawn])}


def _pooled(units: Sequence[Unit], score: Score, hit: Hit) -> Any:
    return pooled_auc(([score(u) for u in part], [hit(u) for u in part]) for part in _binned(units))


def _binned(units: Sequence[Unit]) -> list[list[Unit]]:
    return [[u for u in units if first <= u.age < stop] for first, stop in BINS]


def _tables(units: Sequence[Unit], hit: Hit) -> list[Counts]:
    found = []
    for part in _binned(units):
        counts = Counter((u.lost, hit(u)) for u in part)
        found.append(Counts(counts[True, True], counts[True, False], counts[False, True], counts[False, False]))
    return found


def _shown(units: Sequence[Unit], hit: Hit) -> list[dict[str, Any]]:
    return [{"age_from": first, **table._asdict()} for (first, _), table in zip(BINS, _tables(units, hit), strict=True)]


def _gain(units: Sequence[Unit], hit: Hit) -> float | None:
    ours, plain = (_pooled(units, SCORES[name], hit).value for name in ("lost_share", "recency"))
    return None if ours is None or plain is None else ours - plain


def odds_ratio(real: Iterable[Counts], placebo: Iterable[Counts]) -> float | None:
    """The odds ratio of real events over that of placebos; None where either is not defined or the latter is 0."""
    top, bottom = mantel_haenszel(real), mantel_haenszel(placebo)
    return None if top is None or not bottom else top / bottom


def _odds_ratio(units: Sequence[Unit], hit: Hit) -> float | None:
    return odds_ratio(_tables([u for u in units if not u.placebo], hit), _tables([u for u in units if u.placebo], hit))


def _lost_odds(units: Sequence[Unit], hit: Hit) -> float | None:
    """Odds that a lost file is read again after a compaction, over those where it only would have been lost."""
    tables = []
    for part in _binned([u for u in units if u.lost]):
        counts = Counter((u.placebo, hit(u)) for u in part)
        tables.append(Counts(counts[False, True], counts[False, False], counts[True, True], counts[True, False]))
    return mantel_haenszel(tables)


def _drawn(units: Sequence[Unit], hit: Hit, seed: int) -> list[tuple[float | None, float | None, float | None]]:
    """The gain and both odds ratios of cohorts drawn from the sessions."""
    sessions: dict[str, list[Unit]] = {}
    for unit in units:
        sessions.setdefault(unit.session, []).append(unit)
    groups, random = list(sessions.values()), np.random.default_rng(seed)
    found = []
    for _ in range(RESAMPLES if len(groups) > 1 else 0):
        drawn = [u for n in random.integers(0, len(groups), len(groups)) for u in groups[n]]
        found.append((_gain([u for u in drawn if not u.placebo], hit), _odds_ratio(drawn, hit),
                      _lost_odds(drawn, hit)))
    return found


def _interval(value: float | None, drawn: Sequence[float | None]) -> dict[str, Any]:
    """The value with its 95 % interval over drawn cohorts; cohorts that cannot tell are counted."""
    known = [d for d in drawn if d is not None]
    low, high = np.quantile(known, (0.025, 0.975)).tolist() if len(known) >= len(drawn) / 2 and known else (None, None)
    return {"value": value, "low": low, "high": high, "resamples": len(drawn), "undefined": len(drawn) - len(known)}


def _shuffled(units: Sequence[Unit], hit: Hit, seed: int) -> float | None:
    """Negative control: the mean AUC with the scores dealt out again within each bin; one half when nothing leaks."""
    random, values = np.random.default_rng(seed), []
    parts = [([u.score for u in part], [hit(u) for u in part]) for part in _binned(units)]
    for _ in range(_SHUFFLES):
        values.append(pooled_auc((random.permutation(scores).tolist(), hits) for scores, hits in parts).value)
    known = [v for v in values if v is not None]
    return float(np.mean(known)) if known else None


def _tails(units: Sequence[Unit]) -> list[dict[str, Any]]:
    """For tails of so many kept messages: how many files they let go of, and how many of each kind were read again."""
    rows = []
    for tail in TAILS:
        lost, kept = ([u for u in units if (u.distance > tail) == gone] for gone in (True, False))
        rows.append({"messages": tail, "lost": len(lost), "lost_read_again": sum(u.again[-1] for u in lost),
                     "kept": len(kept), "kept_read_again": sum(u.again[-1] for u in kept)})
    return rows


def _verdict(events: int, main: dict[str, Any]) -> dict[str, Any]:
    if events < EVENTS_NEEDED:
        return {"passes": None, "stopped": f"{events} compactions; a verdict needs about {EVENTS_NEEDED}"}
    gain, odds = main["auc_gain_over_recency"], main["odds_ratio"]
    return {"passes": bool(gain["value"] is not None and gain["value"] >= 0.05 and (gain["low"] or 0) > 0
                           and (odds["low"] or 0) > 1), "stopped": None}
