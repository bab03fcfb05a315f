"""One change of a window as a card: what went in, the summary, what it kept and lost, gain, cost and pay-back."""

from __future__ import annotations

import streamlit as st

from dashboard import evidence, messages, widgets
from evals.browse import OpenSession
from evals.compaction_cards import Card, LostPiece, in_summary, paid
from evals.markup import Html, joined, tag
from evals.side_by_side import ranges
from replay.commands.output import number
from replay.events import Event


def show(opened: OpenSession, policy: str, place: int, card: Card, key: str) -> None:
    """The card on the page, with a way to its step."""
    event = card.event
    title = tag("div", tag("b", f"#{place:,} at step {event.step:,}"), tag("span", event.kind, class_="rw-form"),
                *([tag("span", "reactive", class_="rw-form")] if event.reactive else []))
    facts = [*_decided(event), *_sizes(card), *_kept(opened, policy, card)]
    cells = [cell for name, text in facts for cell in (tag("dt", name), tag("dd", text))]
    sentence = [tag("p", event.sentence, class_="rw-lead")] if event.sentence else []
    widgets.put(tag("div", title, tag("dl", *cells), *sentence, *_lost(card), class_="rw-card"))
    st.button(f"Open step {event.step:,}", key=f"open_{key}", width="stretch", on_click=widgets.go, args=("step",),
              kwargs={"a": policy, "step": str(event.step)})
    if card.summary is None:
        widgets.put(tag("p", "It has no summary: results were blanked, or messages dropped.", class_="rw-lead"))
        return
    title = tag("div", tag("b", "Its summary"), class_="rw-message-head")
    widgets.put(tag("div", title, messages.text_box(card.summary), class_="rw-cell rw-views rw-b-added rw-summary"))


def _decided(event: Event) -> list[tuple[str, str]]:
    return [("why", event.reason.replace("_", " ")),
            ("estimate", f"{number(event.estimated_tokens)} against a threshold of {number(event.threshold)}"),
            ("stage", event.stage)]


def _sizes(card: Card) -> list[tuple[str, str]]:
    event = card.event
    parts = ((len(event.summarised), "summarised"), (len(event.dropped), "dropped"), (len(event.elided), "blanked"))
    went = ", ".join(f"{count:,} {word}" for count, word in parts if count) or "nothing"
    facts = [("went in", f"{went} (#{messages.cut(ranges(card.went_in), 60)})" if card.went_in else went),
             ("view", f"{number(event.tokens_before)} → {number(event.tokens_after)} counted tokens, "
                      f"gain {number(event.gain)}")]
    if card.summary_tokens is not None:
        units = "–" if card.summary_units is None else f"{card.summary_units:,.0f}"
        facts.append(("summary", f"{card.summary_tokens:,} counted tokens by {event.summariser or 'the record'}, made "
                                 f"from {number(event.summary_input_tokens)}; its call reads {units} tokens uncached "
                                 "(L1)"))
    broken = card.pay_back
    penalty = f": {broken.penalty_units:,.0f} units for {broken.saved_per_step:,.0f} a step (L1)" if broken else ""
    return [*facts, ("pays back", paid(broken) + penalty)]


def _kept(opened: OpenSession, policy: str, card: Card) -> list[tuple[str, str]]:
    used = f"{card.used:,} pieces of it up to step {card.until:,}; the view still held {card.kept:,}"
    facts = [("used later", used if card.used else f"nothing of it up to step {card.until:,}")]
    held = in_summary(opened, policy, card)
    if held:
        facts.append(("by summary", f"kept what was used of #{messages.cut(ranges(held), 60)}"))
    bad, specifics = card.ungrounded
    if specifics:
        facts.append(("grounded", f"{specifics - bad:,} of {specifics:,} specifics of the summary stand in what it "
                                  "speaks for"))
    return facts


def _lost(card: Card) -> list[Html]:
    if not card.lost:
        return []
    return [tag("div", "Lost although it was used:", class_="rw-lead"),
            tag("ul", *map(_piece, card.lost), class_="rw-list")]


def _piece(lost: LostPiece) -> Html:
    return tag("li", joined(evidence.chip(lost.fate), " ", tag("code", messages.cut(lost.text, 70), class_="rw-code"),
                            f" of #{lost.source:,}, used at step {lost.step:,}"))


def compared(left: str | None, right: str | None) -> None:
    """The two summaries against each other, line by line and word by word."""
    if left is None or right is None:
        return
    widgets.heading("The two summaries against each other", "− is only in the right one, + only in the left one.")
    if left == right:
        widgets.put(tag("p", "Both are the same text.", class_="rw-lead"))
        return
    widgets.put(tag("div", messages.text_difference(right, left, True), class_="rw-cell rw-views"))
