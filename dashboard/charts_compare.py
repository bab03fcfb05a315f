"""Policies against each other as charts: what they cost against what they keep. Nothing here knows Streamlit."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from dashboard.charts import Chart
from evals.palette import INK_COLOUR, colour_of
from evals.scatter import Point

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
    x, y = (alt.X("x:Q", title=titles[0], scale=alt.Scale(zero=False, nice=True), axis=alt.Axis(format="~s")),
            alt.Y("y:Q", title=titles[1], scale=alt.Scale(zero=False, nice=True)))
    colour = alt.Color("policy:N", legend=None,
                       scale=alt.Scale(domain=names, range=[colour_of(p, policies) for p in names]))
    base = alt.Chart(table).encode(x=x, y=y, color=colour, tooltip=_tips(titles))
    pick = alt.selection_point(name="pick", fields=["policy"], on="click", empty=False)
    shape = alt.Shape("place:N", legend=alt.Legend(title=None, orient="top", symbolFillColor="transparent"),
                      scale=alt.Scale(domain=[FRONT, BEATEN], range=["diamond", "circle"]))
    front = alt.Chart(table[table["place"] == FRONT]).mark_line(
        color=INK_COLOUR, strokeDash=[4, 3], strokeWidth=1.2).encode(x=x, y=y)
    dots = base.mark_point(size=150, strokeWidth=2.2).encode(
        shape=shape, fillOpacity=alt.condition(f"datum.place == '{FRONT}'", alt.value(0.9), alt.value(0)),
        fill=colour).add_params(pick)
    words = base.mark_text(align="left", dx=10, dy=-8, fontSize=11).encode(text="name:N")
    across = base.mark_rule(strokeWidth=1, opacity=0.55).encode(x="x_low:Q", x2="x_high:Q")
    up = base.mark_rule(strokeWidth=1, opacity=0.55).encode(y="y_low:Q", y2="y_high:Q")
    return alt.layer(front, across, up, words, dots).properties(height=height)


def _tips(titles: tuple[str, str]) -> list[alt.Tooltip]:
    return [alt.Tooltip("policy:N", title="policy"), alt.Tooltip("x_words:N", title=titles[0]),
            alt.Tooltip("y_words:N", title=titles[1]), alt.Tooltip("place:N", title="among these means")]
