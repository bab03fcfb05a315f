"""Parts of OpenHands' condensers, SWE-agent's observations and OpenCode's checkpoint."""

from __future__ import annotations

import pytest

from replay.blocks import Image, ToolResult
from replay.errors import ConfigError
from replay.log import Log
from replay.policy.base import Capacity, Cut, Moment, Refusal
from replay.policy.checkpoint import Checkpoint, KeepSerialised, serialised
from replay.policy.cuts_essential import KeepTaskAndHalf
from replay.policy.cuts_kept import KeepHeadAndTail
from replay.policy.example_tools import log_of, moment, replay, session
from replay.policy.observations import KeepNewestEvents, KeepNewestObservations, LineCount
from replay.testing import FixedCounter, Script, summary_message
from replay.transcript import Message
from replay.window import Inserted, Span, Window

PICTURE = Image(mime="image/png", size_bytes=10, sha256="0" * 64)
ROUNDS = [("u", 1), *[m for _ in range(10) for m in (("a", 1), ("t", 1))]]
"""A prompt and ten calls with a result each: log places 0 to 20."""


def result(text: str, images: tuple[Image, ...] = (), name: str = "run") -> Message:
    """A message with a result."""
    blocks = (ToolResult(call_id="c", name=name, text=text, images=images),)
    return Message(index=1, role="tool", blocks=blocks, origin="tool")


def test_observation_is_shown_as_the_number_of_its_lines() -> None:
    """Images are counted besides; results of spared tools stay the same object."""
    spared = result("a\nb", name="submit")

    assert "Old environment output: (2 lines omitted)" == LineCount().render(result("a\nb")).text
    assert "Old environment output: (0 lines omitted) (2 images omitted)" == LineCount().render(
        result("", (PICTURE, PICTURE))).text
    assert spared is LineCount(except_tools=("submit",)).render(spared)


@pytest.mark.parametrize(("n", "polling", "observations", "elided"), [
    (5, 1, 6, []), (5, 1, 7, [1]), (5, 1, 9, [1, 2, 3]), (5, 3, 8, []), (5, 3, 9, [1, 2, 3]), (1, 1, 3, [1]),
    (1, 4, 3, []), (5, 1, 0, [])])
def test_observations_are_elided_in_strides(n: int, polling: int, observations: int, elided: list[int]) -> None:
    """The first observation stays, and n to n + polling of the others."""
    assert elided == list(KeepNewestObservations(n=n, polling=polling).elided(observations))


@pytest.mark.parametrize(("n", "polling", "stop"), [(5, 1, 11), (5, 3, 7), (12, 1, None)])
def test_mark_ends_behind_the_last_elided_result(n: int, polling: int, stop: int | None) -> None:
    """With the task there are eleven observations; the result with number k stands at log place 2 k."""
    found = KeepNewestObservations(n=n, polling=polling).marks(moment(log_of(*ROUNDS)))

    assert stop == (None if isinstance(found, Refusal) else found[0].stop)


def test_observations_before_a_clear_do_not_count() -> None:
    """After the person wiped the window the harness counts from its start again."""
    at = moment(log_of(*ROUNDS, *ROUNDS), floor=21)
    found = KeepNewestObservations(n=5).marks(at)

    assert not isinstance(found, Refusal)
    assert 21 + 11 == found[0].stop


@pytest.mark.parametrize("settings", [{"n": 0}, {"polling": 0}])
def test_numbers_that_the_original_refuses_are_refused(settings: dict[str, int]) -> None:
    """At least one observation stays, and a stride is at least one step."""
    with pytest.raises(ConfigError, match="positive"):
        KeepNewestObservations(**settings)


@pytest.mark.parametrize(("events", "stop"), [(5, 16), (4, 17), (0, 21), (21, None)])
def test_results_before_the_newest_events_are_masked(events: int, stop: int | None) -> None:
    """Calls and results are events alike."""
    found = KeepNewestEvents(events=events).marks(moment(log_of(*ROUNDS)))

    assert stop == (None if isinstance(found, Refusal) else found[0].stop)


