"""The pure step function: a window, what arrived, a policy → the next window and what happened.

No clock, no network, no file, no randomness: the same input gives the same output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from replay.events import Event
from replay.log import Log
from replay.policy.base import Capacity, Decision, Moment, Refusal, Summariser, Told
from replay.policy.compact import FAILURES, Compacted, compact, elide
from replay.policy.measures import Reported
from replay.policy.policy import Policy, Scope, Stage
from replay.tokens.calibrated import Figure
from replay.window import Inserted, Mark, Window, spoken_for, without

OCCASIONS: tuple[tuple[Scope, ...], ...] = (("before-step", "turn-start"), ("before-step", "after-step"),
                                             ("before-turn",), ("after-turn", "before-turn"))
"""The scopes that come up together: a request that starts a turn, one that continues it, a prompt behind a failed
call, a prompt behind an answered one."""
STARTING, CONTINUING, FAILED, ANSWERED = OCCASIONS


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What stays the same through a whole lane."""

    log: Log
    policy: Policy
    capacity: Capacity
    summariser: Summariser
    figure: Callable[[int, int], Figure]
    """Step number and counted tokens of a view to the tokens that the provider would report."""
    refusals: Mapping[int, int] | None = None
    """Step number to how often its request is refused, whatever its size; None: by size alone."""
    head: tuple[Inserted, ...] = ()
    """The policy's layers."""
    billed: bool = False
    """The recorded usage holds what the policy puts in front of the history: it is of the same harness."""

    @cached_property
    def due(self) -> Mapping[tuple[Scope, ...], tuple[Stage, ...]]:
        """The stages that each of `OCCASIONS` considers, in order."""
        return {scopes: tuple(s for s in self.policy.stages if s.scope in scopes) for scopes in OCCASIONS}


class Arrived(NamedTuple):
    """What came since the previous model call."""

    step: int
    """Number of the step whose request is built now."""
    response: int | None
    """Log index of the previous step's response; None at the first step and after a failed one."""
    stop: int
    """The log holds `messages[:stop]` when the request is made."""
    prompt: int | None = None
    """Log index of the first message in it that starts a round: the previous turn ended before it."""
    run: int | None = None
    """Log index of the last prompt of a person in it: the run that the request belongs to starts there."""
    output_tokens: int = 0
    """Tokens of the previous response."""
    cleared_at: int | None = None
    """Log index at which the person wiped the window."""
    forgotten: tuple[int, ...] = ()
    """Log indices that a new process did not load; it knows only the rest."""
    resumed: bool = False
    """A new process of the harness began before this step."""
    stored: frozenset[int] = frozenset()
    """Log indices of results that the harness stored with a compaction although they were pending."""


class State(NamedTuple):
    """What a lane carries from step to step."""

    window: Window = Window()
    told: Told = Told()
    sent_tokens: int = 0
    """Tokens of the last view, as the provider would report them."""
    floor: int = 0
    pending_chars: int = 0
    checkpoint: int | None = None
    """Length of the log at the last compaction."""
    compactions: int = 0
    reactive_used: int = 0
    skipped: frozenset[tuple[str, str]] = frozenset()
    """Stages whose last due change was not made, and why; the same reason is not reported again at every step."""
    failures: int = 0
    """Compactions in a row that failed, as the stages' `accept` and `ineffective_below` say."""
    failed_at: float | None = None
    """When the last compaction failed, by the session's times in seconds; None: never, or not known."""
    ended: int | None = None
    """Step at which the run ended because a request stayed refused."""


class Advanced(NamedTuple):
    """One step forward."""

    state: State
    shown: Window
    """The window with layers and reinjected messages, as it is sent."""
    counted: int
    figure: Figure
    decision: Decision | None
    events: tuple[Event, ...]
    refused: tuple[Window, ...] = ()
    """What the refused attempts of this step showed, in order."""


def start(policy: Policy) -> State:
    """The state before the first step."""
    return State(window=policy.empty_window())


def advance(state: State, arrived: Arrived, setting: Setting) -> Advanced:
    """Take what arrived into the window, let the stages act, send; a view that does not fit is refused."""
    events: list[Event] = []
    state = _take(state, arrived, setting, events)
    scopes = CONTINUING if arrived.prompt is None else STARTING
    state, decision = _run_stages(state, arrived, setting, scopes, events)
    shown, counted, figure = _shown(state, arrived.step, setting)
    refused: list[Window] = []
    if state.ended is None and _is_refused(setting, arrived.step, 0, figure):
        state, shown, counted, figure = _refused(state, arrived, setting, (shown, counted, figure), events, refused)
    if state.sent_tokens != figure.tokens:
        state = State(state.window, state.told, figure.tokens, *state[3:])
    return Advanced(state, shown, counted, figure, decision, tuple(events), tuple(refused))


