"""A ten-message session with given sizes whose numbers were worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from evals.metrics.base import Trial
from evals.metrics.compaction import CompactionEvents
from evals.metrics.integrity import Identification, Pairing
from evals.metrics.size import Churn, ViewSize
from replay.engine import Lane, Session, divergence
from replay.events import Event
from replay.policy.base import Capacity
from replay.policy.load import policy_from
from replay.policy.policy import Policy
from replay.testing import FixedCounter, Script
from replay.transcript import Transcript

SIZES = (200, 50, 3000, 50, 2000, 60, 1500, 80, 40, 30)
STUB = "[stub]"
OVERHEAD = {"name": "overhead", "tokens": 1000}
LINE = 'return dt.strptime(s, "%Y-%m-%d")'
ROOMY = Capacity(window=10_000, output_reserve=1_000)


def golden() -> Transcript:
    """Four tool rounds and a final answer."""
    script = Script().user("Fix parse_date in src/dates.py. Never edit tests/.")
    script.call("Read", '{"file_path":"src/dates.py"}').result(f"def parse_date(s):\n    {LINE}\n")
    script.call("Bash", '{"command":"pytest -q"}').result("ValueError: unconverted data remains")
    script.call("Grep", '{"pattern":"strptime","path":"tests/"}').result("no matches")
    script.call("Edit", f'{{"old_string":{LINE!r}}}').result("edited")
    return script.say("Fixed.").build()


def full() -> Policy:
    """Every message, always."""
    return policy_from({"name": "full", "layers": [OVERHEAD]})


def mask() -> Policy:
    """Every tool result but the newest becomes a stub of ten tokens."""
    rule = {"use": "keep-newest", "keep": 1, "placeholder": {"text": STUB}}
    return policy_from({"name": "mask", "layers": [OVERHEAD], "stages": [{"name": "mask", "tool_results": rule}]})


@pytest.fixture
def session() -> Session:
    """The session, counted by the table."""
    return Session(golden(), FixedCounter(SIZES, {STUB: 10}))


def measured(session: Session, lane: Lane, capacity: Capacity = ROOMY) -> dict[str, float | None]:
    """Every measurement of a lane by name."""
    trial = Trial(session=session, lane=lane, capacity=capacity)
    metrics = (ViewSize(), Churn(), CompactionEvents(), Pairing(), Identification())
    return {m.name: m.value for metric in metrics for m in metric.measure(trial)}


@pytest.mark.parametrize(("policy", "tokens", "prefix"), [
    (full(), (1200, 4250, 6300, 7860, 7980), (0, 1200, 4250, 6300, 7860)),
    (mask(), (1200, 4250, 3310, 2880, 1510), (0, 1200, 1250, 1310, 1380))])
def test_view_tokens_and_common_prefix(session: Session, policy: Policy, tokens: tuple[int, ...],
                                       prefix: tuple[int, ...]) -> None:
    """Sizes of the views and of the prefix that each shares with the one before, overhead included."""
    views = session.replay(policy, ROOMY).views

    assert tokens == tuple(v.counted for v in views)
    assert tokens == tuple(v.figure.tokens for v in views)
    assert prefix == tuple(v.print.common_tokens for v in views)


@pytest.mark.parametrize(("policy", "total", "peak"), [(full(), 27_590, 7_980), (mask(), 13_150, 4_250)])
def test_sum_and_peak(session: Session, policy: Policy, total: int, peak: int) -> None:
    """Masking more than halves the tokens, and the peak falls only to the largest single result."""
    found = measured(session, session.replay(policy, ROOMY))

    assert total == found["input_tokens"]
    assert peak == found["peak_view_tokens"]


def test_overflow_of_a_window_of_6000(session: Session) -> None:
    """Three views exceed 6,000 usable tokens, by 4,140 together, from step 3 on; there the run ends."""
    narrow = Capacity(window=7_000, output_reserve=1_000)
    lane = session.replay(full(), narrow)
    found = measured(session, lane, narrow)

    assert 3 == found["overflow_steps"]
    assert 4140 == found["overflow_excess_tokens"]
    assert 3 == found["first_overflow_step"]
    assert 3 == found["ended_at_step"] == lane.ended
    assert ["sent", "sent", "refused", "unreached", "unreached"] == [v.status for v in lane.views]


def test_no_overflow_under_masking(session: Session) -> None:
    """Masked views fit 6,000 usable tokens at every step."""
    narrow = Capacity(window=7_000, output_reserve=1_000)
    found = measured(session, session.replay(mask(), narrow), narrow)

    assert 0 == found["overflow_steps"]
    assert None is found["first_overflow_step"]


def test_headroom(session: Session) -> None:
    """The fullest view of the full history leaves 1,020 of 9,000 usable tokens."""
    found = measured(session, session.replay(full(), ROOMY))

    assert 1020 == found["headroom_tokens"]
    assert pytest.approx(1020 + 0.2 * 120) == found["headroom_p05_tokens"]


def test_divergence_and_identified_share(session: Session) -> None:
    """Masking first differs at step 3, so two of five steps are exact; the full history never differs."""
    masked, whole = (measured(session, session.replay(p, ROOMY)) for p in (mask(), full()))

    assert (3, 0.4) == (masked["first_divergence"], masked["identified_share"])
    assert (None, 1.0) == (whole["first_divergence"], whole["identified_share"])
    assert None is divergence(session.recorded, session.recorded)


def test_pairing(session: Session) -> None:
    """Stubs keep every call with its result."""
    for policy in (full(), mask()):
        assert 0 == measured(session, session.replay(policy, ROOMY))["pairing_violations"]


def test_churn(session: Session) -> None:
    """The full history only grows; under masking step 3 alone has 62 % of its smaller view new."""
    masked, whole = (measured(session, session.replay(p, ROOMY)) for p in (mask(), full()))
    shares = (1 - 1200 / 1200, 1 - 1250 / 3310, 1 - 1310 / 2880, 1 - 1380 / 1510)

    assert pytest.approx(0.622, abs=5e-4) == shares[1]
    assert pytest.approx(sum(shares) / 4) == masked["view_churn"]
    assert 0 == whole["view_churn"]
    assert 5 == masked["distinct_views"] == whole["distinct_views"]


def test_worked_example_of_a_compaction(session: Session) -> None:
    """From 184,915 to 28,617 tokens: 0.155 of what was there, effective in a window of 200,000."""
    lane = session.replay(full(), ROOMY)
    event = Event(kind="full", step=3, stage="summary", reason="due", tokens_before=184_915, tokens_after=28_617)
    views = tuple(v._replace(events=(event,) if v.step == 3 else ()) for v in lane.views)
    found = measured(session, replace(lane, views=views), Capacity(window=200_000))

    assert 0.155 == pytest.approx(found["compaction_ratio"], abs=5e-4)
    assert 184_915 - 28_617 == found["compaction_gain_tokens"]
    assert 1 == found["compactions_effective"] == found["compactions_planned"]
    assert (0, 0) == (found["compactions_futile"], found["compactions_thrashing"])


def test_compactions_within_three_steps_thrash(session: Session) -> None:
    """Of compactions at steps 1, 2 and 5 the second follows at once and the third just in time."""
    lane = session.replay(full(), ROOMY)
    steps = {n: Event(kind="full", step=n, stage="s", reason="due", tokens_before=100, tokens_after=99) for n in (1, 2, 5)}
    views = tuple(v._replace(events=(steps[v.step],) if v.step in steps else ()) for v in lane.views)
    found = measured(session, replace(lane, views=views))

    assert (2, 0) == (found["compactions_thrashing"], found["compactions_effective"])


def test_events_name_what_was_blanked(session: Session) -> None:
    """Each masking event names the results that it blanked, by log index, with sizes before and after."""
    lane = session.replay(mask(), ROOMY)

    assert [(3, (2,)), (4, (4,)), (5, (6,))] == [(e.step, e.elided) for e in lane.events]
    assert [2990, 1990, 1490] == [e.gain for e in lane.events]
    assert 3 == measured(session, lane)["micro_compactions"]
