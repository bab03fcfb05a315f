"""Asking for a summary: in one piece, or of a history and of the turn that a cut parts; what is written behind it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from replay.policy.base import Appendix, Cut, Summariser, Summary, SummaryRequest
from replay.window import Inserted, Span, merged

CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitTurn:
    """Summarises the beginning of a turn that a cut parts apart from the history before it.

    Imitates Pi: the second summary stands behind the first under a heading of its own.
    """

    heading: str = "\n\n---\n\n**Turn Context (split turn):**\n\n"
    no_history: str = "No prior history."
    """Stands for the first summary where no earlier turn goes."""
    carries_previous: bool = True
    """There an earlier summary stands instead (False: it is lost)."""
    sections: tuple[str, ...] = ()
    """Section names of the turn's summary, in order."""


def summarised(summariser: Summariser, request: SummaryRequest, cut: Cut, split: SplitTurn | None,
               appendix: Appendix | None) -> Summary | None:
    """The summary of what is cut; None where there is none to be had."""
    prefix = () if split is None or cut.turn_start is None else _from(request.spans, cut.turn_start)
    if split is None or cut.turn_start is None or not prefix:
        made = summariser.summarise(request)
    else:
        made = _two(summariser, request, split, cut.turn_start, prefix)
    if made is None and cut.may_be_empty:
        made = Summary(text="", by=summariser.name)
    return made if made is None or appendix is None else _with_appendix(made, request, appendix)


def _two(summariser: Summariser, request: SummaryRequest, split: SplitTurn, turn_start: int,
         prefix: tuple[Span, ...]) -> Summary | None:
    """The summary of the history and that of the turn's beginning as one."""
    history = tuple(Span(s.start, min(s.stop, turn_start)) for s in request.spans if s.start < turn_start)
    first = (summariser.summarise(replace(request, spans=history)) if history
             else _no_history(request, split, summariser))
    turn = summariser.summarise(replace(request, spans=prefix, previous=(), sections=split.sections))
    if first is None or turn is None:
        return None
    sized = first.tokens is not None and turn.tokens is not None
    return Summary(text=f"{first.text}{split.heading}{turn.text}", by=turn.by, forgets=first.forgets,
                   tokens=(first.tokens or 0) + (turn.tokens or 0) if sized else None)


def _no_history(request: SummaryRequest, split: SplitTurn, summariser: Summariser) -> Summary:
    if not (split.carries_previous and request.previous):
        return Summary(text=split.no_history, by=summariser.name, forgets=bool(request.previous),
                       tokens=len(split.no_history) // CHARS_PER_TOKEN)
    text = "\n\n".join(plain(p) for p in request.previous)
    known = [p.tokens for p in request.previous if p.tokens is not None]
    return Summary(text=text, by=summariser.name, tokens=sum(known) or len(text) // CHARS_PER_TOKEN)


def plain(summary: Inserted) -> str:
    """The text of a summary in a window without what its replacement put around it."""
    return summary.source if summary.source is not None else summary.message.text


def _with_appendix(summary: Summary, request: SummaryRequest, appendix: Appendix) -> Summary:
    earlier = request.previous if appendix.cumulative else ()
    covers = merged((*(s for p in earlier for s in p.covers), *request.spans))
    text = appendix.text(request.log, covers)
    tokens = None if summary.tokens is None else summary.tokens + len(text) // CHARS_PER_TOKEN
    return replace(summary, text=summary.text + text, tokens=tokens)


def _from(spans: tuple[Span, ...], start: int) -> tuple[Span, ...]:
    return tuple(Span(max(s.start, start), s.stop) for s in spans if s.stop > start)
