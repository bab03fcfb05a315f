"""A run of agents that really worked, on a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from replay.commands.output import console, literal, number, table

SOLVED_COLUMNS = ("arm", "solved", "a single trial", "95 %", "every trial", "difference", "95 %", "detectable",
                  "not judged")
COST_COLUMNS = ("arm", "cost", "per solved", "95 %", "steps", "of both solved", "endings")


def print_live(summary: Mapping[str, Any]) -> None:
    """Outcomes of every arm against the control, costs, warnings and what follows."""
    screen, live = console(), summary["live"]
    title = (f"{len(summary['sessions'])} tasks × {live['trials_each']} trials, {live['model']}, window "
             f"{summary['window']:,} tokens; control: {live['control']}")
    control = live["control"]
    screen.print(table(SOLVED_COLUMNS, [solved_row(a, a["arm"] == control) for a in live["arms"]], title))
    costs = [cost_row(a, a["arm"] == control) for a in live["arms"]]
    screen.print(table(COST_COLUMNS, costs, "Cost in dollars, and length against the control"))
    screen.print(literal("L3: agents that really ran. Means over tasks, intervals over tasks; detectable: the smallest "
                         "true difference that so many tasks show four times out of five. Commands were "
                         f"{live['containment']}."))
    for warning in summary["warnings"]:
        screen.print(literal(f"warning: {warning}"), style="yellow")
    advice = summary["recommendation"]
    screen.print(literal(f"\nrecommendation: {advice['policy'] or 'none'} – {advice['why']}"), style="bold")
    if summary["run"]:
        screen.print(literal(f"run stored in {summary['run']}; open it with: rewindow dashboard {summary['run']}"))


def solved_row(arm: Mapping[str, Any], is_control: bool) -> tuple[str, ...]:
    """How often an arm solves; the control has no difference to itself."""
    apart = ("", "", "") if is_control else (_signed(arm["difference"]), _span(arm, "low", "high", _signed),
                                             _share(arm["mde"]))
    return (arm["arm"], f"{arm['solved']} of {arm['trials']}", _share(arm["pass_at_1"]),
            _span(arm, "rate_low", "rate_high", _share), _share(arm["pass_hat_k"]), *apart, str(arm["infra"]))


def cost_row(arm: Mapping[str, Any], is_control: bool) -> tuple[str, ...]:
    """What an arm costs and how long its runs are."""
    endings = ", ".join(f"{n} {why}" for why, n in arm["endings"].items())
    return (arm["arm"], _money(arm["cost_usd"]), _money(arm["cost_per_solved"]),
            _span(arm, "cost_per_solved_low", "cost_per_solved_high", _money),
            *(("", "") if is_control else (_times(arm, "elongation"), _times(arm, "elongation_solved"))), endings)


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _signed(value: float | None) -> str:
    return "–" if value is None else f"{value:+.0%}"


def _money(value: float | None) -> str:
    return number(value, 4)


def _span(arm: Mapping[str, Any], low: str, high: str, words: Any) -> str:
    return "–" if arm[low] is None or arm[high] is None else f"{words(arm[low])} … {words(arm[high])}"


def _times(arm: Mapping[str, Any], name: str) -> str:
    """A ratio of steps with its interval."""
    if arm[name] is None:
        return "–"
    span = _span(arm, f"{name}_low", f"{name}_high", lambda v: number(v, 2))
    return f"×{number(arm[name], 2)}" + (f" ({span})" if span != "–" else "")
