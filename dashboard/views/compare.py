"""The compare page: which policy, how sure, on which sessions, and the way on to a session or a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from dashboard import charts, charts_compare, data, leaders, state, widgets
from dashboard.data import StoredRun
from evals import scatter, selection
from evals.board import PAIR_COLUMNS, explained
from evals.leaderboard import TITLED
from evals.markup import escaped, joined
from evals.palette import colour_of
from evals.selection import WAYS, Selection
from replay.policy.load import RECORDED

TITLES = {h.metric: h.title for h in TITLED}
CHART = "scatter"


def page() -> None:
    """The whole page."""
    widgets.follow()
    st.title("Compare policies", anchor=False)
    left, right = st.columns([3, 8], vertical_alignment="bottom")
    with left:
        run = widgets.choose_run()
    found = data.overview(run)
    with right:
        widgets.put(widgets.chips(found["facts"]))
    asked = _filters(found["by"])
    if not asked.is_all:
        if not selection.chosen(found["by"], asked):
            widgets.callout("note", "No session fits", "Take one of the filters away.")
            return
        if not widgets.until(lambda seconds: data.part(run, asked, seconds) is not None, "Comparing these sessions …"):
            return
        found = found | (data.part(run, asked, 0.1) or {})
    _advice(found)
    _leaderboard(found)
    _tradeoff(found)
    _against_baseline(run, found)


def _filters(by: Mapping[str, Mapping[str, str]]) -> Selection:
    """Choices of sessions by harness, length and outcome; what has one value is nothing to choose by."""
    chosen: dict[str, tuple[str, ...]] = {}
    for column, way in zip(st.columns(len(WAYS)), WAYS, strict=True):
        counts = selection.options(by, way)
        with column:
            if len(counts) > 1:
                chosen[way] = tuple(widgets.many(f"Sessions by {way}", way, sorted(counts), [],
                                                 partial(_counted, counts)))
    return Selection(**chosen)


def _counted(counts: Mapping[str, int], option: str) -> str:
    return f"{option} ({counts.get(option, 0):,})"


def _advice(found: Mapping[str, Any]) -> None:
    policy, title, why = found["advice"]
    if "count" in found:
        title = f"{title} (on {found['count']:,} chosen sessions)"
    widgets.callout("advice" if policy else "note", title, why)
    if found["warnings"]:
        count = len(found["warnings"])
        with st.expander(f"{count:,} warning{'s' if count > 1 else ''} about this run"):
            widgets.bullets(found["warnings"])


def _leaderboard(found: Mapping[str, Any]) -> None:
    widgets.heading("Leaderboard", explained(found.get("live", False)))
    all_of = widgets.switch("Measurements", "cols", leaders.SHOWN) == leaders.SHOWN[1]
    widgets.put(*leaders.board(found["board"], found["policies"], all_of))
    widgets.picks("Open a policy in the longest session", "open_policy", found["policies"], _go_on)


def _go_on(policy: str) -> None:
    """Show a policy beside the record in a session."""
    widgets.go("session", p=[RECORDED.name, policy], a=policy)


def _tradeoff(found: Mapping[str, Any]) -> None:
    widgets.heading("Cost against what is kept", "Means per session with their 95 % intervals. The dashed line joins "
                    "the policies that no other beats on both; intervals may run beyond the chart. Click a point to "
                    "open the policy in a session.")
    across, up = scatter.measured(found["rows"], scatter.COSTS), scatter.measured(found["rows"], scatter.KEPT)
    if not across or not up:
        widgets.callout("note", "What is kept was not measured", "Compare again with `--losses` to see how much of "
                        "what the agent used each policy still shows.")
        return
    left, right, _ = st.columns([3, 3, 4])
    with left:
        x = widgets.one("Across", "x", across, across[0], lambda m: TITLES[m])
    with right:
        y = widgets.one("Upwards", "y", up, up[0], lambda m: TITLES[m])
    points = scatter.points(found["rows"], x, y)
    st.altair_chart(charts_compare.scatter(points, (TITLES[x], TITLES[y]), found["policies"]), width="stretch",
                    key=CHART, on_select=_clicked, selection_mode="pick")


def _clicked() -> None:
    policy = widgets.picked(CHART, "policy")
    if policy is not None:
        _go_on(policy)


def _against_baseline(run: StoredRun, found: Mapping[str, Any]) -> None:
    widgets.heading(f"Against {found['baseline']}", "Mean difference per session to the baseline, on the same "
                    "sessions, with its 95 % interval. One that crosses the dashed line shows no difference.")
    measured = [h.metric for h in TITLED if any(c.metric == h.metric for c in found["board"][0].cells)]
    first = "mean_view_tokens" if "mean_view_tokens" in measured else measured[0]
    metric = widgets.one("Measurement", "metric", measured, first, lambda m: TITLES[m])
    pairs = found["pairs"].get(metric, []) if "pairs" in found else data.pairs(run, metric)
    if not pairs:
        widgets.callout("note", "Nothing to pair", "This run has no other policy, or no session with this measurement.")
        return
    left, right = st.columns([5, 6], vertical_alignment="center")
    with left:
        st.altair_chart(charts.forest(pairs, f"difference: {TITLES[metric]}", found["policies"]), width="stretch")
    with right:
        widgets.put(_pairs(pairs, found["policies"]))
    st.page_link("views/session.py", label="Look into one session, step by step", query_params=state.link())


def _pairs(pairs: Sequence[Any], policies: Sequence[str]) -> Any:
    columns = [joined("policy"), *map(escaped, PAIR_COLUMNS)]
    return widgets.table(columns, [[widgets.policy_name(p.policy, colour_of(p.policy, policies)),
                                    *map(escaped, p.words)] for p in pairs])


if __name__ == "__main__":
    page()
