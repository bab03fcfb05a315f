"""Carrying out a stage: cut and replace, or blank tool results."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace

from replay.policy.base import Capacity, Cut, Moment, Refusal, Remarked, Summariser, Summary, SummaryRequest
from replay.policy.policy import Stage
from replay.policy.summarising import summarised
from replay.window import Inserted, Item, Span, Window, merged, spans_after, spans_before, spoken_for

FAILURES = ("summary_unavailable", "summary_inflated", "summary_input_too_large")
"""Refusals for which a summary was asked in vain."""


_CLIPPED = "... [summary truncated to fit]"
"""Stands behind a summary that was cut."""
NOTHING_FITS = "fixed sentence"
"""Name of the summariser where the summary call was left out because nothing fits it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """The new window and what became of what was in the old one."""

    window: Window
    dropped: tuple[int, ...] = ()
    summarised: tuple[int, ...] = ()
    elided: tuple[int, ...] = ()
    added: Inserted | None = None
    summariser: str | None = None
    input_tokens: int | None = None
    """Counted tokens that the summariser read."""
    checkpoint: str | None = None
    faults: tuple[str, ...] = ()
    """Mistakes of the imitated harness that showed, as `replay.events.SENTENCES` names them."""


def compact(stage: Stage, moment: Moment, summariser: Summariser, number: int) -> Compacted | Refusal:
    """Cut the window and put a summary in the place of what went."""
    if stage.cut is None:
        return Refusal("no_cut")
    cut = _whole(stage.cut.cut(moment), moment)
    if isinstance(cut, Refusal):
        return cut
    pinned, loose = _split_pinned(moment, spans_before(moment.window.items, cut.keep_from))
    gone = _minus(loose, cut.kept)
    if not gone and not moment.window.summaries() and not cut.may_be_empty:
        return Refusal("no_messages_to_compact")
    if not stage.summarise:
        return _dropped(stage, moment, cut, pinned)
    source = _input(stage, moment, cut)
    previous = moment.window.summaries() if stage.merge_previous and cut.base == "window" else ()
    request = SummaryRequest(log=moment.log, spans=source, previous=previous, step=moment.step,
                             end=moment.window.end, sections=stage.sections, form=stage.summary_form,
                             marks=moment.window.marks)
    asked = _asked(stage, request, cut, summariser, moment.capacity)
    if isinstance(asked, Refusal):
        return asked
    request, summary = asked
    source = request.spans
    if summary is None:
        return Refusal("summary_unavailable")
    summary = _clipped(summary, stage.summary_chars)
    carried = () if summary.forgets else previous
    inserted = _known(_inserted(stage, summary, source, carried), moment.window)
    items = stage.replacement.place(inserted, (*pinned, *cut.kept), _tail(moment, cut), moment)
    window = moment.window.with_items(items)
    if stage.accept == "not-larger" and moment.log.size(window) > moment.log.size(moment.window):
        return Refusal("summary_inflated")
    dropped = _lost(moment, items)
    return Compacted(window=window, added=inserted, summariser=summary.by,
                     input_tokens=request.tokens,
                     dropped=dropped, faults=_faults(cut, dropped, previous, summary),
                     summarised=tuple(i for i in _indices(gone) if _inside(i, source)),
                     checkpoint=f"checkpoint-{number}")


def _faults(cut: Cut, dropped: tuple[int, ...], previous: tuple[Inserted, ...], summary: Summary) -> tuple[str, ...]:
    """Which mistakes of the imitated harness showed."""
    found = ["kept_tail_lost"] if cut.start and any(i < cut.start for i in dropped) else []
    if summary.by == NOTHING_FITS:
        return (*found, "nothing_summarised")
    return (*found, *(["earlier_summary_lost"] if previous and summary.forgets else []))


def _clipped(summary: Summary, chars: int) -> Summary:
    """A summary of no more than so many characters; 0: as it is."""
    if not chars or len(summary.text) <= chars:
        return summary
    return replace(summary, text=f"{summary.text[:chars]}{_CLIPPED}")


def _asked(stage: Stage, request: SummaryRequest, cut: Cut, summariser: Summariser,
           capacity: Capacity) -> tuple[SummaryRequest, Summary | None] | Refusal:
    """What the summariser was given, and its answer; where nothing fits its limit a fixed sentence, or a refusal."""
    if stage.input_limit is None:
        return request, summarised(summariser, request, cut, stage.split_turn, stage.appendix)
    limited = stage.input_limit.limited(request, capacity)
    if isinstance(limited, Refusal):
        return limited
    if limited is None:
        nothing = replace(request, spans=(), previous=())
        return nothing, Summary(text=stage.input_limit.otherwise, by=NOTHING_FITS, forgets=True)
    summary = summarised(summariser, limited, cut, stage.split_turn, stage.appendix)
    forgets = bool(request.previous) and not limited.previous
    return limited, summary if summary is None or not forgets else replace(summary, forgets=True)


