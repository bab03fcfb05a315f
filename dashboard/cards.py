"""One lane at one step: its numbers, its decision, its events, its raw view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast, get_args

import orjson
import streamlit as st

from dashboard import widgets
from evals.board import LANES
from evals.browse import OpenSession
from evals.markup import Html, tag
from evals.palette import CLASS_COLOURS
from replay.commands.output import literal, number
from replay.engine import View
from replay.events import Event
from replay.view import Shape, render

HOW = {
    "recorded": "as the provider billed it", "anchored": "billed tokens of this step, corrected by what differs",
    "calibrated": "counted, fitted to the session's bills", "counted": "counted; system prompt and tools unknown",
}
"""How a token figure was obtained."""
STATUS = {"sent": "sent", "refused": "refused: the run ends here",
          "unreached": "never sent: the run had ended before, this view is hypothetical"}
MOST_JSON_CHARS = 100_000
RAW = ("No raw JSON", "Raw JSON of the left view", "Raw JSON of the right view")


def card(opened: OpenSession, policy: str, step: int, title: Html) -> Html:
    """The numbers of a lane's view, the decision before it and what happened."""
    view, lane = opened.view(policy, step), opened.lane(policy)
    usable = opened.capacity.usable
    big = tag("div", f"{view.figure.tokens:,} tokens", class_="rw-card-big")
    share = f"{view.figure.tokens / usable:.0%} of the usable window of {usable:,}; {HOW[view.figure.how]}"
    facts = [("request", STATUS[view.status]),
             ("view", f"{view.print.messages:,} messages, {view.mode.replace('_', ' ')}"),
             ("level", _level(opened, policy, step)), ("decision", _decision(view)),
             *(("event", _event(e)) for e in view.events)]
    rows = [cell for name, text in facts for cell in (tag("dt", name), tag("dd", text))]
    head = tag("div", title, tag("span", lane.kind, class_="rw-form", title=LANES[lane.kind]))
    return tag("div", head, big, tag("div", share, class_="rw-dim"), *_classes(opened, view),
               tag("dl", *rows), class_="rw-card")


def _classes(opened: OpenSession, view: View) -> Iterator[Html]:
    """The view's counted tokens by class, as a bar and in words."""
    sizes = {name: size for name, size in opened.log.by_class(view.window).items() if size}
    parts = [tag("span", style=f"flex:{size};background:{CLASS_COLOURS[name]}",
                 title=f"{name}: {size:,} counted tokens") for name, size in sizes.items()]
    words = [tag("span", tag("span", class_="rw-swatch", style=f"background:{CLASS_COLOURS[name]}"), f"{name} {size:,}")
             for name, size in sizes.items()]
    yield tag("div", *parts, class_="rw-bar")
    yield tag("div", *words, class_="rw-classes")


def _level(opened: OpenSession, policy: str, step: int) -> str:
    first = opened.divergence(policy)
    if first is None:
        return "L0, exact: no view of this lane differs from the record"
    if step < first:
        return f"L0, exact: the first view that differs from the record is at step {first:,}"
    return f"L0, conditional on the agent acting as recorded: views differ from step {first:,} on"


def _decision(view: View) -> str:
    made = view.decision
    if made is None:
        return "none: nothing was considered before this request"
    verdict = "acts" if made.fires else "does nothing"
    return (f"{made.stage} {verdict}: {made.reason.replace('_', ' ')}; its estimate {number(made.estimated_tokens)}, "
            f"threshold {number(made.threshold)}")


def _event(event: Event) -> str:
    kind = ("reactive " if event.reactive and event.kind in ("full", "micro") else "") + _EVENTS[event.kind]
    numbers = [(f"estimate {number(event.estimated_tokens)}", event.estimated_tokens),
               (f"threshold {number(event.threshold)}", event.threshold),
               (f"{number(event.tokens_before)} → {number(event.tokens_after)} counted tokens", event.tokens_after)]
    gone = [(f"{len(event.summarised):,} messages summarised", event.summarised),
            (f"{len(event.dropped):,} dropped", event.dropped),
            (f"{len(event.elided):,} results blanked", event.elided),
            ("no gain", event.futile), (f"summary by {event.summariser}", event.summariser)]
    said = [text for text, present in numbers if present is not None] + [text for text, present in gone if present]
    return ", ".join([f"{kind} ({event.reason.replace('_', ' ')})", *said])


_EVENTS = {"full": "compaction", "micro": "tool results blanked", "clear": "cleared", "skipped": "due change not made",
           "refused": "request refused", "retried": "request accepted on retry", "end": "run ends"}


def raw_json(opened: OpenSession, step: int, ours: str, theirs: str) -> None:
    """Either view as JSON in a provider's shape, on demand: the start on screen, the whole as a file."""
    choice = widgets.switch("Raw JSON", "raw", RAW)
    if choice == RAW[0]:
        return
    policy = ours if choice == RAW[1] else theirs
    shape = cast("Shape", widgets.one("Shape", "shape", get_args(Shape), "openai"))
    shaped = render(opened.log, opened.view(policy, step).window, shape)
    text = orjson.dumps(shaped, option=orjson.OPT_INDENT_2).decode()
    if len(text) > MOST_JSON_CHARS:
        st.text(f"The first {MOST_JSON_CHARS:,} of {len(text):,} characters; the file has all of them.")
    st.code(literal(text[:MOST_JSON_CHARS]), language="json", wrap_lines=True, height=420)
    st.download_button("Download this view", text, file_name=f"step-{step}.json", mime="application/json")
