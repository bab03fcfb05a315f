"""A function of messages and state as a policy: what it gives is the view, and where it comes from is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.trial import Settings, run_trial
from replay.engine import Lane, Session
from replay.own.base import OwnCodeError
from replay.own.function import PythonFunction
from replay.policy.base import Capacity
from replay.policy.load import policy
from replay.policy.policy import Policy
from replay.readers import read
from replay.testing import Script
from replay.tokens import TokenCounter, tokenizer
from replay.transcript import Transcript
from replay.view import render

HERE = "tests.replay.own.examples"
SAMPLES = Path(__file__).resolve().parents[3] / "datasets" / "samples"
WIDE = Capacity(window=1_000_000)


def session(transcript: Transcript) -> Session:
    """A session ready for replay."""
    return Session(transcript, TokenCounter(tokenizer()))


def lane(transcript: Transcript, name: str, capacity: Capacity = WIDE, **more: Any) -> Lane:
    """The lane of one of the examples."""
    own = PythonFunction(target=f"{HERE}:{name}", **more)
    return session(transcript).replay(Policy(name=name, own=own), capacity)


def prints(found: Lane) -> list[bytes]:
    """The fingerprint of each view."""
    return [view.print.fingerprint for view in found.views]


def talk(rounds: int) -> Transcript:
    """Prompts with a read and an answer each."""
    script = Script()
    for n in range(rounds):
        script.user(f"Please look at file number {n} and say what is in it, in as few words as you can.")
        script.call("Read", f'{{"file_path":"f{n}"}}').result(f"line {n}\n" * 40).say(f"File {n} holds lines.")
    return script.build()


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*/*.jsonl"))[::3], ids=lambda p: f"{p.parent.name}/{p.stem}")
@pytest.mark.parametrize("shape", ["openai", "anthropic"])
def test_a_function_that_changes_nothing_is_full_history(path: Path, shape: str) -> None:
    """Its views are those of full history, in either shape, and nothing has happened."""
    found = session(read(path)[0])
    full = found.replay(policy("full-history"), WIDE)
    own = found.replay(Policy(name="same", own=PythonFunction(target=f"{HERE}:same", shape=shape)), WIDE)

    assert prints(full) == prints(own)
    assert [v.counted for v in full.views] == [v.counted for v in own.views]
    assert [e for e in full.events if e.kind == "clear"] == list(own.events)


def test_what_it_is_given_is_its_own() -> None:
    """Code that ruins what it was given ruins nothing else."""
    assert prints(lane(talk(4), "same")) == prints(lane(talk(4), "spoils_its_input"))


def test_dropped_messages_are_known() -> None:
    """What code leaves out is dropped, what it keeps is the log's own."""
    found = lane(talk(5), "newest")
    last = found.views[-1]

    assert list(range(7, 19)) == list(last.window.indices())
    assert {"full"} == {e.kind for e in found.events}
    assert list(range(7)) == sorted(i for e in found.events for i in e.dropped)


@pytest.mark.parametrize("path", sorted((SAMPLES / "pi").glob("*.jsonl")), ids=lambda p: p.stem)
def test_a_sliding_window_is_its_preset(path: Path) -> None:
    """A function that keeps the newest forty messages shows at every step what the preset `recent-n` shows."""
    found = session(read(path)[0])
    preset = found.replay(policy("recent-n"), WIDE)
    own = found.replay(Policy(name="forty", own=PythonFunction(target=f"{HERE}:newest_forty")), WIDE)

    assert prints(preset) == prints(own)
    assert any(e.dropped for e in own.events)


def test_changed_results_stand_for_their_messages() -> None:
    """A blanked result is that result in another form: nothing is dropped, and it is blanked once."""
    found = lane(talk(5), "blanks_old_results")
    shown = render(session(talk(5)).log, found.views[-1].window, "openai")

    assert [("micro", (2,)), ("micro", (6,))] == [(e.kind, e.elided) for e in found.events]
    assert ["[old]", "[old]"] == [m["content"] for m in shown if m["role"] == "tool"][:2]


