"""When messages are shown, told from changes, against the views themselves."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.log_search import Ask
from evals.mentions import LETTER, SENSE, Mentions
from evals.phrase_kinds import Task
from evals.phrases import Prepared, searchable
from evals.presence import Presence, arrivals, intact, minus, presence
from replay.blocks import Text
from replay.engine import Session, View
from replay.fingerprint import Print
from replay.log import Log
from replay.policy.base import Capacity
from replay.policy.load import policy, policy_from
from replay.policy.tool_results import Placeholder
from replay.testing import FixedCounter, Script
from replay.tokens.calibrated import Figure
from replay.transcript import Message, Transcript
from replay.view import shown_messages
from replay.window import Inserted, Mark, Span, Window

WORDS = ("alpha river", "bravo stone", "charlie cloud", "delta field", "foxtrot lake")
TINY = FixedCounter(())


def talk(rounds: int) -> Transcript:
    """A prompt, a call and its result a round, each with one of the words."""
    script = Script()
    for n in range(rounds):
        script.user(f"say {WORDS[n % 5]}").call("Read", f'{{"path":"{WORDS[(n + 1) % 5]}"}}').result(WORDS[(n + 2) % 5])
        script.say(f"done {n}")
    return script.build()


def naive(log: Log, views: list[View], text: str, grade: int) -> list[bool]:
    """For each view whether one of its messages holds a task, by looking at all of them."""
    task = Task(text)
    return [any(task.grade(Prepared(searchable(s.message)), s.form == "summary") >= grade
                for s in shown_messages(log, v.window)) for v in views]


def quick(log: Log, shown: Presence, text: str, grade: int) -> list[bool]:
    """The same by pieces."""
    pieces = Mentions(log, [Ask(phrase=Task(text), first=0, stop=shown.views)]).pieces(shown, grade)
    seen = pieces.per_view(shown.views)
    assert set(seen.tolist()) <= {0, 1}
    return [bool(n) for n in seen]


def view(position: int, window: Window) -> View:
    """A view that only has a window."""
    return View(step=position + 1, window=window, counted=0, figure=Figure(0, "counted"), decision=None, events=(),
                print=Print(b"", 0, 0, 0), status="sent")


@pytest.mark.parametrize("spec", [
    "full-history", "mycodeagent:rounds=2", "decode-adr18:tail_tokens=40", "mycodeagent:reinjection.enabled=true"])
@pytest.mark.parametrize("window", [30, 90, 100_000])
def test_pieces_agree_with_the_views(spec: str, window: int) -> None:
    """Every preset shows a phrase in exactly the views in which looking at all messages finds it."""
    session = Session(talk(12), FixedCounter((9,) * 60))
    lane = session.replay(policy(spec), Capacity(window=window))
    shown = presence(lane.views, session.log)

    for text in WORDS:
        for grade in (SENSE, LETTER):
            assert naive(session.log, list(lane.views), text, grade) == quick(session.log, shown, text, grade)


def test_masked_results_leave_what_the_mask_leaves() -> None:
    """A blanked result shows nothing of its text, but a placeholder that names a phrase shows it."""
    rule: dict[str, Any] = {"use": "keep-newest", "keep": 1, "placeholder": {"text": "[gone: alpha river]"}}
    session = Session(talk(8), FixedCounter((9,) * 60))
    lane = session.replay(policy_from({"name": "m", "stages": [{"name": "m", "tool_results": rule}]}),
                          Capacity(window=10_000))
    shown = presence(lane.views, session.log)

    for text in WORDS:
        assert naive(session.log, list(lane.views), text, LETTER) == quick(session.log, shown, text, LETTER)


LOG_LENGTH = 12
SPANS = st.tuples(st.integers(0, LOG_LENGTH), st.integers(0, LOG_LENGTH)).map(lambda p: Span(min(p), max(p)))
MARKS = st.builds(Mark, st.sampled_from([Placeholder(text="x"), Placeholder(text="bravo stone")]),
                  st.integers(0, 6), st.integers(6, LOG_LENGTH))
INSERTED = st.sampled_from([Inserted(kind="summary", message=Message(
    index=-1, role="user", origin="summary", blocks=(Text(text=f"about {w}"),))) for w in WORDS[:3]])


@st.composite
def windows(draw: st.DrawFn) -> list[Window]:
    """Successive windows of any shape: messages come back, marks go away, summaries come and go."""
    made = []
    for stop in range(1, LOG_LENGTH + 1):
        spans = [Span(s.start, min(s.stop, stop)) for s in draw(st.lists(SPANS, max_size=2)) if s.start < min(s.stop, stop)]
        made.append(Window((*draw(st.lists(INSERTED, max_size=1)), *spans), tuple(draw(st.lists(MARKS, max_size=2))), stop))
    return made


@settings(max_examples=40, deadline=None)
@given(windows())
def test_any_sequence_of_windows(sequence: list[Window]) -> None:
    """Whatever a policy does with its window, pieces agree with the views."""
    script = Script()
    for n in range(LOG_LENGTH // 2):
        script.call("Read", f'{{"path":"{WORDS[n % 5]}"}}').result(WORDS[(n + 1) % 5])
    transcript = script.build()
    log = Log(transcript.main, TINY)
    log.steps = tuple(transcript.steps[0].__class__(number=n, start=n, response=None) for n in range(1, LOG_LENGTH + 1))
    views = [view(n, w) for n, w in enumerate(sequence)]
    shown = presence(views, log)

    for text in WORDS[:4]:
        assert naive(log, views, text, LETTER) == quick(log, shown, text, LETTER)


def test_most_lanes_are_one_stretch() -> None:
    """A new stretch begins only where something comes back."""
    session = Session(talk(12), FixedCounter((9,) * 60))
    lane = session.replay(policy("decode-adr18:tail_tokens=40"), Capacity(window=90))

    assert 1 == len(presence(lane.views, session.log).stretches)


def test_arrivals() -> None:
    """A prompt is in the first view, a response in the one after, and what follows the last request in none."""
    log = Log(talk(1).main, TINY)

    assert [0, 1, 1, 2] == arrivals(log).tolist()


def test_intact() -> None:
    """A message is intact where a span shows it and no mark changes it."""
    log = Log(talk(2).main, TINY)
    marked = view(0, Window((Span(0, 4),), (Mark(Placeholder(text="x"), 0, 4),), 8))

    assert [True, True, False, True, False] == [intact(marked, n, log) for n in range(5)]


def test_minus() -> None:
    """Ranges less ranges."""
    assert [(0, 2), (4, 5), (7, 9)] == minus([(0, 5), (6, 9)], [(2, 4), (5, 7)])
    assert [] == minus([(1, 2)], [(0, 9)])