def _is_refused(setting: Setting, step: int, attempts: int, figure: Figure) -> bool:
    """Whether the endpoint refuses the next attempt and the harness's unchanged retries of it."""
    if setting.refusals is None:
        return figure.tokens > setting.capacity.usable
    return setting.refusals.get(step, 0) - attempts > setting.policy.reactive.identical_retries


def _take(state: State, arrived: Arrived, setting: Setting, events: list[Event]) -> State:
    """Append what arrived; between the old turn's end and the new prompt the after-turn stages act."""
    if arrived.response is not None and state.window.end <= arrived.response:
        told = state.told.after_call(state.sent_tokens, arrived.output_tokens, arrived.response)
        grown = arrived.response + 1 if arrived.prompt is not None or arrived.cleared_at is not None else arrived.stop
        state = State(state.window.extended(grown), told, *state[2:])
    if arrived.resumed or arrived.forgotten or arrived.cleared_at is not None:
        state = _clear(state, arrived, setting, events)
    if arrived.prompt is not None:
        state = _prompted(state, arrived, arrived.prompt, setting, events)
    if state.window.end == arrived.stop:
        return state
    return State(state.window.extended(arrived.stop), *state[1:])


def _prompted(state: State, arrived: Arrived, prompt: int, setting: Setting, events: list[Event]) -> State:
    """A turn ended: its after-turn stages act before what follows is taken in. Only a person starts a new run."""
    state = state._replace(window=state.window.extended(prompt))
    scopes = FAILED if arrived.response is None else ANSWERED
    if setting.due[scopes]:
        state, _ = _run_stages(state, arrived, setting, scopes, events)
    state = state._replace(told=state.told.new_run())
    if arrived.run is None:
        return state
    used = 0 if setting.policy.reactive.scope == "run" else state.reactive_used
    return state._replace(pending_chars=len(setting.log.messages[arrived.run].text), reactive_used=used)


def _clear(state: State, arrived: Arrived, setting: Setting, events: list[Event]) -> State:
    if arrived.resumed:
        state = _reloaded(state, setting.policy, setting.log, arrived.stored)
    if arrived.forgotten:
        return _forget(state, arrived, events)
    at = arrived.cleared_at
    if at is None:
        return state
    before = state.window.extended(at)
    events.append(Event(kind="clear", step=arrived.step, stage="", reason="cleared_by_person",
                        dropped=tuple(i for span in spoken_for(before) for i in range(span.start, span.stop))))
    return state._replace(window=setting.policy.empty_window(at), floor=at, checkpoint=None, told=Told(),
                   pending_chars=0)


def _reloaded(state: State, policy: Policy, log: Log, stored: frozenset[int]) -> State:
    """What a new process of the harness makes of the state that it finds."""
    told = state.told if policy.usage_survives_restart else Told()
    if policy.reload is None:
        return state._replace(told=told)
    start, stop = max(state.floor, state.checkpoint or 0), state.window.end
    if policy.reload_of == "pending":
        stop = start
        start = log.requests[stop - 1] if stop > state.floor and stored.isdisjoint((stop - 1,)) else stop
    mark = Mark(policy.reload, start, stop)
    return state._replace(told=told, window=state.window.with_mark(mark))


def _forget(state: State, arrived: Arrived, events: list[Event]) -> State:
    """A new process did not load these messages; what is left of the log begins behind those at its start."""
    gone = frozenset(arrived.forgotten)
    items = without(state.window.items, gone)
    events.append(Event(kind="clear", step=arrived.step, stage="", reason="not_loaded",
                        dropped=tuple(i for i in state.window.indices() if i in gone)))
    first = next((i for i in range(state.floor, state.window.end) if i not in gone), state.window.end)
    return state._replace(window=state.window.with_items(items), floor=first, checkpoint=None, told=Told())


def _moment(state: State, step: int, setting: Setting) -> Moment:
    return Moment(setting.log, state.window, setting.capacity, state.told, state.pending_chars, state.floor,
                  state.compactions, state.checkpoint, step)