def test_a_summary_speaks_for_what_it_replaced() -> None:
    """New text in place of what went is a summary of it; the next one speaks for the first one's messages too."""
    found = lane(talk(9), "summarises")
    full = [e for e in found.events if e.kind == "full"]

    assert ["Summary 1 of 8 messages.", "Summary 2 of 9 messages."] == [
        e.added.message.text for e in full[:2] if e.added]
    assert [(), ()] == [e.dropped for e in full[:2]]
    assert list(range(8)) == list(full[0].summarised)
    assert [(0, 16)] == [tuple(s) for s in full[1].added.covers] if full[1].added else []


def test_full_history_at_every_step_on_demand() -> None:
    """Code that does not persist is given everything again, and its changes are told once."""
    kept = lane(talk(5), "blanks_old_results", persists=False)

    assert [("micro", (2,)), ("micro", (6,))] == [(e.kind, e.elided) for e in kept.events]
    assert prints(lane(talk(5), "blanks_old_results")) == prints(kept)


def test_state_is_one_session_s() -> None:
    """State goes from step to step, and a second session begins with none."""
    first, second = (lane(talk(2), "counts", persists=False) for _ in range(2))

    assert prints(first) == prints(second)
    assert "call 4" == render(session(talk(2)).log, first.views[-1].window, "openai")[-1]["content"]


def test_a_refused_request_may_be_made_smaller() -> None:
    """Code is told of a refusal, and what fits then is sent."""
    found = lane(talk(9), "shrinks_when_refused", Capacity(window=900))

    assert found.ended is None
    assert ["refused", "full", "retried"] == [e.kind for e in found.events][:3]
    assert all(v.figure.tokens <= 900 for v in found.views)


def test_a_request_that_stays_too_large_ends_the_run() -> None:
    """Code that does nothing about it ends as full history does."""
    full = session(talk(9)).replay(policy("full-history"), Capacity(window=900))
    own = lane(talk(9), "same", Capacity(window=900))

    assert full.ended == own.ended
    assert [v.status for v in full.views] == [v.status for v in own.views]


@pytest.mark.parametrize(("name", "words"), [
    ("raises", r"examples:raises: step 3: ValueError: no budget left"),
    ("gives_text", r"gives_text: step 1: gave str and not a list of messages"),
    ("gives_no_role", r"step 1: message 0 is no dictionary with a role"), ("missing", "cannot import .*missing")])
def test_what_goes_wrong_is_one_line_and_a_failed_row(name: str, words: str) -> None:
    """The error names code and step; in a run the trial has failed and the run goes on."""
    with pytest.raises(Exception, match=words):
        lane(talk(3), name)
    row = run_trial(session(talk(3)), Policy(name=name, own=PythonFunction(target=f"{HERE}:{name}")),
                    Settings(capacity=WIDE, tokenizer="o200k_base", summariser="extractive"))

    assert not row.ok


def test_code_that_asks_for_a_wrong_shape_of_content() -> None:
    """Content that is no JSON is told with its step."""
    own = PythonFunction(target="tests.replay.own.test_functions:_odd")
    with pytest.raises(OwnCodeError, match="step 1: gave what is no JSON"):
        session(talk(1)).replay(Policy(name="odd", own=own), WIDE)


def _odd(messages: list[Any], state: dict[str, Any]) -> list[Any]:
    return [{"role": "user", "content": object()}]


def test_a_function_is_named_like_any_policy() -> None:
    """`package.module:function` with two parameters is own code, and its spec makes it again."""
    assert PythonFunction(target=f"{HERE}:same") == policy(f"{HERE}:same").own
    assert PythonFunction(target=f"{HERE}:same") == policy(f"python:{HERE}:same").own


@settings(max_examples=60)
@given(st.data())
def test_any_selection_is_found_again(data: st.DataObject) -> None:
    """Whatever code keeps of the log, in whatever order, is shown exactly, and is either kept, elided or dropped."""
    transcript = talk(data.draw(st.integers(1, 4)))
    found = session(transcript)
    count = len(transcript.messages)
    chosen = data.draw(st.lists(st.integers(0, count - 1), unique=True, max_size=count))
    _CHOSEN[:] = chosen
    own = PythonFunction(target="tests.replay.own.test_functions:_chosen", persists=False)
    view = found.replay(Policy(name="chosen", own=own), WIDE).views[-1]

    assert [i for i in chosen if i < count - 1] == list(view.window.indices())


_CHOSEN: list[int] = []


def _chosen(messages: list[Any], state: dict[str, Any]) -> list[Any]:
    return [messages[i] for i in _CHOSEN if i < len(messages)]
