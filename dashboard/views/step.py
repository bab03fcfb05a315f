"""The step browser: the exact views of two policies at one step, side by side, with their differences."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard import alignment, cards, charts, data, evidence, finder, state, widgets
from dashboard.data import StoredRun
from evals.browse import OpenSession
from evals.markup import Html
from evals.palette import colour_of
from replay.policy.load import RECORDED

ROWS = 20  # of the two views on one screen
CHART = "where"
SHOWN = ("Differences", "All messages", evidence.FIND)


def page() -> None:
    """The whole page."""
    st.title("Step browser", anchor=False)
    columns = st.columns([3, 5, 3, 3])
    with columns[0]:
        run = widgets.choose_run()
    found = data.overview(run)
    session, ours, theirs = _choose(found, columns[1:])
    steps = found["sessions"][session]["steps"]
    if not steps:
        widgets.callout("note", "No model call", "This session has no step, so there is no view of it. Choose another.")
        return
    failed = {p: error for p, error in data.failures(run, session).items() if p in (ours, theirs)}
    for policy, error in failed.items():
        widgets.callout("problem", f"{policy} failed on this session", f"{error}. Choose another policy.")
    if failed:
        return
    step = _step(steps, data.changes(run, session, ours, theirs), data.first_difference(run, session, ours, theirs))
    _where(run, session, step, (ours, theirs), [RECORDED.name, *found["policies"]])
    pair = data.pair_of(ours, theirs)
    if widgets.until(lambda seconds: data.opened(run, session, pair, seconds), "Replaying the session …"):
        _views(run, session, data.open_session(run, session), step, ours, theirs)


def _choose(found: Mapping[str, Any], columns: Sequence[Any]) -> tuple[str, str, str]:
    lanes = [RECORDED.name, *found["policies"]]
    left, middle, right = columns
    with left:
        session = widgets.choose_session(found["sessions"])
    with middle:
        ours = widgets.one("Left view", "a", lanes, lanes[-1])
    with right:
        theirs = widgets.one("Right view", "b", lanes, lanes[0])
    return session, ours, theirs


def _step(steps: int, changes: Sequence[int], first: int | None) -> int:
    """Number and buttons: one step on or back, and to the nearest change on either side.

    Without a choice it is the first step whose views differ, else the first at which anything happens.
    """
    default = first or (changes[0] if changes else 1)
    columns = st.columns([2, 2, 2, 2, 2], vertical_alignment="bottom")
    with columns[0]:
        step = widgets.number(f"Step (1 to {steps:,})", "step", 1, steps, default)
    before, after = bisect_left(changes, step), bisect_right(changes, step)
    targets = (("Previous step", step - 1 if step > 1 else None, "P", "One model call back"),
               ("Next step", step + 1 if step < steps else None, "N", "One model call on"),
               ("Previous change", changes[before - 1] if before else None, "Shift+D", _CHANGE),
               ("Next change", changes[after] if after < len(changes) else None, "D", _CHANGE))
    for column, (label, target, key, explained) in zip(columns[1:], targets, strict=True):
        with column:
            widgets.jump(label, "step", target, key, explained)
    return step


_CHANGE = "A step where a policy acts, or where the two views start or stop being the same"


def _where(run: StoredRun, session: str, step: int, pair: tuple[str, str], lanes: Sequence[str]) -> None:
    drawn = data.pair_of(*pair)
    curve = data.curve(run, session, drawn, 400)
    st.altair_chart(charts.where(curve, step, drawn, lanes), width="stretch", key=CHART,
                    on_select=lambda: widgets.pick_step(CHART), selection_mode="pick")


def _views(run: StoredRun, session: str, opened: OpenSession, step: int, ours: str, theirs: str) -> None:
    lanes = list(opened.policies)
    stored = data.fingerprints(run, session, step, data.pair_of(ours, theirs))
    left, right = (widgets.policy_name(p, colour_of(p, lanes)) for p in (ours, theirs))
    for column, policy, title in zip(st.columns(2), (ours, theirs), (left, right), strict=True):
        with column:
            widgets.put(cards.card(opened, policy, step, title))
            if not opened.view(policy, step).fingerprint.startswith(stored.get(policy, "")):
                widgets.callout("problem", "Not the view that the run measured", "The session's file or the program "
                                "has changed since; compare again to get numbers that belong to this view.")
    evidence.show(opened, step, ours, theirs, (left, right))
    widgets.heading("The two views", f"Labels are seen from the left view ({ours}) against the right one ({theirs}). "
                    "# is the message's place in the session's log, from 0.")
    show = widgets.switch("Show", "show", SHOWN)
    if show == evidence.FIND:
        finder.show(opened, (ours, theirs), (left, right))
    else:
        _messages(opened, step, (ours, theirs), (left, right), show == SHOWN[1])
    cards.raw_json(opened, step, ours, theirs)


def _messages(opened: OpenSession, step: int, pair: tuple[str, str], titles: tuple[Html, Html], all_of: bool) -> None:
    sides = opened.side_by_side(step, *pair)
    widgets.put(alignment.legend(sides))
    rows: Sequence[Any] = sides.rows if all_of else alignment.folded(sides.rows)
    first = _first_row(len(rows))
    windows = opened.view(pair[0], step).window, opened.view(pair[1], step).window
    widgets.put(alignment.side_by_side(rows[first - 1:first - 1 + ROWS], titles, opened, windows))


def _first_row(count: int) -> int:
    """Which rows are on screen, where there are more than fit."""
    if count <= ROWS:
        return 1
    first = state.number("at", 1, count, 1)
    left, middle, right = st.columns([2, 2, 6], vertical_alignment="bottom")
    with left:
        widgets.jump("Earlier rows", "at", max(1, first - ROWS) if first > 1 else None, "Shift+E", "Towards the start")
    with middle:
        widgets.jump("Later rows", "at", first + ROWS if first + ROWS <= count else None, "E", "Towards the end")
    with right:
        widgets.number(f"First of {ROWS} rows shown (of {count:,})", "at", 1, count, 1)
    return first


if __name__ == "__main__":
    page()
