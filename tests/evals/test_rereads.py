"""Would-be re-reads, recorded re-reads, what nothing brings back, and the cost of repairs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from evals.caches import cache_model
from evals.costing import Pricing
from evals.metrics.base import Trial
from evals.metrics.repair import RepairAdjustedCost, RepairCost, repair_cost
from evals.metrics.rereads import IrrecoverableShare, RecordedRereads, WouldBeRereads, irrecoverable_share
from evals.needs import Need, evidence, use_needs
from evals.rereading import Repair, classified
from evals.spans import TextSpan
from evals.watch import LOST, watched
from replay.engine import Session
from replay.policy.base import Capacity
from replay.policy.load import policy_from
from replay.policy.policy import Policy
from replay.testing import FixedCounter, Script, summary_message

SIZES = (200, 50, 3000, 50, 2000, 60, 1500, 80, 40, 30)
STUB = "[stub]"
LINE = 'return dt.strptime(s, "%Y-%m-%d")'
ROOMY = Capacity(window=10_000_000)
NAME = TextSpan("identifier", "strptime")


def golden() -> Session:
    """Four tool rounds and a final answer with fixed sizes, needs and weights."""
    script = Script().user("Fix parse_date in src/dates.py. Never edit tests/.")
    script.call("Read", '{"file_path":"src/dates.py"}').result(f"def parse_date(s):\n    {LINE}\n")
    script.call("Bash", '{"command":"pytest -q"}').result("ValueError: unconverted data remains")
    script.call("Grep", '{"pattern":"strptime","path":"tests/"}').result("no matches")
    edit = {"file_path": "src/dates.py", "old_string": LINE, "new_string": "x"}
    script.call("Edit", json.dumps(edit)).result("edited")
    made = Session(script.say("Fixed.").build(), FixedCounter(SIZES, {STUB: 10}))
    use_needs(made, [Need(step=2, span=NAME, weight=1.0), Need(step=2, span=TextSpan("path", "tests/"), weight=0.5),
                     Need(step=3, span=TextSpan("line", LINE), weight=2.0)])
    return made


def full() -> Policy:
    """Every message, always."""
    return policy_from({"name": "full"})


def mask(keep: int = 1) -> Policy:
    """Every tool result but the newest becomes a stub."""
    rule = {"use": "keep-newest", "keep": keep, "placeholder": {"text": STUB}}
    return policy_from({"name": "mask", "stages": [{"name": "mask", "tool_results": rule}]})


def tail(tokens: int) -> Policy:
    """The newest messages alone."""
    return policy_from({"name": "tail", "stages": [{"name": "tail", "cut": {"use": "tokens", "tail_tokens": tokens}}]})


def trial(session: Session, policy: Policy, cache: str = "ideal-prefix") -> Trial:
    """A policy's trial under a stated cache model."""
    lane = session.replay(policy, ROOMY, "empty")
    return Trial(session=session, lane=lane, capacity=ROOMY, pricing=Pricing(cache=cache))


def values(made: Trial, metric: object) -> dict[str, float | None]:
    """Measurements by name."""
    return {m.name: m.value for m in metric.measure(made)}  # type: ignore[attr-defined]


def test_golden_repairs() -> None:
    """Masking forces the read of src/dates.py twice, 3,050 tokens each; nothing is beyond repair."""
    found = values(trial(golden(), mask()), WouldBeRereads())

    assert 2 == found["would_be_rereads"]
    assert 6100 == found["would_be_reread_tokens"]
    assert pytest.approx(40) == found["rereads_per_100_steps"]
    assert 0 == found["irrecoverable_losses"]
    assert 0 == values(trial(golden(), mask()), IrrecoverableShare())["irrecoverable_share"]


def test_full_history_repairs_nothing() -> None:
    """Nothing is lost, nothing is read again."""
    assert 0 == values(trial(golden(), full()), WouldBeRereads())["would_be_rereads"]


def test_a_repetition_serves_until_it_is_evicted() -> None:
    """While the repeated result would still be in view the same source is not read again."""
    script = Script().user("go").call("Read", '{"file_path":"a.py"}').result("strptime first_word second_word")
    for n in range(4):
        script.call("Bash", f'{{"command":"run {n}"}}').result(f"out {n}")
    script.call("Grep", "{}").result("x").call("Grep", "{}").result("y")
    made = Session(script.build(), FixedCounter((10,) * 40))
    spans = [TextSpan("identifier", w) for w in ("first_word", "second_word")]
    use_needs(made, [Need(step=5, span=spans[0], weight=1.0), Need(step=6, span=spans[1], weight=1.0)])

    assert [(5, 7)] == [(r.step, r.gone) for r in watched(trial(made, mask(3))).repairs]
    assert [(5, 6), (6, 7)] == [(r.step, r.gone) for r in watched(trial(made, mask(1))).repairs]