def _run_stages(state: State, arrived: Arrived, setting: Setting, scopes: tuple[Scope, ...],
                events: list[Event]) -> tuple[State, Decision | None]:
    last: Decision | None = None
    for stage in setting.due[scopes]:
        moment = _moment(state, arrived.step, setting)
        if stage.skip_if_current and state.checkpoint == state.window.end:
            last = Decision(stage=stage.name, fires=False, reason="checkpoint_current")
            continue
        decision = stage.trigger.decide(stage.name, stage.measure.tokens(moment), moment)
        if decision.fires and state.failures:
            decision = _blocked(state, stage, decision, setting.log)
            state = _said(state, decision, moment, events)
        last = decision if last is None or decision.fires else last
        if decision.fires:
            known = len(events)
            state = _act(state, stage, decision, moment, setting, events)
            if stage.excludes_later or _is_enough(stage, events[known:]):
                break
    return state, last


def _is_enough(stage: Stage, made: list[Event]) -> bool:
    """Whether a stage saved so much that no later one is needed."""
    done = [(e.tokens_before or 0, e.tokens_after or 0) for e in made if e.kind in ("full", "micro")]
    return bool(stage.enough) and any(before - after >= stage.enough * before for before, after in done)


def _act(state: State, stage: Stage, decision: Decision, moment: Moment, setting: Setting,
         events: list[Event], reactive: bool = False) -> State:
    """Carry out a stage; a refusal to act is an event of its own where a compaction was due."""
    done = compact(stage, moment, setting.summariser, state.compactions + 1) if stage.cut else elide(stage, moment)
    if isinstance(done, Refusal):
        if done.reason in FAILURES:
            state = state._replace(failures=state.failures + 1, failed_at=_now(state, setting.log))
        if decision.reason == "always":
            return state
        return _skipped(state, decision, done.reason, moment, events, reactive)
    event = _event(stage, decision, moment, done, reactive)
    events.append(event)
    count = state.compactions + (1 if stage.cut else 0)
    checkpoint = moment.window.end if stage.cut else state.checkpoint
    return state._replace(window=done.window, told=state.told._replace(stale=True), compactions=count,
                          checkpoint=checkpoint, skipped=_still_skipped(state, stage),
                          failures=_failures(state, stage, event))


def _skipped(state: State, decision: Decision, reason: str, moment: Moment, events: list[Event],
             reactive: bool = False) -> State:
    """Report a due change that is not made; not again while the reason stays the same."""
    why = (decision.stage, reason)
    if why in state.skipped and not reactive:
        return state
    events.append(Event.skipped(moment.step, decision, reason, reactive))
    return state._replace(skipped=frozenset(s for s in state.skipped if s[0] != decision.stage) | {why})


def _still_skipped(state: State, stage: Stage) -> frozenset[tuple[str, str]]:
    """What needs not be reported again after a stage acted: a cut changes what every stage finds."""
    return frozenset() if stage.cut else frozenset(s for s in state.skipped if s[0] != stage.name)


def _blocked(state: State, stage: Stage, decision: Decision, log: Log) -> Decision:
    """The decision of a stage that failed before: its breaker may be open, or it cools down."""
    now, last = _now(state, log), state.failed_at
    if stage.breaker and state.failures >= stage.breaker:
        return decision._replace(fires=False, reason="breaker_open")
    if stage.cooldown_minutes and now is not None and last is not None and now - last < 60 * stage.cooldown_minutes:
        return decision._replace(fires=False, reason="cooling_down")
    return decision


def _said(state: State, decision: Decision, moment: Moment, events: list[Event]) -> State:
    """The state after a blocked stage was reported."""
    return state if decision.fires else _skipped(state, decision, decision.reason, moment, events)


def _now(state: State, log: Log) -> float | None:
    """The time of the newest message; None where it has none."""
    return log.messages[state.window.end - 1].time if state.window.end else None


def _failures(state: State, stage: Stage, event: Event) -> int:
    """Failures in a row after a stage was carried out."""
    if stage.cut is None:
        return state.failures
    before, after = event.tokens_before or 0, event.tokens_after or 0
    return state.failures + 1 if before - after < stage.ineffective_below * before else 0


def _event(stage: Stage, decision: Decision, moment: Moment, done: Compacted, reactive: bool) -> Event:
    before, after = moment.log.size(moment.window), moment.log.size(done.window)
    return Event(kind="full" if stage.cut else "micro", step=moment.step, stage=stage.name, reason=decision.reason,
                 reactive=reactive, estimated_tokens=decision.estimated_tokens, threshold=decision.threshold,
                 tokens_before=before, tokens_after=after, dropped=done.dropped, summarised=done.summarised,
                 elided=done.elided, added=done.added, summariser=done.summariser,
                 summary_input_tokens=done.input_tokens, faults=(*_stale(stage, moment, reactive), *done.faults),
                 checkpoint=done.checkpoint, futile=after >= before, keeps_cache=stage.keeps_cache)


