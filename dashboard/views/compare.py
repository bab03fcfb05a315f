"""The compare page: which policy, how sure, and what it does in one session, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard import charts, data, state, widgets
from dashboard.data import StoredRun
from evals.board import LEVELS, PAIR_COLUMNS, SIGNS_EXPLAINED, BoardRow, Cell, explained
from evals.leaderboard import HEADLINES
from evals.markup import Html, escaped, joined, tag
from evals.palette import colour_of
from evals.series import LANE_COLUMNS
from replay.policy.load import RECORDED

TITLES = {h.metric: h.title for h in HEADLINES}
CHART = "token_curve"
SCALES = ("Linear scale", "Square-root scale")


def page() -> None:
    """The whole page."""
    st.title("Compare policies", anchor=False)
    left, right = st.columns([3, 8], vertical_alignment="bottom")
    with left:
        run = widgets.choose_run()
    found = data.overview(run)
    with right:
        widgets.put(widgets.chips(found["facts"]))
    _advice(found)
    _leaderboard(found)
    _against_baseline(run, found)
    _session(run, found)


def _advice(found: Mapping[str, Any]) -> None:
    policy, title, why = found["advice"]
    widgets.callout("advice" if policy else "note", title, why)
    if found["warnings"]:
        count = len(found["warnings"])
        with st.expander(f"{count:,} warning{'s' if count > 1 else ''} about this run"):
            widgets.bullets(found["warnings"])


def _leaderboard(found: Mapping[str, Any]) -> None:
    widgets.heading("Leaderboard", explained())
    rows: list[BoardRow] = found["board"]
    columns = [joined("policy"), *(tag("span", TITLES[c.metric], " ", widgets.badge(c.level)) for c in rows[0].cells)]
    names = [r.policy for r in rows]
    body = [[_policy(r, names), *map(_cell, r.cells)] for r in rows]
    widgets.put(widgets.table(columns, body))
    used = sorted({c.level for r in rows for c in r.cells})
    widgets.put(tag("p", *(joined(widgets.badge(n), f" {LEVELS[n]}. ") for n in used),
                    SIGNS_EXPLAINED, class_="rw-lead"))


def _policy(row: BoardRow, names: Sequence[str]) -> Html:
    note = [tag("div", "Pareto", class_="rw-small")] if row.pareto else []
    return joined(widgets.policy_name(row.policy, colour_of(row.policy, names)), *note)


def _cell(cell: Cell) -> Html:
    lines = [tag("div", cell.interval, class_="rw-small")] if cell.interval else []
    sign = " ★" if cell.leads else " ≈" if cell.not_worse else ""
    rank = [tag("div", cell.rank + sign, class_="rw-small")] if cell.rank else []
    value = tag("div", cell.value, class_="rw-value rw-leads" if cell.leads else "rw-value")
    return tag("div", value, *lines, *rank, title=f"{TITLES[cell.metric]}: n = {cell.sessions} sessions")


def _against_baseline(run: StoredRun, found: Mapping[str, Any]) -> None:
    widgets.heading(f"Against {found['baseline']}", "Mean difference per session to the baseline, on the same "
                    "sessions, with its 95 % interval. One that crosses the dashed line shows no difference.")
    measured = [h.metric for h in HEADLINES if any(c.metric == h.metric for c in found["board"][0].cells)]
    metric = widgets.one("Measurement", "metric", measured, "mean_view_tokens", lambda m: TITLES[m])
    pairs = data.pairs(run, metric)
    if not pairs:
        widgets.callout("note", "Nothing to pair", "This run has no other policy, or no session with this measurement.")
        return
    left, right = st.columns([5, 6], vertical_alignment="center")
    with left:
        st.altair_chart(charts.forest(pairs, f"difference: {TITLES[metric]}", found["policies"]), width="stretch")
    with right:
        columns = [joined("policy"), *map(escaped, PAIR_COLUMNS)]
        colours = {p.policy: colour_of(p.policy, found["policies"]) for p in pairs}
        widgets.put(widgets.table(columns, [[widgets.policy_name(p.policy, colours[p.policy]), *map(escaped, p.words)]
                                            for p in pairs]))


def _session(run: StoredRun, found: Mapping[str, Any]) -> None:
    widgets.heading("One session, step by step", _CURVE)
    sessions = found["sessions"]
    lanes = [RECORDED.name, *found["policies"]]
    left, right = st.columns([3, 5])
    with left:
        session = widgets.one("Session", "session", list(sessions), next(iter(sessions)),
                              lambda s: widgets.session_title(s, sessions[s]))
    with right:
        drawn = widgets.many("Policies drawn", "p", lanes, lanes[:6])
    if not sessions[session]["steps"]:
        widgets.callout("note", "No model call", "This session has no step, so nothing can be drawn. Choose another.")
        return
    failed = data.failures(run, session)
    drawn = [p for p in drawn if p not in failed]
    for policy, error in failed.items():
        widgets.callout("problem", f"{policy} failed on this session", error)
    if not drawn:
        widgets.callout("note", "Nothing to draw", "Choose at least one policy that did not fail.")
        return
    curve = data.curve(run, session, tuple(drawn))
    marks = data.marks(run, session, tuple(drawn))
    spread = widgets.switch("Scale of tokens", "scale", SCALES) == SCALES[1]
    st.altair_chart(charts.token_curve(curve, marks, drawn, lanes, found["usable"], spread), width="stretch", key=CHART,
                    on_select=lambda: widgets.picked(CHART), selection_mode="pick")
    _open_step(session)
    _numbers(data.lane_words(run, session), drawn, lanes)


_CURVE = ("The tokens of the view that each policy would send at every model call. Thin pale lines are views behind a "
          "run's end, which would never have been sent. Dotted lines are a policy's threshold; it compares its own "
          "estimate with it, which may differ from the tokens drawn. Of many marks of one kind an "
          "even choice is drawn. Click the chart to pick a step.")


def _open_step(session: str) -> None:
    step = st.query_params.get("step", "")
    label = f"Open step {step} in the step browser" if step.isdigit() else "Open this session in the step browser"
    st.page_link("views/step.py", label=label, query_params=state.link(session=session))


def _numbers(words: Mapping[str, Sequence[str]], drawn: Sequence[str], lanes: Sequence[str]) -> None:
    rows = []
    for policy in (p for p in drawn if p in words):
        cells = [*words[policy], *[""] * (len(LANE_COLUMNS) - len(words[policy]))]
        rows.append([widgets.policy_name(policy, colour_of(policy, lanes)), *map(escaped, cells)])
    widgets.put(widgets.table([joined("policy"), *map(escaped, LANE_COLUMNS)], rows))


if __name__ == "__main__":
    page()
