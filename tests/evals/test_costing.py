"""Cache-aware cost: the golden fixture's table under each provider's cache, and laws that hold for any session."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evals.caches import CacheModel, cache_model, serve
from evals.costing import LaneCost, Pricing, summary_units
from evals.metrics.cost import break_even, penalty_units
from replay.engine import Lane, Session
from replay.errors import ConfigError
from replay.policy.base import Capacity
from replay.policy.load import policy_from
from replay.policy.policy import Policy
from replay.testing import FixedCounter, Script
from replay.transcript import Transcript

SIZES = (200, 50, 3000, 50, 2000, 60, 1500, 80, 40, 30)
STUB = "[stub]"
OVERHEAD = {"name": "overhead", "tokens": 1000}
ROOMY = Capacity(window=10_000, output_reserve=1_000)
HOUR = 3600.0


def golden() -> Transcript:
    """Four tool rounds and a final answer."""
    script = Script().user("Fix parse_date in src/dates.py. Never edit tests/.")
    for name in ("Read", "Bash", "Grep", "Edit"):
        script.call(name).result(f"result of {name}")
    return script.say("Fixed.").build()


def policy(masked: bool, keeps_cache: bool = False) -> Policy:
    """Every message, or every tool result but the newest as a stub of ten tokens."""
    rule = {"use": "keep-newest", "keep": 1, "placeholder": {"text": STUB}}
    stages = [{"name": "mask", "tool_results": rule, "keeps_cache": keeps_cache}] if masked else []
    return policy_from({"name": "mask" if masked else "full", "layers": [OVERHEAD], "stages": stages})


def replayed(masked: bool) -> tuple[Session, Lane]:
    """The golden session and a lane of it."""
    session = Session(golden(), FixedCounter(SIZES, {STUB: 10}))
    return session, session.replay(policy(masked), ROOMY)


def billed(cache: str, masked: bool) -> LaneCost:
    """The bill of a lane under a cache model."""
    return LaneCost(*replayed(masked), Pricing(cache=cache))


@pytest.mark.parametrize(("cache", "masked", "steps", "total"), [
    ("ideal-prefix", False, (1500, 3932.5, 2987.5, 2580, 936), 11_936),
    ("ideal-prefix", True, (1500, 3932.5, 2700, 2093.5, 300.5), 10_526.5),
    ("anthropic-bp", False, (1500, 3932.5, 2987.5, 2580, 936), 11_936),
    ("anthropic-bp", True, (1500, 3932.5, 2757.5, 2220, 507.5), 10_917.5),
    ("openai-128", True, (1200, 3213.2, 2273.2, 1728, 358), 8_772.4)])
def test_golden_cost_of_each_step(cache: str, masked: bool, steps: tuple[float, ...], total: float) -> None:
    """Each request's bill in uncached tokens, and their sum, are the ones worked out by hand."""
    cost = billed(cache, masked)

    assert pytest.approx(steps) == tuple(s.units(cost.model) for s in cost.served)
    assert pytest.approx(total) == cost.input_units()


@pytest.mark.parametrize(("cache", "masked", "hits"), [
    ("anthropic-bp", True, (0, 1200, 1200, 1200, 1200)),
    ("openai-128", True, (0, 1152, 1152, 1280, 1280)),
    ("openai-128", False, (0, 1152, 4224, 6272, 7808))])
def test_golden_cache_hits(cache: str, masked: bool, hits: tuple[int, ...]) -> None:
    """What the cache serves: only the first entry outlives masking; OpenAI rounds down to steps of 128."""
    assert hits == tuple(s.read for s in billed(cache, masked).served)


@pytest.mark.parametrize("cache", ["ideal-prefix", "anthropic-bp"])
def test_edits_in_the_providers_cache_break_no_prefix(cache: str) -> None:
    """Masked by the provider in its own cache, each request reads all but what came in since the one before."""
    session = Session(golden(), FixedCounter(SIZES, {STUB: 10}))
    lane = session.replay(policy(True, keeps_cache=True), ROOMY)
    served = LaneCost(session, lane, Pricing(cache=cache)).served

    # 1,000 of overhead and the prompt; then call and result of the newest round come in, older results are 10.
    assert [0, 1200, 1200 + 50 + 10, 1200 + 60 + 50 + 10, 1200 + 120 + 60 + 10] == [s.read for s in served]
    assert [True, True, True] == [e.keeps_cache for e in lane.events]


def test_a_cut_cannot_keep_the_cache() -> None:
    """A stage that cuts and claims to edit the provider's cache is refused with its name."""
    stage = {"name": "cut", "cut": {"use": "messages"}, "keeps_cache": True}

    with pytest.raises(ConfigError, match=r"stages\.cut\.keeps_cache"):
        policy_from({"name": "p", "stages": [stage]})


