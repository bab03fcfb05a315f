"""Every change of one lane's window: what went in, what came out, what the summary kept and lost, whether it paid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evals.browse import OpenSession
from evals.metrics.base import Trial
from evals.metrics.cost import PayBack, pay_backs
from evals.metrics.summary_quality import ungrounded
from evals.tally import RECOVERABLE, SUMMARY
from evals.watch import FATES, Fate, study, watched
from replay.events import Event

CHANGES = ("full", "micro", "clear")
MOST_LOST = 8
"""Heaviest losses that are listed for one change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostPiece:
    """Something that went away and that the agent used before the next change."""

    text: str
    source: int
    """Log index of the newest message that holds it."""
    step: int
    """Number of the step that used it."""
    fate: Fate


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One change of the window."""

    event: Event
    until: int
    """Number of the last step before the next change."""
    went_in: tuple[int, ...]
    """Log indices that left the view or were blanked by it."""
    summary: str | None
    summary_tokens: int | None
    """Counted tokens of the summary."""
    summary_units: float | None
    """What the summary call cost as input, in uncached-token equivalents (L1); None without a summary."""
    pay_back: PayBack | None
    """None where it broke no cached prefix."""
    used: int
    """Pieces of what went in that the agent used before the next change."""
    kept: int
    """Those of them that the view still held: in the summary, or elsewhere word for word."""
    lost: tuple[LostPiece, ...]
    ungrounded: tuple[int, int]
    """Specifics of the summary that stand nowhere in what it speaks for, and all its specifics."""


def cards(opened: OpenSession, policy: str) -> list[Card]:
    """The changes of a lane, in order."""
    trial = opened.followed(policy)
    changes = [e for e in trial.lane.events if e.kind in CHANGES]
    ends = [*(e.step - 1 for e in changes[1:]), len(trial.lane.views)][:len(changes)]
    paid = {p.step: p for p in pay_backs(trial)}
    return [_card(trial, event, max(end, event.step), paid.get(event.step))
            for event, end in zip(changes, ends, strict=True)]


def _card(trial: Trial, event: Event, until: int, paid: PayBack | None) -> Card:
    gone = tuple(sorted({*event.summarised, *event.dropped, *event.elided}))
    used, lost = _used(trial, event, until, frozenset(gone))
    log, factor = trial.session.log, trial.session.calibration.factor
    size = log.inserted_size(event.added, log.tokens) if event.added else None
    read = event.summary_input_tokens
    return Card(event=event, until=until, went_in=gone, summary=event.added.message.text if event.added else None,
                summary_tokens=size, summary_units=None if read is None else factor * read, pay_back=paid,
                used=used, kept=used - len(lost), lost=tuple(lost[:MOST_LOST]),
                ungrounded=ungrounded(study(trial.session).evidence, event))


def _used(trial: Trial, event: Event, until: int, gone: frozenset[int]) -> tuple[int, list[LostPiece]]:
    """How many needs of the steps under this change had their newest place in what went away, and the lost ones."""
    own, fates = study(trial.session), watched(trial).fates
    needs, units = own.evidence.needs, own.evidence.index.units
    rows = [i for step in range(event.step - 1, until) for i in needs.bounds.get(step, ())
            if not own.censored[i] and units[needs.latest[i]].message in gone]
    lost = sorted((i for i in rows if fates[i] >= RECOVERABLE), key=lambda i: -needs.rows[i].weight)
    return len(rows), [LostPiece(text=needs.rows[i].span.text, source=units[needs.latest[i]].message,
                                 step=needs.rows[i].step + 1, fate=FATES[fates[i]]) for i in lost]


COLUMNS = ("#", "step", "what", "why", "went in", "before → after", "gain", "summary", "its input", "pays back",
           "used later", "of it kept")
"""Headings of `words`."""


def words(number: int, card: Card) -> tuple[str, ...]:
    """A card as a row of a table; – stands for what there is not."""
    event = card.event
    kind = {"full": "compaction", "micro": "results blanked", "clear": "cleared"}[event.kind]
    sizes = "–" if event.gain is None else f"{event.tokens_before:,} → {event.tokens_after:,}"
    return (f"{number:,}", f"{event.step:,}", f"reactive {kind}" if event.reactive else kind,
            event.reason.replace("_", " "), f"{len(card.went_in):,} messages", sizes,
            "–" if event.gain is None else f"{event.gain:,}", _tokens(card.summary_tokens),
            _tokens(event.summary_input_tokens), paid(card.pay_back), f"{card.used:,}",
            "–" if not card.used else f"{card.kept / card.used:.0%}")


def _tokens(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def paid(found: PayBack | None) -> str:
    """When a change that broke a cached prefix has saved what the break cost (L1)."""
    if found is None:
        return "no prefix broken"
    if found.break_even_steps is None:
        return "never: nothing saved"
    if found.break_even_steps == 0:
        return "at once"
    verdict = "paid" if found.paid else f"unpaid: {found.steps_until_next:,} left"
    return f"after {found.break_even_steps:,} steps ({verdict})"


def in_summary(opened: OpenSession, policy: str, card: Card) -> tuple[int, ...]:
    """Log indices of messages that went in and of which the summary still held something that was used."""
    own, trial = study(opened.session), opened.followed(policy)
    needs, units, fates = own.evidence.needs, own.evidence.index.units, watched(trial).fates
    gone = frozenset(card.went_in)
    found = {units[needs.latest[i]].message for step in range(card.event.step - 1, card.until)
             for i in needs.bounds.get(step, ()) if fates[i] == SUMMARY}
    return tuple(sorted(found & gone))


def summaries(found: Iterable[Card]) -> Sequence[int]:
    """Numbers (from 1) of the cards that have a summary with a text."""
    return [n for n, card in enumerate(found, 1) if card.summary]
