"""Summaries without a model: invented specifics (B13) and how near a summary comes to the best of its size (B14)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from evals.metrics.base import Measurement, Trial, missing
from evals.needs import Evidence
from evals.spans import TextSpan, is_masked, wants_of
from evals.spans_index import UnitIndex, block_text
from evals.tally import VERBATIM, Tally
from evals.watch import Study, Watched, study, watched
from replay.blocks import Text
from replay.events import Event
from replay.transcript import Message
from replay.window import Span

RARE_BLOCKS = 3
"""An identifier in more blocks of the log than this is not specific."""
FRAME_TOKENS = 4
"""What a line of an ideal summary costs besides its span."""
BOUNDS = ("evidence_floor", "evidence_ceiling", "summary_efficiency")
_CUT_OFF = re.compile(r"\S*…")
_CODE_LIKE = re.compile(r"[a-z0-9][A-Z]|_|\d")


@dataclass(frozen=True)
class Groundedness:
    """Share of the specifics in a lane's summaries that stand nowhere in what was summarised."""

    name: str = "groundedness"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """`summary_ungrounded_share` and the number of specifics; missing without a readable summary."""
        evidence = study(trial.session).evidence
        found = [ungrounded(evidence, event, _head_text(trial)) for event in _summaries(trial)]
        specifics = sum(all_of for _, all_of in found)
        if not specifics:
            return [missing("summary_ungrounded_share", "no summary names anything specific"),
                    Measurement(name="summary_specifics", value=0)]
        return [Measurement(name="summary_ungrounded_share", value=sum(bad for bad, _ in found) / specifics),
                Measurement(name="summary_specifics", value=specifics)]


def _summaries(trial: Trial) -> list[Event]:
    """The events that put a summary with a text into the view, each text once."""
    made = {e.added.message.text: e for e in trial.lane.events if e.added is not None}
    return [e for text, e in made.items() if text.strip()]


def _head_text(trial: Trial) -> str:
    return "\n".join(block_text(b) for item in trial.lane.head for b in item.message.blocks)


def ungrounded(evidence: Evidence, event: Event, besides: str = "") -> tuple[int, int]:
    """How many of a summary's specifics are in none of the blocks that it speaks for, and how many it has.

    Pinned messages and `besides`, a text in front of every view, ground a specific too.
    """
    if event.added is None:
        return 0, 0
    found = specifics(evidence, event.added.message.text)
    covers = (*event.added.covers, *(Span(i, i + 1) for i in evidence.log.pinned))
    return sum(s.text not in besides and not _stands_in(evidence.index, s, covers) for s in found), len(found)


def specifics(evidence: Evidence, text: str) -> list[TextSpan]:
    """What a summary says that can be checked word for word: paths, URLs, numbers, hashes, rare identifiers."""
    known: dict[str, tuple[TextSpan, ...]] = vars(evidence).setdefault("_specifics", {})
    found: dict[TextSpan, None] = {}
    # Successive summaries share most of their lines: each is looked at once.
    for line in text.split("\n"):
        if line not in known:
            known[line] = tuple(_specifics(evidence, line))
        found.update(dict.fromkeys(known[line]))
    return list(found)


def _specifics(evidence: Evidence, line: str) -> Iterator[TextSpan]:
    for want in wants_of(_CUT_OFF.sub(" ", line)):
        for span in want.parts or (want.whole,):
            if is_masked(span):
                continue
            if span.kind in ("path", "number") or (span.kind == "identifier" and _CODE_LIKE.search(span.text)
                                                   and evidence.index.frequency(span.text) <= RARE_BLOCKS):
                yield span


def _stands_in(index: UnitIndex, span: TextSpan, covers: Sequence[Span]) -> bool:
    """Whether a message of the ranges holds a span."""
    places, first = index.locate(span), index.first_unit
    return any(bisect_left(places, first[c.start]) < bisect_left(places, first[c.stop]) for c in covers)