@pytest.mark.parametrize(("cache", "percent"), [("ideal-prefix", 11.8), ("anthropic-bp", 8.5), ("openai-128", 13.0)])
def test_masking_saves_less_money_than_tokens(cache: str, percent: float) -> None:
    """52.3 % of the tokens are saved, but only about a tenth of the cost."""
    whole, masked = billed(cache, False).input_units(), billed(cache, True).input_units()

    assert percent == round(100 * (1 - masked / whole), 1)


def test_the_whole_history_under_openai() -> None:
    """The full history costs 10,079.6 units where writes cost nothing extra."""
    assert pytest.approx(10_079.6) == billed("openai-128", False).input_units()


ANTHROPIC = CacheModel(name="five minutes", read=0.1, write=1.25)


@pytest.mark.parametrize(("write", "penalty", "steps"), [(1.25, 4_125, 9), (2.0, 7_140, 15)])
def test_worked_example_of_an_elision(write: float, penalty: float, steps: int) -> None:
    """Blanking 4,980 of 12,000 tokens behind 3,000 cached ones saves 498 a step: 9 steps, 15 at the hour's price."""
    model = replace(ANTHROPIC, write=write)

    assert penalty == pytest.approx(penalty_units(model, whole=12_000, taken=4_980, kept=3_000))
    assert steps == break_even(penalty, 498)


def test_nothing_saved_never_pays_back() -> None:
    """A change that costs nothing has paid at once; one that saves nothing never does."""
    assert 0 == break_even(-1, 498)
    assert None is break_even(1, 0)


def test_a_change_of_a_cold_view_is_free() -> None:
    """When the cache has expired the whole view is written anew, so blanking only makes that cheaper."""
    assert -1.25 * 4_980 == pytest.approx(penalty_units(ANTHROPIC, whole=12_000, taken=4_980, kept=0, cold=True))


def test_worked_example_of_a_summary() -> None:
    """3,000 tokens about a view of 160,000: 32,875 units where it shares the agent's prefix, 176,500 where not."""
    shared = summary_units(160_000, 1_500, 3_000, ANTHROPIC, output_price=5.0)

    assert 16_000 + 1_875 + 15_000 == 32_875 == pytest.approx(shared)
    assert 161_500 + 15_000 == 176_500 == summary_units(160_000, 1_500, 3_000, None, output_price=5.0)


def test_worked_example_of_a_full_compaction() -> None:
    """160,000 cached tokens become 8,000 cached and 23,000 new: with the summary's 32,875 it pays after 4 steps."""
    extra = penalty_units(ANTHROPIC, whole=160_000, taken=160_000 - 31_000, kept=8_000)
    summary = summary_units(160_000, 1_500, 3_000, ANTHROPIC, output_price=5.0)

    assert 13_550 == pytest.approx(extra)
    assert 46_425 == pytest.approx(extra + summary)
    assert 4 == break_even(extra + summary, 0.1 * (160_000 - 31_000))


def served_units(model: CacheModel, masked: bool, gaps: list[float]) -> tuple[float, float, float]:
    """Read tokens, units and view tokens of a golden lane whose requests are these seconds apart."""
    views = replayed(masked)[1].views
    times = [sum(gaps[:n]) for n in range(len(views))]
    served = serve(zip(views, times, strict=True), model, 1000.0, "recorded")
    return sum(s.read for s in served), sum(s.units(model) for s in served), sum(v.figure.tokens for v in views)


CACHES = st.sampled_from(("ideal-prefix", "anthropic-bp", "openai-128", "openai-boundary", "gemini-implicit", "none"))


@given(CACHES, st.booleans(), st.lists(st.floats(0, 10 * HOUR), min_size=5, max_size=5))
@settings(max_examples=40, deadline=None)
def test_without_a_discount_cost_is_tokens(cache: str, masked: bool, gaps: list[float]) -> None:
    """Where reading and writing cost what any token costs, the bill is the sum of the views."""
    _, units, tokens = served_units(replace(cache_model(cache), read=1.0, write=1.0), masked, gaps)

    assert pytest.approx(tokens) == units


@given(CACHES, st.booleans(), st.lists(st.floats(HOUR + 1, 9 * HOUR), min_size=5, max_size=5))
@settings(max_examples=40, deadline=None)
def test_requests_further_apart_than_an_entry_lives_hit_nothing(cache: str, masked: bool, gaps: list[float]) -> None:
    """No entry survives a gap longer than its life."""
    model = cache_model(cache)
    if model.ttl_seconds > HOUR:
        model = replace(model, ttl_seconds=HOUR)

    assert 0 == served_units(model, masked, gaps)[0]
