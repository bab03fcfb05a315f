"""Every preset on every real session, in windows of three sizes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from replay.engine import Session
from replay.errors import RewindowError
from replay.find import find, read_found
from replay.policy.base import Capacity
from replay.policy.load import policy, preset_names
from replay.tokens.bytes_count import ByteCounter

pytestmark = pytest.mark.nightly
WINDOWS = (32_000, 128_000, 200_000)


@cache
def sessions(folder: Path) -> tuple[Session, ...]:
    """Every session that can be read below a folder."""
    found = []
    for file in find([str(folder)]):
        try:
            found += [Session(t, ByteCounter()) for t in read_found(file)]
        except RewindowError:
            continue
    return tuple(found)


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_replays_every_real_session(name: str, transcripts: Path) -> None:
    """There is a view for each step of each session, whatever the window; only a refused request ends a lane."""
    chosen = policy(name)
    for session in sessions(transcripts):
        for window in WINDOWS:
            lane = session.replay(chosen, Capacity(window=window, output_reserve=min(chosen.output_reserve, window // 4)))

            assert [s.number for s in session.log.steps] == [v.step for v in lane.views]
            assert (lane.ended is None) == all(e.kind != "end" for e in lane.events)