def _stale(stage: Stage, moment: Moment, reactive: bool) -> tuple[str, ...]:
    """Whether a planned change was decided by a report from before the last change of the window."""
    measure = None if reactive else stage.measure
    return ("stale_usage",) if isinstance(measure, Reported) and measure.is_stale(moment) else ()


def _shown(state: State, step: int, setting: Setting) -> tuple[Window, int, Figure]:
    head = setting.head
    if setting.policy.reinjection is not None:
        extra = setting.policy.reinjection.messages(_moment(state, step, setting))
        head = (*head, *(Inserted(message=m, kind="injected", label=m.detail) for m in extra))
    shown = state.window.with_items((*head, *state.window.items)) if head else state.window
    counted = setting.log.size(shown)
    figure = setting.figure(step, setting.log.size(state.window) if setting.billed else counted)
    return shown, counted, figure if figure.how != "counted" else setting.figure(step, counted)


def _refused(state: State, arrived: Arrived, setting: Setting, sent: tuple[Window, int, Figure],
             events: list[Event], refused: list[Window]) -> tuple[State, Window, int, Figure]:
    """The provider refuses the view; the reactive rule acts until it is accepted or its attempts are used up."""
    rule, step = setting.policy.reactive, arrived.step
    shown, counted, figure = sent
    stage = _forced_stage(setting.policy, rule.stage)
    used = 0 if rule.scope == "step" else state.reactive_used
    while True:
        refused.append(shown)
        events.append(Event(kind="refused", step=step, stage="", reason="prompt_too_long", reactive=True,
                            tokens_before=figure.tokens, threshold=setting.capacity.usable,
                            attempts=1 + rule.identical_retries))
        if stage is None or used >= rule.attempts:
            return _end(state, step, setting, "retry_exhausted" if rule.attempts else "no_reactive_rule", events)
        used += 1
        changed = _force(state, stage, step, setting, events)
        if changed.window is state.window:
            return _end(changed._replace(reactive_used=used), step, setting, "nothing_compacted", events)
        state = changed._replace(reactive_used=used)
        shown, counted, figure = _shown(state, step, setting)
        if not _is_refused(setting, step, len(refused) * (1 + rule.identical_retries), figure):
            events.append(Event(kind="retried", step=step, stage=stage.name, reason="accepted", reactive=True,
                                tokens_after=figure.tokens, threshold=setting.capacity.usable))
            return state, shown, counted, figure


def _forced_stage(policy: Policy, name: str) -> Stage | None:
    stages = [s for s in policy.stages if s.cut and name in ("", s.name)]
    return stages[0] if stages else None


def _force(state: State, stage: Stage, step: int, setting: Setting, events: list[Event]) -> State:
    if stage.skip_if_current and state.checkpoint == state.window.end:
        events.append(Event(kind="skipped", step=step, stage=stage.name, reason="checkpoint_current", reactive=True))
        return state
    decision = Decision(stage=stage.name, fires=True, reason="reactive_prompt_too_long")
    state = _act(state, stage, decision, _moment(state, step, setting), setting, events, reactive=True)
    return _with_tail(state, stage, step, setting, events)


def _with_tail(state: State, stage: Stage, step: int, setting: Setting, events: list[Event]) -> State:
    """The results at the end of a refused request in the form that the reactive rule names."""
    rendering, window, log = setting.policy.reactive.tail, state.window, setting.log
    if rendering is None:
        return state
    start = window.end
    while start > 0 and log.messages[start - 1].role == "tool":
        start -= 1
    changed = log.changed(rendering)
    elided = tuple(i for i in range(start, window.end) if changed[i + 1] > changed[i])
    if not elided:
        return state
    after = window.with_mark(Mark(rendering, start, window.end))
    events.append(Event(kind="micro", step=step, stage=stage.name, reason="newest_results_moved", reactive=True,
                        elided=elided, tokens_before=log.size(window), tokens_after=log.size(after),
                        futile=log.size(after) >= log.size(window)))
    return state._replace(window=after)


def _end(state: State, step: int, setting: Setting, reason: str,
         events: list[Event]) -> tuple[State, Window, int, Figure]:
    events.append(Event(kind="end", step=step, stage="", reason=reason, reactive=True))
    state = state._replace(ended=step)
    return (state, *_shown(state, step, setting))
