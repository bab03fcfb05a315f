"""Replay: one view a step for each lane, with the events that explain it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from replay.collector import paused
from replay.events import Event
from replay.fingerprint import Chain, Print
from replay.lanes import recorded_windows
from replay.log import Log
from replay.own.base import OwnCode
from replay.policy.advance import Arrived, Setting, advance, start
from replay.policy.base import Capacity, Decision, Summariser
from replay.policy.load import RECORDED
from replay.policy.policy import Policy
from replay.policy.summarisers import summariser
from replay.tokens.calibrated import Calibration, Figure, Gauge, fit
from replay.tokens.counter import MessageCounter
from replay.transcript import Step, Transcript
from replay.window import Inserted, Window

LaneKind = Literal["recorded", "re-projected", "alternative"]
Status = Literal["sent", "refused", "unreached"]
DEFAULT_WINDOW = 200_000
"""Tokens; the window of a comparison where the user names none."""


class View(NamedTuple):
    """What one model call is shown; the messages themselves are rendered on demand (`replay.view`)."""

    step: int
    window: Window
    counted: int
    """Tokens by the session's counter."""
    figure: Figure
    """Best figure for what the provider would report, and how it was obtained."""
    decision: Decision | None
    """The policy's last decision before this request, with its numbers."""
    events: tuple[Event, ...]
    print: Print
    status: Status
    """`sent`; `refused`: the run ended here; `unreached`: it had ended before, the view is hypothetical."""
    checkpoint: str | None = None
    refused: tuple[Window, ...] = ()
    """What the refused attempts of this step showed, in order."""

    @property
    def fingerprint(self) -> str:
        """Hex digest of the view's messages."""
        return self.print.fingerprint.hex()

    @property
    def mode(self) -> str:
        """Projection mode: full history, behind a checkpoint's summary, or with blanked results."""
        if self.window.summaries():
            return "compact_checkpoint"
        return "elided_results" if self.window.marks else "full_history"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One policy's replay of one session."""

    policy: Policy
    kind: LaneKind
    views: tuple[View, ...]
    ended: int | None = None
    """Step at which the run ended because its request stayed refused; None: it went through."""
    head: tuple[Inserted, ...] = ()
    """The policy's layers in front of every view."""

    @property
    def events(self) -> tuple[Event, ...]:
        """All events in order."""
        return tuple(e for view in self.views for e in view.events)


