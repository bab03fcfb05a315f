"""Worked examples of Goose, Kimi CLI, mini-swe-agent and OpenHands' SDK, and of what second compactions read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from replay.blocks import Text, ToolCall, ToolResult
from replay.engine import Session
from replay.log import Log
from replay.policy.base import Capacity, Cut, Refusal, Summary, SummaryRequest, Told
from replay.policy.compact import compact
from replay.policy.cuts_kept import RemoveShare
from replay.policy.example_tools import decision, fires, keep_from, log_of, moment, of_kind, replay, session, stage
from replay.policy.examples import Example
from replay.policy.load import policy
from replay.policy.requests_kept import KeepRequests
from replay.policy.summarisers import LengthModel
from replay.readers.common import ThreadBuilder
from replay.testing import summary_message
from replay.tokens.bytes_count import ByteCounter
from replay.view import Shown, plain_text, shown_messages
from replay.window import Inserted, Span


@dataclass
class _Listening:
    """Writes a summary of one letter and keeps what it was given."""

    given: list[str] = field(default_factory=list)
    name: str = "listening"

    def summarise(self, request: SummaryRequest) -> Summary | None:
        """One letter; the request is noted as `earlier summary + first–last message`."""
        earlier = "summary + " if request.previous else ""
        self.given.append(f"{earlier}{request.spans[0].start}–{request.spans[-1].stop - 1}")
        return Summary(text="S", by=self.name)


def _second(preset: str) -> list[str]:
    """What the first two summaries of twenty turns are made from; each turn is a prompt and an answer."""
    turns = [m for n in range(1, 21) for m in (("u", 300), ("s", 300, 600 * n))]
    writer = _Listening()
    Session(session(*turns), ByteCounter()).replay(policy(preset), Capacity(window=5_000), writer, refusals={})
    return writer.given[:2]


_TWO_TURNS = (("u", 10), ("s", 10, 100), ("u", 20), ("s", 10, 9_500), ("u", 5), ("s", 1, 100))
"""The second of three turns fills a window of 10,000 tokens."""

_FULL = (*_TWO_TURNS[:2] * 6, ("u", 5), ("s", 1, 170_000), ("u", 5), ("s", 1))
"""The seventh turn fills most of 200,000 tokens."""


def _last_view(preset: str, moves: Sequence[Any], window: int = 10_000) -> Iterator[Shown]:
    told = session(*moves)
    return shown_messages(Session(told, ByteCounter()).log, replay(told, preset, window).views[-1].window)


def _order(preset: str, moves: Sequence[Any], window: int = 10_000) -> list[str]:
    """The last view of these moves: log places, and what stands between them."""
    shown = _last_view(preset, moves, window)
    return [str(s.index) if s.index is not None else f"{s.form} {s.message.role}" for s in shown]


def _goose() -> list[str]:
    """Roles and sizes of Goose's view: the copy of the last prompt has its 80 characters."""
    shown = [s.message for s in _last_view("goose", _TWO_TURNS)]
    return [f"{m.role} {len(plain_text(m))}" if set(plain_text(m)) == {"x"} else m.role for m in shown]


def _kimi(*moves: tuple[str, int]) -> int | str:
    return keep_from(stage("kimi-cli").cut, moment(log_of(*moves)))


