"""A session under way: its log grows message by message, and a policy decides every request by the same pure function.

What is sent can be read back: wherever a view is not the last one with what came since, the thread notes a compaction
that tells the whole window, so that the recorded lane of the written transcript shows what the model was shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from replay.blocks import Block
from replay.engine import arrivals
from replay.events import Event
from replay.lanes import applied
from replay.log import Log
from replay.policy.advance import Advanced, Setting, State, advance, start
from replay.policy.base import Capacity, Summariser
from replay.policy.policy import Policy
from replay.readers.common import ThreadBuilder
from replay.tokens.calibrated import Figure
from replay.tokens.counter import MessageCounter
from replay.transcript import Message, RecordedCompaction, Step, Thread, Transcript, Usage
from replay.view import Shown, render, shown_messages
from replay.window import Window


class Request(NamedTuple):
    """What the model is to be shown now."""

    messages: list[dict[str, Any]]
    """In OpenAI's chat shape."""
    tokens: int
    """Best figure for what the provider will report."""
    events: tuple[Event, ...]
    """What the policy did to the window since the last request."""


@dataclass
class LiveSession:
    """One run of an agent, from its first message on."""

    policy: Policy
    capacity: Capacity
    summariser: Summariser
    counter: MessageCounter
    overhead_tokens: int = 0
    """Tokens of each request beside its messages (tool schemas), until the first report tells."""
    thread: ThreadBuilder = field(default_factory=lambda: ThreadBuilder(id="main"))
    events: list[Event] = field(default_factory=list)
    """Everything that happened to the window."""
    ended: bool = False
    """A request stayed refused: the run is over."""

    def __post_init__(self) -> None:
        """Begin with an empty window."""
        self._state: State = start(self.policy)
        self._recorded = Window()
        self._refusals = 0
        self._pending: tuple[Advanced, Log] | None = None
        self._head = tuple(layer.inserted(self.capacity) for layer in self.policy.layers)

    def request(self) -> Request | None:
        """The next request; None where it does not fit the window and the policy's way out is used up."""
        log = self._log()
        done = self._advanced(log)
        while done.state.ended is None and done.figure.tokens > self.capacity.usable:
            self._refusals += 1
            done = self._advanced(log)
        self._pending = done, log
        if done.state.ended is not None:
            self._end(done)
            return None
        return Request(render(log, done.shown, "openai"), done.figure.tokens, done.events)

    def shows(self, window: Window) -> bool:
        """Whether the open request shows what a window of the same log shows."""
        done, log = self._sent()
        return _shows(log, window, list(shown_messages(log, done.shown)))

    def refused(self) -> None:
        """The endpoint refused the request as too long: the next one is what the policy makes of that."""
        self._refusals += 1

    def answered(self, blocks: Iterable[Block], usage: Usage | None, time: float | None = None,
                 model: str | None = None) -> Step:
        """Take the model's answer to the request in. Usage, where reported, is what the policy is told of it."""
        done, log = self._sent()
        self._note(done, log)
        state, known = done.state, usage is not None and usage.total > 0
        if usage is not None and known:
            self.overhead_tokens = usage.input_total - done.counted
            state = state._replace(sent_tokens=usage.input_total)
        self._state, self._refusals, self._pending = state, 0, None
        self.events += done.events
        return self.thread.respond(blocks, usage, time=time, model=model)

    def failed(self, why: str, time: float | None = None) -> Step:
        """The request brought no answer, and the run goes no further."""
        done, log = self._sent()
        self._note(done, log)
        self.events += done.events
        self._pending = None
        return self.thread.fail(why, time=time)

    def _end(self, done: Advanced) -> None:
        self.ended = True
        self.failed(next((e.reason for e in reversed(done.events) if e.kind == "end"), "prompt_too_long"))

    def _sent(self) -> tuple[Advanced, Log]:
        if self._pending is None:
            raise ValueError("no request is open")
        return self._pending

    def _log(self) -> Log:
        return Log(self._thread(), self.counter)

    def _thread(self) -> Thread:
        """The thread with the step whose request is built now."""
        open_step = Step(number=len(self.thread.steps) + 1, start=len(self.thread.messages), response=None)
        return replace(self.thread.build(), steps=(*self.thread.steps, open_step))

    def _advanced(self, log: Log) -> Advanced:
        """The step from the state before it: made again, with one refusal more, until the request fits."""
        transcript = Transcript(format="live", session_id="live", path="", main=self._thread())
        *_, arrived = arrivals(transcript, log)
        setting = Setting(log=log, policy=self.policy, capacity=self.capacity, summariser=self.summariser,
                          figure=self._figure, head=self._head, refusals={arrived.step: self._refusals})
        return advance(self._state, arrived, setting)

    def _figure(self, _: int, counted: int) -> Figure:
        return Figure(max(0, counted + self.overhead_tokens), "anchored" if self.thread.steps else "counted")

    def _note(self, done: Advanced, log: Log) -> None:
        """Write down the window where it is not the last one with what came since."""
        grown, wanted = self._recorded.extended(len(log)), list(shown_messages(log, done.shown))
        found = None if _shows(log, grown, wanted) else next(
            c for c in _candidates(done, log, wanted) if _shows(log, applied(grown, c), wanted))
        if found is not None:
            self.thread.compactions.append(found)
            grown = applied(grown, found)
        self._recorded = grown.extended(len(log))


def _candidates(done: Advanced, log: Log, wanted: list[Shown]) -> Iterator[RecordedCompaction]:
    """Ways to write a view down, the shortest first; the last one always tells it."""
    yield from _blanked(done, log)
    event = next((e for e in reversed(done.events) if e.kind == "full"), None)
    summary = event.added.message.text if event is not None and event.added is not None else None
    full = RecordedCompaction(
        position=len(log), kind="full", window=tuple(_part(s, log) for s in wanted), summary=summary,
        trigger=None if event is None else "reactive" if event.reactive else "auto",
        summary_readable=summary is not None, counter_before=event.estimated_tokens if event else None)
    yield full
    yield replace(full, window=tuple(_inserted(s) for s in wanted))


def _blanked(done: Advanced, log: Log) -> Iterator[RecordedCompaction]:
    """Results that now show a fixed text, where that is all that happened."""
    elided = sorted({i for e in done.events if e.kind == "micro" for i in e.elided})
    if not elided or any(e.kind not in ("micro", "skipped") for e in done.events):
        return
    now = {s.index: s.message for s in shown_messages(log, done.shown)}
    shown = [r.text for i in elided if i in now for r in now[i].results]
    if len(set(shown)) == 1:
        yield RecordedCompaction(position=len(log), kind="micro", elided=tuple(elided), placeholder=shown[0])


def _shows(log: Log, window: Window, wanted: list[Shown]) -> bool:
    """Whether a window shows these messages."""
    return [_same(s.message) for s in shown_messages(log, window)] == [_same(s.message) for s in wanted]


def _same(message: Message) -> tuple[str, tuple[Block, ...]]:
    return message.role, message.blocks


def _part(shown: Shown, log: Log) -> int | Message:
    """A log message that stands as it is by its index; everything else as it is shown."""
    if shown.index is not None and shown.message is log.messages[shown.index]:
        return shown.index
    return _inserted(shown)


def _inserted(shown: Shown) -> Message:
    return replace(shown.message, index=-1, origin="summary" if shown.kind == "summary" else "injected")
