"""The recorded view of every step of every file: it renders, and breaks no pairing rule that the file does not break."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from replay.engine import Session, View
from replay.errors import ReadError
from replay.find import find
from replay.invariants import pairing
from replay.readers import read
from replay.testing import FixedCounter
from replay.transcript import Transcript
from replay.view import render, shown_messages
from replay.writers.json_lines import json_bytes

ROOT = Path(__file__).resolve().parents[3]
CUTS_A_PAIR = {("transcript-converted.jsonl", "toolu_01WPSZw21mFgVQ26MpbHSiCW")}
"""Results whose call the file's own checkpoint leaves behind: its first kept message is the second result of two."""


def sessions(folder: Path) -> Iterator[Transcript]:
    """Every session below a folder."""
    for found in find([str(folder)]):
        try:
            yield from read(found.path)
        except ReadError:
            continue


def prepared(transcript: Transcript) -> Session:
    """A session that counts each message as ten."""
    return Session(transcript, FixedCounter((10,) * len(transcript.messages)))


def new_violations(session: Session, view: View) -> set[tuple[str, str]]:
    """Broken rules of a view that the log up to there does not break itself."""
    shown = pairing([s.message for s in shown_messages(session.log, view.window)])
    if not shown:
        return set()
    own = {v.call_id for v in pairing(session.log.messages[:view.window.end])}
    name = Path(session.transcript.path).name
    return {(v.fault, v.call_id) for v in shown if v.call_id not in own and (name, v.call_id) not in CUTS_A_PAIR}


@pytest.mark.parametrize("part", ["transcripts", "bugcases", "corpus"])
def test_real_files_pair_in_every_view(shared: Path, part: str) -> None:
    """Zero violations of pairing that the file itself does not contain, over all steps of all sessions."""
    broken, steps = [], 0
    for transcript in sessions(shared / part):
        session = prepared(transcript)
        steps += len(session.recorded.views)
        broken += [(transcript.path, view.step, found) for view in session.recorded.views
                   if (found := new_violations(session, view))]

    assert [] == broken[:3]
    assert steps > {"transcripts": 2000, "bugcases": 10, "corpus": 5000}[part]


@pytest.mark.parametrize("folder", ["datasets/samples", "tests/replay/readers/seeds"])
def test_bundled_files_pair_and_render(folder: str) -> None:
    """The bundled sessions of all formats: every step renders in every shape."""
    formats = set()
    for transcript in sessions(ROOT / folder):
        session = prepared(transcript)
        formats.add(transcript.format)
        for view in session.recorded.views:
            rendered = [render(session.log, view.window, shape) for shape in ("text", "openai", "anthropic")]

            assert set() == new_violations(session, view)
            assert all(json_bytes(messages) for messages in rendered)
    assert len(formats) >= 6


def test_last_views_of_real_files_render(transcripts: Path) -> None:
    """The views around each recorded compaction and the last view of every session render in every shape."""
    for transcript in sessions(transcripts):
        session = prepared(transcript)
        views = session.recorded.views
        for view in {v.step: v for v in (*[v for v in views if v.events], *views[-1:])}.values():
            for shape in ("text", "openai", "anthropic"):
                assert json_bytes(render(session.log, view.window, shape))
