"""Policies against each other as charts: what they cost against what they keep. Nothing here knows Streamlit."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from dashboard.charts import Chart
from evals.palette import INK_COLOUR, colour_of
from evals.scatter import Point

MOST_NAMES = 12
"""Points that bear their names."""
FRONT, BEATEN = "on the front", "beaten by another policy"


def scatter(points: Sequence[Point], titles: tuple[str, str], policies: Sequence[str], height: int = 330) -> Chart:
    """Points with their intervals and names, the front joined by a line.

    A click picks a policy: selection `pick`, field `policy`. Filled diamonds are on the front, rings are not.
    """
    table = pd.DataFrame([{"policy": p.policy, "x": p.x, "x_low": p.x_low, "x_high": p.x_high, "y": p.y,
                           "y_low": p.y_low, "y_high": p.y_high, "x_words": p.words[0], "y_words": p.words[1],
                           "place": FRONT if p.front else BEATEN,
                           "name": p.policy if len(p.policy) <= 34 else p.policy[:33] + "…"} for p in points])
    names = [p.policy for p in points]
    x = alt.X("x:Q", title=titles[0], scale=_around([p.x for p in points]), axis=alt.Axis(format="~s", tickCount=8))
    y = alt.Y("y:Q", title=titles[1], scale=_around([p.y for p in points]), axis=alt.Axis(format="~g", tickCount=6))
    colour = alt.Color("policy:N", legend=None,
                       scale=alt.Scale(domain=names, range=[colour_of(p, policies) for p in names]))
    base = alt.Chart(table).encode(x=x, y=y, color=colour, tooltip=_tips(titles))
    pick = alt.selection_point(name="pick", fields=["policy"], on="click", empty=False)
    shape = alt.Shape("place:N", legend=alt.Legend(title=None, orient="top", symbolFillColor="transparent"),
                      scale=alt.Scale(domain=[FRONT, BEATEN], range=["diamond", "circle"]))
    front = alt.Chart(table[table["place"] == FRONT]).mark_line(
        color=INK_COLOUR, strokeDash=[4, 3], strokeWidth=1.2).encode(x=x, y=y)
    dots = base.mark_point(size=170, strokeWidth=2.2).encode(
        shape=shape, fillOpacity=alt.condition(f"datum.place == '{FRONT}'", alt.value(0.9), alt.value(0)),
        fill=colour).add_params(pick)
    across = base.mark_rule(strokeWidth=1, opacity=0.5, clip=True).encode(x="x_low:Q", x2="x_high:Q")
    up = base.mark_rule(strokeWidth=1, opacity=0.5, clip=True).encode(y="y_low:Q", y2="y_high:Q")
    return alt.layer(front, across, up, *_names(table, x, y, colour), dots).properties(height=height)


def _around(values: Sequence[float]) -> alt.Scale:
    """The points with some room on every side; intervals may run beyond it."""
    low, high = min(values), max(values)
    room = (high - low) * 0.15 or abs(high) * 0.05 or 1.0
    return alt.Scale(domain=[low - room, high + room], nice=False, zero=False)


def _names(table: pd.DataFrame, x: alt.X, y: alt.Y, colour: alt.Color) -> list[Chart]:
    """Names beside the points, those of neighbours at different heights; of many only those on the front."""
    named = table if len(table) <= MOST_NAMES else table[table["place"] == FRONT].head(MOST_NAMES)
    heights = (-14, 18, -28, 32)
    return [alt.Chart(named.iloc[[n]]).mark_text(align="center", dy=heights[n % 4], fontSize=11, clip=True).encode(
        x=x, y=y, color=colour, text="name:N") for n in range(len(named))]


def _tips(titles: tuple[str, str]) -> list[alt.Tooltip]:
    return [alt.Tooltip("policy:N", title="policy"), alt.Tooltip("x_words:N", title=titles[0]),
            alt.Tooltip("y_words:N", title=titles[1]), alt.Tooltip("place:N", title="among these means")]
