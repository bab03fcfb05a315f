"""A stored session step by step: its curves, marks, changes and per-policy numbers, ready to draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evals.commands.leaderboard import cell
from evals.store import load_table
from replay.log import CLASSES
from replay.policy.load import RECORDED

MOST_POINTS = 600
"""Points of a curve that are drawn; longer ones keep the smallest and largest step of every stretch."""
MOST_MARKS = 60
"""Marks of one kind and policy that are drawn; of more, an even choice."""

_EVENT_COLUMNS = ("policy", "kind", "step", "stage", "reason", "reactive", "estimated_tokens", "threshold",
                  "tokens_before", "tokens_after", "gain", "summariser", "checkpoint", "futile", "attempts")
STEP_COLUMNS = ("policy", "step", "tokens", "how", "status", "estimated_tokens", "threshold", "events", "fingerprint",
                "cost_units", "cache_read_tokens", "needs_lost", *(f"{name}_tokens" for name in CLASSES))
"""What is read of a session's steps."""
_CURVE_COLUMNS = ["policy", "step", "tokens", "how", "status", "estimated_tokens", "threshold"]
_MARKS: Mapping[tuple[str, bool], str] = {
    ("full", False): "planned compaction", ("full", True): "reactive compaction",
    ("micro", False): "tool results blanked", ("micro", True): "tool results blanked",
    ("clear", False): "cleared by the person", ("end", True): "run ends: request stays refused",
}
RECORDED_MARK = "recorded compaction"
MARKS = (*dict.fromkeys(_MARKS.values()), RECORDED_MARK)
"""Every kind of mark, in the order of a legend."""


def session_steps(run: Path, session: str, policies: Sequence[str] | None = None) -> Any:
    """The steps of a session under lanes of the run (None: all), as a DataFrame."""
    chosen = {} if policies is None else {"policy": policies}
    return load_table(run, "steps", STEP_COLUMNS, session=session, **chosen)


def session_events(run: Path, session: str, policies: Sequence[str] | None = None) -> Any:
    """The events of a session, without the lists of message indices."""
    chosen = {} if policies is None else {"policy": policies}
    return load_table(run, "events", _EVENT_COLUMNS, session=session, **chosen)


def change_counts(run: Path, session: str) -> dict[str, int]:
    """How often each lane of a session compacts, blanks results or is cleared; lanes that never do are left out."""
    kinds = load_table(run, "events", ("policy", "kind"), session=session)
    counts = kinds[kinds["kind"].isin(("full", "micro", "clear"))].groupby("policy").size()
    return {str(policy): int(count) for policy, count in counts.items()}


def curve(steps: Any, policies: Sequence[str], most: int = MOST_POINTS) -> Any:
    """Tokens of the view at each step of the policies, thinned to about `most` points each.

    A column `sent` tells views that were sent from those behind a run's end; extremes always survive.
    """
    kept = [i for p in policies for i in _kept(steps[steps["policy"] == p], most)]
    made = steps.loc[kept, _CURVE_COLUMNS].reset_index(drop=True)
    return made.assign(sent=made["status"] != "unreached")


