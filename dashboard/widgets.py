"""Controls and pieces that pages share. Nothing that comes from a run or a transcript is ever shown as markup."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import streamlit as st

from dashboard import data, state
from evals.board import LEVELS
from evals.markup import Html, tag
from replay.commands.output import literal

_LOOK = Path(__file__).parent / "look.css"
_SIGNS = {"problem": "✕", "advice": "➔", "note": "ℹ"}


def style() -> None:
    """The looks of our own pieces."""
    st.html(_LOOK)


def put(*pieces: Html) -> None:
    """Put markup on the page; plain text is refused, so that nothing gets here unescaped."""
    if not all(isinstance(p, Html) for p in pieces):
        raise TypeError("only markup made by evals.markup is put on a page")
    st.html("".join(pieces))


def heading(title: str, explained: str = "") -> None:
    """A section's title with a sentence on what is seen."""
    put(tag("h2", title, class_="rw-h2"), *([tag("p", explained, class_="rw-lead")] if explained else []))


def callout(kind: str, title: str, text: str) -> None:
    """A box that says something: `problem`, `advice` or `note`."""
    head = tag("div", tag("span", _SIGNS[kind], class_="rw-sign"), title, class_="rw-callout-title")
    put(tag("div", head, tag("div", text, class_="rw-callout-text"), class_=f"rw-callout rw-{kind}"))


def bullets(lines: Sequence[str]) -> None:
    """A list of sentences."""
    put(tag("ul", *(tag("li", line) for line in lines), class_="rw-list"))


def chips(pairs: Sequence[tuple[str, str]]) -> Html:
    """Names with values in one row."""
    return tag("div", *(tag("span", tag("b", value), f" {name}", class_="rw-chip") for name, value in pairs),
               class_="rw-chips")


def badge(level: str) -> Html:
    """The level of a number, with what it may claim in its tooltip."""
    return tag("span", level, class_="rw-badge", title=LEVELS.get(level, ""))


def table(columns: Sequence[Html], rows: Sequence[Sequence[Html]]) -> Html:
    """A table of markup; the first column is a row's heading."""
    head = tag("tr", *(tag("th", c, scope="col") for c in columns))
    body = [tag("tr", tag("th", row[0], scope="row"), *(tag("td", c) for c in row[1:])) for row in rows]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *body), class_="rw-table"), class_="rw-scroll")


def policy_name(name: str, colour: str) -> Html:
    """A policy's name with a swatch of its colour."""
    return tag("span", tag("span", class_="rw-swatch", style=f"background:{colour}"), name, class_="rw-policy")


def choose_run() -> data.StoredRun:
    """Let the visitor choose a run. Stops the page where there is none."""
    known = data.runs()
    if not known:
        callout("note", "No run yet", "Make one, then reload this page: `rewindow demo` compares policies on the "
                "bundled sessions; `rewindow compare PATH -p full-history -p decode-adr18 --out runs/first` does it "
                "on yours.")
        st.stop()
    return data.stored(known[one("Run", "run", list(known), next(iter(known)))])


def one(label: str, key: str, options: Sequence[str], default: str,
        shown: Callable[[str], str] = str) -> str:
    """A choice of one, kept in the address."""
    widget = state.widget_key(key)
    st.session_state[widget] = state.one(key, options, default)
    chosen: str = st.selectbox(label, options, key=widget, format_func=lambda o: literal(shown(o)),
                               on_change=state.store, args=(key,))
    return chosen


def many(label: str, key: str, options: Sequence[str], default: Sequence[str]) -> list[str]:
    """A choice of several, kept in the address."""
    widget = state.widget_key(key)
    st.session_state[widget] = state.many(key, options, default)
    chosen: list[str] = st.multiselect(label, options, key=widget, format_func=literal, on_change=state.store,
                                       args=(key,))
    return chosen


def switch(label: str, key: str, options: Sequence[str]) -> str:
    """A choice between a few fixed words, kept in the address; the first is the default."""
    widget = state.widget_key(key)
    st.session_state[widget] = state.one(key, options, options[0])
    chosen: str = st.radio(label, options, key=widget, horizontal=True, label_visibility="collapsed",
                           on_change=state.store, args=(key,))
    return chosen


def number(label: str, key: str, low: int, high: int, default: int) -> int:
    """A whole number, kept in the address."""
    widget = state.widget_key(key)
    st.session_state[widget] = state.number(key, low, high, default)
    return int(st.number_input(label, low, high, step=1, key=widget, on_change=state.store, args=(key,)))


def jump(label: str, key: str, target: int | None, shortcut: str, explained: str) -> None:
    """A button that puts a number into the address; without a target it rests."""
    st.button(label, key=f"jump_{label}", help=explained, disabled=target is None, shortcut=shortcut, width="stretch",
              on_click=state.put, args=(key, target if target is not None else 0))


def picked(chart_key: str) -> None:
    """A chart's callback: the step that was clicked goes into the address."""
    points = st.session_state[chart_key]["selection"].get("pick", [])
    if points:
        state.put("step", int(points[0]["step"]))


def session_title(session: str, entry: Mapping[str, object]) -> str:
    """A session in a list: its id, format and length."""
    return f"{session} · {entry['format']} · {entry['steps']:,} steps"
