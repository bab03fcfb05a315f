"""The lane of own code: it is offered every step's messages, and what it gives is the view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import orjson

from replay.engine import Status, View
from replay.events import Event
from replay.fingerprint import Chain
from replay.own.base import Edit, Native, OwnCode, OwnCodeError, Turn, checked
from replay.own.lineage import Lineage
from replay.own.natives import joined
from replay.policy.advance import Arrived, Setting
from replay.tokens.calibrated import Figure
from replay.window import Inserted, Window

EMPTY = Window()
_STAGE = "own code"
RETRIES = 3
"""Times that own code may make another view of a step whose request was refused."""


@dataclass
class OwnLane:
    """One session under own code. The whole view goes in and out at every step, so the work grows as its square."""

    setting: Setting
    code: OwnCode
    edit: Edit
    session: str
    lineage: Lineage
    history: list[Native] = field(default_factory=list)
    """What the code is offered next: what it gave, or everything, with what has arrived since."""
    offered: Window = EMPTY
    """What the code was offered last, or gave where that is the history."""
    shown: Window = EMPTY
    """What was sent last."""
    state: Native = field(default_factory=dict)
    seen: int = 0
    ended: int | None = None

    def views(self, arrivals: Sequence[Arrived]) -> Iterator[View]:
        """A view for each step. Raises OwnCodeError."""
        chain, checkpoint = Chain(self.setting.log), None
        for arrived in arrivals:
            events = list(self._arrive(arrived))
            if arrived.response is not None:
                self.state["tokens"] = self.state.get("input_tokens", 0) + arrived.output_tokens
            offered = self.offered.extended(arrived.stop)
            shown, figure, counted = self._sent(arrived, offered, events)
            checkpoint = next((e.checkpoint for e in reversed(events) if e.checkpoint), checkpoint)
            yield View(step=arrived.step, window=shown, counted=counted, figure=figure, decision=None,
                       events=tuple(events), print=chain.follow(shown), status=_status(self.ended, arrived.step),
                       checkpoint=checkpoint if shown.summaries() else None)
            self.shown, self.offered = shown, shown if self.code.persists else offered

    def _sent(self, arrived: Arrived, offered: Window, events: list[Event]) -> tuple[Window, Figure, int]:
        """The view that is sent: one that does not fit is refused, and the code may make another."""
        step, usable = arrived.step, self.setting.capacity.usable
        before = self.shown.extended(arrived.stop)
        for refused in range(RETRIES + 1):
            shown = self._edited(step, offered, refused)
            events += self._changes(step, before, shown, refused)
            counted = self.setting.log.size(shown)
            figure = self.setting.figure(step, counted)
            fits = figure.tokens <= usable
            if fits or self.ended is not None or (refused and shown == before):
                break
            events.append(_refusal(step, figure.tokens, usable))
            before = shown
        if fits and refused:
            events.append(Event(kind="retried", step=step, stage=_STAGE, reason="prompt_too_long", reactive=True))
        if not fits and self.ended is None:
            self.ended = step
            events.append(Event(kind="end", step=step, stage="", reason="retry_exhausted", reactive=True))
        self.state["input_tokens"] = figure.tokens
        return shown, figure, counted

    def _arrive(self, arrived: Arrived) -> Iterator[Event]:
        """Take what came since the last step into the history; a person may have wiped it before."""
        for message in self.setting.log.messages[self.seen:arrived.stop]:
            if message.index == arrived.cleared_at:
                yield from self._clear(arrived)
            self.history += self.lineage.add(message)
        if arrived.cleared_at == arrived.stop > self.seen:
            yield from self._clear(arrived)
        self.seen = max(self.seen, arrived.stop)

    def _clear(self, arrived: Arrived) -> Iterator[Event]:
        at = arrived.cleared_at or 0
        before = self.shown.extended(at)
        yield Event(kind="clear", step=arrived.step, stage="", reason="cleared_by_person",
                    dropped=tuple(before.indices()))
        self.offered = self.shown = Window(end=at)
        self.history, self.state = [], {}

    def _edited(self, step: int, offered: Window, refused: int) -> Window:
        setting = self.setting
        self.state |= {"step": step, "window": setting.capacity.usable, "session": self.session, "refused": refused}
        turn = Turn(_copies(joined(self.history, self.code.shape)), self.state)
        given = checked(self.edit(turn), setting.policy.name, step)
        try:
            shown = self.lineage.window(given, offered)
        except TypeError as error:
            raise OwnCodeError(f"{setting.policy.name}: step {step}: gave what is no JSON: {error}") from error
        if self.code.persists:
            self.history = _copies(given)
        return shown

    def _changes(self, step: int, before: Window, after: Window, refused: int) -> Iterator[Event]:
        """What the code did, as events: something new in place of what went, or results in another form."""
        visible, changed, was_changed = set(after.indices()), _changed(after), _changed(before)
        gone = tuple(i for i in before.indices() if i not in visible and i not in changed)
        added = next((s for s in after.summaries() if all(s is not old for old in before.summaries())), None)
        elided = tuple(sorted(changed - was_changed))
        if not (gone or added or elided):
            return
        sizes = self.setting.log.size(before), self.setting.log.size(after)
        spoken = {i for span in added.covers for i in range(span.start, span.stop)} if added else set()
        yield Event(kind="full" if gone or added else "micro", step=step, stage=_STAGE, reason=_STAGE,
                    reactive=refused > 0,
                    tokens_before=sizes[0], tokens_after=sizes[1], elided=elided, added=added,
                    dropped=tuple(i for i in gone if i not in spoken), summarised=tuple(i for i in gone if i in spoken),
                    summariser=_STAGE if added else None, futile=sizes[1] >= sizes[0],
                    checkpoint=f"{_STAGE}-{step}" if added else None)


def own_views(setting: Setting, code: OwnCode, arrivals: Sequence[Arrived],
              session: str) -> tuple[tuple[View, ...], int | None]:
    """The views of own code over a session, and the step at which its run ended. Raises OwnCodeError."""
    with code.session(session) as edit:
        lane = OwnLane(setting, code, edit, session, Lineage(code.shape))
        views = tuple(lane.views(arrivals))
    return views, lane.ended


def _changed(window: Window) -> set[int]:
    """The log messages that are shown in another form."""
    return {i for item in window.items if isinstance(item, Inserted) and item.kind == "truncated"
            for span in item.covers for i in range(span.start, span.stop)}


def _refusal(step: int, tokens: int, usable: int) -> Event:
    return Event(kind="refused", step=step, stage="", reason="prompt_too_long", reactive=True, tokens_before=tokens,
                 threshold=usable)


def _status(ended: int | None, step: int) -> Status:
    if ended is None or step < ended:
        return "sent"
    return "refused" if step == ended else "unreached"


def _copies(natives: Sequence[Native]) -> list[Native]:
    """Copies that own code may change as it likes."""
    copied: list[Native] = orjson.loads(orjson.dumps(natives, option=orjson.OPT_NON_STR_KEYS))
    return copied
