"""The endpoint without its wires: a body in, a reply out, and everything that came in kept in order."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from replay.blocks import Text, ToolCall
from replay.readers.wire_items import Piece
from replay.serving.answers import OVERFLOW, Answer, Refused, Reply, loads
from replay.serving.kinds import Kinds
from replay.serving.recording import Recording, Responded
from replay.serving.requests import Asked, Items, Parsed
from replay.serving.script import Divergence, Line, Turn, line_of
from replay.serving.summaries import Summaries
from replay.serving.usage import Meter
from replay.transcript import Transcript
from replay.writers.json_lines import json_bytes

OnDivergence = Literal["stop", "closest"]
_STOPPED = 422
"""Status of a request that the recording cannot answer: no client repeats it by itself."""
_KEPT_RESPONSES = 50
_TITLE = 60


class Wires(Protocol):
    """A provider's protocol."""

    name: str
    path: str

    def parse(self, body: Mapping[str, Any]) -> Parsed:
        """Take a body apart. Raises ValueError."""

    def body(self, answer: Answer) -> dict[str, Any]:
        """An answer as one document."""

    def events(self, answer: Answer, params: Mapping[str, Any]) -> Any:
        """An answer as server-sent events."""

    def error(self, refused: Refused) -> dict[str, Any]:
        """An error body."""

    def error_events(self, refused: Refused, number: int) -> bytes | None:
        """An error inside a stream, where the provider sends it there."""

    def overflow(self, tokens: int, limit: int) -> str:
        """The provider's words for a request that is too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the user chose."""

    on_divergence: OnDivergence = "stop"
    limit: int | None = None
    """Requests of more tokens are refused."""
    refuse: Mapping[int, int] = field(default_factory=dict)
    """Recorded step to how often its request is refused."""
    tools: frozenset[str] | None = None
    """Only turns that call these tools are answered; None: all."""
    window: int = 200_000
    """Named in refusals where there is no limit."""


@dataclass
class Tally:
    """What was done so far."""

    requests: Counter[str] = field(default_factory=Counter)
    """By what came of them: step, summary, other, refused, stopped."""
    divergences: list[Divergence] = field(default_factory=list)
    notes: list[Divergence] = field(default_factory=list)
    """Differences that the rules let pass."""
    steps: set[int] = field(default_factory=set)
    summaries: Counter[str] = field(default_factory=Counter)
    """Served summaries by who wrote them."""
    stopped: Divergence | None = None


