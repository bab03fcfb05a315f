"""What becomes of a call for a summary that does not fit the window."""

from __future__ import annotations

from typing import Any

import pytest

from replay.engine import Session
from replay.errors import ConfigError
from replay.log import Log
from replay.policy.base import Capacity, InputRule, Refusal, SummaryRequest
from replay.policy.example_tools import log_of, session
from replay.policy.input_ladders import DropOldest, ShorterResults, ThinResults, WholeOrNone
from replay.policy.load import policy_from
from replay.testing import summary_message
from replay.tokens.bytes_count import ByteCounter
from replay.window import Inserted, Span

ROUNDS = [("u", 100), *[m for _ in range(5) for m in (("a", 10), ("t", 90))]]
"""A prompt of 100 tokens and five rounds of 100: log places 0 to 10."""
TOO_LARGE = Refusal("summary_input_too_large")


def request(log: Log | None = None, *previous: Inserted) -> SummaryRequest:
    """A request for a summary of the whole log."""
    log = log or log_of(*ROUNDS)
    return SummaryRequest(log=log, spans=(Span(0, len(log)),), previous=previous, end=len(log))


def read(rule: InputRule, window: int, asked: SummaryRequest | None = None) -> list[int] | str:
    """Log places that are read in a window of this size, or why no summary is asked for."""
    found = rule.limited(asked or request(), Capacity(window=window))
    assert found is not None
    return found.reason if isinstance(found, Refusal) else [i for s in found.spans for i in range(s.start, s.stop)]


EVERYTHING = list(range(11))


@pytest.mark.parametrize("rule", [WholeOrNone(), DropOldest(), ThinResults(), ShorterResults()])
def test_what_fits_is_read_whole(rule: InputRule) -> None:
    """No rung is taken before the call is refused."""
    assert EVERYTHING == read(rule, 1_000)


def test_nothing_is_asked_for_where_the_whole_does_not_fit() -> None:
    """The size of the answer counts too."""
    size = request().tokens

    assert EVERYTHING == read(WholeOrNone(reserve=50), size + 50)
    assert TOO_LARGE.reason == read(WholeOrNone(reserve=50), size + 49)


@pytest.mark.parametrize(("rule", "expected"), [
    (DropOldest(), list(range(5, 11))), (DropOldest(share=0.5), list(range(5, 11))),
    (DropOldest(attempts=2), TOO_LARGE.reason), (DropOldest(attempts=3), list(range(5, 11))),
    (DropOldest(share=0.9), list(range(9, 11)))])
def test_oldest_rounds_are_left_out_until_the_rest_fits(rule: DropOldest, expected: list[int] | str) -> None:
    """One at a time, or a share of what is left; only so many tries."""
    assert expected == read(rule, 310)


def test_an_earlier_summary_is_the_first_to_go() -> None:
    """It is the oldest of all, also where all rounds would fit without it only after one of them went."""
    summary = Inserted(message=summary_message("s" * 400), kind="summary")
    found = DropOldest().limited(request(None, summary), Capacity(window=550))

    assert isinstance(found, SummaryRequest)
    assert ((), (Span(1, 11),)) == (found.previous, found.spans)


def test_nothing_is_left_to_leave_out() -> None:
    """Where not even the newest round fits no summary is asked for."""
    assert TOO_LARGE.reason == read(DropOldest(), 50)


@pytest.mark.parametrize(("window", "missing"), [(520, [6]), (430, [4, 6]), (160, [2, 4, 6, 8, 10])])
def test_results_are_left_out_from_the_middle_outward(window: int, missing: list[int]) -> None:
    """The middle one goes first; half of five is two, then all of them go; calls are read all the same."""
    assert [i for i in EVERYTHING if i not in missing] == read(ThinResults(), window)


def test_all_results_may_not_be_enough() -> None:
    """Behind the last rung no summary is asked for."""
    assert TOO_LARGE.reason == read(ThinResults(), 100)


@pytest.mark.parametrize(("window", "chars"), [(600, 500), (540, 250), (400, 125), (300, None)])
def test_results_become_shorter_with_each_attempt(window: int, chars: int | None) -> None:
    """Results of 360 characters: half of the limit of 500 is the first that changes them."""
    found = ShorterResults(chars=500, factor=0.5, attempts=3).limited(request(), Capacity(window=window))

    assert (chars is None) == isinstance(found, Refusal)
    assert isinstance(found, Refusal) or chars == found.form.chars  # type: ignore[union-attr]


@pytest.mark.parametrize("settings", [{"share": 1.5}, {"attempts": -1}, {"reserve": -1}])
def test_settings_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    """The message names the setting."""
    with pytest.raises(ConfigError, match=next(iter(settings))):
        DropOldest(**settings)


def lane(limit: dict[str, Any]) -> list[Any]:
    """Events of a policy with this limit that is asked too late: the view, and a call for its summary, do not fit."""
    stage = {"name": "full", "trigger": {"tokens": 10**6}, "cut": "nothing", "input_limit": limit}
    made = policy_from({"name": "late", "stages": [stage],
                        "reactive": {"use": "force-stage", "attempts": 1, "scope": "step"}})
    moves = [m for _ in range(8) for m in (("a", 10), ("t", 90))]
    return list(Session(session(("u", 10), *moves), ByteCounter()).replay(made, Capacity(window=450)).events)


def test_a_late_compaction_loses_what_the_summary_call_left_out() -> None:
    """The messages are listed as dropped, and the event says so."""
    full = next(e for e in lane({"use": "drop-oldest"}) if e.kind == "full")

    assert (0, 1, 2) == full.dropped
    assert "3 messages left the view and are in no summary." == full.sentence


def test_a_refused_summary_is_said_in_a_sentence() -> None:
    """The skipped compaction explains why the run ends."""
    events = lane({"use": "whole-or-none"})

    assert ["refused", "skipped", "end"] == [e.kind for e in events]
    assert "does not fit the window itself" in events[1].sentence
