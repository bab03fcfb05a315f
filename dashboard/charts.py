"""Tables into charts. Nothing here knows Streamlit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from evals.board import PairRow
from evals.palette import RECORDED_COLOUR, WARNING_COLOUR, colour_of, dash_of
from evals.series import MARKS

Chart = Any
"""An Altair chart; its own types differ with what it is made of."""
SHAPES = ("triangle-down", "diamond", "circle", "stroke", "cross", "square")
"""Of `MARKS`, in order."""


def policy_scales(drawn: Sequence[str], policies: Sequence[str]) -> tuple[alt.Color, alt.StrokeDash]:
    """Colour and dash of the policies drawn, with a legend."""
    legend = alt.Legend(title="policy", orient="top", labelLimit=260, symbolType="stroke", symbolSize=300,
                        symbolOpacity=1, columns=5)
    return (alt.Color("policy:N", legend=legend,
                      scale=alt.Scale(domain=[*drawn], range=[colour_of(p, policies) for p in drawn])),
            alt.StrokeDash("policy:N", legend=legend,
                           scale=alt.Scale(domain=[*drawn], range=[[*dash_of(p, policies)] for p in drawn])))


_TOOLTIP = [alt.Tooltip("step:Q", title="step", format=","), alt.Tooltip("policy:N", title="policy"),
            alt.Tooltip("tokens:Q", title="view, tokens", format=","), alt.Tooltip("how:N", title="figure"),
            alt.Tooltip("status:N", title="request"),
            alt.Tooltip("estimated_tokens:Q", title="policy's own estimate", format=","),
            alt.Tooltip("threshold:Q", title="its threshold", format=",")]
_MARK_TOOLTIP = [alt.Tooltip("mark:N", title="what"), alt.Tooltip("step:Q", title="step", format=","),
                 alt.Tooltip("policy:N", title="policy"), alt.Tooltip("reason:N", title="reason"),
                 alt.Tooltip("estimated_tokens:Q", title="policy's own estimate", format=","),
                 alt.Tooltip("threshold:Q", title="its threshold", format=","),
                 alt.Tooltip("tokens_before:Q", title="counted before", format=","),
                 alt.Tooltip("tokens_after:Q", title="counted after", format=",")]


def token_curve(curve: pd.DataFrame, marks: pd.DataFrame, drawn: Sequence[str], policies: Sequence[str], usable: int,
                square_root: bool = False,
                height: int = 470) -> Chart:
    """Tokens of each step's view by policy, with the window, thresholds, compactions and what is over the window.

    A square-root scale spreads what is small. A click picks a step: selection `pick`, field `step`.
    """
    colour, dash = policy_scales(drawn, policies)
    x = alt.X("step:Q", title="step (one model call)", axis=alt.Axis(format=",d", tickMinStep=1),
              scale=alt.Scale(nice=False, zero=False))
    y = alt.Y("tokens:Q", title="view, tokens", axis=alt.Axis(format=",d"),
              scale=alt.Scale(type="sqrt" if square_root else "linear"))
    base = alt.Chart(curve).encode(x=x, y=y, color=colour)
    sent = base.mark_line(strokeWidth=2).encode(strokeDash=dash).transform_filter("datum.sent")
    unsent = base.mark_line(strokeWidth=1, opacity=0.6).encode(strokeDash=dash)
    pick = alt.selection_point(name="pick", fields=["step"], on="click", nearest=True, empty=False)
    hover = base.mark_point(opacity=0, size=60).encode(tooltip=_TOOLTIP).add_params(pick)
    points = mark_points(marks, x, colour)
    layers = [*_window(curve, usable), unsent, sent, *_thresholds(curve, x, colour), points, hover]
    return alt.layer(*layers).properties(height=height).resolve_scale(shape="independent")


def _window(curve: pd.DataFrame, usable: int) -> list[Chart]:
    """The usable window as a line; where views go beyond it, what lies above as a band with words."""
    line = pd.DataFrame({"tokens": [usable], "text": [f"usable window {usable:,}"]})
    rule = alt.Chart(line).mark_rule(strokeWidth=1.5, strokeDash=[8, 3], color=WARNING_COLOUR).encode(y="tokens:Q")
    words = alt.Chart(line).mark_text(align="left", dx=6, dy=-7, color=WARNING_COLOUR, fontSize=11).encode(
        y="tokens:Q", x=alt.value(0), text="text:N")
    top = int(curve["tokens"].max()) if len(curve) else 0
    if top <= usable:
        return [rule, words]
    band = pd.DataFrame({"low": [usable], "high": [top], "text": ["over the window: such a request is refused"]})
    over = alt.Chart(band).mark_rect(opacity=0.08, color=WARNING_COLOUR).encode(
        y=alt.Y("low:Q", title="view, tokens"), y2="high:Q")
    said = alt.Chart(band).mark_text(align="left", baseline="top", dx=6, dy=4, color=WARNING_COLOUR, fontSize=11)
    said = said.encode(y="high:Q", x=alt.value(0), text="text:N")
    return [over, rule, words, said]


def _thresholds(curve: pd.DataFrame, x: alt.X, colour: alt.Color) -> list[Chart]:
    known = curve[curve["threshold"].notna()]
    if known.empty:
        return []
    return [alt.Chart(known).mark_line(strokeWidth=1, strokeDash=[1, 4], opacity=0.9).encode(
        x=x, y="threshold:Q", color=colour, tooltip=_TOOLTIP)]


def mark_points(marks: pd.DataFrame, x: alt.X, colour: Any, explained: bool = True) -> Chart:
    """Compactions and run ends as shapes; `explained`: with a legend of those that there are."""
    present = [m for m in MARKS if m in set(marks["mark"])]
    legend = alt.Legend(title="marks", orient="bottom", labelLimit=260, symbolFillColor="transparent", columns=6)
    shape = alt.Shape("mark:N", legend=legend if present and explained else None,
                      scale=alt.Scale(domain=present, range=[SHAPES[MARKS.index(m)] for m in present]))
    return alt.Chart(marks).mark_point(size=55, strokeWidth=1.6, filled=False).encode(
        x=x, y="tokens:Q", color=colour, shape=shape, tooltip=_MARK_TOOLTIP)


def where(curve: pd.DataFrame, step: int, drawn: Sequence[str], policies: Sequence[str],
          height: int = 110) -> Chart:
    """A session's token curves, small, with the present step as a line. A click picks a step, as above."""
    colour, dash = policy_scales(drawn, policies)
    x = alt.X("step:Q", title=None, axis=alt.Axis(format=",d", tickMinStep=1), scale=alt.Scale(nice=False, zero=False))
    base = alt.Chart(curve).encode(x=x, y=alt.Y("tokens:Q", title="tokens", axis=alt.Axis(format=",d", tickCount=3)),
                                   color=colour.legend(None))
    pick = alt.selection_point(name="pick", fields=["step"], on="click", nearest=True, empty=False)
    hover = base.mark_point(opacity=0, size=60).encode(tooltip=_TOOLTIP[:4]).add_params(pick)
    here = alt.Chart(pd.DataFrame({"step": [step]})).mark_rule(strokeWidth=2, color=WARNING_COLOUR).encode(x=x)
    return alt.layer(base.mark_line(strokeWidth=1.5).encode(strokeDash=dash.legend(None)), here, hover).properties(
        height=height)


def forest(pairs: Sequence[PairRow], title: str, policies: Sequence[str]) -> Chart:
    """Paired differences with their intervals, a line at no difference."""
    table = pd.DataFrame([{"policy": p.policy, "difference": p.difference, "low": p.low, "high": p.high,
                           "words": f"{p.words[0]} ({p.words[1]})"} for p in pairs])
    names = [p.policy for p in pairs]
    y = alt.Y("policy:N", sort=names, title=None, axis=alt.Axis(labelLimit=260))
    colour = alt.Color("policy:N", legend=None,
                       scale=alt.Scale(domain=names, range=[colour_of(p, policies) for p in names]))
    tips = [alt.Tooltip("policy:N", title="policy"), alt.Tooltip("words:N", title="difference (95 %)")]
    base = alt.Chart(table).encode(y=y, color=colour, tooltip=tips)
    zero = alt.Chart(pd.DataFrame({"at": [0]})).mark_rule(strokeDash=[4, 3], color=RECORDED_COLOUR).encode(x="at:Q")
    span = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=title), x2="high:Q")
    dot = base.mark_point(filled=True, size=80, opacity=1).encode(x="difference:Q")
    return alt.layer(zero, span, dot).properties(height=60 + 34 * len(names))