def test_a_summary_is_an_event() -> None:
    """It takes one place of the attention window."""
    log = log_of(*ROUNDS)
    summary = Inserted(message=summary_message("S"), kind="summary")
    at = Moment(log=log, window=Window((Span(11, 21), summary), (), 21), capacity=Capacity(window=1_000))
    found = KeepNewestEvents(events=5).marks(at)

    assert not isinstance(found, Refusal)
    assert 17 == found[0].stop


@pytest.mark.parametrize(("tail", "expected"), [(17, 15), (4, 17)])
def test_at_most_half_of_the_events_stays_where_a_refusal_asked(tail: int, expected: int) -> None:
    """Of 21 events half is ten, less two in front, less the summary: seven, moved forward to a call."""
    found = KeepHeadAndTail(head=2, tail=tail, halves=True).cut(moment(log_of(*ROUNDS)))

    assert isinstance(found, Cut)
    assert expected == found.keep_from


def test_task_and_half_of_the_rest_stay() -> None:
    """Of twenty events behind the prompt ten stay; a result in front of them goes with its call."""
    whole = KeepTaskAndHalf().cut(moment(log_of(*ROUNDS)))
    odd = KeepTaskAndHalf().cut(moment(log_of(*ROUNDS, ("a", 1), ("t", 1), ("s", 1))))

    assert Cut(keep_from=11, kept=(Span(0, 1),)) == whole
    assert Cut(keep_from=13, kept=(Span(0, 1),)) == odd


def test_nothing_is_forgotten_without_a_prompt() -> None:
    """Where the window holds no message of the person there is no task to keep."""
    at = Moment(log=log_of(*ROUNDS), window=Window((Span(3, 21),), (), 21), capacity=Capacity(window=1_000))

    assert Refusal("no_prompt") == KeepTaskAndHalf().cut(at)


def talk() -> Log:
    """Prompt, a response with two calls and their results, an answer."""
    script = Script().system("rules").user("go").call("read", '{"path":"a"}', text="I look", count=2)
    return Log(script.result("body", 0).result("x" * 30, 1, is_error=True).say("done").build().main, FixedCounter(()))


def test_a_response_and_its_results_are_one_text() -> None:
    """Each call is followed by its result; long ones are cut, errors are not."""
    expected = ('[Assistant]: I look\n[Assistant tool call]: read({"path":"a"})\n[Tool result]: bod\n[truncated]\n'
                '[Assistant tool call]: read({"path":"a"})\n[Tool error]: ' + "x" * 30)

    assert expected == serialised(talk(), Span(2, 5), result_chars=3)
    assert ["", "[User]: go"] == [serialised(talk(), Span(i, i + 1), 100) for i in (0, 1)]


@pytest.mark.parametrize(("tokens", "expected"), [(3, 6), (4, 5), (45, 5), (46, 2), (48, 2), (49, 0)])
def test_newest_messages_are_kept_as_far_as_their_text_fits(tokens: int, expected: int) -> None:
    """A message that does not fit ends the walk; a response does not go without its results."""
    found = KeepSerialised(tokens=tokens).cut(moment(talk()))

    assert isinstance(found, Cut)
    assert expected == found.keep_from


def test_checkpoint_holds_summary_and_newest_messages() -> None:
    """One message speaks for both; a system message stays beside it; a later summary is made from all of its text."""
    part = Checkpoint()
    summary = Inserted(message=part.message("S"), kind="summary", covers=(Span(1, 2),), source="S")
    pinned, made = part.place(summary, (), (Span(0, 1), Span(2, 6)), moment(talk()))
    assert isinstance(made, Inserted)

    assert Span(0, 1) == pinned
    assert (Span(1, 6),) == made.covers
    assert "<summary>\nS\n</summary>\n\n<recent-context>\n[Assistant]: I look\n" in made.message.text
    assert "S\n\n[Assistant]: I look" in str(made.source)


def test_core_path_compacts_again_from_its_checkpoint() -> None:
    """Nothing is lost at the second compaction: the newest messages of the first one were in its text."""
    moves = [m for _ in range(60) for m in (("a", 1), ("t", 400))]
    small = "opencode-core:tokens=2000,second.reserve=1000,input_limit.reserve=0"
    lane = replay(session(("u", 10), *moves), small, 10_000)
    fulls = [e for e in lane.events if e.kind == "full"]

    assert 2 <= len(fulls)
    assert [()] == list({e.dropped for e in fulls})
