"""A session's steps as charts: what the views are made of, what they cost. Nothing here knows Streamlit."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from dashboard.charts import Chart, mark_points, policy_scales
from evals.palette import CLASS_COLOURS, INK_COLOUR, LOST_COLOUR, WARNING_COLOUR


def _steps(title: str | None) -> alt.X:
    return alt.X("step:Q", title=title, axis=alt.Axis(format=",d", tickMinStep=1, tickCount=10),
                 scale=alt.Scale(nice=False, zero=False))


_CLASS_TOOLTIP = [alt.Tooltip("step:Q", title="step", format=","), alt.Tooltip("class:N", title="class"),
                  alt.Tooltip("counted:Q", title="counted tokens", format=","),
                  alt.Tooltip("tokens:Q", title="whole view, best figure", format=",")]


def stack(classes: pd.DataFrame, curve: pd.DataFrame, marks: pd.DataFrame, lost: pd.DataFrame, usable: int,
          top: int, height: int = 150) -> Chart:
    """One policy's views by class, with the best figure of the whole, window, threshold, marks and lost needs.

    `top`: tokens at the upper edge, the same for every policy. A click picks a step, as in `charts.token_curve`.
    """
    x = _steps(None)
    area = alt.Chart(classes).mark_area(opacity=0.85).encode(
        x=x, y=alt.Y("counted:Q", title="tokens", stack="zero", scale=alt.Scale(domain=[0, top]),
                     axis=alt.Axis(format=",d", tickCount=4)),
        color=alt.Color("class:N", legend=None,
                        scale=alt.Scale(domain=[*CLASS_COLOURS], range=[*CLASS_COLOURS.values()])),
        order=alt.Order("order:Q"), tooltip=_CLASS_TOOLTIP)
    whole = alt.Chart(curve).mark_line(strokeWidth=1.2, color=INK_COLOUR).encode(x=x, y="tokens:Q")
    pick = alt.selection_point(name="pick", fields=["step"], on="click", nearest=True, empty=False)
    hover = alt.Chart(curve).mark_point(opacity=0, size=40).encode(x=x, y="tokens:Q", tooltip=_WHOLE_TOOLTIP)
    layers = [area, whole, *_lines(curve, x, usable, top), mark_points(marks, x, alt.value(INK_COLOUR), False),
              *_lost(lost, x), hover.add_params(pick)]
    return alt.layer(*layers).properties(height=height).resolve_scale(shape="independent", color="independent")


_WHOLE_TOOLTIP = [alt.Tooltip("step:Q", title="step", format=","),
                  alt.Tooltip("tokens:Q", title="view, tokens", format=","),
                  alt.Tooltip("estimated_tokens:Q", title="policy's own estimate", format=","),
                  alt.Tooltip("threshold:Q", title="its threshold", format=","),
                  alt.Tooltip("status:N", title="request")]


def _lines(curve: pd.DataFrame, x: alt.X, usable: int, top: int) -> list[Chart]:
    known = curve[curve["threshold"].notna()]
    lines = [alt.Chart(known).mark_line(strokeWidth=1.3, strokeDash=[2, 3], color=INK_COLOUR).encode(
        x=x, y="threshold:Q")] if len(known) else []
    if usable > top:
        return lines
    window = alt.Chart(pd.DataFrame({"tokens": [usable]})).mark_rule(strokeWidth=1.5, strokeDash=[8, 3],
                                                                     color=WARNING_COLOUR)
    return [*lines, window.encode(y="tokens:Q")]


def _lost(lost: pd.DataFrame, x: alt.X) -> list[Chart]:
    if lost.empty:
        return []
    tips = [alt.Tooltip("step:Q", title="step", format=","), alt.Tooltip("needs_lost:Q", title="needs lost here")]
    return [alt.Chart(lost).mark_point(shape="triangle-up", size=70, filled=True, opacity=1, color=LOST_COLOUR,
                                       yOffset=-5).encode(x=x, y=alt.datum(0), tooltip=tips)]


def cost(curve: pd.DataFrame, drawn: Sequence[str], policies: Sequence[str], height: int = 230) -> Chart:
    """Input cost up to each step by policy, in uncached-token equivalents. A click picks a step."""
    colour, dash = policy_scales(drawn, policies)
    pick = alt.selection_point(name="pick", fields=["step"], on="click", nearest=True, empty=False)
    base = alt.Chart(curve).encode(x=_steps("step"), color=colour,
                                   y=alt.Y("total_units:Q", title="input cost so far",
                                           axis=alt.Axis(format="~s", tickCount=5)))
    hover = base.mark_point(opacity=0, size=50).encode(tooltip=_COST_TOOLTIP).add_params(pick)
    return alt.layer(base.mark_line(strokeWidth=2).encode(strokeDash=dash), hover).properties(height=height)


_COST_TOOLTIP = [alt.Tooltip("step:Q", title="step", format=","), alt.Tooltip("policy:N", title="policy"),
                 alt.Tooltip("cost_units:Q", title="this step's input, uncached tokens", format=",.0f"),
                 alt.Tooltip("total_units:Q", title="so far", format=",.0f"),
                 alt.Tooltip("hit:Q", title="of its view from the cache", format=".0%")]


def cache(curve: pd.DataFrame, drawn: Sequence[str], policies: Sequence[str], height: int = 230) -> Chart:
    """The share of each step's view that a prompt cache would have served, by policy. A click picks a step."""
    colour, dash = policy_scales(drawn, policies)
    pick = alt.selection_point(name="pick", fields=["step"], on="click", nearest=True, empty=False)
    base = alt.Chart(curve).encode(x=_steps("step"), color=colour,
                                   y=alt.Y("hit:Q", title="from the cache",
                                           axis=alt.Axis(format=".0%", tickCount=5), scale=alt.Scale(domain=[0, 1])))
    hover = base.mark_point(opacity=0, size=50).encode(tooltip=_COST_TOOLTIP).add_params(pick)
    return alt.layer(base.mark_line(strokeWidth=1.4).encode(strokeDash=dash), hover).properties(height=height)