def _observation(chars: int) -> int:
    """Characters of an observation by mini-swe-agent that has so many."""
    form = policy("mini-swe-agent").ingest
    log = log_of(("u", 1), ("a", 1), ("t", chars // 4))
    return len((form.render(log.messages[2]) if form is not None else log.messages[2]).results[0].text)


def _openhands(rounds: int) -> str | tuple[int, int]:
    """Whether OpenHands' SDK condenses a prompt and so many calls with results, and what it keeps in front and back."""
    at = moment(log_of(("u", 1), *(m for _ in range(rounds) for m in (("a", 1), ("t", 1)))))
    condense = stage("openhands-sdk")
    if not decision(condense, at).fires:
        return "not yet"
    cut = condense.cut.cut(at) if condense.cut is not None else Refusal("no_cut")
    return (len(cut.kept), len(at.log) - cut.keep_from) if isinstance(cut, Cut) else cut.reason


def _crush() -> tuple[str, int | None]:
    """What Crush measures right behind a compaction, when the last call was reported with 170,000 tokens."""
    at = moment(log_of(("u", 10), ("s", 10)), told=Told(input=170_000, calls=3, stale=True, end=1))
    found = decision(stage("crush", 1), at)
    return found.reason, found.estimated_tokens


def _summary_is_a_message() -> list[bool | int | str]:
    """MyCodeAgent with a summary and one message, with a summary and two; where it cuts a summary and ten rounds."""
    told, summary = Told(input=120_000, calls=1, end=1), Inserted(message=summary_message("S"), kind="summary")
    held = [moment(log_of(*[m for _ in range(n) for m in (("u", 1), ("s", 1))]), 100_000, told) for n in (1, 10)]
    behind = [at._replace(window=at.window.with_items((summary, Span(first, at.window.end))))
              for at, first in ((held[0], 1), (held[0], 0), (held[1], 0))]
    one = stage("mycodeagent")
    return [decision(one, behind[0]).fires, decision(one, behind[1]).fires, keep_from(one.cut, behind[2])]


def _hermes() -> list[str]:
    """Reasons of Hermes' compactions, made and skipped, where what it protects alone exceeds its level."""
    turns = [m for _ in range(34) for m in (("u", 10), ("s", 1_000, 60_000))]
    lane = replay(session(*turns), "hermes", 64_000)
    return [e.reason for e in lane.events if e.stage == "compress"]


def _inflated(tokens: int) -> str:
    """What becomes of a summary of so many tokens by Gemini, which puts 20 with an answer of 11 out of the window."""
    at = moment(log_of(("u", 10), ("s", 10), ("u", 40)))
    done = compact(stage("gemini-cli", 1), at, LengthModel(ratio=1.0, cap=tokens), 1)
    return done.reason if isinstance(done, Refusal) else "accepted"


def _parallel() -> int | str:
    """Where a cut falls that keeps two messages of pydantic-ai's: six results of one response, an answer."""
    builder = ThreadBuilder(id="main")
    builder.add("user", [Text(text="go")], "human")
    builder.respond([ToolCall(id=f"c{n}", name="run", arguments="{}") for n in range(6)], None)
    for n in range(6):
        builder.add("tool", [ToolResult(call_id=f"c{n}", name="run", text="x")], "tool")
    builder.respond([Text(text="done")], None)
    return keep_from(KeepRequests(messages=2), moment(Log(builder.build(), ByteCounter())))


EXAMPLES = (
    Example(number=2, presets=("goose",), says="Goose fires above four fifths: at 80,000 of 100,000 not, at 80,001 yes",
            expected=[False, True], found=lambda: [fires("goose", n, 100_000) for n in (80_000, 80_001)]),
    Example(number=2, presets=("kimi-cli",),
            says="Kimi CLI fires 50,000 tokens below a window of 200,000 and at 85 % of one of 400,000",
            expected=[False, True, False, True],
            found=lambda: [fires("kimi-cli", n, w) for n, w in ((149_999, 200_000), (150_000, 200_000),
                                                                (339_999, 400_000), (340_000, 400_000))]),
    Example(number=2, presets=("openhands-sdk",),
            says="OpenHands' SDK condenses beyond 240 events: the first two and the newest 117 stay, whole pairs",
            expected=["not yet", (3, 116)], found=lambda: [_openhands(119), _openhands(120)]),
    Example(number=3, presets=("mini-swe-agent",),
            says="mini-swe-agent shows an observation below 10,000 characters whole, and of a longer one the first and "
            "the last 5,000", expected=[9_996, True],
            found=lambda: [_observation(9_996), 10_000 < _observation(40_000) < 10_100]),
    Example(number=10, presets=("kimi-cli",),
            says="Kimi CLI keeps two messages of person and model; results ride along with their call",
            expected=[3, 2], found=lambda: [_kimi(("u", 1), ("a", 1), ("t", 1), ("a", 1), ("t", 1), ("a", 1), ("t", 1)),
                                            _kimi(("u", 1), ("s", 1), ("u", 1), ("a", 1), ("t", 1))]),
    Example(number=11, presets=("mycodeagent", "pi-1.6", "codex"),
            says="the second summary is made from the raw log by MyCodeAgent, from the first one and what came since "
            "by Pi 1.6, from the whole view with the first one in it by Codex",
            expected=[["0–3", "0–7"], ["0–7", "summary + 8–15"], ["0–15", "summary + 0–23"]],
            found=lambda: [_second(n) for n in ("mycodeagent:rounds=2,trigger.at=0.5",
                                                "pi-1.6:reserve=2000,tail_tokens=600", "codex")]),
    Example(number=12, presets=("codex",), says="Codex: the person's messages, then the summary",
            expected=["0", "2", "summary user", "4"], found=lambda: _order("codex", _TWO_TURNS)),
    Example(number=12, presets=("cline-legacy",),
            says="Cline's older extension: the first prompt and response, then the newest ones",
            expected=["0", "1", "8", "9", "10", "11", "12", "13", "14"],
            found=lambda: _order("cline-legacy", _FULL, 200_000)),
    Example(number=12, presets=("goose",),
            says="Goose: summary, the assistant's continuation, a copy of the last prompt, the new prompt",
            expected=["user", "assistant", "user 80", "user 20"], found=_goose),
    Example(number=4, presets=("crush",), says="Crush does not look at usage from before a compaction",
            expected=("usage_unknown", None), found=_crush),
    Example(number=6, presets=("mycodeagent",),
            says="a summary is a message for MyCodeAgent's minimum of three, and no round of the ten that it keeps",
            expected=[False, True, "rounds_not_enough"], found=_summary_is_a_message),
    Example(number=10, presets=("summarization-pydantic-ai",),
            says="six results of one response are one request of pydantic-ai's: a cut at it moves back",
            expected=1, found=_parallel),
    Example(number=14, presets=("cline-legacy",),
            says="of 15 messages three quarters behind Cline's first pair are eight",
            expected=8, found=lambda: of_kind(stage("cline-legacy", 1).cut, RemoveShare).removed(15)),
    Example(number=16, presets=("gemini-cli",), says="Gemini rejects a summary that makes the window larger, not an "
            "equal one", expected=["accepted", "summary_inflated"], found=lambda: [_inflated(n) for n in (9, 10)]),
    Example(number=16, presets=("hermes",), says="Hermes stops after two compactions that gain less than a tenth",
            expected=["nothing_between", "threshold_exceeded", "threshold_exceeded", "breaker_open"], found=_hermes),
)