@dataclass(frozen=True)
class SummaryBounds:
    """Retention with empty summaries, with the best ones of the same size, and where the lane stands between them.

    The best ones know the recorded future: no summariser could reach them on line.
    """

    name: str = "summary-bounds"

    def measure(self, trial: Trial) -> Iterable[Measurement]:
        """`evidence_floor`, `evidence_ceiling`, `summary_efficiency`; missing where no summary came into view."""
        own = study(trial.session)
        tally = Tally(own.scale, watched(trial).fates)
        events = [e for e in trial.lane.events if e.added is not None]
        if not events or not own.scale.total:
            reason = "no summary in this lane" if not events else "nothing was needed that the recorded view held"
            return [missing(n, reason) for n in BOUNDS]
        floor, in_summary, *_ = tally.shares()
        gone = _not_verbatim(own, watched(trial))
        best = sum(_best(own.evidence, gone, event, stop) for event, stop in _reigns(events, len(trial.lane.views)))
        # A summary in which spans share their words may beat the ideal one, which pays for each of them.
        ceiling = max(floor + best / own.scale.total, floor + in_summary)
        return [Measurement(name=BOUNDS[0], value=floor), Measurement(name=BOUNDS[1], value=ceiling),
                _efficiency(floor, floor + in_summary, ceiling)]


def _efficiency(floor: float, kept: float, ceiling: float) -> Measurement:
    if ceiling - floor < 1e-12:
        return missing(BOUNDS[2], "no summary of this size could have kept more")
    return Measurement(name=BOUNDS[2], value=(kept - floor) / (ceiling - floor))


def _reigns(events: Sequence[Event], steps: int) -> Iterator[tuple[Event, int]]:
    """Each summary with the position of the first step that no longer sees it."""
    last = {e.step: e for e in events}
    ordered = sorted(last.values(), key=lambda e: e.step)
    yield from zip(ordered, [*(e.step - 1 for e in ordered[1:]), steps], strict=True)


def _not_verbatim(own: Study, seen: Watched) -> list[tuple[int, int]]:
    """Steps and numbers of the needs that count and that the view does not hold word for word, in order."""
    rows = own.evidence.needs.rows
    return [(rows[i].step, i) for i, fate in enumerate(seen.fates) if fate != VERBATIM and not own.censored[i]]


def _best(evidence: Evidence, gone: Sequence[tuple[int, int]], event: Event, stop: int) -> float:
    """Weight that an ideal summary of an event's size keeps of what is not in view verbatim while it reigns."""
    inserted = event.added
    if inserted is None:
        return 0.0
    values = dict[int, float]()
    for _, row in gone[bisect_left(gone, (event.step - 1, -1)):bisect_left(gone, (stop, -1))]:
        number = evidence.needs.span[row]
        if number in values or _summarised(evidence, number, inserted.covers):
            values[number] = values.get(number, 0.0) + evidence.needs.rows[row].weight
    budget = evidence.log.inserted_size(inserted, evidence.log.tokens)
    return oracle(list(values.values()), span_costs(evidence, list(values)), budget)


def _summarised(evidence: Evidence, number: int, covers: Sequence[Span]) -> bool:
    return _stands_in(evidence.index, evidence.spans[number], covers)


def span_costs(evidence: Evidence, numbers: Sequence[int]) -> list[int]:
    """Tokens that each span takes in an ideal summary."""
    known: dict[int, int] = vars(evidence).setdefault("_span_costs", {})
    fresh = [n for n in numbers if n not in known]
    texts = (Text(text=evidence.spans[n].text) for n in fresh)
    messages = [Message(index=-1, role="user", blocks=(text,), origin="summary") for text in texts]
    known.update(zip(fresh, evidence.log.counter.tokens(messages), strict=True))
    return [known[n] + FRAME_TOKENS for n in numbers]


def oracle(values: Sequence[float], costs: Sequence[float], budget: float) -> float:
    """The most value that a budget buys, best value for its cost first, the last one in part."""
    total = 0.0
    for value, cost in sorted(zip(values, costs, strict=True), key=lambda pair: -pair[0] / pair[1]):
        share = min(1.0, budget / cost)
        if share <= 0:
            break
        total += value * share
        budget -= cost * share
    return total
