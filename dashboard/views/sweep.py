"""The sweep page: the objective over the swept parameters, the best region, and how much the best choice matters."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard import charts_sweep, data, widgets
from evals.markup import escaped, joined, tag
from evals.sweep.surface import COLUMNS, Point, Surface
from replay.policy.load import RECORDED

CHART = "heat_map"
MOST_ROWS = 40
_MAP = ("Mean over the same sessions of every setting; further parameters are held at the best setting's values. ★ is "
        "the best setting, ≈ is not told from it by a paired 95 % interval, ✕ has sessions that end in a refused "
        "request. Click a cell to open that policy in a session.")
_LINES = ("The same means with their intervals over repositories ({coverage}). They overlap where sessions "
          "differ much; the paired differences below compare the settings on the same sessions.")
_REGION = "Settings that the sessions cannot tell from the best one: any of them is as good a choice on this evidence."
_ALONE = ("The mean when one parameter alone moves away from the best setting (diamond): a long line is a parameter "
          "that matters, a short one may be left as it is.")


def page() -> None:
    """The whole page."""
    widgets.follow()
    st.title("Sweep", anchor=False)
    left, right = st.columns([3, 8], vertical_alignment="bottom")
    with left:
        run = widgets.choose_run()
    if not widgets.until(lambda seconds: data.sweep(run, seconds) is not None, "Comparing the settings …"):
        return
    found = (data.sweep(run, 0.1) or (None,))[0]
    if found is None:
        widgets.callout("note", "This run is no sweep", "Make one, then choose it here: `rewindow sweep PATH "
                        "-p decode-adr18 --set trigger.at=0.5:0.9:0.1 --set tail_tokens=8000,20000 "
                        "--out runs/sweep`.")
        return
    with right:
        widgets.put(widgets.chips([("swept", found.base), ("settings", f"{len(found.points):,}"),
                                   ("sessions", f"{found.sessions:,}"), (f"is best {found.better}", found.title)]))
    _verdict(found)
    if found.best is not None:
        _surface(found)
        _region(found)
        _alone(found)


def _verdict(found: Surface) -> None:
    if found.best is None:
        widgets.callout("problem", "Nothing was measured", f"No session could be measured under every setting: "
                        f"{found.why}")
    elif found.chosen:
        widgets.callout("advice", f"Best setting: {found.best.policy}", found.why)
    else:
        widgets.callout("note", "No setting is chosen", f"{found.why} The best mean has {found.best.policy}: "
                        f"{found.best.words[0]}.")


def _surface(found: Surface) -> None:
    names = list(found.parameters)
    left, right, _ = st.columns([3, 3, 4])
    with left:
        across = widgets.one("Across", "sx", names, names[0])
    others = [n for n in names if n != across]
    with right:
        up = widgets.one("Against", "sy", others, others[0]) if others else None
    left, right = st.columns(2)
    with left:
        widgets.heading("Heat map", _MAP)
        st.altair_chart(charts_sweep.heat_map(found, across, up), width="stretch", key=CHART, selection_mode="pick",
                        on_select=lambda: _open(found.base))
    with right:
        widgets.heading("Lines", _LINES.format(coverage=f"{found.coverage:.0%}" if found.coverage else "too few"))
        st.altair_chart(charts_sweep.lines(found, across, up), width="stretch")


def _open(base: str) -> None:
    """A click on a cell: that policy beside the record and the unchanged policy."""
    policy = widgets.picked(CHART, "policy")
    if policy is not None:
        widgets.go("session", p=[RECORDED.name, base, policy], a=policy, b=base)


def _region(found: Surface) -> None:
    region = found.region()
    widgets.heading("Best region", _REGION)
    if len(region) == 1:
        widgets.callout("note", "The best setting stands alone", "No other is within its paired interval, or there are "
                        "too few repositories (below six) for a 95 % interval.")
    _settings(region)
    with st.expander(f"All {len(found.points):,} settings"):
        _settings(found.points)


def _settings(points: Sequence[Point]) -> None:
    rows = [[escaped(p.policy), *map(escaped, p.words)] for p in points[:MOST_ROWS]]
    widgets.put(widgets.table([joined("setting"), *map(escaped, COLUMNS)], rows))
    if len(points) > MOST_ROWS:
        widgets.put(tag("p", f"The first {MOST_ROWS} of {len(points):,} settings.", class_="rw-lead"))


def _alone(found: Surface) -> None:
    widgets.heading("Sensitivity of the best choice", _ALONE)
    st.altair_chart(charts_sweep.sensitivity(found), width="stretch")


if __name__ == "__main__":
    page()
