"""No preset loses a message unseen: everything is in the view, spoken for by a summary, or listed as dropped."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache

import pytest

from replay.blocks import Image, Reasoning, Text, ToolCall, ToolResult
from replay.engine import Session, arrivals
from replay.policy.advance import Advanced, Setting, advance, start
from replay.policy.base import Capacity
from replay.policy.load import policy, preset_names
from replay.policy.policy import Policy
from replay.policy.summarisers import summariser
from replay.readers.common import ThreadBuilder
from replay.testing import FixedCounter
from replay.transcript import RecordedCompaction, Transcript, Usage
from replay.window import Inserted, Span

PRESETS = [name for name in preset_names() if policy(name).stages]
WINDOW = 200_000
PICTURE = Image(mime="image/png", size_bytes=10_000, sha256="0" * 64)


@dataclass
class History:
    """Writes a random session: turns of parallel calls, odd places for prompts, failures, clears and lost messages."""

    dice: random.Random
    thread: ThreadBuilder
    calls: int = 0

    def build(self) -> Transcript:
        """The session; it ends with a request."""
        if self.dice.random() < 0.5:
            self.thread.add("system", [Text(text=self.text(2_000))], "system")
        for _ in range(self.dice.choice((1, 2, 3, 3, 4, 4, 5, 6, 20))):
            self.turn()
        resumed = (len(self.thread.steps),) if self.dice.random() < 0.2 else ()
        return Transcript(format="random", session_id="random", path="<random>", main=self.thread.build(),
                          extra={"resumed": resumed})

    def turn(self) -> None:
        """A prompt, tool rounds, mostly an answer."""
        self.thread.add("user", [Text(text=self.text(2_000))], self.dice.choice(("human", "human", "human", "nudge")))
        for _ in range(self.dice.randint(0, 9)):
            self.round()
        if self.dice.random() < 0.15:
            self.thread.fail("error")
        else:
            thought = [Reasoning(text=self.text(3_000))] if self.dice.random() < 0.5 else []
            self.thread.respond([*thought, Text(text=self.text(1_500))], self.usage(), time=self.time())
            self.wipe()

    def round(self) -> None:
        """A response with one to eight calls and its results, sometimes with a message between them."""
        self.thread.add("user", [Text(text=self.text(500))], "injected") if self.dice.random() < 0.1 else None
        made = [self.call() for _ in range(self.dice.choice((1, 1, 1, 2, 3, 8)))]
        self.thread.respond([Text(text=self.text(300)), *made], self.usage(), time=self.time())
        for position, call in enumerate(made):
            if position and self.dice.random() < 0.05:
                self.thread.add("user", [Text(text="and this")], "human")
            images = (PICTURE,) if self.dice.random() < 0.03 else ()
            size = self.dice.choice((40, 400, 4_000, 12_000, 60_000))
            result = ToolResult(call_id=call.id, name=call.name, text=self.text(size), images=images,
                                is_error=self.dice.random() < 0.1)
            self.thread.add("tool", [result], "tool", time=self.time())

    def call(self) -> ToolCall:
        """A call of one of a few tools on one of a few files."""
        self.calls += 1
        name = self.dice.choice(("read", "write", "Bash", "grep"))
        return ToolCall(id=f"call-{self.calls}", name=name, arguments=f'{{"path": "f{self.dice.randint(1, 5)}"}}')

    def wipe(self) -> None:
        """Sometimes the person clears the window, or a new process loads only the newest messages."""
        if self.dice.random() < 0.1:
            end = len(self.thread.messages)
            turns = [m.index for m in self.thread.messages if m.origin in ("human", "nudge") and m.text != "and this"]
            first = self.dice.choice([0, *turns])
            elided = tuple(i for i in range(first) if self.thread.messages[i].origin != "system")
            self.thread.compactions.append(RecordedCompaction(position=end, kind="clear", elided=elided))

    def text(self, chars: int) -> str:
        """Text of up to so many characters."""
        return text_of(self.dice.randint(0, 20) * chars // 20)

    def usage(self) -> Usage | None:
        """Mostly what the log so far would cost."""
        total = sum(len(m.text) for m in self.thread.messages) // 4
        return Usage(input_uncached=total + 3_000, output=100) if self.dice.random() < 0.9 else None

    def time(self) -> float:
        """A clock that mostly ticks and sometimes rests for hours."""
        self.clock = getattr(self, "clock", 0.0) + self.dice.choice((5.0, 30.0, 30.0, 7_200.0))
        return self.clock


@cache
def text_of(chars: int) -> str:
    """Text of so many characters, the same object each time."""
    return "x" * chars


@cache
def told(seed: int) -> Transcript:
    """A random session; making one takes as long as replaying it, and every preset replays the same ones."""
    return History(random.Random(seed), ThreadBuilder(id="main")).build()


@lru_cache(maxsize=256)
def history(seed: int) -> Session:
    """A random session, counted by its characters."""
    return Session(told(seed), FixedCounter([len(m.text) // 4 for m in told(seed).messages]))


def steps(session: Session, chosen: Policy, window: int) -> Iterator[Advanced]:
    """Each step of a preset's lane, without fingerprints."""
    capacity = Capacity(window=window, output_reserve=min(chosen.output_reserve, window // 4))
    setting = Setting(log=session.log, policy=chosen, capacity=capacity, summariser=summariser("length-model"),
                      figure=session.gauge.figure)
    state = start(chosen)
    for arrived in arrivals(session.transcript, session.log):
        done = advance(state, arrived, setting)
        state = done.state
        yield done


def faults(session: Session, chosen: Policy, window: int) -> Iterator[str]:
    """What a lane loses without saying so, pairs that it parts, and compactions repeated without gain."""
    listed: set[int] = set()
    for number, done in enumerate(steps(session, chosen, window)):
        listed.update(i for e in done.events for i in e.dropped)
        yield from _repeated(done)
        if not done.events and number % 7:
            # Between events a window only grows.
            continue
        visible = set(done.shown.indices())
        covered = {i for item in done.shown.items if isinstance(item, Inserted) for s in item.covers
                   for i in range(s.start, s.stop)}
        lost = set(range(done.state.window.end)) - visible - covered - listed
        if lost:
            yield f"messages {sorted(lost)} are nowhere"
        listed -= visible
        yield from _parted(session, visible, done.state.window.end)
        twice = [i for item in done.shown.items if isinstance(item, Span) for i in range(item.start, item.stop)]
        if len(twice) != len(visible):
            yield "a message stands in the view twice"


def _parted(session: Session, visible: set[int], end: int) -> Iterator[str]:
    called: dict[str, int] = {}
    for index, (calls, answers) in enumerate(session.log.pairs[:end]):
        for answered in (called[i] for i in answers if i in called):
            if (answered in visible) != (index in visible):
                yield f"call {answered} and result {index} are parted"
        called.update(dict.fromkeys(calls, index))


def _repeated(done: Advanced) -> Iterator[str]:
    gainless = [e for e in done.events if e.kind == "full" and e.futile and not e.reactive]
    if len(gainless) > 1:
        yield "a step compacted twice without gain"
    for event in done.events:
        if event.kind == "full" and event.futile != ((event.tokens_after or 0) >= (event.tokens_before or 0)):
            yield "a compaction without gain does not say so"


def check(name: str, seeds: range) -> None:
    """No seed finds a fault, at the preset's scale and in a small window."""
    chosen = policy(name)
    found = {seed: next(faults(history(seed), chosen, (WINDOW, 60_000, 24_000)[seed % 3]), None) for seed in seeds}

    assert {} == {seed: fault for seed, fault in found.items() if fault is not None}


@pytest.mark.parametrize("name", PRESETS)
def test_no_message_is_lost_unseen(name: str) -> None:
    """Over 200 random histories each message has a place, pairs are whole, and no step compacts twice without gain."""
    check(name, range(200))


@pytest.mark.nightly
@pytest.mark.parametrize("name", PRESETS)
def test_no_message_is_lost_unseen_in_many_histories(name: str) -> None:
    """The same over 2,000 histories."""
    check(name, range(2_000))


@pytest.mark.parametrize("name", PRESETS)
def test_the_same_history_gives_the_same_steps(name: str) -> None:
    """The step function is pure: replayed twice, every step is equal."""
    for seed in range(5):
        first, second = (list(steps(history(seed), policy(name), 60_000)) for _ in range(2))

        assert [d._replace(decision=None) for d in first] == [d._replace(decision=None) for d in second]


def test_the_histories_make_every_preset_act() -> None:
    """Each preset compacts or blanks something in some history, so that the checks above have something to check."""
    idle = [name for name in PRESETS
            if not any(e.kind in ("full", "micro") for seed in range(60)
                       for done in steps(history(seed), policy(name), (WINDOW, 60_000, 24_000)[seed % 3])
                       for e in done.events)]

    assert [] == idle