def test_one_source_is_read_once_a_step() -> None:
    """Several losses from one read are one repair; light or nameless ones are none."""
    made = golden()
    use_needs(made, [Need(step=3, span=NAME, weight=1.0), Need(step=3, span=TextSpan("line", LINE), weight=2.0)])
    assert 1 == len(watched(trial(made, mask())).repairs)

    light = Need(step=3, span=NAME, weight=0.4)
    use_needs(made, [light, Need(step=3, span=TextSpan("path", "src/dates.py"), weight=2.0)])
    assert 0 == len(watched(trial(made, mask())).repairs)


def test_a_changed_file_costs_its_latest_known_size() -> None:
    """The repetition brings what the newest read brought."""
    script = Script().user("go").call("Read", '{"file_path":"a.py"}').result("strptime")
    script.call("Read", '{"file_path":"a.py"}').result("longer now")
    for _ in range(3):
        script.call("Bash", '{"command":"x"}').result("y")
    made = Session(script.call("Grep", "{}").result("x").build(), FixedCounter((1, 2, 30, 4, 500, *(1,) * 20)))
    use_needs(made, [Need(step=5, span=NAME, weight=1.0)])

    assert [504] == [r.tokens for r in watched(trial(made, mask())).repairs]


def test_words_of_a_person_are_beyond_repair() -> None:
    """What only a person or the assistant said, no call brings back."""
    script = Script().user("use strptime please").say("I will").user("now go" * 20)
    made = Session(script.call("Grep", "{}").result("x").build(), FixedCounter((10,) * 20))
    use_needs(made, [Need(step=1, span=NAME, weight=1.0)])
    found = trial(made, tail(32))

    assert {"would_be_rereads": 0, "irrecoverable_losses": 1} == {
        n: v for n, v in values(found, WouldBeRereads()).items() if n in ("would_be_rereads", "irrecoverable_losses")}
    assert 1 == values(found, IrrecoverableShare())["irrecoverable_share"]


def test_what_was_written_to_disk_can_be_read_again() -> None:
    """The assistant's own words in a file that it wrote are not beyond repair."""
    script = Script().user("go").call("Write", '{"file_path":"a.py","content":"strptime"}').result("ok").say("done")
    made = Session(script.user("x" * 200).call("Grep", "{}").result("x").build(), FixedCounter((10,) * 20))
    use_needs(made, [Need(step=2, span=NAME, weight=1.0)])

    assert 0 == values(trial(made, tail(50)), IrrecoverableShare())["irrecoverable_share"]


def test_irrecoverable_share_by_weight() -> None:
    """Lost weights of 1 from a person and 3 from a tool: a quarter is beyond repair."""
    script = Script().user("use person_said").call("Bash", '{"command":"x"}').result("tool_said")
    made = Session(script.call("Grep", "{}").result("x").build(), FixedCounter((10,) * 20))
    found = use_needs(made, [Need(step=1, span=TextSpan("identifier", "person_said"), weight=1.0),
                             Need(step=1, span=TextSpan("identifier", "tool_said"), weight=3.0)])

    assert 0.25 == irrecoverable_share(found.needs, bytearray([LOST, LOST]), bytes(2))
    assert None is irrecoverable_share(found.needs, bytearray(2), bytes(2))


def read(script: Script, path: str = "f.py", text: str = "body", **more: int) -> Script:
    """A read of a file or of some of its lines."""
    return script.call("Read", json.dumps({"file_path": path, **more})).result(text)


def kinds(script: Script) -> list[str]:
    """Classes of the recorded reads."""
    return [r.kind for r in classified(evidence(Session(script.build(), FixedCounter((10,) * 80))))]


def test_recorded_reads_are_classified() -> None:
    """First; after an edit changed; then the same again."""
    script = read(Script().user("go"))
    script.call("Edit", '{"file_path":"f.py","old_string":"body","new_string":"b"}').result("ok")

    assert ["first", "changed", "same"] == kinds(read(read(script, text="b"), text="b"))