class Endpoint:
    """Answers requests from a recorded session, one after the other."""

    def __init__(self, transcript: Transcript, rules: Rules, meter: Meter, items: Items, summaries: Summaries, *,
                 strict: bool = True, kinds: Kinds | None = None, recording: Recording | None = None,
                 tell: Callable[[str], None] = lambda _: None) -> None:
        """`strict`: a result that differs from the recorded one is a divergence; `tell`: gets a line for each."""
        self.lines = [line_of(t, strict) for t in (transcript.main, *transcript.subagents)]
        self.rules, self.meter, self.items, self.summaries = rules, meter, items, summaries
        self.kinds, self.recording, self.tell = kinds or Kinds(), recording, tell
        self.tally, self.count, self.refuse_next = Tally(), 0, 0
        self._refused: Counter[int] = Counter()
        self._after_end = True
        self._responses: OrderedDict[str, tuple[Any, ...]] = OrderedDict()

    def reply(self, protocol: Wires, body: bytes) -> Reply:
        """Answer a request; a body that cannot be read gets an error and is no request."""
        try:
            parsed = self._continued(protocol.parse(loads(body)))
        except ValueError as error:
            refused = Refused(status=400, message=f"rewindow: {error}", code="invalid_request")
            return Reply(status=400, body=json_bytes(protocol.error(refused)), headers={})
        self.count += 1
        ids = self.items.ids(parsed.items)
        asked = Asked(number=self.count, path=protocol.path, parsed=parsed, ids=ids, size=len(body),
                      pieces=tuple(self.items.table.pieces(ids)))
        return self._answered(protocol, asked)

    def counted(self, protocol: Wires, body: Mapping[str, Any]) -> int:
        """Tokens of a request that is only to be measured. Raises ValueError."""
        parsed = protocol.parse(body)
        ids = self.items.ids(parsed.items)
        size = len(json_bytes(body))
        return self.meter.prompt(Asked(number=0, path="", parsed=parsed, ids=ids, pieces=(), size=size))

    def refuse(self, times: Any) -> dict[str, Any]:
        """The next requests for a step are refused as too long. Raises ValueError."""
        if not isinstance(times, int) or times < 0:
            raise ValueError(f"times: expected a whole number, got {times!r}")
        self.refuse_next = times
        return self.state()

    def new_process(self, argv: Sequence[str] = (), code: int | None = None) -> dict[str, Any]:
        """What comes now is of a new process of the harness; the one before was called and ended so."""
        self._after_end = True
        if self.recording is not None:
            self.recording.process_ended(argv, code, self.count)
        return self.state()

    def state(self) -> dict[str, Any]:
        """What was done so far, as plain data."""
        tally, main = self.tally, self.lines[0]
        following = self._next_step() if main.next < len(main.turns) else None
        return {"requests": self.count, "by_kind": dict(tally.requests), "steps": len(main.turns),
                "steps_served": len(tally.steps), "next_step": following,
                "summaries": dict(tally.summaries), "refuse_next": self.refuse_next,
                "divergences": [d.to_json() for d in tally.divergences], "notes": [d.to_json() for d in tally.notes],
                "stopped": tally.stopped.to_json() if tally.stopped else None}

    def _continued(self, parsed: Parsed) -> Parsed:
        if parsed.previous is None:
            return parsed
        if parsed.previous not in self._responses:
            raise ValueError(f"previous_response_id: {parsed.previous} is not among the last {_KEPT_RESPONSES}")
        return replace(parsed, items=(*self._responses[parsed.previous], *parsed.items))

    def _answered(self, protocol: Wires, asked: Asked) -> Reply:
        last = asked.pieces[-1].text if asked.pieces else ""
        kind = self.kinds.kind(asked.pieces, bool(asked.parsed.tools), self.lines[0].expects,
                               self.summaries.stand_in(last))
        done = {"step": self._step, "summary": self._summary, "other": self._other}[kind](asked)
        overflow = self._overflow(protocol, asked, done)
        if overflow is not None:
            done = replace(done, status=400, error=OVERFLOW, text="", calls=())
        self._keep(asked, done)
        if done.status == 200:
            return self._spoken(protocol, asked, done)
        refused = overflow or Refused(status=done.status, message=done.error or "", code="rewindow_divergence")
        return _refusal(protocol, asked, refused, _headers(done))

    def _step(self, asked: Asked) -> Responded:
        """The recorded turn that is asked for, or what speaks against it."""
        if self.tally.stopped is not None:
            return self._halted(self.tally.stopped)
        line = self._line(asked.pieces)
        place = line.place(asked.pieces, lambda: self._holds_summary(asked.pieces))
        if place.turn is None:
            return self._stop(place.divergences, line)
        turn = line.turns[place.turn]
        found = (*place.divergences, *self._tools(asked, turn))
        stops = [d for d in found if d.stops and (d.what == "forbidden" or self.rules.on_divergence == "stop")]
        if stops:
            return self._stop(found, line, stops[0])
        calls = tuple(_named(turn, n) for n in range(len(turn.message.calls)))
        text = "".join(b.text for b in turn.message.blocks if isinstance(b, Text))
        used = self.meter.usage(asked, text, calls, turn.step.usage)
        return Responded(kind="step" if line is self.lines[0] else "other", step=turn.step.number, text=text,
                         calls=calls, usage=used, divergences=found, told=place.turn, line=self.lines.index(line))

    def _holds_summary(self, pieces: Sequence[Piece]) -> bool:
        return any(self.summaries.stand_in(p.text) for p in pieces if p.role != "tool")

    def _line(self, pieces: Sequence[Piece]) -> Line:
        """The thread of the session that a request goes on with: a sub-agent's where it knows the last response."""
        main, *others = self.lines
        if not others:
            return main
        best = max(self.lines, key=lambda line: line.knows(pieces))
        if best.knows(pieces) or main.begins(pieces):
            return best
        return next((line for line in others if line.begins(pieces)), main)

    def _tools(self, asked: Asked, turn: Turn) -> list[Divergence]:
        """Calls that the harness cannot make, or must not."""
        offered, names = set(asked.parsed.tool_names), {c.name for c in turn.message.calls}
        number, allowed = turn.step.number, self.rules.tools
        found = [Divergence(number, "forbidden", f"the recorded turn calls {name}, which --tools does not name")
                 for name in sorted(names) if allowed is not None and name not in allowed]
        return found + [Divergence(number, "unknown-tool", f"the recorded turn calls {name}, which the harness lacks")
                        for name in sorted(names - offered) if offered]

    def _stop(self, found: Sequence[Divergence], line: Line, why: Divergence | None = None) -> Responded:
        reason = why or found[-1]
        self.tally.stopped = reason
        return replace(self._halted(reason), kind="step", divergences=tuple(found))

    def _halted(self, reason: Divergence) -> Responded:
        words = f"rewindow: stopped at step {reason.step}: {reason.what}: {reason.words}"
        return Responded(kind="other", step=reason.step, status=_STOPPED, error=words)

    def _summary(self, asked: Asked) -> Responded:
        main = self.lines[0]
        told = main.turns[main.next - 1].step if main.next else None
        end = told.start + 1 if told is not None else 0
        text, by = self.summaries.text(told.number if told else 0, end, asked.pieces)
        self.tally.summaries[by] += 1
        return Responded(kind="summary", step=self._next_step(), text=text,
                         usage=self.meter.usage(asked, text, (), None))

    def _other(self, asked: Asked) -> Responded:
        """Something beside the session, such as a title: the first line of the first prompt."""
        prompts = [p for t in self.lines[0].turns[:1] for p in t.prompts]
        text = prompts[0].splitlines()[0][:_TITLE] if prompts else "recorded session"
        return Responded(kind="other", step=self._next_step(), text=text, usage=self.meter.usage(asked, text, (), None))

    def _next_step(self) -> int:
        main = self.lines[0]
        return main.turns[min(main.next, len(main.turns) - 1)].step.number if main.turns else 0

    def _overflow(self, protocol: Wires, asked: Asked, done: Responded) -> Refused | None:
        """The refusal of a request that is too long, or that the user wants refused."""
        if done.status != 200:
            return None
        tokens, limit = self.meter.prompt(asked), self.rules.limit
        wanted = done.kind == "step" and self._refused[done.step] < self.rules.refuse.get(done.step, 0)
        if done.kind == "step" and self.refuse_next and not wanted:
            self.refuse_next, wanted = self.refuse_next - 1, True
        if not wanted and (limit is None or tokens <= limit):
            return None
        if done.kind == "step":
            self._refused[done.step] += 1
        most = limit or min(self.rules.window, tokens - 1)
        return Refused(status=400, message=protocol.overflow(max(tokens, most + 1), most), code=OVERFLOW)

    def _keep(self, asked: Asked, done: Responded) -> None:
        """Count, tell and record what came of a request."""
        words = "refused" if done.error == OVERFLOW else "stopped" if done.status != 200 else done.kind
        self.tally.requests[words] += 1
        for divergence in done.divergences:
            (self.tally.divergences if divergence.stops else self.tally.notes).append(divergence)
            self.tell(f"step {divergence.step}: {divergence.what}: {divergence.words}"
                      f" (request {asked.number}, {_handled(done, divergence)})")
        if self.recording is not None:
            self.recording.add(asked, done, self.items, self._prompts(asked, done))
        if done.told is not None and done.status == 200:
            self.lines[done.line].told(done.told, asked.pieces)
        if done.kind == "step" and done.status == 200:
            self.tally.steps.add(done.step)
            self._after_end = not done.calls

    def _prompts(self, asked: Asked, done: Responded) -> list[str]:
        """What a person typed for this request: the recorded prompts, else the last message where a turn begins."""
        if done.kind != "step" or not self._after_end:
            return []
        texts = [p.text for p in asked.pieces if p.role == "user"]
        expected = self.lines[0].turns[done.told].prompts if done.told is not None else ()
        return [p for p in expected if any(p in text for text in texts)] or texts[-1:]

    def _spoken(self, protocol: Wires, asked: Asked, done: Responded) -> Reply:
        answer = Answer(number=asked.number, model=asked.model, text=done.text, calls=tuple(done.calls),
                        usage=done.usage)
        document = protocol.body(answer)
        if asked.parsed.params.get("store") is not False and isinstance(document.get("output"), list):
            self._responses[document["id"]] = (*asked.parsed.items, *document["output"])
            while len(self._responses) > _KEPT_RESPONSES:
                self._responses.popitem(last=False)
        if not asked.streams:
            return Reply(status=200, body=json_bytes(document), headers=_headers(done))
        return Reply(status=200, body=b"".join(protocol.events(answer, asked.parsed.params)), stream=True,
                     headers=_headers(done))


def _named(turn: Turn, place: int) -> ToolCall:
    """A call with an id that is there: some recordings lack them."""
    call = turn.message.calls[place]
    return call if call.id else ToolCall(id=f"call_{turn.step.number}_{place}", name=call.name,
                                         arguments=call.arguments, is_object=call.is_object)


def _handled(done: Responded, divergence: Divergence) -> str:
    if done.status != 200:
        return "stopped"
    return f"answered with recorded step {done.step}" if divergence.stops else "let pass"


def _headers(done: Responded) -> dict[str, str]:
    told = ", ".join(dict.fromkeys(d.what for d in done.divergences))
    return {"x-rewindow-step": str(done.step), **({"x-rewindow-divergence": told} if told else {})}


def _refusal(protocol: Wires, asked: Asked, refused: Refused, headers: Mapping[str, str]) -> Reply:
    inside = protocol.error_events(refused, asked.number) if asked.streams else None
    if inside is not None:
        return Reply(status=200, body=inside, stream=True, headers=headers)
    return Reply(status=refused.status, body=json_bytes(protocol.error(refused)), headers=headers)
