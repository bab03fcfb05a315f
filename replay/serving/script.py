"""Which recorded turn a request asks for, and what in the request the recording does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from replay.blocks import ToolCall, ToolResult
from replay.readers.wire_items import Piece
from replay.transcript import Message, Step, Thread

What = Literal["prompt", "result", "missing-result", "unknown-call", "unknown-tool", "order", "request", "end",
               "forbidden"]
_PROMPTS = ("human", "nudge")
_WRAPPED, _WRAPPING = 4, 400
"""A message is a prompt with something around it up to so many times its length and characters more."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """Something that the recording does not have."""

    step: int
    """The recorded step that the request stands before."""
    what: What
    words: str
    """One sentence without text of the session."""
    stops: bool = True
    """False: only told, by the rule for results."""

    def to_json(self) -> dict[str, object]:
        """Plain data."""
        return {"step": self.step, "what": self.what, "words": self.words, "stops": self.stops}


@dataclass(frozen=True, slots=True)
class Turn:
    """One response of the recording, with what came before it since the response before."""

    step: Step
    message: Message
    results: Mapping[str, ToolResult]
    prompts: tuple[str, ...]
    """Stripped texts of a person's messages, and of the program's in a person's place."""

    @property
    def actions(self) -> list[tuple[str, str]]:
        """Name and arguments of its calls."""
        return [action(c) for c in self.message.calls]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request stands in a line. A turn is told once, or again to a client that repeats its request, so that
    every run comes to an end: for a request that stands further back the closest turn is the one to come."""

    turn: int | None
    """The turn that answers, from 0; None: the recording has no such turn."""
    divergences: tuple[Divergence, ...] = ()


def action(call: ToolCall) -> tuple[str, str]:
    """What a call does, whatever its id and the order of its arguments."""
    return call.name, repr(sorted(call.mapping.items(), key=repr))


@dataclass
class Line:
    """The turns of a thread, and how far they have been told."""

    turns: tuple[Turn, ...]
    strict: bool = True
    """A result that differs from the recorded one is a divergence."""
    next: int = 0
    """The turn that is expected to be asked for."""
    _by_call: dict[str, list[int]] = field(default_factory=dict)
    _by_text: dict[str, list[int]] = field(default_factory=dict)
    _by_action: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    _coming: list[int | None] = field(default_factory=list)
    """For each turn the next one, itself included, that has prompts."""
    _answered: frozenset[str] = frozenset()
    """Ids that recorded results answer; a log that was cut may lack their calls."""
    _last: list[int] = field(default_factory=list)
    """Items of the request that was answered last."""
    _seen: set[int] = field(default_factory=set)
    """Items that were looked at; most of a request is the one before it."""
    _renamed: set[str] = field(default_factory=set)
    """Ids that the harness gave itself to recorded calls, and unknown ones that were told."""

    def __post_init__(self) -> None:
        """Index the turns."""
        for number, turn in enumerate(self.turns):
            for call in turn.message.calls:
                if call.id:
                    self._by_call.setdefault(call.id, []).append(number)
                self._by_action.setdefault(action(call), []).append(number)
            if turn.message.text.strip():
                self._by_text.setdefault(turn.message.text.strip(), []).append(number)
        self._answered = frozenset(i for turn in self.turns for i in turn.results)
        coming = None
        for number in reversed(range(len(self.turns))):
            coming = number if self.turns[number].prompts else coming
            self._coming.append(coming)
        self._coming.reverse()

    def knows(self, pieces: Sequence[Piece]) -> int:
        """How surely the last response of a request and its results are of this line: 2 by ids, 1 by what they say."""
        last = pieces[_last_response(pieces):]
        if any(i in self._by_call for p in last for i in (*p.answers, *(c.id for c in p.calls))):
            return 2
        return int(any(self._after(piece) is not None for piece in last))

    def begins(self, pieces: Sequence[Piece]) -> bool:
        """Whether the request asks for the first turn."""
        return self.next == 0 and bool(self.turns) and self._has_prompts(0, pieces)

    def place(self, pieces: Sequence[Piece], holds_summary: Callable[[], bool]) -> Place:
        """Where a request stands. A summary that was served stands for everything that was told."""
        turn = self.next - 1 if self._is_again(pieces) else self._turn(pieces)
        found = list(self._unknown_calls(pieces))
        if turn is None:
            turn = self.next
            # Where a prompt was to come its absence is told, below; a session may also begin without one.
            if turn and not self._prompts(turn) and not holds_summary():
                found.append(self._divergence(turn, "request", "nothing in the request is of the recording"))
        if turn not in (self.next, self.next - 1):
            found.append(self._divergence(self.next, "order", f"the request stands at step {self._number(turn)}, "
                                                              f"step {self._number(self.next)} was to come"))
            turn = max(turn, self.next)
        if turn >= len(self.turns):
            return Place(None, (*found, self._divergence(turn, "end", "the recording ends before this request")))
        return Place(turn, (*found, *self._missing(turn, pieces)))

    def told(self, turn: int, pieces: Sequence[Piece]) -> None:
        """The turn counts as answered."""
        self.next, self._last = turn + 1, [p.item for p in pieces]

    def expects(self, text: str) -> bool:
        """Whether a text holds a prompt of the turn to come, or of the one just told."""
        return any(prompt in text for turn in (self.next, self.next - 1) for prompt in self._prompts(turn))

    def _prompts(self, turn: int) -> tuple[str, ...]:
        return self.turns[turn].prompts if 0 <= turn < len(self.turns) else ()

    def _is_again(self, pieces: Sequence[Piece]) -> bool:
        """Whether a client repeats the request that was answered last."""
        return self.next > 0 and self._last == [p.item for p in pieces]

    def _number(self, turn: int) -> int:
        return self.turns[turn].step.number if turn < len(self.turns) else len(self.turns) + 1

    def _divergence(self, turn: int, what: What, words: str, stops: bool = True) -> Divergence:
        return Divergence(self._number(turn), what, words, stops)

    def _turn(self, pieces: Sequence[Piece]) -> int | None:
        """The turn behind the last thing in the request that the recording has."""
        for piece in reversed(pieces):
            found = self._at_prompt(piece.text) if piece.role == "user" else self._after(piece)
            if found is not None:
                return found
        return None

    def _at_prompt(self, text: str) -> int | None:
        """A prompt says where a request stands only if it is the next one: after compactions older ones stay alone."""
        return self.next if any(p in text for p in self._prompts(self.next)) else None

    def _after(self, piece: Piece) -> int | None:
        """The turn behind a response or a result."""
        found = [n for i in (*piece.answers, *(c.id for c in piece.calls)) for n in self._by_call.get(i, ())]
        if not found and piece.role == "assistant":
            found = [n for c in piece.calls for n in self._by_action.get(action(c), ())]
            found = found or self._by_text.get(piece.text.strip(), [])
        return min(found, key=lambda n: (abs(n + 1 - self.next), -n)) + 1 if found else None

    def _unknown_calls(self, pieces: Sequence[Piece]) -> Iterator[Divergence]:
        """Calls, and results of calls, that the recording does not have; an item is looked at once."""
        fresh = [p for p in pieces if p.item not in self._seen and p.role != "user"]
        self._seen.update(p.item for p in fresh)
        calls = [c for p in fresh for c in p.calls]
        self._renamed.update(c.id for c in calls if action(c) in self._by_action)
        unknown = [i for i in (*(c.id for c in calls), *(i for p in fresh for i in p.answers))
                   if i and i not in self._by_call and i not in self._renamed and i not in self._answered]
        self._renamed.update(unknown)
        for _ in dict.fromkeys(unknown):
            yield self._divergence(self.next, "unknown-call", "a tool call that the recording does not have")

    def _missing(self, turn: int, pieces: Sequence[Piece]) -> Iterator[Divergence]:
        """What the recorded session had told the model by this turn, and this request does not have so."""
        expected = self.turns[turn]
        if expected.prompts and not self._has_prompts(turn, pieces):
            yield self._divergence(turn, "prompt", "the recorded prompt is not in the request")
        elif not expected.prompts and pieces and self._is_early(turn, pieces[-1]):
            yield self._divergence(turn, "prompt", "a prompt is in the request that was recorded at a later step")
        before = self.turns[turn - 1].message.calls if turn else ()
        if before:
            yield from self._results(turn, before, pieces)

    def _is_early(self, turn: int, last: Piece) -> bool:
        """Whether a request ends in the prompt of a later turn: the harness gave up the one that is told."""
        coming = self._coming[turn]
        return last.role == "user" and coming is not None and any(
            p in last.text and len(last.text) <= _WRAPPED * len(p) + _WRAPPING for p in self._prompts(coming))

    def _has_prompts(self, turn: int, pieces: Sequence[Piece]) -> bool:
        texts = [p.text for p in pieces if p.role == "user"]
        return all(any(prompt in text for text in texts) for prompt in self.turns[turn].prompts)

    def _results(self, turn: int, calls: Sequence[ToolCall], pieces: Sequence[Piece]) -> Iterator[Divergence]:
        found = _results_of(self.turns[turn - 1], pieces)
        if found is None:
            return
        for place, call in enumerate(calls):
            recorded = self.turns[turn].results.get(call.id)
            result = found.get(place)
            if recorded is None or not call.id:
                continue
            if result is None:
                yield self._divergence(turn, "missing-result", f"no result of the recorded call of {call.name}")
            elif result.text.strip() != recorded.text.strip():
                words = (f"the result of {call.name} is not the recorded one: {len(result.text):,} characters, "
                         f"recorded {len(recorded.text):,}")
                yield self._divergence(turn, "result", words, stops=self.strict)


def _results_of(turn: Turn, pieces: Sequence[Piece]) -> dict[int, ToolResult] | None:
    """Results of a turn's calls in a request by the place of the call; None where the turn is not visible in it."""
    actions, ids = turn.actions, [c.id for c in turn.message.calls]
    for start in reversed(range(len(pieces))):
        calls = pieces[start].calls
        if not calls or not ([c.id for c in calls] == ids or [action(c) for c in calls] == actions):
            continue
        given = [b for p in pieces[start + 1:] for b in p.blocks if isinstance(b, ToolResult)]
        by_id = {b.call_id: b for b in reversed(given)}
        return {place: by_id[c.id] for place, c in enumerate(calls) if c.id in by_id}
    return None


def _last_response(pieces: Sequence[Piece]) -> int:
    return next((i for i in reversed(range(len(pieces))) if pieces[i].role == "assistant"), 0)


def line_of(thread: Thread, strict: bool = True) -> Line:
    """The line of a thread: its steps that gave a response."""
    return Line(turns=tuple(_turns(thread)), strict=strict)


def _turns(thread: Thread) -> Iterator[Turn]:
    start = 0
    for step in thread.steps:
        if step.response is None:
            continue
        came = thread.messages[start:step.start]
        start = step.response + 1
        yield Turn(step=step, message=thread.messages[step.response], results=_by_id(came),
                   prompts=tuple(m.text.strip() for m in came
                                 if m.role == "user" and m.origin in _PROMPTS and m.text.strip()))


def _by_id(messages: Iterable[Message]) -> dict[str, ToolResult]:
    return {r.call_id: r for m in messages for r in m.results}
