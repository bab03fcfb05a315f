"""A sweep as charts: a heat map of two parameters, lines with intervals, what each does alone. No Streamlit here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from dashboard.charts import SHAPES, Chart
from evals.palette import COLOURS, DASHES, INK_COLOUR
from evals.sweep.surface import BEST, BETTER, WITHIN, Point, Surface

MOST_LABELLED = 120
"""Cells that bear their numbers."""
MOST_LINES = len(COLOURS)
"""Lines in one chart; of more values an even choice is drawn."""
_SIGNS = {BEST: "★", WITHIN: "≈", BETTER: "≈"}
_TIPS = [alt.Tooltip("policy:N", title="setting"), alt.Tooltip("mean:N", title="mean"),
         alt.Tooltip("interval:N", title="interval"), alt.Tooltip("gap:N", title="difference to the best"),
         alt.Tooltip("stands:N", title="stands"), alt.Tooltip("ended:Q", title="sessions that end")]


def heat_map(found: Surface, across: str, up: str | None, height: int = 340) -> Chart:
    """The mean objective over two parameters, the best cell framed and starred, those not told from it marked ≈.

    ✕ marks settings under which some session ends. A click picks a setting: selection `pick`, field `policy`.
    """
    points = [p for p in found.slice(across, up) if p.value is not None]
    table = _table(points, across, up)
    table["bright"] = _bright(table, found.better)
    x = alt.X("x:N", sort=_names(found, across), title=across, axis=alt.Axis(labelAngle=0))
    y = alt.Y("y:N", sort=_names(found, up)[::-1], title=up, axis=alt.Axis(labelLimit=160))
    colour = alt.Color("value:Q", title=found.title, scale=alt.Scale(scheme="cividis", reverse=found.better == "low"),
                       legend=alt.Legend(format="~s", orient="top", gradientLength=260, titleLimit=400))
    pick = alt.selection_point(name="pick", fields=["policy"], on="click", empty=False)
    base = alt.Chart(table).encode(x=x, y=y, tooltip=_TIPS)
    cells = base.mark_rect(stroke=INK_COLOUR, strokeWidth=0.5).encode(color=colour).add_params(pick)
    frame = base.mark_rect(filled=False, stroke=COLOURS[1], strokeWidth=4).transform_filter(
        alt.FieldEqualPredicate(field="stands", equal=BEST))
    labels = [base.mark_text(fontSize=12, fontWeight=600).encode(
        text="label:N", color=alt.condition("datum.bright", alt.value("#111"), alt.value("#fff")))]
    return alt.layer(cells, frame, *(labels if len(table) <= MOST_LABELLED else [])).properties(height=height)


def _bright(table: pd.DataFrame, better: str) -> Any:
    """Whether a cell's colour is light: the better half is, on this scale."""
    middle = (table["value"].min() + table["value"].max()) / 2
    return table["value"] < middle if better == "low" else table["value"] > middle


def lines(found: Surface, across: str, up: str | None, height: int = 340) -> Chart:
    """The mean objective along one parameter with its intervals, a line for each value of the other."""
    values = _even(_names(found, up)) if up else [""]
    points = [p for p in found.slice(across, up) if p.value is not None]
    table = _table(points, across, up)
    table = table[table["y"].isin(values)]
    x = alt.X("x:N", sort=_names(found, across), title=across, axis=alt.Axis(labelAngle=0))
    legend = alt.Legend(title=up, orient="top", symbolStrokeWidth=0) if up else None
    colour = alt.Color("y:N", legend=legend, scale=alt.Scale(domain=values, range=[*COLOURS[:len(values)]]))
    dash = alt.StrokeDash("y:N", legend=None, scale=alt.Scale(
        domain=values, range=[[*DASHES[n % len(DASHES)]] for n in range(len(values))]))
    shape = alt.Shape("y:N", legend=legend, scale=alt.Scale(
        domain=values, range=[SHAPES[n % len(SHAPES)] for n in range(len(values))]))
    offset = alt.XOffset("y:N", sort=values)
    base = alt.Chart(table).encode(x=x, color=colour, tooltip=_TIPS)
    y = alt.Y("value:Q", title=found.title, scale=alt.Scale(zero=False), axis=alt.Axis(format="~s"))
    spans = base.mark_rule(strokeWidth=1.4, opacity=0.6).encode(y=alt.Y("low:Q", title=found.title), y2="high:Q",
                                                                 xOffset=offset)
    run = base.mark_line(strokeWidth=2).encode(y=y, strokeDash=dash, xOffset=offset)
    dots = base.mark_point(size=55, filled=True, opacity=1).encode(y=y, shape=shape, xOffset=offset)
    return alt.layer(spans, run, dots).properties(height=height)


def sensitivity(found: Surface, height: int = 44) -> Chart:
    """What each parameter does alone from the best setting: the span of its means, and each mean as a mark."""
    rows = [{"parameter": e["parameter"], "value": r["mean"], "setting": str(r["value"]), "policy": r["policy"],
             "best": found.best is not None and r["policy"] == found.best.policy}
            for e in found.effects for r in e["rows"] if r["mean"] is not None]
    table = pd.DataFrame(rows)
    y = alt.Y("parameter:N", sort=[e["parameter"] for e in found.effects], title=None, axis=alt.Axis(labelLimit=260))
    x = alt.X("value:Q", title=found.title, scale=alt.Scale(zero=False), axis=alt.Axis(format="~s"))
    tips = [alt.Tooltip("policy:N", title="setting"), alt.Tooltip("value:Q", title="mean", format=",.4~f")]
    span = alt.Chart(table).mark_rule(strokeWidth=3, color=INK_COLOUR).encode(y=y, x=alt.X("min(value):Q"),
                                                                              x2="max(value):Q")
    dots = alt.Chart(table).mark_point(size=90, filled=True, opacity=1).encode(
        y=y, x=x, tooltip=tips, shape=alt.condition("datum.best", alt.value("diamond"), alt.value("circle")),
        color=alt.condition("datum.best", alt.value(COLOURS[1]), alt.value(COLOURS[0])))
    return alt.layer(span, dots).properties(height=50 + height * len(found.effects))


def _names(found: Surface, parameter: str | None) -> list[str]:
    return [str(v) for v in found.parameters[parameter]] if parameter else [""]


def _even(names: Sequence[str]) -> list[str]:
    """At most `MOST_LINES` of the names, evenly chosen."""
    step = -(-len(names) // MOST_LINES)
    return list(names[::step])


def _table(points: Sequence[Point], across: str, up: str | None) -> pd.DataFrame:
    rows = [{"policy": p.policy, "x": str(p.values[across]), "y": str(p.values[up]) if up else "", "value": p.value,
             "low": p.value if p.low is None else p.low, "high": p.value if p.high is None else p.high,
             "mean": p.words[0], "interval": p.words[1], "gap": p.words[2], "stands": p.stands, "ended": p.ended,
             "label": " ".join(filter(None, (_SIGNS.get(p.stands, ""), p.words[0], "✕" if p.ended else "")))}
            for p in points]
    return pd.DataFrame(rows)
