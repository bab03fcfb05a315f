"""Decode's cut and its blanking against a second, plain reckoning over pydantic-ai's requests and responses."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from replay.log import Log
from replay.policy.base import Capacity, Cut, Moment, Refusal
from replay.policy.cuts import KeepTokens
from replay.policy.load import policy
from replay.policy.tool_results import ElideBeforeTail
from replay.testing import FixedCounter, Script, summary_message
from replay.view import shown_messages
from replay.window import Inserted, Item, Span, Window


@dataclass
class Request:
    """What stands between two responses, or a response."""

    first: int | None
    """Log index of its first message; None for the summary at the head."""
    chars: int = 0
    response: bool = False
    results: bool = False
    prompt: bool = False

    @property
    def tokens(self) -> int:
        """A quarter of its characters, rounded down once."""
        return self.chars // 4


def grouped(window: Window, log: Log) -> list[Request]:
    """The window's messages as requests and responses."""
    found: list[Request] = []
    for shown in shown_messages(log, window):
        message = shown.message
        joined = found and shown.index is not None and found[-1].first is not None
        if not joined or message.role == "assistant" or found[-1].response:
            found.append(Request(shown.index, response=message.role == "assistant"))
        found[-1].chars += len(message.text) + sum(len(str(c.parsed)) for c in message.calls)
        found[-1].results |= bool(message.results)
        found[-1].prompt |= message.role == "user"
    return found


def split(requests: list[Request], budget: int, since_adr_18: bool) -> int:
    """Position of the first kept request: the largest fitting tail, moved back to a boundary; 0 keeps everything."""
    total, cut = 0, len(requests)
    while cut and total + requests[cut - 1].tokens <= budget:
        cut -= 1
        total += requests[cut].tokens
    if cut in (0, len(requests)):
        return cut
    while cut > 0 and not _boundary(requests[cut], since_adr_18):
        cut -= 1
    return cut


def _boundary(request: Request, since_adr_18: bool) -> bool:
    if since_adr_18:
        return request.response or not request.results
    return not request.response and request.prompt and not request.results


ROUNDS = st.lists(st.tuples(st.sampled_from(["prompt", "call", "calls", "say"]), st.integers(0, 60)), max_size=14)


def played(rounds: list[tuple[str, int]]) -> Script:
    """A session that begins with a prompt and ends with an answer."""
    script = Script().user("go")
    for kind, size in rounds:
        if kind == "prompt":
            script.user("p" * size)
        elif kind == "say":
            script.say("s" * size)
        else:
            count = 2 if kind == "calls" else 1
            script.call("Read", '{"path": "a"}', count=count)
            for position in range(count):
                script.result("r" * size, call=position)
    return script.say("done")


def windows(log: Log, summary: int | None, start: int) -> Window:
    """The whole log, or a summary of this many characters and the log from a response or prompt on."""
    if summary is None:
        return Window((Span(0, len(log)),), (), len(log))
    while start and (log.requests[start] != start or log.messages[start].results):
        start -= 1
    head = Inserted(message=summary_message("S" * summary), kind="summary", covers=(Span(0, start),))
    items: tuple[Item, ...] = (head, Span(start, len(log)))
    return Window(items, (), len(log))


def rule_of(name: str, budget: int) -> KeepTokens:
    """A preset's cut with another tail."""
    cut = policy(f"{name}:tail_tokens={budget}").stages[0].cut
    assert isinstance(cut, KeepTokens)
    return cut


@settings(max_examples=120, deadline=None)
@given(ROUNDS, st.integers(0, 90), st.sampled_from(["decode", "decode-adr18"]), st.none() | st.integers(0, 80),
       st.integers(0, 99))
def test_cut_is_that_of_the_plain_reckoning(rounds: list[tuple[str, int]], budget: int, name: str, summary: int | None,
                                            start: int) -> None:
    """With or without a summary at the head the tail begins where the plain reckoning begins it."""
    log = Log(played(rounds).build().main, FixedCounter(()))
    window = windows(log, summary, start % len(log))
    requests = grouped(window, log)
    place = split(requests, budget, name == "decode-adr18")
    found = rule_of(name, budget).cut(Moment(log=log, window=window, capacity=Capacity(window=100)))

    if place == 0:
        assert isinstance(found, Refusal)
    else:
        kept = len(log) if place == len(requests) else requests[place].first
        assert Cut(keep_from=kept or 0) == found


@settings(max_examples=60, deadline=None)
@given(ROUNDS, st.integers(0, 60), st.integers(0, 60))
def test_blanking_is_that_of_the_plain_reckoning(rounds: list[tuple[str, int]], first: int, second: int) -> None:
    """Twice in a row every result before the cut is blanked, sized as it is shown by then, and no other."""
    log = Log(played(rounds).build().main, FixedCounter(()))
    window, blanked = Window((Span(0, len(log)),), (), len(log)), set[int]()
    for budget in (first, second):
        requests = grouped(window, log)
        place = split(requests, budget, since_adr_18=True)
        stop = len(log) if place == len(requests) else requests[place].first or 0
        blanked |= {m.index for m in log.messages[:stop] if m.results}
        window = _elided(window, log, budget)

    assert blanked == {s.index for s in shown_messages(log, window) if s.form == "elided"}


def _elided(window: Window, log: Log, budget: int) -> Window:
    rule = policy(f"decode-adr18:tail_tokens={budget}").stages[1].tool_results
    assert isinstance(rule, ElideBeforeTail)
    marks = rule.marks(Moment(log=log, window=window, capacity=Capacity(window=100)))
    return window if isinstance(marks, Refusal) else window.with_mark(marks[0])