def _dropped(stage: Stage, moment: Moment, cut: Cut, pinned: tuple[Span, ...]) -> Compacted:
    """The window without what is cut; earlier summaries go with it."""
    items = stage.replacement.place(None, (*pinned, *cut.kept), _tail(moment, cut), moment)
    return Compacted(window=moment.window.with_items(items), dropped=_lost(moment, items))


def _lost(moment: Moment, items: tuple[Item, ...]) -> tuple[int, ...]:
    """Log messages that the old window held or spoke for and the new one does not."""
    return tuple(_indices(_minus(spoken_for(moment.window), items)))


def _minus(spans: tuple[Span, ...], kept: tuple[Item, ...]) -> tuple[Span, ...]:
    """The log ranges without what kept items hold or stand for."""
    if not kept:
        return spans
    stay = merged(s for item in kept for s in ((item,) if isinstance(item, Span) else item.covers))
    found: list[Span] = []
    for span in spans:
        start = span.start
        for hold in (s for s in stay if s.start < span.stop and s.stop > span.start):
            found.append(Span(start, max(start, hold.start)))
            start = max(start, hold.stop)
        found.append(Span(start, max(start, span.stop)))
    return tuple(s for s in found if s.stop > s.start)


def _indices(spans: tuple[Span, ...]) -> Iterator[int]:
    return (i for span in spans for i in range(span.start, span.stop))


def _whole(cut: Cut | Refusal, moment: Moment) -> Cut | Refusal:
    """The cut where it parts no call from its result: where a prompt stands between them it moves back to the call."""
    if isinstance(cut, Refusal):
        return cut
    whole = moment.log.joints[cut.keep_from]
    return cut if whole == cut.keep_from else replace(cut, keep_from=whole)


def elide(stage: Stage, moment: Moment) -> Compacted | Refusal:
    """Blank tool results by the stage's rule."""
    if stage.tool_results is None:
        return Refusal("no_rule")
    marks = stage.tool_results.marks(moment)
    if isinstance(marks, Refusal):
        return marks
    if isinstance(marks, Remarked):
        return Compacted(window=moment.window._replace(marks=marks.marks), elided=marks.elided)
    window, elided = moment.window, set[int]()
    for mark in marks:
        done = window.rendered_to(mark.rendering)
        counts = moment.log.changed(mark.rendering)
        visible = spans_before(spans_after(window.items, done), mark.stop)
        elided.update(i for s in visible for i in range(s.start, s.stop) if counts[i + 1] > counts[i])
        window = window.with_mark(mark)
    return Compacted(window=window, elided=tuple(sorted(elided)))


def _split_pinned(moment: Moment, spans: tuple[Span, ...]) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """System messages stay whatever is cut; the rest of the spans goes."""
    if not moment.log.pinned:
        return (), spans
    pinned: list[Span] = []
    gone: list[Span] = []
    for span in spans:
        start = span.start
        for index in _within(moment.log.pinned, span):
            gone.append(Span(start, index))
            pinned.append(Span(index, index + 1))
            start = index + 1
        gone.append(Span(start, span.stop))
    return tuple(pinned), tuple(s for s in gone if s.stop > s.start)


def _within(indices: list[int], span: Span) -> list[int]:
    """Those of sorted log indices that lie in a range."""
    return indices[bisect_left(indices, span.start):bisect_left(indices, span.stop)]


def _input(stage: Stage, moment: Moment, cut: Cut) -> tuple[Span, ...]:
    if cut.base == "raw":
        return _split_pinned(moment, (Span(moment.floor, cut.keep_from),))[1]
    stop = moment.window.end if stage.summary_input == "view" else cut.keep_from
    stop = stop if cut.read_until is None else min(stop, cut.read_until)
    spans = spans_before(moment.window.items, stop)
    if cut.start:
        spans = tuple(Span(max(s.start, cut.start), s.stop) for s in spans if s.stop > cut.start)
    loose = _split_pinned(moment, spans)[1]
    return loose if stage.summary_input == "view" else _minus(loose, cut.kept)


def _tail(moment: Moment, cut: Cut) -> tuple[Item, ...]:
    if cut.base == "raw":
        return (Span(cut.keep_from, moment.window.end),)
    return spans_after(moment.window.items, cut.keep_from)


def _inserted(stage: Stage, summary: Summary, source: tuple[Span, ...], previous: tuple[Inserted, ...]) -> Inserted:
    covers = (*(span for p in previous for span in p.covers), *source)
    return Inserted(message=stage.replacement.message(summary.text), kind="summary", covers=merged(covers),
                    tokens=summary.tokens, label=summary.by, source=summary.text)


def _known(made: Inserted, window: Window) -> Inserted:
    """The summary that the window holds already where the new one is equal: a no-gain loop makes thousands."""
    return next((old for old in window.summaries() if old == made), made)


def _inside(index: int, spans: tuple[Span, ...]) -> bool:
    return any(s.start <= index < s.stop for s in spans)