class Session:
    """A transcript prepared for replay: counted, calibrated, with its recorded lane."""

    def __init__(self, transcript: Transcript, counter: MessageCounter) -> None:
        """Prepare a transcript; counting happens when the first lane is asked for."""
        self.transcript = transcript
        self.log = Log(transcript.main, counter)

    @cached_property
    def _recorded_windows(self) -> list[tuple[Step, Window, tuple[Event, ...], int]]:
        triples = recorded_windows(self.transcript.main, self.log)
        return [(step, window, events, self.log.size(window)) for step, window, events in triples]

    @cached_property
    def gauge(self) -> Gauge:
        """The session's token gauge, fitted to its recorded usage."""
        pairs = [(step.number, step.usage.input_total, counted) for step, _, _, counted in self._recorded_windows
                 if step.usage is not None and step.usage.input_total > 0]
        breaks = [step.number for step, _, events, _ in self._recorded_windows
                  if any(e.kind != "micro" for e in events)]
        calibration = fit([counted for _, _, counted in pairs], [billed for _, billed, _ in pairs],
                          [number for number, _, _ in pairs], breaks)
        return Gauge(calibration=calibration, recorded={n: (billed, counted) for n, billed, counted in pairs})

    @property
    def calibration(self) -> Calibration:
        """How counted tokens relate to billed ones in this session."""
        return self.gauge.calibration

    @cached_property
    def output_tokens(self) -> list[int]:
        """Output tokens of each step: recorded, else counted."""
        return [_output(step, self.log) for step in self.log.steps]

    @cached_property
    def recorded(self) -> Lane:
        """What the harness sent."""
        chain, views, checkpoint = Chain(self.log), [], None
        for step, window, events, counted in self._recorded_windows:
            checkpoint = next((e.checkpoint for e in reversed(events) if e.checkpoint), checkpoint)
            views.append(View(step=step.number, window=window, counted=counted, decision=None, events=events,
                              figure=self.gauge.figure(step.number, counted), print=chain.follow(window),
                              status="sent", checkpoint=checkpoint if window.summaries() else None))
        return Lane(policy=RECORDED, kind="recorded", views=tuple(views))

    def replay(self, policy: Policy, capacity: Capacity, summariser_name: str | Summariser = "extractive",
               refusals: Mapping[int, int] | None = None) -> Lane:
        """The lane of a policy. The recorded lane needs no window: what was sent was accepted.

        `summariser_name` may be a summariser itself. `refusals`: how often each step's request was refused, which
        then counts instead of the request's size.
        """
        if policy.name == RECORDED.name:
            return self.recorded
        # A capture names its harness beside its format.
        same_harness = policy.harness in (self.transcript.format, self.transcript.extra.get("harness"))
        writer = (summariser(summariser_name, self.transcript.compactions) if isinstance(summariser_name, str)
                  else summariser_name)
        head = tuple(layer.inserted(capacity) for layer in policy.layers)
        setting = Setting(log=self.log, policy=policy, capacity=capacity, figure=self.gauge.figure, summariser=writer,
                          head=head, billed=same_harness, refusals=refusals)
        with paused():
            views, ended = self._views(setting) if policy.own is None else self._own_views(setting, policy.own)
        return Lane(policy=policy, kind="re-projected" if same_harness else "alternative", views=views, ended=ended,
                    head=setting.head)

    def _own_views(self, setting: Setting, code: OwnCode) -> tuple[tuple[View, ...], int | None]:
        from replay.own.lane import own_views

        return own_views(setting, code, self._arrivals, self.transcript.session_id)

    @cached_property
    def _arrivals(self) -> tuple[Arrived, ...]:
        return tuple(arrivals(self.transcript, self.log))

    def _views(self, setting: Setting) -> tuple[tuple[View, ...], int | None]:
        state, chain, views = start(setting.policy), Chain(self.log, setting.head), []
        checkpoint: str | None = None
        for arrived in self._arrivals:
            done = advance(state, arrived, setting)
            state = done.state
            if done.events:
                checkpoint = next((e.checkpoint for e in reversed(done.events) if e.checkpoint), checkpoint)
            behind = checkpoint if checkpoint is not None and done.shown.summaries() else None
            # In the order of the fields: by their names this costs a third of a step.
            views.append(View(arrived.step, done.shown, done.counted, done.figure, done.decision, done.events,
                              chain.follow(done.shown), _status(state.ended, arrived.step), behind, done.refused))
        return tuple(views), state.ended


def arrivals(transcript: Transcript, log: Log) -> Iterator[Arrived]:
    """What arrived before each step of the main thread."""
    clears = [c.position for c in transcript.compactions if c.kind == "clear" and not c.elided]
    forgotten = [(c.position, c.elided) for c in transcript.compactions if c.kind == "clear" and c.elided]
    resumed = frozenset(transcript.extra.get("resumed") or ())
    stored = frozenset[int](transcript.extra.get("stored") or ())
    previous: Step | None = None
    for step in transcript.steps:
        start = previous.start if previous else 0
        yield Arrived(step=step.number, response=previous.response if previous else None, stop=step.start,
                      prompt=_first(log.rounds, start, step.start), cleared_at=_last(clears, start + 1, step.start + 1),
                      run=_last(log.prompts, start, step.start), output_tokens=_output(previous, log),
                      forgotten=tuple(i for at, gone in forgotten if start < at <= step.start for i in gone),
                      resumed=step.number in resumed, stored=stored)
        previous = step


def divergence(lane: Lane, recorded: Lane) -> int | None:
    """The first step whose view differs from the recorded one; None where no step does."""
    for mine, theirs in zip(lane.views, recorded.views, strict=True):
        if mine.print.fingerprint != theirs.print.fingerprint:
            return mine.step
    return None


def _first(indices: Sequence[int], start: int, stop: int) -> int | None:
    position = bisect_left(indices, start)
    return indices[position] if position < len(indices) and indices[position] < stop else None


def _last(indices: Sequence[int], start: int, stop: int) -> int | None:
    position = bisect_left(indices, stop) - 1
    return indices[position] if position >= 0 and indices[position] >= start else None


def _output(step: Step | None, log: Log) -> int:
    """Output tokens of a response: recorded, else counted from its message."""
    if step is None:
        return 0
    if step.usage is not None:
        return step.usage.output
    if step.response is None:
        return 0
    sums = log.sums(log.tokens)
    return sums[step.response + 1] - sums[step.response]


def _status(ended: int | None, step: int) -> Status:
    if ended is None or step < ended:
        return "sent"
    return "refused" if step == ended else "unreached"
