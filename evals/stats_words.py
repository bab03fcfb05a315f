"""What the statistics of a results table say: the rows of its tables, and sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from replay.commands.output import number

Arm = Mapping[str, Any]
Found = Mapping[str, Any]
RATE_COLUMNS = ("arm", "rows", "missing", "rate", "difference", "95 %", "detectable", "rank")
TEST_COLUMNS = ("arm", "better", "worse", "p", "exact p", "p (Holm)", "no worse by margin")
COST_COLUMNS = ("arm", "mean", "difference", "95 %", "ratio", "95 %", "typical", "per solved", "front")
_ALPHA = 0.05
_METHODS = {"sign-flip": "exact sign flips, as there are few clusters",
            "percentile": "10,000 bootstrap draws, percentile",
            "bca": "10,000 bootstrap draws, bias-corrected and accelerated"}


def rate_row(arm: Arm, found: Found) -> Sequence[str]:
    """An arm's rate and its difference to the baseline, which itself has none."""
    own = (arm["arm"], number(arm["n"]), number(arm["missing"]), rate(arm["rate"], found))
    place = "–" if arm["rank_low"] is None else _range(str(arm["rank_low"]), str(arm["rank_high"]))
    if arm["arm"] == found["baseline"]:
        return (*own, "", "", "", place)
    return (*own, _signed(arm["difference"], found), _ends(_signed(arm["low"], found), _signed(arm["high"], found)),
            _plain(arm["mde"], found), place)


def tests_row(arm: Arm, found: Found) -> Sequence[str]:
    """The units that decide, and the tests."""
    exact = arm["mcnemar_p"] if arm["mcnemar_p"] is not None else arm["permutation_p"]
    safe = {None: "too few", True: "shown", False: "not shown"}[arm["non_inferior"]] if found["shares"] else "–"
    return (arm["arm"], number(arm["gained"]), number(arm["lost"]), chance(arm["p"]), chance(exact),
            chance(arm["p_adjusted"]), safe)


def cost_row(arm: Arm, found: Found) -> Sequence[str]:
    """An arm's costs, and how they compare with the baseline's."""
    front = "–" if arm["pareto"] is None else "yes" if arm["pareto"] else "no"
    last = (money(arm["cost_per_solved"]), front)
    if arm["arm"] == found["baseline"]:
        return (arm["arm"], money(arm["mean_cost"]), *[""] * 5, *last)
    return (arm["arm"], money(arm["mean_cost"]), money(arm["cost_difference"], True),
            _ends(money(arm["cost_low"], True), money(arm["cost_high"], True)), factor(arm["cost_ratio"]),
            _ends(factor(arm["cost_ratio_low"]), factor(arm["cost_ratio_high"])), factor(arm["cost_typical_ratio"]),
            *last)


def sentences(found: Found) -> list[str]:
    """What each arm's numbers mean, how they came about, and the notes of the table."""
    arms = [a for a in found["arms"] if a["arm"] != found["baseline"]]
    return [*(" ".join([*_outcome(a, found), *_cost(a, found["baseline"])]) for a in arms), _method(found),
            *(f"Note: {n}." for n in found["notes"])]


def _outcome(arm: Arm, found: Found) -> list[str]:
    lacking = f", {arm['missing']:,} of them without a row, which counts as a failure" if arm["missing"] else ""
    head = (f"{arm['arm']}: {rate(arm['rate'], found)} of {found['units']:,} units{lacking}; "
            f"{points(arm['difference'], found)} against {found['baseline']} ({arm['gained']:,} units better, "
            f"{arm['lost']:,} worse).")
    return [head, _shown(arm, found), *([_safety(arm, found)] if found["shares"] else [])]


def _shown(arm: Arm, found: Found) -> str:
    """Whether a difference is shown; where none is, what could have been found."""
    if arm["mde"] is None:
        return "One unit or cluster cannot show a difference."
    p = f"p {chance(arm['p_adjusted'])} after Holm"
    if arm["p_adjusted"] <= _ALPHA:
        return f"The difference is shown ({p})."
    return (f"No difference is shown ({p}), which does not make them equal: a study like this finds a true difference "
            f"of {points(arm['mde'], found, False)} four times in five, smaller ones less often.")


def _safety(arm: Arm, found: Found) -> str:
    margin = points(found["margin"], found, False)
    if arm["non_inferior"] is None:
        return f"Too few units or clusters to say whether it is at most {margin} lower."
    if arm["non_inferior"]:
        return f"It is shown to be at most {margin} lower (one-sided 95 %)."
    return f"It is not shown to be at most {margin} lower."


def _cost(arm: Arm, baseline: str) -> list[str]:
    if arm["cost_ratio"] is None:
        return []
    span = _ends(factor(arm["cost_ratio_low"]), factor(arm["cost_ratio_high"]))
    return [f"Its whole bill is {factor(arm['cost_ratio'])} that of {baseline} (95 % {span}), over the "
            f"{arm['cost_n']:,} units with both costs."]


def _method(found: Found) -> str:
    clusters = "" if found["clusters"] == found["units"] else f" in {found['clusters']:,} clusters"
    costs = (" Ratio: the whole bill against the baseline's; typical: the geometric mean of the units' own ratios."
             if any(a["mean_cost"] is not None for a in found["arms"]) else "")
    return (f"Paired over {found['units']:,} units{clusters}; intervals by {_METHODS[found['interval']]}"
            f"{_reached(min(a['coverage'] for a in found['arms']))}. p: of the resampled difference; exact p: of the "
            "units that only one of the two solves; Holm: of the exact p over all arms. Detectable: the smallest true "
            f"difference found four times in five.{costs}")


def _reached(coverage: float) -> str:
    if coverage >= 0.95 - 1e-9:
        return ""
    return f" (so few allow {coverage:.0%}, not 95 %)" if coverage else " (a single one allows none)"


def rate(value: float | None, found: Found) -> str:
    """A rate in per cent, or a mean score as it is."""
    if value is None:
        return "–"
    return f"{value * 100:,.1f} %" if found["shares"] else f"{value:,.4g}"


def points(value: float | None, found: Found, signed: bool = True) -> str:
    """A difference of rates in percentage points, or of mean scores as it is."""
    text = _signed(value, found) if signed else _plain(value, found)
    return f"{text} points" if found["shares"] and value is not None else text


def _signed(value: float | None, found: Found) -> str:
    if value is None:
        return "–"
    return f"{value * 100:+,.1f}" if found["shares"] else f"{value:+,.4g}"


def _plain(value: float | None, found: Found) -> str:
    return _signed(value, found).lstrip("+")


def chance(value: float | None) -> str:
    """A p value."""
    if value is None:
        return "–"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def money(value: float | None, signed: bool = False) -> str:
    """A cost in the table's own currency, with three digits behind the point unless it is large."""
    if value is None:
        return "–"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 3
    return f"{value:+,.{digits}f}" if signed else number(value, digits)


def factor(value: float | None) -> str:
    """A ratio as a factor."""
    return "–" if value is None else f"×{value:.2f}"


def _ends(low: str, high: str) -> str:
    return "–" if "–" in (low, high) else f"{low} … {high}"


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low}–{high}"
