"""The session page: the context of every step under the chosen policies, what it is made of, what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from dashboard import charts, charts_session, data, state, widgets
from dashboard.data import StoredRun
from evals.markup import escaped, joined, tag
from evals.palette import CLASS_COLOURS, colour_of
from evals.series import LANE_COLUMNS
from replay.policy.load import RECORDED

CHART = "token_curve"
SCALES = ("Linear scale", "Square-root scale")
MOST_STACKS = 6
"""Policies whose views are drawn by class."""
_CURVE = ("The tokens of the view that each policy would send at every model call. Thin pale lines are views behind a "
          "run's end, which would never have been sent. Dotted lines are a policy's threshold; it compares its own "
          "estimate with it, which may differ from the tokens drawn. Of many marks of one kind an even choice is "
          "drawn. Click a chart to open that step.")
_STACK = ("Counted tokens of each view by class; the grey line is the best figure for the whole view, which also has "
          "what no transcript holds, such as tool schemas. Dotted: the policy's threshold; long dashes: the usable "
          "window. A triangle at the bottom is a step whose action used something that this view no longer held.")
_COST = ("Input cost under the run's cache and price model (L1), in tokens at the price of one that no cache served, "
         "and the share of each view that the cache would have served: each drop is a broken prefix, paid anew.")


def page() -> None:
    """The whole page."""
    widgets.follow()
    st.title("Session", anchor=False)
    columns = st.columns([3, 4, 6])
    with columns[0]:
        run = widgets.choose_run()
    found = data.overview(run)
    lanes = [RECORDED.name, *found["policies"]]
    with columns[1]:
        session = widgets.choose_session(found["sessions"])
    with columns[2]:
        drawn = widgets.many("Policies drawn", "p", lanes, lanes[:4])
    if not found["sessions"][session]["steps"]:
        widgets.callout("note", "No model call", "This session has no step, so nothing can be drawn. Choose another.")
        return
    drawn = _sound(run, session, drawn)
    if drawn:
        _charts(run, session, drawn, lanes, found["usable"])


def _sound(run: StoredRun, session: str, drawn: Sequence[str]) -> list[str]:
    """Those of the policies that did not fail on this session."""
    failed = data.failures(run, session)
    for policy in (p for p in drawn if p in failed):
        widgets.callout("problem", f"{policy} failed on this session", failed[policy])
    kept = [p for p in drawn if p not in failed]
    if not kept:
        widgets.callout("note", "Nothing to draw", "Choose at least one policy that did not fail.")
    return kept


def _charts(run: StoredRun, session: str, drawn: Sequence[str], lanes: Sequence[str], usable: int) -> None:
    chosen = tuple(drawn)
    marks = data.marks(run, session, chosen)
    widgets.heading("Tokens at every step", _CURVE)
    spread = widgets.switch("Scale of tokens", "scale", SCALES) == SCALES[1]
    curve = data.curve(run, session, chosen)
    st.altair_chart(charts.token_curve(curve, marks, drawn, lanes, usable, spread, 380), width="stretch", key=CHART,
                    on_select=lambda: widgets.open_step(CHART), selection_mode="pick")
    _links()
    _numbers(data.lane_words(run, session), drawn, lanes)
    widgets.heading("What the views are made of", _STACK)
    _stacks(run, session, curve, marks, usable, chosen, lanes)
    widgets.heading("Cost and cache", _COST)
    _costs(data.cost_curve(run, session, chosen), drawn, lanes)


def _links() -> None:
    step = st.query_params.get("step", "")
    label = f"Open step {step} in the step browser" if step.isdigit() else "Open this session in the step browser"
    left, right, _ = st.columns([3, 3, 4])
    with left:
        st.page_link("views/step.py", label=label, query_params=state.link())
    with right:
        st.page_link("views/compactions.py", label="Open its compactions", query_params=state.link())


def _stacks(run: StoredRun, session: str, curve: Any, marks: Any, usable: int, drawn: tuple[str, ...],
            lanes: Sequence[str]) -> None:
    classes, lost = data.class_curve(run, session, drawn), data.lost_needs(run, session, drawn)
    present = set(classes["class"])
    widgets.put(tag("div", *(tag("span", tag("span", class_="rw-swatch", style=f"background:{colour}"), name)
                             for name, colour in CLASS_COLOURS.items() if name in present), class_="rw-classes"))
    top = max(int(curve["tokens"].max()), 1)
    for policy in drawn[:MOST_STACKS]:
        widgets.put(tag("div", widgets.policy_name(policy, colour_of(policy, lanes)), class_="rw-titles"))
        made, views, events, losses = (t[t["policy"] == policy] for t in (classes, curve, marks, lost))
        key = f"stack_{lanes.index(policy)}"
        chart = charts_session.stack(made, views, events, losses, usable, top)
        st.altair_chart(chart, width="stretch", key=key, selection_mode="pick",
                        on_select=partial(widgets.open_step, key, a=policy))
    if len(drawn) > MOST_STACKS:
        widgets.put(tag("p", f"The first {MOST_STACKS} of {len(drawn):,} policies; draw fewer to see the others.",
                        class_="rw-lead"))


def _costs(curve: Any, drawn: Sequence[str], lanes: Sequence[str]) -> None:
    made = (("cost_curve", charts_session.cost), ("cache_curve", charts_session.cache))
    for column, (key, draw) in zip(st.columns(2), made, strict=True):
        with column:
            st.altair_chart(draw(curve, drawn, lanes), width="stretch", key=key, selection_mode="pick",
                            on_select=partial(widgets.open_step, key))


def _numbers(words: Mapping[str, Sequence[str]], drawn: Sequence[str], lanes: Sequence[str]) -> None:
    rows = []
    for policy in (p for p in drawn if p in words):
        cells = [*words[policy], *[""] * (len(LANE_COLUMNS) - len(words[policy]))]
        rows.append([widgets.policy_name(policy, colour_of(policy, lanes)), *map(escaped, cells)])
    widgets.put(widgets.table([joined("policy"), *map(escaped, LANE_COLUMNS)], rows))


if __name__ == "__main__":
    page()
