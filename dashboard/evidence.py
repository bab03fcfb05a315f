"""What the recorded agent did next, and every piece of evidence that it used, by its fate in both views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from dashboard import messages, state, widgets
from evals.browse import OpenSession
from evals.evidence_at import FATE_MEANINGS, Used, fate_counts, used_at
from evals.markup import Html, joined, tag
from evals.watch import Fate

FIND = "Find a message"
"""The panel of the step browser that shows one message."""
SIGNS: Mapping[Fate, str] = {"verbatim": "●", "summary": "◐", "recoverable": "↻", "lost": "✕"}
MOST = 30
"""Pieces of evidence that are listed; the heaviest come first."""


def show(opened: OpenSession, step: int, ours: str, theirs: str, titles: tuple[Html, Html]) -> None:
    """The section on the page."""
    widgets.heading("What the recorded agent did next", "Its answer at this step, under the recorded view.")
    widgets.put(messages.answer(opened, step))
    used = used_at(opened, step, tuple(dict.fromkeys((ours, theirs))))
    if not used:
        widgets.put(tag("p", "It names nothing that stood in the log before, so no view could have failed it here.",
                        class_="rw-lead"))
        return
    widgets.heading("What it used of what came before", "Paths, names, numbers, lines and errors of its calls, the "
                    "rarest first, and what each view still held of them. Held is an upper bound of what a model would "
                    "use; lost is the reliable side.")
    widgets.put(_legend(used, (ours, theirs), titles), _table(used[:MOST], (ours, theirs), titles))
    if len(used) > MOST:
        widgets.put(tag("p", f"{len(used) - MOST:,} lighter pieces are not listed.", class_="rw-lead"))
    places = list(dict.fromkeys(str(u.source) for u in used[:MOST]))
    widgets.picks("Open the message where it stood", "open_source", places, look_at, lambda place: f"#{place}")


def look_at(place: str) -> None:
    """A callback: show a message of the log."""
    state.put("m", place)
    state.put("show", FIND)


def _legend(used: Sequence[Used], pair: tuple[str, str], titles: tuple[Html, Html]) -> Html:
    """How many pieces met each fate in both views, and what the fates mean."""
    rows = [tag("div", title, " ", *(tag("span", chip(fate), f" {count:,}", class_="rw-key")
                                     for fate, count in fate_counts(used, policy).items() if count),
                class_="rw-legend") for policy, title in dict(zip(pair, titles, strict=True)).items()]
    met = [f for f in FATE_MEANINGS if any(u.fates[p] == f for u in used for p in pair)]
    meanings = tag("p", *(joined(chip(fate), f" {FATE_MEANINGS[fate]}. ") for fate in met), class_="rw-lead")
    return joined(*rows, meanings)


def chip(fate: Fate) -> Html:
    """A fate as sign, word and colour."""
    return tag("span", f"{SIGNS[fate]} {fate}", class_=f"rw-label rw-f-{fate}", title=FATE_MEANINGS[fate])


def _table(used: Sequence[Used], pair: tuple[str, str], titles: tuple[Html, Html]) -> Html:
    sides = dict(zip(pair, titles, strict=True))
    columns = [joined("evidence"), joined("kind"), joined("used by"), joined("stood in"), *sides.values()]
    return tag("div", widgets.table(columns, [_row(u, tuple(sides)) for u in used]), class_="rw-words")


def _row(used: Used, policies: Sequence[str]) -> list[Html]:
    first = f", first in #{used.first:,}" if used.first != used.source else ""
    besides = [] if used.counted else [tag("div", "not in the recorded view either: counts for no policy",
                                           class_="rw-small")]
    return [joined(tag("code", messages.cut(used.text, 90), class_="rw-code"), *besides), joined(used.kind),
            joined(used.tool or "–"), joined(f"#{used.source:,}{first}"), *(chip(used.fates[p]) for p in policies)]


def marked(fate: Fate | None) -> str:
    """The look of a box that holds something of this fate."""
    return "rw-b-same" if fate is None else f"rw-fb-{fate}"


def numbers(label: str, key: str, last: int) -> int | None:
    """The message looked at; None where none is chosen."""
    if not state.text(key).isdigit():
        st.session_state[state.widget_key(key)] = None
        st.number_input(label, 0, last, step=1, key=state.widget_key(key), on_change=state.store, args=(key,))
        return None
    return widgets.number(label, key, 0, last, 0)