def class_curve(steps: Any, policies: Sequence[str], most: int = MOST_POINTS // 2) -> Any:
    """Counted tokens of each class in the views of the policies' steps, thinned: one row a policy, step and class.

    `counted` sizes are of what the transcript holds; `tokens` is the step's best figure, which also has what no
    transcript holds, such as schemas of tools.
    """
    kept = steps.loc[[i for p in policies for i in _kept(steps[steps["policy"] == p], most)]]
    columns = {f"{name}_tokens": name for name in CLASSES}
    rows = kept[["policy", "step", "tokens", "status", *columns]].rename(columns=columns)
    tall = rows.melt(id_vars=["policy", "step", "tokens", "status"], var_name="class", value_name="counted")
    present = tall.groupby("class")["counted"].transform("max") > 0
    order = tall["class"].map({name: place for place, name in enumerate(CLASSES)})
    return tall.assign(order=order)[present].reset_index(drop=True)


def cost_curve(steps: Any, policies: Sequence[str], most: int = MOST_POINTS) -> Any:
    """Input cost of every step, the sum up to it, and the share of its view that a cache would have served (L1).

    Costs in uncached-token equivalents; thinned to about `most` points each, the sums are those of all steps.
    """
    chosen = steps[steps["policy"].isin(policies)].sort_values(["policy", "step"])
    made = chosen.assign(total_units=chosen.groupby("policy")["cost_units"].cumsum(),
                         hit=(chosen["cache_read_tokens"] / chosen["tokens"]).where(chosen["tokens"] > 0))
    kept = [i for p in policies for i in _kept(made[made["policy"] == p], most)]
    shown = ["policy", "step", "tokens", "cost_units", "total_units", "hit", "status"]
    return made.loc[kept, shown].reset_index(drop=True)


def lost_needs(steps: Any, policies: Sequence[str], most: int = MOST_MARKS) -> Any:
    """Steps whose action used something that the view no longer held, with how many; the worst of many are kept.

    Empty where the run did not measure losses.
    """
    if "needs_lost" not in steps or steps["needs_lost"].isna().all():
        return steps.iloc[:0][["policy", "step", "tokens"]].assign(needs_lost=0)
    chosen = steps[steps["policy"].isin(policies) & (steps["needs_lost"] > 0)]
    worst = chosen.sort_values("needs_lost", ascending=False).groupby("policy").head(most)
    return worst.sort_values(["policy", "step"])[["policy", "step", "tokens", "needs_lost"]].reset_index(drop=True)


def _kept(lane: Any, most: int) -> list[int]:
    """Row labels of a lane that are drawn, in order."""
    if len(lane) <= most:
        return list(lane.index)
    stretch = lane["step"] * (most // 2) // (int(lane["step"].max()) + 1)
    tokens = lane.groupby(stretch)["tokens"]
    return sorted({*tokens.idxmin(), *tokens.idxmax(), lane.index[0], lane.index[-1]})


def marks(steps: Any, events: Any, policies: Sequence[str]) -> Any:
    """Compactions, blanked results, clears and run ends of the policies, each at its view's tokens.

    Of more than `MOST_MARKS` of one kind an even choice is kept; `of` counts all of them.
    """
    kinds = [_MARKS.get((k, bool(r))) for k, r in zip(events["kind"], events["reactive"], strict=True)]
    found = events.assign(mark=kinds)
    found.loc[(found["policy"] == RECORDED.name) & (found["kind"] == "full"), "mark"] = RECORDED_MARK
    found = found[found["mark"].notna() & found["policy"].isin(policies)]
    found = found.merge(steps[["policy", "step", "tokens"]], on=["policy", "step"], how="left")
    groups = found.groupby(["policy", "mark"])
    found = found.assign(of=groups["step"].transform("size"), rank=groups.cumcount())
    kept = found[found["rank"] % (found["of"] // MOST_MARKS + 1) == 0]
    return kept.drop(columns=["rank", "kind"]).reset_index(drop=True)


def first_difference(steps: Any, ours: str, theirs: str) -> int | None:
    """The first step whose views differ under two policies; None where no step does."""
    a, b = _lanes(steps, ours, theirs)
    differing = a["step"].to_numpy()[a["fingerprint"].to_numpy() != b["fingerprint"].to_numpy()]
    return int(differing[0]) if len(differing) else None


def _lanes(steps: Any, *policies: str) -> list[Any]:
    return [steps[steps["policy"] == p].sort_values("step") for p in policies]


def changes(steps: Any, ours: str, theirs: str) -> list[int]:
    """Steps where something happens in either lane, or where their views start or stop being the same."""
    a, b = _lanes(steps, ours, theirs)
    numbers, same = a["step"].to_numpy(), a["fingerprint"].to_numpy() == b["fingerprint"].to_numpy()
    happened = (a["events"].to_numpy() > 0) | (b["events"].to_numpy() > 0)
    happened[1:] |= same[1:] != same[:-1]
    happened[:1] |= ~same[:1]
    return [int(n) for n in numbers[happened]]


LANE_COLUMNS = ("lane", "mean view", "peak view", "steps over the window", "full compactions", "futile",
                "run ends at step", "first difference from the record", "identified share")
"""Headings of `lane_words`."""


def lane_words(run: Path, session: str) -> dict[str, tuple[str, ...]]:
    """For each policy of a session's trials its numbers in words; a failed trial says why."""
    rows = load_table(run, "trials", None, session=session).to_dict("records")
    return {r["policy"]: _lane_words(r) if r["ok"] else (r["lane"], f"failed: {r['error']}") for r in rows}


def _lane_words(row: Mapping[str, Any]) -> tuple[str, ...]:
    full = _value(row, "compactions_planned"), _value(row, "compactions_reactive")
    compactions = "–" if None in full else f"{cell('', full[0])} planned, {cell('', full[1])} reactive"
    return (row["lane"], cell("", _value(row, "mean_view_tokens")), cell("", _value(row, "peak_view_tokens")),
            f"{cell('', _value(row, 'overflow_steps'))} of {row['steps']:,}", compactions,
            cell("", _value(row, "compactions_futile")), cell("", _value(row, "ended")),
            cell("", _value(row, "first_divergence")), cell("identified_share", _value(row, "identified_share")))


def _value(row: Mapping[str, Any], name: str) -> float | None:
    value = row.get(name)
    return None if value is None or value != value else float(value)


def failures(run: Path, session: str) -> dict[str, str]:
    """The policies whose trial of a session failed, with the reason."""
    rows = load_table(run, "trials", ("policy", "ok", "error"), session=session).to_dict("records")
    return {r["policy"]: str(r["error"]) for r in rows if not r["ok"]}