def test_ranges_of_a_file_are_told_apart() -> None:
    """Other lines are a new range; lines of an earlier whole read are not."""
    ranges = read(read(read(Script().user("go"), offset=1, limit=50), offset=51, limit=50), offset=10, limit=20)

    assert ["first", "new-range", "same"] == kinds(ranges)
    assert ["first", "same"] == kinds(read(read(Script().user("go")), offset=10, limit=20))


def test_other_content_or_a_command_means_changed() -> None:
    """A command that changes the file, or other content than before, explains a read."""
    other = read(read(Script().user("go")), text="other body")
    script = read(Script().user("go")).call("Bash", '{"command":"sed -i s/a/b/ f.py"}').result("")

    assert ["first", "changed"] == kinds(other)
    assert ["first", "changed"] == kinds(read(script))
    assert ["first", "first"] == kinds(read(read(Script().user("go")), path="g.py"))


def test_redundant_reads() -> None:
    """A read whose copy is in view is redundant, also where a compaction kept the copy."""
    script = read(read(Script().user("go")))
    made = values(trial(Session(script.build(), FixedCounter((10,) * 80)), mask(0)), RecordedRereads())
    script.compacted(summary_message("short"), len(script.thread.messages) - 1)
    session = Session(read(script).build(), FixedCounter((10,) * 80))

    assert (2, 1, 1, 0) == tuple(made[f"reads_{n}"] for n in ("recorded", "first", "redundant", "lost_copy"))
    found = values(trial(session, mask(9)), RecordedRereads())
    assert (2, 0) == (found["reads_redundant"], found["rereads_avoided"])


def test_a_lost_copy_that_a_lane_still_hides_is_not_avoided() -> None:
    """Only a lane that shows the copy spares the read."""
    script = read(read(Script().user("go")))
    script.compacted(summary_message("short"))
    session = Session(read(script).build(), FixedCounter((10,) * 80))

    hidden = values(trial(session, mask(0)), RecordedRereads())

    assert (1, 0) == (hidden["reads_lost_copy"], hidden["rereads_avoided"])
    assert 1 == values(trial(session, full()), RecordedRereads())["rereads_avoided"]


def test_cost_of_one_repair() -> None:
    """One more call over the view from the cache, its tokens written once and read in each later request."""
    made = trial(golden(), mask())
    repair = watched(made).repairs[0]
    model = cache_model("ideal-prefix")

    assert (2, 3) == (repair.step, repair.gone)
    assert RepairCost(read=2310, written=3050, output=50) == repair_cost(made, repair)
    assert pytest.approx(2310 * 0.1 + 3050 * 1.25 + 50 * 5) == repair_cost(made, repair).units(model, 5)
    assert RepairCost(read=2310 + 2 * 3050, written=3050, output=50) == repair_cost(
        made, Repair(2, repair.act, 50, 3000, gone=5))


def test_repair_adjusted_cost() -> None:
    """Cost with repairs counted 0, 1 and 2 times lies on a line; dollars are refused where no price is known."""
    made = trial(golden(), mask())
    found = {m.name: m for m in RepairAdjustedCost().measure(made)}
    none, once, twice = (found[f"repair_adjusted_cost{x}"].value for x in ("_x0", "", "_x2"))
    added = sum(repair_cost(made, r).units(made.cost.model, 5) for r in watched(made).repairs)

    assert pytest.approx(made.cost.input_units() + 5 * made.cost.output_tokens) == none
    assert pytest.approx((none + added, none + 2 * added)) == (once, twice)
    assert {"L1"} == {m.level for m in found.values()}
    assert None is found["repair_adjusted_usd"].value
    assert "price" in str(found["repair_adjusted_usd"].reason)


def test_repair_adjusted_cost_in_dollars() -> None:
    """With a known price the dollars grow with the repairs, and without repairs are the plain bill."""
    made = trial(golden(), mask())
    priced = replace(made, pricing=Pricing(cache="ideal-prefix", prices="claude-sonnet-4-5"))
    found = values(priced, RepairAdjustedCost())

    assert priced.cost.usd() == found["repair_adjusted_usd_x0"]
    assert (found["repair_adjusted_usd"] or 0) - priced.cost.usd() == pytest.approx(
        ((found["repair_adjusted_usd_x2"] or 0) - priced.cost.usd()) / 2)


def test_without_a_cache_everything_is_paid_in_full() -> None:
    """Where nothing is cached a repair's tokens cost one unit each."""
    cost = RepairCost(read=100, written=10, output=1)

    assert 115 == cost.units(cache_model("none"), 5)
