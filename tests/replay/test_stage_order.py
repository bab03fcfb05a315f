"""Stages behind each other: one that saves enough spares the later ones, and each reports once why it did nothing."""

from __future__ import annotations

import pytest

from replay.engine import Lane, Session
from replay.policy.base import Capacity
from replay.policy.explain import explain
from replay.policy.levels import ByWindow
from replay.policy.load import policy, policy_from
from replay.testing import FixedCounter, Script
from replay.tokens.bytes_count import ByteCounter
from replay.transcript import Usage


def reads(*paths: str) -> Lane:
    """Cline's older extension over a read of each path and a prompt; the last read fills the window."""
    script = Script().user("go")
    for place, path in enumerate(paths, 1):
        full = Usage(input_uncached=170_000 if place == len(paths) else 1_000, output=10)
        script.call("read_file", f'{{"path": "{path}"}}', usage=full).result("x" * 4_000)
    told = script.say("done").build()
    return Session(told, ByteCounter()).replay(policy("cline-legacy"), Capacity(window=200_000), refusals={})


def test_repeated_reads_may_be_enough() -> None:
    """Where all but the newest read of one file go nothing is cut."""
    assert [("micro", "repeated-reads")] == [(e.kind, e.stage) for e in reads(*"aaaaaaaa").events]


def test_a_small_saving_is_not_enough() -> None:
    """One repeated read in eight saves less than three tenths: the older half is dropped too."""
    assert [("micro", "repeated-reads"), ("full", "half")] == [(e.kind, e.stage) for e in reads(*"aabcdefg").events]


def test_where_nothing_is_saved_the_older_half_goes() -> None:
    """The stage without an effect says so, the next one acts."""
    found = [(e.kind, e.stage, e.reason) for e in reads(*"abcdefgh").events]

    assert [("skipped", "repeated-reads", "nothing_to_elide"), ("full", "half", "threshold_exceeded")] == found


@pytest.mark.parametrize(("window", "times", "level"), [
    (64_000, 1, 37_000), (128_000, 1, 98_000), (200_000, 2, 320_000), (100_000, 1, 80_000), (400_000, 1, 360_000)])
def test_levels_of_windows(window: int, times: int, level: int) -> None:
    """A table for three windows; of another one all but 40,000 tokens, or four fifths where that is more."""
    assert level == ByWindow(times=times).level(window)


def test_every_stage_reports_once_why_it_did_nothing() -> None:
    """Two stages that are due at each step and can do nothing make two events, not two at each step."""
    table = {"name": "stuck", "stages": [
        {"name": "blank", "trigger": {"tokens": 1}, "tool_results": {"use": "keep-newest", "keep": 99}},
        {"name": "cut", "trigger": {"tokens": 1}, "cut": {"use": "rounds", "rounds": 99}}]}
    script = Script()
    for _ in range(5):
        script.user("go").say("done")
    lane = Session(script.build(), FixedCounter([10] * 10)).replay(policy_from(table), Capacity(window=1_000))

    assert [("skipped", "blank"), ("skipped", "cut")] == [(e.kind, e.stage) for e in lane.events]


def test_what_is_enough_is_said() -> None:
    """The explanation names the share."""
    assert any("saves 30% of the window nothing else is done" in line for line in explain(policy("cline-legacy")))
