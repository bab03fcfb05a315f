"""What is on screen, kept in the address: a URL reproduces it, back and forward work, a link can be shared.

The address is the truth. A widget writes its value there before the page runs, and the page reads it from
there; what the address leaves out is the default. A visitor who goes to another page takes the selection along.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

KEYS = ("run", "session", "step", "a", "b", "p", "metric", "show", "at", "scale", "raw", "shape",
        "harness", "length", "outcome", "cols", "x", "y", "q", "regex", "tool", "path", "m", "policy", "c1", "c2",
        "mark", "words", "losses", "place", "sx", "sy", "with", "folder", "ours", "theirs")
"""Query parameters: run, session, step, the two policies compared, the policies drawn, the headline metric,
what is shown of the two views, the first of the rows shown, the scale of the curve, whose raw JSON is shown and in
which shape; the sessions compared, the measurements shown, the axes of the scatter; the words, tool and path searched
for, the message looked at; the policy whose compactions are shown and which two of them; the marks and words of
annotations, and whether losses are listed; the parameters of a sweep on the axes; the run compared with, by its name
or its folder, and the policy looked at in either run; what is imported."""

_PAGE, _KEPT = "page", "kept"


def enter(page: str) -> None:
    """Note the page; one that was reached without a selection takes over that of the page before."""
    if st.session_state.get(_PAGE) not in (None, page) and not any(k in st.query_params for k in KEYS):
        for key, values in st.session_state.get(_KEPT, {}).items():
            st.query_params[key] = values
    st.session_state[_PAGE] = page
    st.session_state[_KEPT] = {k: st.query_params.get_all(k) for k in KEYS if k in st.query_params}


def one(key: str, options: Sequence[str], default: str) -> str:
    """The chosen one of the options; the default where the address names none of them."""
    value = st.query_params.get(key, default)
    return value if value in options else default


def many(key: str, options: Sequence[str], default: Sequence[str]) -> list[str]:
    """The chosen ones of the options, in their order."""
    if key not in st.query_params:
        return list(default)
    chosen = set(st.query_params.get_all(key))
    return [o for o in options if o in chosen]


def text(key: str) -> str:
    """The text given; empty where there is none."""
    return st.query_params.get(key, "")


def number(key: str, low: int, high: int, default: int) -> int:
    """The chosen whole number, kept between the bounds."""
    value = st.query_params.get(key, "")
    return min(max(int(value), low), high) if value.isascii() and value.isdigit() else default


def put(key: str, value: str | int | Sequence[str]) -> None:
    """Write a value into the address; what depends on it falls back to its default."""
    if value in ("", None):
        st.query_params.pop(key, None)
    else:
        st.query_params[key] = [*value] if not isinstance(value, (str, int)) else str(value)
    for dependent in _DEPENDENTS.get(key, ()):
        st.query_params.pop(dependent, None)


_DEPENDENTS = {"run": ("session", "step", "a", "b", "p", "metric", "at", "m", "tool", "harness", "length",
                       "outcome", "x", "y", "policy", "c1", "c2", "sx", "sy", "ours", "theirs"),
               "session": ("step", "at", "m", "tool", "c1", "c2"), "policy": ("c1", "c2"),
               "step": ("at",), "a": ("at",), "b": ("at",), "show": ("at",)}


def widget_key(key: str) -> str:
    """The key of the widget that chooses a parameter."""
    return f"choose_{key}"


def store(key: str) -> None:
    """A widget's callback: its value goes into the address."""
    put(key, st.session_state[widget_key(key)])


def link(**changed: str | Sequence[str]) -> dict[str, str | list[str]]:
    """The query parameters of the present selection, with some of them changed."""
    kept: dict[str, str | list[str]] = {k: st.query_params.get_all(k) for k in KEYS if k in st.query_params}
    return kept | {k: v if isinstance(v, str) else [*v] for k, v in changed.items()}
