"""Controls and pieces that pages share. Nothing that comes from a run or a transcript is ever shown as markup."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import streamlit as st

from dashboard import data, state
from evals.board import LEVELS
from evals.markup import Html, tag
from replay.commands.output import literal

_LOOK = Path(__file__).parent / "look.css"
_MARKS = re.compile(r"[!-/:-@\[-`{-~]")
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


def many(label: str, key: str, options: Sequence[str], default: Sequence[str],
         shown: Callable[[str], str] = str) -> list[str]:
    """A choice of several, kept in the address."""
    widget = state.widget_key(key)
    st.session_state[widget] = state.many(key, options, default)
    chosen: list[str] = st.multiselect(label, options, key=widget, format_func=lambda o: literal(shown(o)),
                                       on_change=state.store, args=(key,))
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


def text(label: str, key: str, placeholder: str) -> str:
    """A line of text, kept in the address."""
    widget = state.widget_key(key)
    st.session_state[widget] = state.text(key)
    return st.text_input(label, key=widget, placeholder=placeholder, on_change=state.store, args=(key,)) or ""


def tick(label: str, key: str, explained: str) -> bool:
    """A box to tick, kept in the address."""
    widget = state.widget_key(key)
    st.session_state[widget] = state.text(key) == YES
    return st.checkbox(label, key=widget, help=explained, on_change=_ticked, args=(key,))


YES = "yes"


def _ticked(key: str) -> None:
    state.put(key, YES if st.session_state[state.widget_key(key)] else "")


def picks(label: str, key: str, options: Sequence[str], chosen: Callable[[str], None],
          shown: Callable[[str], str] = str) -> None:
    """Buttons of which each does something: a click calls `chosen` with its option."""
    def clicked() -> None:
        option = st.session_state[key]
        if option is not None:
            st.session_state[key] = None
            chosen(option)

    st.pills(label, options, key=key, format_func=lambda o: _unmarked(shown(o)), on_change=clicked)


def _unmarked(text: str) -> str:
    """Text for a label that Streamlit reads as Markdown: it says what it says, nothing more."""
    return _MARKS.sub(r"\\\g<0>", literal(text))


def until(ready: Callable[[float], bool], doing: str) -> bool:
    """Whether something is ready, at the latest after a moment; else a note that the page goes on by itself once it is.

    `ready` is asked with the seconds that it may take to answer.
    """
    if ready(PATIENCE_SECONDS):
        return True

    @st.fragment(run_every=POLL_SECONDS)
    def wait() -> None:
        put(tag("div", tag("span", class_="rw-spin"), doing, class_="rw-waiting"))
        if ready(0.01):
            st.rerun()

    wait()
    return False


PATIENCE_SECONDS, POLL_SECONDS = 0.4, 0.5


def go(page: str, **changed: str | Sequence[str]) -> None:
    """A callback that opens another page with the present selection, some of it changed."""
    st.session_state[_GO] = page, changed


def follow() -> None:
    """Open the page that a callback asked for."""
    page, changed = st.session_state.pop(_GO, (None, None))
    if page is not None:
        st.switch_page(f"views/{page}.py", query_params=state.link(**changed))


_GO = "go"


def jump(label: str, key: str, target: int | None, shortcut: str, explained: str) -> None:
    """A button that puts a number into the address; without a target it rests."""
    st.button(label, key=f"jump_{label}", help=explained, disabled=target is None, shortcut=shortcut, width="stretch",
              on_click=state.put, args=(key, target if target is not None else 0))


def picked(chart_key: str, field: str = "step") -> str | None:
    """A chart's callback: what was clicked; None where the click hit nothing."""
    points = st.session_state[chart_key]["selection"].get("pick", [])
    return str(points[0][field]).removesuffix(".0") if points else None


def pick_step(chart_key: str) -> None:
    """A chart's callback: the step that was clicked goes into the address."""
    step = picked(chart_key)
    if step is not None:
        state.put("step", int(step))


def open_step(chart_key: str, **changed: str) -> None:
    """A chart's callback: the step that was clicked opens in the step browser."""
    step = picked(chart_key)
    if step is not None:
        go("step", **changed, step=step)


def choose_session(sessions: Mapping[str, Mapping[str, object]]) -> str:
    """Let the visitor choose a session; the longest is the default."""
    return one("Session", "session", list(sessions), next(iter(sessions)),
               lambda s: session_title(s, sessions[s]))


def session_title(session: str, entry: Mapping[str, object]) -> str:
    """A session in a list: its id, format and length."""
    return f"{session} · {entry['format']} · {entry['steps']:,} steps"
