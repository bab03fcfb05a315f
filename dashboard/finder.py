"""Messages found by text, pattern, tool or path; one of them whole, with how it fared in both lanes and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from dashboard import evidence, messages, state, widgets
from evals.browse import OpenSession
from evals.markup import Html, joined, tag
from evals.message_search import Hit, Query, search, tools_of, words
from evals.passages import Passage, State, exit_of, passages
from replay.events import Event

LISTED = 10
"""Hits that are listed."""
ANY = "any tool"
_AS_THEY_STAND = "Else the words are searched as they stand; case is ignored"
STATES: Mapping[State, str] = {"verbatim": "● in the view, word for word", "altered": "◐ in the view, blanked or cut",
                               "summarised": "◐ gone, a summary speaks for it", "absent": "✕ gone, in no summary"}


def show(opened: OpenSession, pair: tuple[str, str], titles: tuple[Html, Html]) -> None:
    """The panel on the page."""
    query = _query(opened)
    if not query.is_empty:
        _hits(opened, query)
    chosen = evidence.numbers("Message (# in the log)", "m", len(opened.log) - 1)
    if chosen is None:
        widgets.callout("note", "No message chosen", "Search above and open a hit, or give a message's number: its "
                        "text is shown, and the step at which each policy took it out of the view, and why.")
        return
    _message(opened, chosen, dict(zip(pair, titles, strict=True)))


def _query(opened: OpenSession) -> Query:
    columns = st.columns([4, 2, 2, 3], vertical_alignment="bottom")
    with columns[0]:
        text = widgets.text("Search messages", "q", "words of a message")
    with columns[1]:
        pattern = widgets.tick("Regular expression", "regex", _AS_THEY_STAND)
    with columns[2]:
        tool = widgets.one("Tool", "tool", [ANY, *tools_of(opened.log)], ANY)
    with columns[3]:
        path = widgets.text("Path", "path", "part of a file's path")
    return Query(text=text, is_pattern=pattern, tool="" if tool == ANY else tool, path=path)


def _hits(opened: OpenSession, query: Query) -> None:
    found = search(opened.log, query)
    widgets.put(tag("p", "; ".join(words(found, opened.log)), ".", class_="rw-lead rw-count"))
    if not found.hits:
        return
    columns = [joined(name) for name in ("message", "from step", "who", "where it matches")]
    widgets.put(tag("div", widgets.table(columns, [_row(hit) for hit in found.hits[:LISTED]]), class_="rw-words"))
    if len(found.hits) > LISTED:
        widgets.put(tag("p", f"The first {LISTED} are listed; add words, a tool or a path to see others.",
                        class_="rw-lead"))
    widgets.picks("Open a hit", "open_hit", [str(h.index) for h in found.hits[:LISTED]], evidence.look_at,
                  lambda place: f"#{place}")


def _row(hit: Hit) -> list[Html]:
    line = tag("code", " ".join(hit.before.split("\n")), tag("mark", hit.match), " ".join(hit.after.split("\n")),
               class_="rw-code rw-hit")
    who = " ".join([hit.role, *hit.tools])
    return [joined(f"#{hit.index:,}"), joined("–" if hit.step is None else f"{hit.step:,}"), joined(who), line]


def _message(opened: OpenSession, index: int, sides: Mapping[str, Html]) -> None:
    message = opened.log.messages[index]
    detail = f" ({message.detail})" if message.detail else ""
    title = joined(tag("b", f"#{index:,} {message.role}"), tag("span", f" {message.origin}{detail}", class_="rw-dim"))
    widgets.put(messages.plain(message, opened, "rw-b-same rw-focus", title))
    for position, (column, (policy, name)) in enumerate(zip(st.columns(len(sides)), sides.items(), strict=False)):
        with column:
            found = passages(opened.log, opened.lane(policy), index)
            widgets.put(tag("div", tag("div", name), _history(found), class_="rw-card"))
            _exit(exit_of(found), ("left", "right")[position])


def _history(found: Sequence[Passage]) -> Html:
    if not found:
        return tag("p", "No step came after it, so no view could show it.", class_="rw-lead")
    lines = [tag("li", f"from step {p.step:,}: {STATES[p.state]}", *_why(p.event)) for p in found[:12]]
    more = [tag("li", f"{len(found) - 12:,} more changes")] if len(found) > 12 else []
    return tag("ul", *lines, *more, class_="rw-list")


def _why(event: Event | None) -> list[Html]:
    if event is None:
        return []
    numbers = [f"{name} {value:,}" for name, value in (("estimate", event.estimated_tokens),
                                                       ("threshold", event.threshold)) if value is not None]
    kind = {"full": "compaction", "micro": "tool results blanked", "clear": "cleared"}.get(event.kind, event.kind)
    reason = ", ".join([event.reason.replace("_", " "), *numbers])
    return [tag("div", f"{'reactive ' if event.reactive else ''}{kind}: {reason}. {event.sentence}".rstrip(),
                class_="rw-small")]


def _exit(found: Passage | None, side: str) -> None:
    label = f"Go to the step where the {side} view lost it"
    st.button(label, key=f"exit_{side}", disabled=found is None, width="stretch",
              on_click=state.put, args=("step", found.step if found else 1),
              help="It never left this view" if found is None else f"Step {found.step:,}")
